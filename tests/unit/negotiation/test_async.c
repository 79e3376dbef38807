/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions whose calls do not block: overlapped objects, cancel, close. */
#include "scripted.h"

#include <arpa/inet.h>
#include <poll.h>

#include <ndx/negotiation_server.h>

#include <ndx/spi/container_of.h>
#include "base_loop.h"

enum { MANY = 64, ROUNDS = 20 };

static struct ndx_session *session_with(struct rig *r, const char *address)
{
	const char *servers[1] = {address};

	return rig_session(r, servers, 1, WAIT_MS, WAIT_MS);
}

static void completes(struct ndx_overlapped *ov, enum ndx_status status)
{
	assert_int_equal(ndx_overlapped_wait(ov, WAIT_MS), status);
}

static void each_call_completes_its_object(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, GOOD, r->variant);
	s = session_with(r, server.address);
	assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
	completes(&ov, NDX_OK);
	assert_int_equal(ndx_session_get_state(s), NDX_SESSION_CONNECTED);
	for (int stage = NDX_STAGE_INFO; stage <= NDX_STAGE_DONE; stage++) {
		assert_int_equal(ndx_session_execute_overlapped(s, (enum ndx_stage)stage, &ov),
		                 NDX_PENDING);
		completes(&ov, NDX_OK);
	}
	ndx_session_close(s);
	server_stop(&server);
}

/* What fails at once leaves the object and the session as they were. */
static void a_call_that_cannot_begin_changes_nothing(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_overlapped other = {.status = NDX_E_CANCELED};
	struct ndx_session *s;
	struct server server;

	server_start(&server, GOOD, r->variant);
	s = session_with(r, server.address);
	assert_int_equal(ndx_session_run_overlapped(NULL, &ov), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_session_run_overlapped(s, NULL), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_session_execute_overlapped(s, NDX_STAGE_INFO, &other),
	                 NDX_E_INVALID_DEVICE_STATE);
	says("call ndx_session_connect() first");
	assert_int_equal(ndx_overlapped_status(&other), NDX_E_CANCELED);
	assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
	completes(&ov, NDX_OK);
	assert_int_equal(ndx_session_execute_overlapped(s, NDX_STAGE_READY, &other),
	                 NDX_E_INVALID_DEVICE_STATE);
	says("stage info is next");
	assert_int_equal(ndx_session_execute_overlapped(s, NDX_STAGE_INFO, NULL),
	                 NDX_E_INVALID_PARAMETER);
	/* That did not begin the stage. */
	assert_int_equal(ndx_session_execute(s, NDX_STAGE_INFO), NDX_OK);
	ndx_session_close(s);
	server_stop(&server);
}

static void one_call_at_a_time(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_overlapped second = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, SILENT, r->variant);
	s = session_with(r, server.address);
	assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
	assert_int_equal(ndx_session_run_overlapped(s, &second), NDX_E_INVALID_DEVICE_STATE);
	says("another call on session");
	assert_int_equal(ndx_session_run(s), NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	ndx_session_cancel(s);
	/* No function of the plugin was running. */
	assert_int_equal(ndx_overlapped_status(&ov), NDX_E_CANCELED);
	ndx_session_close(s);
	server_stop(&server);
}

static void a_failure_is_the_status(void **state)
{
	struct rig *r = *state;
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, REFUSING, r->variant);
	s = session_with(r, server.address);
	assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
	completes(&ov, NDX_E_NOT_FOUND);
	assert_int_equal(ndx_session_get_state(s), NDX_SESSION_FAILED);
	assert_int_equal(ndx_session_get_error(s, &e), NDX_OK);
	assert_non_null(strstr(e.text, "the server refuses"));
	ndx_session_close(s);
	server_stop(&server);
}

static void a_cancel_ends_it_wherever_it_is(void **state)
{
	static const enum conduct conducts[] = {SILENT, SLOW_TO_SPEAK, GOOD};
	struct rig *r = *state;

	for (unsigned round = 0; round < 60; round++) {
		struct ndx_overlapped ov = {0};
		struct ndx_session *s;
		struct server server;
		enum ndx_status st;

		server_start(&server, conducts[round % 3], r->variant);
		s = session_with(r, server.address);
		assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
		while (round % 2 == 1 && __atomic_load_n(&server.served, __ATOMIC_RELAXED) == 0)
			;
		ndx_session_cancel(s);
		st = ndx_overlapped_wait(&ov, WAIT_MS);
		if (st != NDX_E_CANCELED && !(round % 3 == 2 && st == NDX_OK))
			fail_msg("round %u: %s", round, ndx_status_name(st));
		ndx_session_close(s);
		server_stop(&server);
	}
}

