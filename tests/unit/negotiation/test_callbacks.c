/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks of session calls: they start the next call, and close sessions. */
#include "async_rig.h"

#include <poll.h>

#include "base_loop.h"

enum { MANY = 64, ROUNDS = 20 };

static void close_on_loop(void *arg)
{
	ndx_session_close(arg);
}

static void a_callback_closes_a_session_whose_plugin_is_busy(void **state)
{
	struct rig *r = *state;
	struct ndx_loop *loop;

	assert_int_equal(base_loop_create("test", &loop), NDX_OK);
	for (int round = 0; round < ROUNDS; round++) {
		struct ndx_overlapped ov = {0};
		struct ndx_session *s;
		struct server server;

		server_start(&server, GOOD, r->variant);
		s = busy_session(r, server.address, &ov);
		ndxp_loop_call(loop, close_on_loop, s);
		assert_int_equal(ndx_overlapped_status(&ov), NDX_E_CANCELED);
		__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
		server_stop(&server);
	}
	base_loop_destroy(loop, NULL, NULL);
}

struct chain {
	struct ndx_session *session;
	struct ndx_overlapped ov;
	uint32_t *left;
	int next; /* stage */
	enum ndx_status failure;
};

/* Each stage is started by the callback of the one before it, and the last one closes. */
static void on_stage(struct ndx_overlapped *ov)
{
	struct chain *c = ov->context;
	enum ndx_status st = ov->status;

	if (st == NDX_OK && c->next <= NDX_STAGE_DONE) {
		assert_int_equal(ndx_session_execute(c->session, (enum ndx_stage)c->next),
		                 NDX_E_WOULD_BLOCK);
		st = ndx_session_execute_overlapped(c->session, (enum ndx_stage)c->next++, ov);
		if (st == NDX_PENDING)
			return;
	}
	c->failure = st;
	ndx_session_close(c->session);
	(void)__atomic_sub_fetch(c->left, 1, __ATOMIC_SEQ_CST);
}

static void await_none(const uint32_t *left)
{
	for (int ms = 0; ms < WAIT_MS && __atomic_load_n(left, __ATOMIC_SEQ_CST) > 0; ms++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(__atomic_load_n(left, __ATOMIC_SEQ_CST), 0);
}

static void many_sessions_go_on_in_callbacks(void **state)
{
	struct rig *r = *state;
	static struct chain chains[MANY];
	struct ndx_negotiation_server *server;
	char address[32];

	server = many_server(r, address);
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t left = MANY;

		for (int i = 0; i < MANY; i++) {
			struct chain *c = &chains[i];

			*c = (struct chain){.left = &left, .next = NDX_STAGE_INFO};
			c->ov = (struct ndx_overlapped){.callback = on_stage, .context = c};
			c->session = session_with(r, address);
			assert_int_equal(ndx_session_connect_overlapped(c->session, &c->ov),
			                 NDX_PENDING);
		}
		await_none(&left);
		for (int i = 0; i < MANY; i++)
			if (chains[i].failure != NDX_OK)
				fail_msg("session %d: %s", i, ndx_status_name(chains[i].failure));
	}
	ndx_negotiation_server_close(server);
}

/* In a callback, a close cannot wait for the plugin of another session. */
struct victim {
	struct ndx_session *session;
	uint32_t left;
};

static void on_close_another(struct ndx_overlapped *ov)
{
	struct victim *v = ov->context;

	ndx_session_close(v->session);
	(void)__atomic_sub_fetch(&v->left, 1, __ATOMIC_SEQ_CST);
}

static void a_callback_closes_a_session_at_work(void **state)
{
	static const enum conduct conducts[] = {SILENT, SLOW_TO_SPEAK, GOOD};
	struct rig *r = *state;

	for (int round = 0; round < 60; round++) {
		struct victim v = {.left = 1};
		struct ndx_overlapped first = {.callback = on_close_another, .context = &v};
		struct ndx_overlapped second = {0};
		struct ndx_negotiation_server *good;
		struct ndx_session *s;
		struct server server;
		char address[32];

		good = many_server(r, address);
		server_start(&server, conducts[round % 3], r->variant);
		v.session = session_with(r, server.address);
		s = session_with(r, address);
		assert_int_equal(ndx_session_run_overlapped(v.session, &second), NDX_PENDING);
		assert_int_equal(ndx_session_run_overlapped(s, &first), NDX_PENDING);
		await_none(&v.left);
		assert_int_not_equal(ndx_overlapped_status(&second), NDX_PENDING);
		ndx_session_close(s);
		server_stop(&server);
		ndx_negotiation_server_close(good);
	}
}

static void rest(void *arg)
{
	(void)arg;
	(void)poll(NULL, 0, 1);
}

/* What a callback gives up, down to the framework. */
struct farewell {
	struct rig *rig;
	struct ndx_loop *other;
	struct ndx_session *busy;
	struct ndx_session *own;
	uint32_t left;
	enum ndx_status closed;
};

