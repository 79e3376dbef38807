/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deregistered memory, and a peer that has asked for its token and never confirms that it has
 * stopped using it. The peer is alive: it reads, and sends other messages all the time.
 */
#include "bare.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

#include <ndx/stats.h>

#include "ofi.h"

#define PART 4096u
#define MESSAGE 480u
#define PING_INTERVAL_MS 50u
#define HISTORY_SIZE 64u
#define NEVER_MS 600000u /* longer than any test */

enum traffic {
	TRAFFIC_NONE,
	TRAFFIC_PING,    /* a PING in each interval */
	TRAFFIC_FLOOD,   /* a PING after each PONG */
	TRAFFIC_RECEIVE, /* receives every message */
};

struct stalling_peer {
	struct pair *pair;
	struct bare bare;
	struct pair_side bystander[2];
	struct ndx_mr *mr; /* b's region, whose token the peer knows */
	enum traffic traffic;
	uint64_t last_ping_ms; /* time of the latest PING */
	bool ping_pending;     /* the PONG has not arrived */
	bool send_pending;     /* b's send is outstanding */
};

static struct ndx_mr *register_part(struct pair_side *side)
{
	struct ndx_mr *mr;

	assert_int_equal(ndx_mr_register_new(side->adapter, side->memory, PART,
	                                     NDX_MR_ALLOW_REMOTE_WRITE, &mr),
	                 NDX_OK);
	return mr;
}

/* Connect the peer, and let it ask for the token of a region of b. */
static void stalling_peer_connect(struct stalling_peer *s, struct pair *p, enum traffic traffic)
{
	struct ofi_grant grant;

	memset(s, 0, sizeof(*s));
	s->pair = p;
	s->traffic = traffic;
	bare_bystander_begin(p, s->bystander);
	bare_connect_to_b(&s->bare, p);
	bare_send_ready(&s->bare, p);
	s->mr = register_part(&p->b);
	(void)bare_ask_token(&s->bare, ndx_mr_get_remote_token(s->mr), &grant);
	if (traffic == TRAFFIC_RECEIVE) {
		assert_int_equal(
			fi_recv(s->bare.ep, s->bare.memory, MESSAGE, NULL, 0, s->bare.memory), 0);
		bare_write_ctrl(&s->bare, bare_encode_ctrl(&s->bare, OFI_CTRL_CREDIT, 1));
	}
}

static void read_completion(struct stalling_peer *s)
{
	struct fi_cq_data_entry entry;

	if (fi_cq_read(s->bare.cq, &entry, 1) != 1) {
		/* On a busy machine a thread that only spins gets little time, so its PINGs are no
		 * flood. */
		(void)poll(NULL, 0, 1);
		return;
	}
	if (entry.op_context == s->bare.memory) {
		(void)fi_recv(s->bare.ep, s->bare.memory, MESSAGE, NULL, 0, s->bare.memory);
		bare_write_ctrl(&s->bare, bare_encode_ctrl(&s->bare, OFI_CTRL_CREDIT, 1));
	} else if (ofi_ctrl_split(entry.data).type == OFI_CTRL_PONG) {
		s->ping_pending = false;
	}
}

/* Run one step of the peer's traffic, and of b's sends to it. */
static void run_peer(struct stalling_peer *s)
{
	struct pair_side *b = &s->pair->b;
	struct ndx_result result;

	if (ndx_overlapped_status(&b->ov) != NDX_PENDING)
		return; /* the peer's connection has ended */
	read_completion(s);
	if ((s->traffic == TRAFFIC_PING || s->traffic == TRAFFIC_FLOOD) && !s->ping_pending &&
	    (s->traffic == TRAFFIC_FLOOD || pair_now() - s->last_ping_ms >= PING_INTERVAL_MS)) {
		const uint64_t ctrl = bare_encode_ctrl(&s->bare, OFI_CTRL_PING, 0);

		s->ping_pending = fi_inject_writedata(s->bare.ep, "", 0, ctrl, 0,
		                                      s->bare.peer.address, s->bare.peer.key) == 0;
		s->last_ping_ms = pair_now();
	}
	if (s->traffic != TRAFFIC_RECEIVE)
		return;
	if (s->send_pending)
		s->send_pending = ndx_cq_get_results(b->cq, &result, 1) == 0;
	if (!s->send_pending) {
		pair_send(b, 1, PART, MESSAGE, 0);
		s->send_pending = true;
	}
}