/* Close completes what is in flight before it returns. */
static void a_close_ends_the_call(void **state)
{
	static const enum conduct conducts[] = {SILENT, SLOW_TO_SPEAK, GOOD};
	struct rig *r = *state;

	for (unsigned round = 0; round < 60; round++) {
		struct ndx_overlapped ov = {0};
		struct ndx_session *s;
		struct server server;

		server_start(&server, conducts[round % 3], r->variant);
		s = session_with(r, server.address);
		assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
		while (round % 2 == 1 && __atomic_load_n(&server.served, __ATOMIC_RELAXED) == 0)
			;
		ndx_session_close(s);
		if (ov.status != NDX_E_CANCELED)
			assert_true(round % 3 == 2);
		assert_int_not_equal(ndx_overlapped_status(&ov), NDX_PENDING);
		server_stop(&server);
	}
}

static void a_plugins_transport_blocks_nobody(void **state)
{
	struct rig *r = *state;
	struct ndx_variant *v;
	struct ndx_overlapped ov = {0};
	struct ndx_session_attr attr;
	struct ndx_session *s;
	struct server server;
	char address[32];
	const char *servers[1] = {address};

	for (int silent = 0; silent < 2; silent++) {
		server_start(&server, silent ? SLOW_TO_SPEAK : GOOD, r->variant);
		(void)snprintf(address, sizeof(address), "bus %s", strchr(server.address, ':') + 1);
		assert_int_equal(
			ndx_negotiation_get_variant(r->negotiation, "test", "bus", NULL, 0, &v),
			NDX_OK);
		ndx_session_attr_init(&attr);
		attr.variant = v;
		attr.servers = servers;
		attr.server_count = 1;
		assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
		assert_int_equal(ndx_session_run_overlapped(s, &ov), NDX_PENDING);
		if (silent)
			ndx_session_cancel(s);
		completes(&ov, silent ? NDX_E_CANCELED : NDX_OK);
		ndx_session_close(s);
		assert_int_equal(bus.opened, 0);
		ndx_variant_close(v);
		server_stop(&server);
	}
}

static struct ndx_session *bus_session(struct rig *r, struct ndx_variant **v,
                                       const struct server *server)
{
	struct ndx_session_attr attr;
	struct ndx_session *s;
	char address[32];
	const char *servers[1] = {address};

	(void)snprintf(address, sizeof(address), "bus %s", strchr(server->address, ':') + 1);
	assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "test", "bus", NULL, 0, v),
	                 NDX_OK);
	ndx_session_attr_init(&attr);
	attr.variant = *v;
	attr.servers = servers;
	attr.server_count = 1;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	return s;
}

static void await_served(struct server *server)
{
	while (__atomic_load_n(&server->served, __ATOMIC_RELAXED) == 0)
		(void)poll(NULL, 0, 1);
}

static void a_cancel_while_connecting_closes_the_transport(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_variant *v;
	struct ndx_session *s;
	struct server server;

	server_start(&server, SILENT, r->variant);
	s = bus_session(r, &v, &server);
	assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
	await_served(&server);
	ndx_session_cancel(s);
	completes(&ov, NDX_E_CANCELED);
	assert_int_equal(bus.opened, 0);
	ndx_session_close(s);
	ndx_variant_close(v);
	server_stop(&server);
}

