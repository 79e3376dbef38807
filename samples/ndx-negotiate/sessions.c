/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-negotiate sessions: asks a server over its control socket what its sessions are doing. */
#include "sessions.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control_socket.h"
#include "negotiate.h"
#include "sample_clock.h"
#include "sample_json.h"
#include "sample_options.h"
#include "sample_report.h"

static const char name[] = "ndx-negotiate sessions";

#define FORMAT 1                       /* of the snapshot */
#define ANSWER_MOST ((size_t)64 << 20) /* bytes */
#define CELL 64                        /* bytes of a text that is shown */

/* ---- the answer ---- */

/** The server's queue may be full for a moment; -1: explained. */
static int connect_to(const char *path, uint64_t deadline_ms)
{
	const struct timespec moment = {.tv_nsec = 20000000L};
	struct sockaddr_un at;
	int error = 0;
	int fd;

	if (!control_address(name, path, &at))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	while (fd >= 0) {
		if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
			return fd;
		error = errno;
		if ((error != EAGAIN && error != EINTR) || sample_now_ms() >= deadline_ms)
			break;
		(void)nanosleep(&moment, NULL);
	}
	error = fd < 0 ? errno : error;
	if (fd >= 0)
		(void)close(fd);
	fprintf(stderr, "%s: %s: %s%s\n", name, path, strerror(error),
	        error == ENOENT         ? "; a server makes the socket with --control"
	        : error == ECONNREFUSED ? "; the server that made the socket has ended"
	                                : "");
	return -1;
}

static bool grow(char **text, size_t used, size_t *room)
{
	char *more;

	if (used < *room)
		return true;
	*room = *room == 0 ? 65536 : 2 * *room;
	more = *room <= ANSWER_MOST ? realloc(*text, *room) : NULL;
	if (more != NULL)
		*text = more;
	return more != NULL;
}

/** Read up to the end. NULL: the answer is complete; else what is wrong. */
static const char *read_all(int fd, uint64_t deadline_ms, char **text, size_t *used)
{
	size_t room = 0;

	for (;;) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		const uint64_t now = sample_now_ms();
		ssize_t n;

		if (now >= deadline_ms)
			return "no complete answer in time, see --timeout";
		if (!grow(text, *used, &room))
			return "the answer is longer than 64 MiB";
		(void)poll(&wait, 1, (int)(deadline_ms - now));
		n = recv(fd, *text + *used, room - *used, 0);
		if (n == 0)
			return NULL;
		if (n > 0)
			*used += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return strerror(errno);
	}
}

/** What is shown of the text; false: explained. */
static bool understand(const char *path, const char *text, size_t length, struct told *t)
{
	json_error_t why = {.text = ""};
	int format = 0;

	t->root = json_loadb(text, length, 0, &why);
	if (t->root != NULL && json_unpack(t->root, "{s:i}", "snapshot", &format) == 0 &&
	    format != FORMAT) {
		fprintf(stderr, "%s: %s: the server speaks format %d, this program knows %d\n",
		        name, path, format, FORMAT);
		return false;
	}
	if (t->root != NULL &&
	    json_unpack_ex(t->root, &why, 0,
	                   "{s:i, s:s, s:{s:I, s:I, s:I, s:I, s:I, s:I, s?I, s?I, s?I, s?I, s?I},"
	                   " s:{s:I, s:I},"
	                   " s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:o, s:o}}",
	                   "snapshot", &format, "address", &t->address, "counters", "accepted",
	                   &t->accepted, "refused", &t->refused, "without_hello", &t->without_hello,
	                   "completed", &t->completed, "failed", &t->failed, "resumed", &t->resumed,
	                   "refused_addresses", &t->refused_addresses, "refused_principals",
	                   &t->refused_principals, "refused_variants", &t->refused_variants,
	                   "refused_identities", &t->refused_identities, "refused_handshakes",
	                   &t->refused_handshakes, "limits", "max_sessions", &t->max_sessions,
	                   "workers_most", &t->workers_most, "pool", "threads", &t->threads, "idle",
	                   &t->idle, "queued", &t->queued, "sessions", "total", &t->total, "listed",
	                   &t->listed, "closing", &t->closing, "waits", &t->waits, "list",
	                   &t->list) == 0 &&
	    json_is_object(t->waits) && json_is_array(t->list))
		return true;
	fprintf(stderr, "%s: %s: what listens there is no server of ndx-negotiate%s%.160s\n", name,
	        path, why.text[0] != '\0' ? ": " : "", why.text);
	return false;
}