/* While the callback calls another thread, its own thread runs what ends the sessions. */
static void on_farewell(struct ndx_overlapped *ov)
{
	struct farewell *f = ov->context;

	ndx_session_close(f->busy);
	ndx_session_close(f->own);
	__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
	ndx_variant_close(f->rig->variant);
	f->closed = NDX_E_DEVICE_BUSY;
	for (int ms = 0; ms < WAIT_MS && f->closed == NDX_E_DEVICE_BUSY; ms++) {
		ndxp_loop_call(f->other, rest, NULL);
		f->closed = ndx_negotiation_close(f->rig->negotiation);
	}
	for (int ms = 0; ms < 50; ms++)
		ndxp_loop_call(f->other, rest, NULL);
	(void)__atomic_sub_fetch(&f->left, 1, __ATOMIC_SEQ_CST);
}

static void a_callback_closes_everything(void **state)
{
	struct rig *r = *state;

	for (int round = 0; round < ROUNDS; round++) {
		struct farewell f = {.rig = r, .left = 1};
		struct ndx_overlapped first = {.callback = on_farewell, .context = &f};
		struct ndx_overlapped second = {0};
		struct server idle;
		struct server server;
		void *again = NULL;

		assert_int_equal(base_loop_create("test", &f.other), NDX_OK);
		server_start(&server, GOOD, r->variant);
		server_start(&idle, SLOW_TO_SPEAK, r->variant);
		f.busy = busy_session(r, server.address, &second);
		f.own = session_with(r, idle.address);
		assert_int_equal(ndx_session_connect_overlapped(f.own, &first), NDX_PENDING);
		await_none(&f.left);
		assert_int_equal(f.closed, NDX_OK);
		assert_int_equal(ndx_overlapped_status(&second), NDX_E_CANCELED);
		server_stop(&server);
		server_stop(&idle);
		base_loop_destroy(f.other, NULL, NULL);
		assert_int_equal(rig_begin(&again), 0);
		*r = *(struct rig *)again;
		free(again);
	}
}

struct own_close {
	struct ndx_session *session;
	uint32_t left;
};

static void on_close_own(struct ndx_overlapped *ov)
{
	struct own_close *c = ov->context;

	ndx_session_close(c->session);
	(void)__atomic_sub_fetch(&c->left, 1, __ATOMIC_SEQ_CST);
}

/* The thread of sessions does not wait for the plugin: another session connects. */
static void a_close_in_a_callback_waits_for_no_plugin(void **state)
{
	struct rig *r = *state;
	struct own_close c = {.left = 1};
	struct ndx_overlapped first = {.callback = on_close_own, .context = &c};
	struct ndx_overlapped second = {0};
	struct ndx_negotiation_server *server;
	struct ndx_session *other;
	char address[32];

	server = many_server(r, address);
	c.session = session_with(r, address);
	__atomic_store_n(&ending, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_session_run_overlapped(c.session, &first), NDX_PENDING);
	await_value(&ending, 2);
	await_none(&c.left);
	other = session_with(r, address);
	assert_int_equal(ndx_session_connect_overlapped(other, &second), NDX_PENDING);
	completes(&second, NDX_OK);
	assert_int_equal(__atomic_load_n(&ending, __ATOMIC_SEQ_CST), 2);
	__atomic_store_n(&ending, 0, __ATOMIC_SEQ_CST);
	ndx_session_close(other);
	ndx_negotiation_server_close(server);
}

static void on_close_all(struct ndx_overlapped *ov)
{
	struct farewell *f = ov->context;

	ndx_session_close(f->own);
	ndx_variant_close(f->rig->variant);
	f->closed = ndx_negotiation_close(f->rig->negotiation);
	(void)__atomic_sub_fetch(&f->left, 1, __ATOMIC_SEQ_CST);
}

/* The callback runs before the cancel returns, and leaves nothing. */
static void a_cancels_callback_closes_everything(void **state)
{
	struct rig *r = *state;

	for (int round = 0; round < 5 * ROUNDS; round++) {
		struct farewell f = {.rig = r, .left = 1};
		struct ndx_overlapped ov = {.callback = on_close_all, .context = &f};
		struct server server;
		void *again = NULL;

		server_start(&server, SILENT, r->variant);
		f.own = session_with(r, server.address);
		assert_int_equal(ndx_session_connect_overlapped(f.own, &ov), NDX_PENDING);
		ndx_session_cancel(f.own);
		assert_int_equal(__atomic_load_n(&f.left, __ATOMIC_SEQ_CST), 0);
		assert_int_equal(f.closed, NDX_OK);
		server_stop(&server);
		assert_int_equal(rig_begin(&again), 0);
		*r = *(struct rig *)again;
		free(again);
	}
}

/* The end of a session that was closed in a callback follows; then the framework is free. */
static int end_soon(void **state)
{
	struct rig *r = *state;

	ndx_variant_close(r->variant);
	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (ndx_negotiation_close(r->negotiation) == NDX_OK) {
			free(r);
			return 0;
		}
		(void)poll(NULL, 0, 1);
	}
	return -1;
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, end_soon)
	const struct CMUnitTest tests[] = {
		T(a_callback_closes_a_session_whose_plugin_is_busy),
		T(a_callback_closes_everything),
		T(many_sessions_go_on_in_callbacks),
		T(a_callback_closes_a_session_at_work),
		T(a_cancels_callback_closes_everything),
		cmocka_unit_test_setup_teardown(a_close_in_a_callback_waits_for_no_plugin,
	                                        rig_begin_with_end, end_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
