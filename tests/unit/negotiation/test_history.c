/* SPDX-License-Identifier: BSD-2-Clause */
/* The history of a session at both ends: every step of every stage, and no secret. */
#include "oob_rig.h"

#include <jansson.h>
#include <poll.h>

#include "fake_direct.h"

enum { ENTRIES = 64, ADDRESS = 0x5ec2e7a0, TOKEN = 0x6b657973 };

static const struct ndx_spi_proof all = {NDX_PROVED_WHOLE, NDX_PROVED_WHOLE, NDX_OK, 0};
static const struct ndx_spi_proof deaf = {NDX_PROVED_NOTHING, NDX_PROVED_NOTHING, NDX_E_IO_TIMEOUT,
                                          12};

/* A step; -1: any number of bytes. */
struct step {
	enum ndx_history_kind kind;
	enum ndx_stage stage;
	uint32_t round;
	const char *text; /* NULL: any */
	int out;
	int in;
};

enum { WHOLE = (int)sizeof(struct ndx_peer_description) };

static const struct step of_client[] = {
	{NDX_HISTORY_HELLO, NDX_STAGE_INFO, 0, "", 84, 12},
	{NDX_HISTORY_CONNECT, NDX_STAGE_INFO, 0, NULL, 0, 0},
	{NDX_HISTORY_CALL, NDX_STAGE_INFO, 0, "begin", 0, 0},
	{NDX_HISTORY_CALL, NDX_STAGE_INFO, 0, "info", WHOLE, 0},
	{NDX_HISTORY_SENT, NDX_STAGE_INFO, 0, "data", WHOLE, 0},
	{NDX_HISTORY_RECEIVED, NDX_STAGE_INFO, 0, "data", 0, WHOLE},
	{NDX_HISTORY_CALL, NDX_STAGE_INFO, 1, "info", 0, WHOLE},
	{NDX_HISTORY_SENT, NDX_STAGE_INFO, 1, "data", 0, 0},
	{NDX_HISTORY_RECEIVED, NDX_STAGE_INFO, 1, "data", 0, 0},
	{NDX_HISTORY_STAGE, NDX_STAGE_INFO, 1, "info", 0, 0},
	{NDX_HISTORY_SENT, NDX_STAGE_VALIDATE, 0, "validate", 48, 0},
	{NDX_HISTORY_RECEIVED, NDX_STAGE_VALIDATE, 0, "validate", 0, 48},
	{NDX_HISTORY_PROOF, NDX_STAGE_VALIDATE, 0, "written 2 of 2, seen 2 of 2", 0, 0},
	{NDX_HISTORY_SENT, NDX_STAGE_VALIDATE, 0, "proof", 4, 0},
	{NDX_HISTORY_RECEIVED, NDX_STAGE_VALIDATE, 0, "proof", 0, 4},
	{NDX_HISTORY_VERDICT, NDX_STAGE_VALIDATE, 0,
         "packets of the path MTU pass in both directions", 0, 0},
	{NDX_HISTORY_STAGE, NDX_STAGE_VALIDATE, 0, "validate", 0, 0},
	{NDX_HISTORY_CALL, NDX_STAGE_READY, 0, "ready", 0, 0},
	{NDX_HISTORY_SENT, NDX_STAGE_READY, 0, "data", 0, 0},
	{NDX_HISTORY_RECEIVED, NDX_STAGE_READY, 0, "data", 0, 0},
	{NDX_HISTORY_STAGE, NDX_STAGE_READY, 0, "ready", 0, 0},
	{NDX_HISTORY_RECEIVED, NDX_STAGE_READY, 0, "alive", 0, 0}, /* the server's end of it */
	{NDX_HISTORY_SENT, NDX_STAGE_READY, 0, "alive", 0, 0},
	{NDX_HISTORY_CALL, NDX_STAGE_DONE, 0, "done", 0, 0},
	{NDX_HISTORY_SENT, NDX_STAGE_DONE, 0, "data", 0, 0},
	{NDX_HISTORY_RECEIVED, NDX_STAGE_DONE, 0, "data", 0, 0},
	{NDX_HISTORY_STAGE, NDX_STAGE_DONE, 0, "done", 0, 0},
};
#define STEPS (sizeof(of_client) / sizeof(of_client[0]))