static unsigned count_cancelled(const struct ndx_session *s, enum ndx_history_kind kind)
{
	struct ndx_history_entry entries[64];
	size_t count = sizeof(entries) / sizeof(entries[0]);
	unsigned n = 0;

	assert_int_equal(ndx_session_get_history(s, entries, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++)
		n += entries[i].kind == kind && entries[i].status == NDX_E_CANCELED;
	return n;
}

/* The first attempt has failed; the pause begins before the loop thread runs the next job. */
static void await_entry(const struct ndx_session *s)
{
	uint64_t total = 0;

	while (total == 0) {
		size_t count = 0;

		assert_int_equal(ndx_session_get_history(s, NULL, &count, &total), NDX_OK);
		(void)poll(NULL, 0, 1);
	}
}

static void the_history_has_what_was_cancelled(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, SILENT, r->variant);
	s = session_with(r, server.address);
	assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
	await_served(&server);
	ndx_session_cancel(s);
	completes(&ov, NDX_E_CANCELED);
	assert_int_equal(count_cancelled(s, NDX_HISTORY_CONNECT), 1);
	assert_int_equal(count_cancelled(s, NDX_HISTORY_BACKOFF), 0);
	ndx_session_close(s);
	server_stop(&server);
	/* The server does not listen any more. */
	s = session_with(r, server.address);
	s->attr.backoff_ms = s->attr.backoff_most_ms = WAIT_MS;
	assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
	await_entry(s);
	ndx_session_cancel(s);
	completes(&ov, NDX_E_CANCELED);
	assert_int_equal(count_cancelled(s, NDX_HISTORY_CONNECT), 0);
	assert_int_equal(count_cancelled(s, NDX_HISTORY_BACKOFF), 1);
	ndx_session_close(s);
}

/* ---- a thread that wakes late ---- */

static _Thread_local bool drowsy; /* this thread takes its time after a wait */
static uint32_t woken;            /* atomic: it has been woken, and the call has ended */

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	const struct session_call *call = container_of(cond, struct session_call, turn);
	const int error = __real_pthread_cond_wait(cond, mutex);

	if (!drowsy || !call->done)
		return error;
	(void)pthread_mutex_unlock(mutex);
	__atomic_store_n(&woken, 1, __ATOMIC_SEQ_CST);
	(void)poll(NULL, 0, 100);
	(void)pthread_mutex_lock(mutex);
	return error;
}

static void *run_drowsily(void *session)
{
	enum ndx_status st;

	drowsy = true;
	st = ndx_session_execute(session, NDX_STAGE_INFO);
	__atomic_store_n(&woken, 1, __ATOMIC_SEQ_CST);
	return (void *)(intptr_t)st;
}

/* The call is in progress until its thread has the status. True: the thread had to wait for that.
 */
static bool end_late(struct rig *r)
{
	struct ndx_session *s;
	struct server server;
	pthread_t thread;
	enum ndx_status second;
	void *st;

	server_start(&server, GOOD, r->variant);
	s = session_with(r, server.address);
	__atomic_store_n(&woken, 0, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_session_connect(s), NDX_OK);
	assert_int_equal(pthread_create(&thread, NULL, run_drowsily, s), 0);
	while (__atomic_load_n(&woken, __ATOMIC_SEQ_CST) == 0)
		(void)poll(NULL, 0, 1);
	second = ndx_session_execute(s, NDX_STAGE_VALIDATE);
	assert_int_equal(pthread_join(thread, &st), 0);
	assert_int_equal((intptr_t)st, NDX_OK);
	if (second != NDX_OK) {
		assert_int_equal(second, NDX_E_INVALID_DEVICE_STATE);
		assert_int_equal(ndx_session_execute(s, NDX_STAGE_VALIDATE), NDX_OK);
	}
	ndx_session_close(s);
	server_stop(&server);
	return second != NDX_OK;
}

/* On a busy machine the call may have ended before its thread waits; that is no failure. */
static void a_call_ends_with_its_thread(void **state)
{
	bool late = false;

	for (int i = 0; i < ROUNDS && !late; i++)
		late = end_late(*state);
	assert_true(late);
}

