/* SPDX-License-Identifier: BSD-2-Clause */
/* The proof of the path in stage validate, of two ends whose adapter says what has passed. */
#include "oob_rig.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <ndx/spi/system.h>

#include "fake_direct.h"
#include "same_plugin.h"

static const struct ndx_spi_proof nothing = {.status = NDX_PENDING};
static const struct ndx_spi_proof all = {NDX_PROVED_WHOLE, NDX_PROVED_WHOLE, NDX_OK, 0};
/* The own writes are lost; the peer's have arrived. */
static const struct ndx_spi_proof deaf_peer = {NDX_PROVED_NOTHING, NDX_PROVED_WHOLE,
                                               NDX_E_IO_TIMEOUT, 12};
static const struct ndx_spi_proof deaf = {NDX_PROVED_NOTHING, NDX_PROVED_NOTHING, NDX_E_IO_TIMEOUT,
                                          12};

static const struct ndx_spi_proof nothing_written = {NDX_PROVED_NOTHING, NDX_PROVED_WHOLE,
                                                     NDX_E_REMOTE_ERROR, 5};

static void rig_up_with(struct rig *r, struct ndx_spi_proof client, struct ndx_spi_proof server)
{
	fake_direct_proves = true;
	fake_direct_proofs[0] = client;
	fake_direct_proofs[1] = server;
	__atomic_store_n(&fake_direct_looks, 0, __ATOMIC_SEQ_CST);
	rig_up(r);
}

static void rig_down_with(struct rig *r)
{
	rig_down(r);
	fake_direct_proves = false;
}

static unsigned count_proofs(const struct ndx_session *s)
{
	struct ndx_history_entry entries[64];
	size_t count = sizeof(entries) / sizeof(entries[0]);
	unsigned n = 0;

	assert_int_equal(ndx_session_get_history(s, entries, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++)
		n += entries[i].kind == NDX_HISTORY_PROOF;
	return n;
}

static void a_path_that_passes_is_recorded(void **state)
{
	struct rig r;

	(void)state;
	rig_up_with(&r, all, all);
	assert_int_equal(ndx_session_run(r.session), NDX_OK);
	assert_int_equal(count_proofs(r.session), 1);
	assert_int_equal(__atomic_load_n(&fake_direct_looks, __ATOMIC_SEQ_CST), 2);
	watch(&r.a);
	watch(&r.b);
	disconnect_both(&r.a, &r.b);
	rig_down_with(&r);
}

static void nothing_is_proved_without_the_provider(void **state)
{
	struct rig r;

	(void)state;
	rig_run(&r);
	assert_int_equal(count_proofs(r.session), 0);
	disconnect_both(&r.a, &r.b);
	rig_down(&r);
}

static void fails_in_validate(struct rig *r, enum ndx_status status, const char *text)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	assert_int_equal(ndx_session_run(r->session), status);
	assert_int_equal(ndx_session_get_error(r->session, &e), NDX_OK);
	assert_int_equal(e.layer, NDX_LAYER_PROVIDER);
	assert_int_equal(e.stage, NDX_STAGE_VALIDATE);
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.text, text);
}

static void the_direction_that_fails_is_named(void **state)
{
	struct rig r;

	(void)state;
	rig_up_with(&r, deaf_peer, deaf);
	fails_in_validate(&r, NDX_E_HOST_UNREACHABLE, "do not pass from client to server");
	rig_down_with(&r);
	rig_up_with(&r, deaf, deaf_peer);
	fails_in_validate(&r, NDX_E_HOST_UNREACHABLE, "do not pass from server to client");
	rig_down_with(&r);
	rig_up_with(&r, deaf, deaf);
	fails_in_validate(&r, NDX_E_HOST_UNREACHABLE, "pass in neither direction");
	rig_down_with(&r);
}

/* The server's writes have ended, but what the client writes does not arrive: the core asks until
 * the time is over. */
