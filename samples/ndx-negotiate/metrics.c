/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a server for Prometheus, in its text format 0.0.4. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sessions.h"

#define PREFIX "ndx_negotiation_"

struct metric {
	const char *name;
	const char *help;
	json_int_t value;
};

static void print_head(const char *name, const char *help, const char *type)
{
	printf("# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void print(const struct metric *list, size_t count, const char *type)
{
	for (size_t i = 0; i < count; i++) {
		print_head(list[i].name, list[i].help, type);
		printf(PREFIX "%s %" JSON_INTEGER_FORMAT "\n", list[i].name, list[i].value);
	}
}

/** Whether a name of the server can be the value of a label as it stands. */
static bool is_plain(const char *name)
{
	return name[0] != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name);
}

static void print_waits(json_t *waits)
{
	const char *name;
	json_t *count;

	print_head("sessions_waiting", "Sessions at present, by what they wait for.", "gauge");
	json_object_foreach(waits, name, count)
	{
		if (is_plain(name) && json_is_integer(count))
			printf(PREFIX "sessions_waiting{for=\"%s\"} %" JSON_INTEGER_FORMAT "\n",
			       name, json_integer_value(count));
	}
}

void metrics_print(const struct told *told)
{
	const struct metric counters[] = {
		{"connections_accepted_total", "Connections that were accepted.", told->accepted},
		{"connections_without_hello_total", "Connections without a valid hello message.",
	         told->without_hello},
		{"sessions_refused_total",
	         "Sessions refused: too many, no such variant, or no resources.", told->refused},
		{"sessions_completed_total", "Sessions that reached the end of stage ready.",
	         told->completed},
		{"sessions_failed_total", "Sessions that failed, before or after stage ready.",
	         told->failed},
		{"sessions_refused_address_total",
	         "Connections of addresses with too many connections without hello.",
	         told->refused_addresses},
		{"sessions_refused_principal_total", "Sessions beyond a limit of their principal.",
	         told->refused_principals},
		{"sessions_refused_variant_total", "Sessions without a grant for the variant.",
	         told->refused_variants},
		{"sessions_refused_identity_total",
	         "Attempts to go on with a session of another identity.", told->refused_identities},
		{"sessions_refused_handshake_total",
	         "Connections beyond the limit of handshakes a second.", told->refused_handshakes},
		{"sessions_resumed_total", "Sessions that got a new transport during a stage.",
	         told->resumed},
	};
	const struct metric gauges[] = {
		{"sessions", "Sessions at present.", told->total},
		{"sessions_closing", "Sessions that are over and whose clean-up has not ended.",
	         told->closing},
		{"sessions_max", "Limit of sessions and closing sessions together.",
	         told->max_sessions},
		{"pool_threads", "Threads of the pool for plugins at present.", told->threads},
		{"pool_threads_idle", "Threads of the pool without a task.", told->idle},
		{"pool_threads_max", "Limit of the pool's threads.", told->workers_most},
		{"pool_tasks_queued", "Tasks that wait for a thread of the pool.", told->queued},
	};

	print(counters, sizeof(counters) / sizeof(counters[0]), "counter");
	print(gauges, sizeof(gauges) / sizeof(gauges[0]), "gauge");
	print_waits(told->waits);
}