static struct ndx_negotiation_server *many_server(struct rig *r, char address[32])
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_negotiation_server *server;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &r->variant;
	attr.variant_count = 1;
	assert_int_equal(ndx_negotiation_server_create(&attr, &server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(address, 32, "127.0.0.1:%u", ntohs(at.sin_port));
	return server;
}

/* ---- a plugin that is busy ---- */

/* A session of which the plugin's function is running. */
static struct ndx_session *busy_session(struct rig *r, const char *address,
                                        struct ndx_overlapped *ov)
{
	struct ndx_session *s = session_with(r, address);

	__atomic_store_n(&stuck, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(ndx_session_run_overlapped(s, ov), NDX_PENDING);
	while (__atomic_load_n(&stuck, __ATOMIC_SEQ_CST) != 2)
		(void)poll(NULL, 0, 1);
	return s;
}

static void a_cancel_does_not_wait_for_the_plugin(void **state)
{
	struct rig *r = *state;
	struct ndx_overlapped ov = {0};
	struct ndx_session *s;
	struct server server;

	server_start(&server, GOOD, r->variant);
	s = busy_session(r, server.address, &ov);
	ndx_session_cancel(s);
	assert_int_equal(ndx_overlapped_status(&ov), NDX_PENDING);
	__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
	completes(&ov, NDX_E_CANCELED);
	ndx_session_close(s);
	server_stop(&server);
}

/* The busy session has the only thread. */
static void a_session_that_waits_for_a_thread_ends(void **state)
{
	struct rig *r = *state;

	for (int cancel = 0; cancel < 2; cancel++) {
		struct ndx_overlapped busy_ov = {0};
		struct ndx_overlapped ov = {0};
		struct ndx_negotiation_server *good;
		struct ndx_session *busy;
		struct pool *pool;
		struct ndx_session *s;
		struct server server;
		char address[32];
		const char *servers[1] = {address};

		good = many_server(r, address);
		server_start(&server, GOOD, r->variant);
		busy = busy_session(r, server.address, &busy_ov);
		pool = &busy->driver.engine->pool;
		pthread_mutex_lock(&pool->lock);
		pool->most = pool->threads;
		pthread_mutex_unlock(&pool->lock);
		s = rig_session(r, servers, 1, WAIT_MS, cancel ? WAIT_MS : 100);
		assert_int_equal(ndx_session_connect_overlapped(s, &ov), NDX_PENDING);
		completes(&ov, NDX_OK);
		assert_int_equal(ndx_session_execute_overlapped(s, NDX_STAGE_INFO, &ov),
		                 NDX_PENDING);
		if (cancel) {
			(void)poll(NULL, 0, 20);
			ndx_session_cancel(s);
			assert_int_equal(ndx_overlapped_status(&ov), NDX_E_CANCELED);
		} else {
			completes(&ov, NDX_E_IO_TIMEOUT);
		}
		__atomic_store_n(&stuck, 0, __ATOMIC_SEQ_CST);
		completes(&busy_ov, NDX_OK);
		ndx_session_close(s);
		ndx_session_close(busy);
		server_stop(&server);
		ndx_negotiation_server_close(good);
	}
}

struct early {
	struct ndx_session *session;
	struct ndx_overlapped ov;
	enum ndx_status after;
};

/* On the sessions' thread: what the call has queued has not run yet. */
static void start_and_cancel(void *arg)
{
	struct early *e = arg;

	if (ndx_session_connect_overlapped(e->session, &e->ov) == NDX_PENDING)
		ndx_session_cancel(e->session);
	e->after = ndx_overlapped_status(&e->ov);
}

static void a_cancel_ends_a_call_that_has_not_begun(void **state)
{
	struct rig *r = *state;
	struct early e = {0};
	struct server server;

	server_start(&server, SILENT, r->variant);
	e.session = session_with(r, server.address);
	ndxp_loop_call(e.session->driver.engine->loop, start_and_cancel, &e);
	assert_int_equal(e.after, NDX_E_CANCELED);
	assert_int_equal(server.served, 0);
	ndx_session_close(e.session);
	server_stop(&server);
}

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

/* ---- callbacks ---- */

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

static void await(const uint32_t *left)
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
		await(&left);
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
		await(&v.left);
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
		await(&f.left);
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
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(each_call_completes_its_object),
		T(a_call_that_cannot_begin_changes_nothing),
		T(one_call_at_a_time),
		T(a_failure_is_the_status),
		T(a_cancel_ends_it_wherever_it_is),
		T(a_close_ends_the_call),
		T(a_plugins_transport_blocks_nobody),
		T(a_cancel_while_connecting_closes_the_transport),
		T(the_history_has_what_was_cancelled),
		T(a_call_ends_with_its_thread),
		T(a_cancel_does_not_wait_for_the_plugin),
		T(a_session_that_waits_for_a_thread_ends),
		T(a_cancel_ends_a_call_that_has_not_begun),
		cmocka_unit_test_setup_teardown(a_callback_closes_a_session_whose_plugin_is_busy,
	                                        rig_begin, end_soon),
		cmocka_unit_test_setup_teardown(a_callback_closes_everything, rig_begin, end_soon),
		cmocka_unit_test_setup_teardown(many_sessions_go_on_in_callbacks, rig_begin,
	                                        end_soon),
		cmocka_unit_test_setup_teardown(a_callback_closes_a_session_at_work, rig_begin,
	                                        end_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