static int ask(const char *path, uint32_t timeout_ms, struct told *told)
{
	const uint64_t deadline_ms = sample_now_ms() + timeout_ms;
	const int fd = connect_to(path, deadline_ms);
	char *text = NULL;
	size_t length = 0;
	const char *why;
	int rc = SAMPLE_EXIT_FAILED;

	if (fd < 0)
		return SAMPLE_EXIT_FAILED;
	why = read_all(fd, deadline_ms, &text, &length);
	(void)close(fd);
	if (why != NULL)
		fprintf(stderr, "%s: %s: %s\n", name, path, why);
	else if (understand(path, text, length, told))
		rc = SAMPLE_EXIT_OK;
	free(text);
	return rc;
}

/* ---- the table ---- */

/** A text of the server for a terminal. */
static const char *plain(const char *text, char cell[CELL])
{
	(void)snprintf(cell, CELL, "%s", text != NULL ? text : "-");
	for (char *p = cell; *p != '\0'; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
	return cell;
}

static json_int_t number(const json_t *of, const char *key)
{
	return json_integer_value(json_object_get(of, key));
}

static const char *text_of(const json_t *of, const char *key, char cell[CELL])
{
	return plain(json_string_value(json_object_get(of, key)), cell);
}

/** "certificate:client.example", "key:alice"; "plaintext" without TLS, "-" before hello. */
static const char *principal_of(const json_t *s, char both[2 * CELL])
{
	char by[CELL], who[CELL];
	const char *known = text_of(s, "principal", who);

	if (json_is_string(json_object_get(s, "principal_by")))
		(void)snprintf(both, (size_t)2 * CELL, "%s:%s", text_of(s, "principal_by", by),
		               known);
	else
		(void)snprintf(both, (size_t)2 * CELL, "%s", known);
	return both;
}

static void print_row(const json_t *s)
{
	char client[CELL], plugin[CELL], variant[CELL], state[CELL], stage[CELL], wait[CELL];
	char both[2 * CELL], principal[2 * CELL];
	const json_t *agreed = json_object_get(s, "agreed");

	(void)snprintf(both, sizeof(both), "%s/%s", text_of(s, "plugin", plugin),
	               text_of(s, "variant", variant));
	printf("%6" JSON_INTEGER_FORMAT "  %-22s %-26s %-20s %-10s %-8s %5" JSON_INTEGER_FORMAT
	       " %10.3f  %-9s %10.3f %8" JSON_INTEGER_FORMAT " %8" JSON_INTEGER_FORMAT,
	       number(s, "id"), text_of(s, "client", client), principal_of(s, principal), both,
	       text_of(s, "state", state), text_of(s, "stage", stage), number(s, "round"),
	       (double)number(s, "age_us") / 1e6, text_of(s, "waits_for", wait),
	       (double)number(s, "waits_us") / 1e6, number(json_object_get(s, "sent"), "bytes"),
	       number(json_object_get(s, "received"), "bytes"));
	if (json_is_object(agreed))
		printf("  MTU %" JSON_INTEGER_FORMAT ", reads %" JSON_INTEGER_FORMAT
		       " and %" JSON_INTEGER_FORMAT "\n",
		       number(agreed, "mtu"), number(agreed, "client_reads"),
		       number(agreed, "server_reads"));
	else
		printf("  -\n");
}

static void print_table(const struct told *t)
{
	char address[CELL];
	const json_t *session;
	size_t i;

	printf("server %s: sessions %" JSON_INTEGER_FORMAT " of at most %" JSON_INTEGER_FORMAT
	       ", closing %" JSON_INTEGER_FORMAT "; completed %" JSON_INTEGER_FORMAT
	       ", failed %" JSON_INTEGER_FORMAT ", refused %" JSON_INTEGER_FORMAT
	       ", without hello %" JSON_INTEGER_FORMAT ", resumed %" JSON_INTEGER_FORMAT "\n",
	       plain(t->address, address), t->total, t->max_sessions, t->closing, t->completed,
	       t->failed, t->refused, t->without_hello, t->resumed);
	printf("pool: threads %" JSON_INTEGER_FORMAT " of at most %" JSON_INTEGER_FORMAT
	       ", idle %" JSON_INTEGER_FORMAT "; queued tasks %" JSON_INTEGER_FORMAT "\n",
	       t->threads, t->workers_most, t->idle, t->queued);
	if (t->total > 0)
		printf("%6s  %-22s %-26s %-20s %-10s %-8s %5s %10s  %-9s %10s %8s %8s  %s\n", "ID",
		       "CLIENT", "PRINCIPAL", "PLUGIN/VARIANT", "STATE", "STAGE", "ROUND", "AGE s",
		       "WAITS FOR", "SINCE s", "SENT", "RECEIVED", "AGREED");
	json_array_foreach(t->list, i, session)
	{
		print_row(session);
	}
	if (t->total > t->listed)
		printf("%" JSON_INTEGER_FORMAT " younger sessions are not listed\n",
		       t->total - t->listed);
}

/* ---- the command ---- */

static int show(const struct told *told, bool metrics)
{
	if (metrics)
		metrics_print(told);
	else
		print_table(told);
	return sample_end(name, SAMPLE_EXIT_OK);
}

int sessions_main(int argc, char **argv)
{
	uint32_t timeout_ms = 5000;
	const char *json = NULL;
	bool metrics = false;
	const struct sample_option options[] = {
		SAMPLE_ROW_JSON(json),
		{"--metrics", NULL, "the counters, for Prometheus (text format 0.0.4)",
	         .flag = &metrics},
		{"--timeout", "MS", "for the whole answer (5000)", .number = &timeout_ms, .min = 1,
	         .max = 1u << 30},
	};
	const struct sample_program program = {
		.name = name,
		.synopsis = "FILE [options]",
		.about = "Shows the sessions of a server: FILE is the socket that\n"
			 "ndx-negotiate server --control FILE listens on.",
		.details =
			"Times are in seconds, SENT and RECEIVED in bytes of messages.\n"
			"A session waits for:\n"
			"  hello      the client's first message\n"
			"  peer       the client's next message\n"
			"  send       the client to read\n"
			"  thread     a thread of the pool\n"
			"  call       a function of the plugin or the server, which is running\n"
			"  connect    the queue pair\n"
			"  proof      the proof of the path between the queue pairs\n"
			"  transport  the client, whose transport broke\n"
			"  idle       the client, which may end the session or begin stage done\n"
			"  close      the client, which has been told the end\n"
			"  turn       nothing",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 1,
	};
	struct told told = {.root = NULL};
	size_t operands;
	FILE *out;
	int rc;

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	if (operands == 0)
		return sample_usage(&program, "say the FILE of --control");
	if (json != NULL && metrics)
		return sample_usage(&program, "say --json or --metrics, not both");
	rc = sample_json_open(name, json, &out);
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	rc = ask(argv[1], timeout_ms, &told);
	if (rc == SAMPLE_EXIT_OK && out == NULL)
		rc = show(&told, metrics);
	return sample_json_end(name, out, told.root, rc);
}