static void run_all(struct rig *r, struct ndx_spi_proof server, enum ndx_status status)
{
	offered = (struct ndx_memory_description){
		.address = ADDRESS, .length = 4096, .token = TOKEN, .rkey = 0};
	fake_direct_proves = true;
	fake_direct_proofs[0] = all;
	fake_direct_proofs[1] = server;
	rig_up(r);
	assert_int_equal(ndx_session_run(r->session), status);
	if (status == NDX_OK)
		assert_int_equal(ndx_session_execute(r->session, NDX_STAGE_DONE), NDX_OK);
}

static void end_all(struct rig *r)
{
	rig_down(r);
	fake_direct_proves = false;
	memset(&offered, 0, sizeof(offered));
}

static bool is_step(const struct ndx_history_entry *e, const struct step *s)
{
	return e->kind == s->kind && e->stage == s->stage && e->round == s->round &&
	       (s->text == NULL || strcmp(e->text, s->text) == 0) && e->bytes == (uint32_t)s->out &&
	       e->bytes_in == (uint32_t)s->in;
}

static void it_has_every_step_of_every_stage(void **state)
{
	struct ndx_history_entry e[ENTRIES];
	size_t count = ENTRIES;
	struct rig r;

	(void)state;
	run_all(&r, all, NDX_OK);
	assert_int_equal(ndx_session_get_history(r.session, e, &count, NULL), NDX_OK);
	for (size_t i = 0; i < STEPS; i++) {
		if (i >= count || !is_step(&e[i], &of_client[i]) || e[i].status != NDX_OK)
			fail_msg("entry %zu is %s %s in %s %u, %u out, %u in", i,
			         ndx_history_kind_name(e[i].kind), e[i].text,
			         ndx_stage_name(e[i].stage), e[i].round, e[i].bytes, e[i].bytes_in);
	}
	assert_int_equal(count, STEPS);
	end_all(&r);
}

/* What the messages have said is known here: none of it is in the text, as number or as hex. */
static void has_no_secret(const char *json, const struct rig *r)
{
	static const uint32_t secrets[] = {ADDRESS, TOKEN};
	char text[48];

	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(text, sizeof(text), "%u", secrets[i]);
		assert_null(strstr(json, text));
		(void)snprintf(text, sizeof(text), "%x", secrets[i]);
		assert_null(strstr(json, text));
		(void)snprintf(text, sizeof(text), "%u", ndx_rkey_of_token(secrets[i]));
		assert_null(strstr(json, text));
		(void)snprintf(text, sizeof(text), "%x", ndx_rkey_of_token(secrets[i]));
		assert_null(strstr(json, text));
	}
	for (size_t i = 0; i < 4; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", r->session->cookie[i]);
	assert_null(strstr(json, text));
	assert_null(strstr(json, "rkey"));
	assert_null(strstr(json, "mailbox"));
}

static bool has_step(const json_t *history, const char *what, const char *text)
{
	const json_t *e;
	size_t i;

	json_array_foreach(history, i, e)
	{
		if (strcmp(json_string_value(json_object_get(e, "what")), what) == 0 &&
		    strcmp(json_string_value(json_object_get(e, "text")), text) == 0)
			return true;
	}
	return false;
}

/* The server keeps 16 entries, and tells all of them. */
static void a_snapshot_of_either_end_has_it_and_no_secret(void **state)
{
	json_t *root;
	const json_t *list;
	char *json;
	struct rig r;

	(void)state;
	run_all(&r, all, NDX_OK);
	assert_int_equal(ndx_session_snapshot(r.session, &json), NDX_OK);
	has_no_secret(json, &r);
	root = json_loads(json, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(root, "history")), STEPS);
	json_decref(root);
	free(json);
	assert_int_equal(ndx_negotiation_server_snapshot(r.server, &json), NDX_OK);
	has_no_secret(json, &r);
	root = json_loads(json, 0, NULL);
	list = json_object_get(json_object_get(root, "sessions"), "list");
	list = json_object_get(json_array_get(list, 0), "history");
	assert_int_equal(json_array_size(list), 16);
	assert_true(has_step(list, "prove", "written 2 of 2, seen 2 of 2"));
	assert_true(has_step(list, "call", "ready"));
	assert_true(has_step(list, "stage", "ready"));
	assert_true(has_step(list, "call", "done"));
	json_decref(root);
	free(json);
	end_all(&r);
}