static void run_peer_until(struct stalling_peer *s, const uint32_t *finished)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	while (__atomic_load_n(finished, __ATOMIC_ACQUIRE) == 0) {
		if (pair_now() > end)
			fail_msg("it waits for a peer that never answers");
		run_peer(s);
	}
}

/* The provider has aborted the peer's connection, the history names the reason, and the other
 * connection still works. */
static void expect_abort_and_close(struct stalling_peer *s)
{
	struct ndx_transition history[HISTORY_SIZE];
	size_t count = HISTORY_SIZE;
	bool recorded = false;

	assert_int_equal(pair_wait(&s->pair->b.ov), NDX_OK);
	assert_int_equal(s->pair->b.ov.information, NDX_DISCONNECT_ABORTED);
	assert_int_equal(ndx_connector_get_history(s->pair->b.connector, history, &count, NULL),
	                 NDX_OK);
	for (size_t i = 0; i < count; i++)
		recorded = recorded || strstr(history[i].cause, "has not confirmed") != NULL;
	assert_true(recorded);
	bare_close(&s->bare);
	pair_drop_side(&s->pair->b);
	bare_bystander_end(s->pair, s->bystander);
}

/* ---- in a thread ---- */

struct close_call {
	struct ndx_mr *mr;
	bool cancel;
	struct ndx_overlapped ov;
	uint32_t finished;
};