static void what_does_not_arrive_is_waited_for(void **state)
{
	struct ndx_spi_proof server = all;
	struct rig r;

	(void)state;
	server.seen = NDX_PROVED_SMALL;
	stage_ms = 1000;
	rig_up_with(&r, all, server);
	stage_ms = 0;
	fails_in_validate(&r, NDX_E_HOST_UNREACHABLE,
	                  "packets of the path MTU, 1024 bytes, do not pass from client to server");
	assert_true(__atomic_load_n(&fake_direct_looks, __ATOMIC_SEQ_CST) > 50);
	rig_down_with(&r);
}

/* The end whose device refuses a write knows at once, whatever the writer knows. */
static void a_refusal_is_not_waited_for(void **state)
{
	struct ndx_spi_proof server = all;
	struct rig r;

	(void)state;
	server.seen = NDX_PROVED_REFUSED;
	rig_up_with(&r, nothing_written, server);
	fails_in_validate(&r, NDX_E_ACCESS_VIOLATION,
	                  "do not pass from client to server: the device there refuses the key");
	assert_true(__atomic_load_n(&fake_direct_looks, __ATOMIC_SEQ_CST) < 10);
	rig_down_with(&r);
}

static void *run_session(void *session)
{
	return (void *)(intptr_t)ndx_session_run(session);
}

static void start_and_wait_for_looks(struct rig *r, pthread_t *thread)
{
	assert_int_equal(pthread_create(thread, NULL, run_session, r->session), 0);
	for (int ms = 0; __atomic_load_n(&fake_direct_looks, __ATOMIC_SEQ_CST) < 5; ms++) {
		assert_true(ms < AWAIT_MS);
		(void)poll(NULL, 0, 1);
	}
}

static void a_cancel_ends_the_proof(void **state)
{
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	rig_up_with(&r, nothing, nothing);
	start_and_wait_for_looks(&r, &thread);
	ndx_session_cancel(r.session);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_int_equal((intptr_t)st, NDX_E_CANCELED);
	rig_down_with(&r);
}

/* With what was known then. */
static void the_end_of_the_connection_ends_the_proof(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	rig_up_with(&r, nothing, nothing);
	start_and_wait_for_looks(&r, &thread);
	assert_int_equal(ndx_qp_flush(r.a.qp), NDX_OK);
	assert_int_equal(ndx_qp_flush(r.b.qp), NDX_OK);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_true((intptr_t)st < 0);
	assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
	assert_int_equal(e.stage, NDX_STAGE_VALIDATE);
	rig_down_with(&r);
}

static void the_end_of_the_server_ends_the_proof(void **state)
{
	pthread_t thread;
	struct rig r;
	void *st;

	(void)state;
	rig_up_with(&r, nothing, nothing);
	start_and_wait_for_looks(&r, &thread);
	ndx_negotiation_server_close(r.server);
	r.server = NULL;
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_true((intptr_t)st < 0);
	await(&r.closed);
	assert_int_equal(r.theirs_error.status, NDX_E_CANCELED);
	assert_string_equal(r.theirs_error.text, "the server ends");
	rig_down_with(&r);
}

/* A session whose plugin cannot begin anew does not outlive its transport. */
static const struct ndx_variant_ops once = {.info = same_info, .ready = same_ready};
static const struct ndx_plugin_variant once_only = {.name = "once", .help = "test", .ops = &once};
static const struct ndx_plugin without_reset = {.abi = NDX_PLUGIN_ABI,
                                                .size = sizeof(struct ndx_plugin),
                                                .name = "once",
                                                .version = "1",
                                                .vendor = "test",
                                                .list = &once_only,
                                                .count = 1};

