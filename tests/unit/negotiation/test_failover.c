/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server, a process of its own, is killed while it is in stage info with a client: the client
 * waits, finds no server, goes over to the backup at once and completes; its history has it all.
 */
#include "says.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ndx/negotiation_server.h>
#include <ndx/session.h>

#include "same_plugin.h"

enum { MESSAGE = 64, ROUNDS = 3, ENTRIES = 64 };

/* Of the server that is to be killed: its plugin says where it is and does not come back. */
static int told = -1;

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)peer;
	(void)length;
	if (told >= 0 && x->round == 1) {
		(void)!write(told, "i", 1);
		for (;;)
			(void)pause();
	}
	memset(reply->data, 'x', MESSAGE);
	reply->length = MESSAGE;
	reply->completed = x->round + 1 == ROUNDS;
	return NDX_OK;
}

static const struct ndx_variant_ops ops = {.info = info, .ready = same_ready, .reset = same_reset};
static const struct ndx_plugin_variant only = {.name = "only", .help = "test", .ops = &ops};
static const struct ndx_plugin plugin = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(struct ndx_plugin),
                                         .name = "steady",
                                         .version = "1",
                                         .vendor = "test",
                                         .list = &only,
                                         .count = 1};

struct site {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server; /* NULL: a client's */
	char address[64];
};

static void site_open(struct site *s, bool serves)
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	memset(s, 0, sizeof(*s));
	assert_int_equal(ndx_negotiation_create(&s->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(s->negotiation, &plugin), NDX_OK);
	assert_int_equal(
		ndx_negotiation_get_variant(s->negotiation, "steady", "only", NULL, 0, &s->variant),
		NDX_OK);
	if (!serves)
		return;
	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &s->variant;
	attr.variant_count = 1;
	assert_int_equal(ndx_negotiation_server_create(&attr, &s->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(s->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", ntohs(at.sin_port));
}

static void site_close(struct site *s)
{
	ndx_negotiation_server_close(s->server);
	ndx_variant_close(s->variant);
	assert_int_equal(ndx_negotiation_close(s->negotiation), NDX_OK);
}

/* Before there is any thread: the first server's process. Its address comes first, then an "i". */
static pid_t primary_start(int *from, char address[64])
{
	struct site site;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(ends[0]);
		site_open(&site, true);
		told = ends[1];
		(void)!write(told, site.address, sizeof(site.address));
		for (;;)
			(void)pause();
	}
	(void)close(ends[1]);
	*from = ends[0];
	assert_int_equal(read(*from, address, 64), 64);
	return pid;
}

static void *run_session(void *session)
{
	static enum ndx_status status;

	status = ndx_session_run(session);
	return &status;
}

/* The first entry of that kind, text and success from *at on; goes past it. */
static bool find(const struct ndx_history_entry *list, size_t count, size_t *at,
                 enum ndx_history_kind kind, const char *text, bool well)
{
	for (; *at < count; (*at)++) {
		const struct ndx_history_entry *e = &list[*at];

		if (e->kind != kind || (text != NULL && strcmp(e->text, text) != 0) ||
		    (e->status == NDX_OK) != well)
			continue;
		print_message("%9.3f ms: %s %s, %.3f ms: %s\n", (double)e->at_us / 1e3,
		              ndx_history_kind_name(kind), e->text, (double)e->duration_us / 1e3,
		              ndx_status_name(e->status));
		(*at)++;
		return true;
	}
	return false;
}

static void a_server_killed_in_stage_info_is_replaced_by_the_backup(void **state)
{
	char primary[64];
	int from;
	const pid_t pid = primary_start(&from, primary);
	struct ndx_history_entry list[ENTRIES];
	struct ndx_session *session = NULL;
	struct ndx_session_attr attr;
	const char *servers[2] = {primary, NULL};
	struct site backup;
	struct site client;
	pthread_t thread;
	void *status;
	size_t count;
	size_t at = 0;
	char where;

	(void)state;
	site_open(&backup, true);
	site_open(&client, false);
	servers[1] = backup.address;
	ndx_session_attr_init(&attr);
	attr.variant = client.variant;
	attr.servers = servers;
	attr.server_count = 2;
	attr.backoff_ms = 20;
	assert_int_equal(ndx_session_create(&attr, &session), NDX_OK);
	assert_int_equal(pthread_create(&thread, NULL, run_session, session), 0);
	assert_int_equal(read(from, &where, 1), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(pthread_join(thread, &status), 0);
	assert_int_equal(*(enum ndx_status *)status, NDX_OK);
	assert_string_equal(ndx_session_get_server(session), backup.address);
	count = ENTRIES;
	assert_int_equal(ndx_session_get_history(session, list, &count, NULL), NDX_OK);
	assert_true(find(list, count, &at, NDX_HISTORY_CONNECT, primary, true));
	assert_true(find(list, count, &at, NDX_HISTORY_BACKOFF, NULL, true));
	assert_true(list[at - 1].duration_us >= 10000);
	assert_true(find(list, count, &at, NDX_HISTORY_CONNECT, primary, false));
	assert_int_equal(list[at].kind, NDX_HISTORY_HELLO);
	assert_int_equal(list[at + 1].kind, NDX_HISTORY_CONNECT);
	assert_true(find(list, count, &at, NDX_HISTORY_CONNECT, backup.address, true));
	assert_true(find(list, count, &at, NDX_HISTORY_STAGE, "info", true));
	assert_true(find(list, count, &at, NDX_HISTORY_STAGE, "ready", true));
	ndx_session_close(session);
	site_close(&client);
	site_close(&backup);
	(void)close(from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_killed_in_stage_info_is_replaced_by_the_backup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