static void *close_in_thread(void *arg)
{
	struct close_call *close_call = arg;

	if (close_call->cancel) {
		(void)ndx_mr_deregister(close_call->mr, &close_call->ov);
		(void)ndx_mr_cancel(close_call->mr);
	} else {
		ndx_mr_close(close_call->mr);
	}
	__atomic_store_n(&close_call->finished, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void close_with_peer(struct pair *p, enum traffic traffic, bool cancel)
{
	struct close_call close_call = {.cancel = cancel};
	pthread_t thread;
	struct stalling_peer s;

	stalling_peer_connect(&s, p, traffic);
	close_call.mr = s.mr;
	assert_int_equal(pthread_create(&thread, NULL, close_in_thread, &close_call), 0);
	run_peer_until(&s, &close_call.finished);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (cancel) {
		assert_int_equal(ndx_overlapped_status(&close_call.ov), NDX_OK);
		ndx_mr_close(close_call.mr);
	}
	expect_abort_and_close(&s);
}

static void silence_ends_the_wait(void **state)
{
	close_with_peer(*state, TRAFFIC_NONE, false);
	close_with_peer(*state, TRAFFIC_NONE, true);
}

static void other_control_messages_do_not_prolong_the_wait(void **state)
{
	close_with_peer(*state, TRAFFIC_PING, false);
	close_with_peer(*state, TRAFFIC_PING, true);
	close_with_peer(*state, TRAFFIC_FLOOD, false);
}

static void messages_to_the_peer_do_not_prolong_the_wait(void **state)
{
	close_with_peer(*state, TRAFFIC_RECEIVE, false);
}

/* ---- in a callback ---- */

struct callback {
	struct ndx_overlapped ov; /* first */
	struct ndx_mr *mr;
	void (*fn)(struct ndx_mr *mr);
	uint32_t finished;
};

static void run_close(struct ndx_overlapped *ov)
{
	struct callback *c = (struct callback *)(void *)ov;

	c->fn(c->mr);
	__atomic_store_n(&c->finished, 1, __ATOMIC_RELEASE);
}

static void cancel(struct ndx_mr *mr)
{
	(void)ndx_mr_cancel(mr);
}

/* The limit for a stalled peer (stall_ms) never expires here: the limit of the callback has to end
 * the wait. */
static void close_in_callback(struct pair *p, enum traffic traffic, void (*fn)(struct ndx_mr *mr),
                              bool other_adapter)
{
	struct callback c = {.ov.callback = run_close, .fn = fn};
	struct ndx_adapter *adapter;
	struct ndx_overlapped ov = {0};
	struct ndx_mr *trigger;
	struct stalling_peer s;

	stalling_peer_connect(&s, p, traffic);
	ofi_qp_of((struct ndx_spi_qp *)(void *)p->b.qp)->adapter->stall_ms = NEVER_MS;
	adapter = other_adapter ? p->a.adapter : p->b.adapter;
	c.mr = s.mr;
	if (fn == cancel)
		assert_int_equal(ndx_mr_deregister(s.mr, &ov), NDX_PENDING);
	assert_int_equal(ndx_mr_create(adapter, &trigger), NDX_OK);
	assert_int_equal(ndx_mr_register(trigger, p->a.memory, PART, 0, &c.ov), NDX_PENDING);
	run_peer_until(&s, &c.finished);
	if (fn == cancel) {
		assert_int_equal(ndx_overlapped_status(&ov), NDX_OK);
		ndx_mr_close(s.mr);
	}
	ndx_mr_close(trigger);
	expect_abort_and_close(&s);
}

static void a_callback_is_not_held_up(void **state)
{
	close_in_callback(*state, TRAFFIC_FLOOD, ndx_mr_close, false);
	close_in_callback(*state, TRAFFIC_PING, cancel, false);
	close_in_callback(*state, TRAFFIC_FLOOD, ndx_mr_close, true);
}

/* ---- the caller ---- */

static void deregister_never_waits(void **state)
{
	struct pair *p = *state;
	struct ndx_overlapped first = {0};
	struct ndx_overlapped register_ov = {0};
	struct ndx_overlapped second = {0};
	struct stalling_peer s;

	stalling_peer_connect(&s, p, TRAFFIC_PING);
	assert_int_equal(ndx_mr_deregister(s.mr, &first), NDX_PENDING);
	assert_int_equal(ndx_mr_deregister(s.mr, &second), NDX_E_DEVICE_BUSY);
	assert_int_equal(ndx_mr_register(s.mr, p->b.memory, PART, 0, &register_ov),
	                 NDX_E_DEVICE_BUSY);
	/* The calls have returned before the provider aborted the first peer's connection. */
	assert_int_equal(ndx_overlapped_status(&first), NDX_PENDING);
	while (ndx_overlapped_status(&first) == NDX_PENDING)
		run_peer(&s);
	assert_int_equal(ndx_overlapped_status(&first), NDX_OK);
	assert_int_equal(
		ndx_mr_register(s.mr, p->b.memory, PART, NDX_MR_ALLOW_REMOTE_WRITE, &register_ov),
		NDX_PENDING);
	assert_int_equal(pair_wait(&register_ov), NDX_OK);
	ndx_mr_close(s.mr);
	expect_abort_and_close(&s);
}

/* ---- SYNCED before the second SYNC ---- */

static void await_counter(const struct pair_side *side, const char *name, uint64_t value)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	while (pair_counter(side, false, name) < value && pair_now() < end)
		(void)poll(NULL, 0, 1);
	assert_true(pair_counter(side, false, name) >= value);
}

/*
 * SYNCED confirms that all earlier messages of the peer have arrived. The completion of SYNC itself
 * confirms that this end's read responses have left. A peer that answers a SYNC it has not read
 * must not end the wait.
 */
static void a_synced_ahead_of_its_sync_ends_no_wait(void **state)
{
	struct pair *p = *state;
	struct ndx_overlapped ov = {0};
	struct stalling_peer s;
	uint64_t sent;
	uint64_t received;

	stalling_peer_connect(&s, p, TRAFFIC_NONE);
	sent = pair_counter(&p->b, false, "control_messages_sent");
	received = pair_counter(&p->b, false, "control_messages_received");
	assert_int_equal(ndx_mr_deregister(s.mr, &ov), NDX_PENDING);
	await_counter(&p->b, "control_messages_sent", ++sent);
	bare_write_ctrl(&s.bare, bare_encode_ctrl(&s.bare, OFI_CTRL_SYNCED, 0));
	await_counter(&p->b, "control_messages_received", ++received);
	pair_run_jobs(&p->b);
	if (pair_counter(&p->b, false, "control_messages_sent") > sent) {
		bare_write_ctrl(&s.bare, bare_encode_ctrl(&s.bare, OFI_CTRL_SYNCED, 0));
		await_counter(&p->b, "control_messages_received", ++received);
		pair_run_jobs(&p->b);
	}
	/* On a slow machine the peer's connection may have been aborted already. */
	if (ndx_overlapped_status(&ov) != NDX_PENDING)
		assert_int_equal(pair_wait(&p->b.ov), NDX_OK);
	while (ndx_overlapped_status(&ov) == NDX_PENDING)
		run_peer(&s);
	ndx_mr_close(s.mr);
	bare_close(&s.bare);
	pair_drop_side(&p->b);
	bare_bystander_end(p, s.bystander);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(silence_ends_the_wait),
		CASE(other_control_messages_do_not_prolong_the_wait),
		CASE(messages_to_the_peer_do_not_prolong_the_wait),
		CASE(a_callback_is_not_held_up),
		CASE(deregister_never_waits),
		CASE(a_synced_ahead_of_its_sync_ends_no_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