/* Not when the time for the proof is over, which is 3 s. */
static void a_lost_transport_ends_the_proof_at_once(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	const uint64_t limit_ns = UINT64_C(2500000000);
	pthread_t thread;
	uint64_t since;
	struct rig r;
	void *st;

	(void)state;
	rig_plugin = &without_reset;
	rig_up_with(&r, nothing, nothing);
	rig_plugin = NULL;
	start_and_wait_for_looks(&r, &thread);
	since = ndxp_now_ns();
	cut_transport(r.session, SHUT_RDWR);
	assert_int_equal(pthread_join(thread, &st), 0);
	await(&r.closed);
	assert_true(ndxp_now_ns() - since < limit_ns);
	assert_int_equal((intptr_t)st, NDX_E_CONNECTION_ABORTED);
	assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
	assert_int_equal(e.layer, NDX_LAYER_TRANSPORT);
	assert_int_equal(r.theirs_error.layer, NDX_LAYER_TRANSPORT);
	assert_int_equal(r.theirs_error.status, NDX_E_CONNECTION_ABORTED);
	rig_down_with(&r);
}

/* One end has its proof, and the peer's, which takes longer, does not come in time. */
static void a_proof_that_does_not_come_leaves_the_own_finding(void **state)
{
	static const char found[] = "no proof of the path; this end: of its writes the peer "
				    "acknowledged all, of the peer's a few bytes arrived";
	struct ndx_spi_proof own = all;
	struct ndx_session_error e = {.size = sizeof(e)};
	struct rig r;

	(void)state;
	own.seen = NDX_PROVED_SMALL;
	own.status = NDX_E_IO_TIMEOUT;
	client_stage_ms = 700;
	rig_up_with(&r, own, nothing);
	client_stage_ms = 0;
	assert_int_equal(ndx_session_run(r.session), NDX_E_IO_TIMEOUT);
	assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
	if (strstr(e.text, found) == NULL)
		fail_msg("%s", e.text);
	rig_down_with(&r);
	stage_ms = 700;
	rig_up_with(&r, nothing, own);
	stage_ms = 0;
	assert_true(ndx_session_run(r.session) < 0);
	await(&r.closed);
	if (strstr(r.theirs_error.text, found) == NULL)
		fail_msg("%s", r.theirs_error.text);
	rig_down_with(&r);
}

/* The peer's word ends the proof as well as its silence. */
static void a_peer_that_gives_up_ends_the_proof_at_once(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	const struct frame_error said = {
		.layer = NDX_LAYER_FRAMEWORK, .status = NDX_E_UNSUCCESSFUL, .text = "no more"};
	uint8_t bytes[FRAME_HEADER + FRAME_ERROR_SIZE_MAX];
	struct frame f = {.type = FRAME_ERROR, .stage = NDX_STAGE_VALIDATE};
	const uint64_t limit_ns = UINT64_C(2500000000);
	pthread_t thread;
	uint64_t since;
	struct rig r;
	void *st;

	(void)state;
	rig_up_with(&r, nothing, nothing);
	start_and_wait_for_looks(&r, &thread);
	since = ndxp_now_ns();
	f.length = frame_write_error(bytes + FRAME_HEADER, &said);
	frame_write_header(bytes, &f);
	assert_int_equal(send(r.theirs->driver.fd, bytes, FRAME_HEADER + f.length, MSG_NOSIGNAL),
	                 FRAME_HEADER + f.length);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_true(ndxp_now_ns() - since < limit_ns);
	assert_int_equal((intptr_t)st, NDX_E_REMOTE_ERROR);
	assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
	assert_string_equal(e.text, "the peer gave up: no more");
	rig_down_with(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_that_passes_is_recorded),
		cmocka_unit_test(nothing_is_proved_without_the_provider),
		cmocka_unit_test(the_direction_that_fails_is_named),
		cmocka_unit_test(what_does_not_arrive_is_waited_for),
		cmocka_unit_test(a_refusal_is_not_waited_for),
		cmocka_unit_test(a_cancel_ends_the_proof),
		cmocka_unit_test(the_end_of_the_connection_ends_the_proof),
		cmocka_unit_test(the_end_of_the_server_ends_the_proof),
		cmocka_unit_test(a_lost_transport_ends_the_proof_at_once),
		cmocka_unit_test(a_peer_that_gives_up_ends_the_proof_at_once),
		cmocka_unit_test(a_proof_that_does_not_come_leaves_the_own_finding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