static void a_bad_verdict_is_in_it(void **state)
{
	struct ndx_history_entry e[ENTRIES];
	size_t count = ENTRIES;
	bool found = false;
	bool told = false;
	struct rig r;

	(void)state;
	run_all(&r, deaf, NDX_E_HOST_UNREACHABLE);
	assert_int_equal(ndx_session_get_history(r.session, e, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++) {
		found |= e[i].kind == NDX_HISTORY_VERDICT &&
		         e[i].status == NDX_E_HOST_UNREACHABLE &&
		         strstr(e[i].text, "do not pass from client to server") != NULL;
		told |= e[i].kind == NDX_HISTORY_SENT && e[i].status == NDX_E_HOST_UNREACHABLE &&
		        strcmp(e[i].text, "error") == 0;
	}
	assert_true(found);
	assert_true(told);
	end_all(&r);
}

/* How many frames of that name; a goodbye that is an abort has a status. */
static unsigned count_words(const struct ndx_session *s, enum ndx_history_kind kind,
                            const char *text, enum ndx_status status)
{
	struct ndx_history_entry e[ENTRIES];
	size_t count = ENTRIES;
	unsigned n = 0;

	assert_int_equal(ndx_session_get_history(s, e, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++) {
		if (e[i].kind != kind || strcmp(e[i].text, text) != 0)
			continue;
		assert_int_equal(e[i].status, status);
		assert_int_equal(e[i].stage, NDX_STAGE_READY);
		assert_int_equal(e[i].round, 0);
		assert_int_equal(e[i].bytes + e[i].bytes_in, 0);
		assert_true(i == 0 || e[i].at_us >= e[i - 1].at_us);
		n++;
	}
	return n;
}

/* One goodbye, or one abort, which may have an abort as its answer. */
static void has_word(const struct ndx_session *s, enum ndx_history_kind kind,
                     enum ndx_status status)
{
	unsigned n = 0;

	for (int ms = 0; ms < WAIT_MS && n == 0; ms++) {
		n = count_words(s, kind, "goodbye", status);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(n, 1);
}

static void the_goodbyes_of_the_connection_are_in_it(void **state)
{
	struct rig r;

	(void)state;
	rig_run(&r);
	disconnect_both(&r.b, &r.a);
	for (int i = 0; i < 2; i++) {
		has_word(i == 0 ? r.session : r.theirs, NDX_HISTORY_SENT, NDX_OK);
		has_word(i == 0 ? r.session : r.theirs, NDX_HISTORY_RECEIVED, NDX_OK);
	}
	rig_down(&r);
	rig_run(&r);
	assert_int_equal(ndx_qp_flush(r.b.qp), NDX_OK);
	indicated(&r.a, NDX_DISCONNECT_ABORTED);
	has_word(r.session, NDX_HISTORY_RECEIVED, NDX_E_CONNECTION_ABORTED);
	has_word(r.theirs, NDX_HISTORY_SENT, NDX_E_CONNECTION_ABORTED);
	rig_down(&r);
}

static void is_end_of_session(const struct ndx_history_entry *e, enum ndx_history_kind kind)
{
	assert_int_equal(e->kind, kind);
	assert_string_equal(e->text, "session end");
	assert_int_equal(e->status, NDX_OK);
	assert_int_equal(e->stage, NDX_STAGE_READY);
}

static void the_end_of_the_session_is_in_it(void **state)
{
	struct rig r;

	(void)state;
	rig_run(&r);
	disconnect_both(&r.a, &r.b);
	ndx_session_close(r.session);
	r.session = NULL;
	wait_closed(&r);
	is_end_of_session(&r.theirs_latest, NDX_HISTORY_RECEIVED);
	rig_down(&r);
	/* the connection is over, the client stays, and the server ends the session */
	stage_ms = 2000; /* also for what must succeed */
	rig_run(&r);
	stage_ms = 0;
	disconnect_both(&r.a, &r.b);
	wait_closed(&r);
	is_end_of_session(&r.theirs_latest, NDX_HISTORY_SENT);
	/* also while the client does nothing, and once, though its next stage reads it again */
	for (int ms = 0; ms < WAIT_MS &&
	                 count_words(r.session, NDX_HISTORY_RECEIVED, "session end", NDX_OK) == 0;
	     ms++)
		(void)poll(NULL, 0, 1);
	assert_int_not_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
	assert_int_equal(count_words(r.session, NDX_HISTORY_RECEIVED, "session end", NDX_OK), 1);
	rig_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_every_step_of_every_stage),
		cmocka_unit_test(a_snapshot_of_either_end_has_it_and_no_secret),
		cmocka_unit_test(a_bad_verdict_is_in_it),
		cmocka_unit_test(the_goodbyes_of_the_connection_are_in_it),
		cmocka_unit_test(the_end_of_the_session_is_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
