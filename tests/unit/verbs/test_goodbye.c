/* SPDX-License-Identifier: BSD-2-Clause */
/* Disconnects while requests wait without limit: which end probes the other one, and how the
 * requests end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "rig.h"

#define DEPTH 16u
#define STEPS_ALONE 10u  /* timer runs until a probe without requests before it times out */
#define STEPS_BEHIND 15u /* the same with requests before the probe */
#define STEPS_MOMENT 3u  /* timer runs in which a killed peer may still send RNR answers */

/* One end, and the parameters of the functions that its control thread runs. */
struct end {
	struct rig rig;
	FILE *counter; /* software RoCE's counter file: RNR answers that arrived */
	enum ndx_status status;
	unsigned steps;
	bool rnr_answers; /* one RNR answer arrives in each step */
	uint64_t count;
};

static void nothing(void *arg)
{
	(void)arg;
}

static void end_open(struct end *end, bool software)
{
	struct verbs_conn *conn = &end->rig.conn;

	rig_open(&end->rig);
	end->rig.adapter.soft_roce = software;
	rig_connect(&end->rig, DEPTH, NULL);
	/* both directions have the same PSN, so a field of this end is also valid as the peer's */
	rig_qp(&end->rig)->path = (struct verbs_numbers){77, 5, 5};
	conn->spi.qp = end->rig.qp;
	conn->peer.is_ndx = true;
	conn->state = VERBS_CONN_UP;
	conn->timer.fn = nothing;
	conn->watchdog.fn = nothing;
	assert_int_equal(verbs_mailbox_open(conn), NDX_OK);
	end->counter = tmpfile();
	assert_non_null(end->counter);
	end->count = 0;
	end->rig.adapter.counter_fds[VERBS_NOT_READY] = fileno(end->counter);
	end->rig.adapter.counter_fds[VERBS_PACKETS] = fileno(end->counter);
}

static void stop_timers(void *arg)
{
	struct end *end = arg;

	ndxp_timer_cancel(end->rig.adapter.spi.loop, &end->rig.conn.timer);
	ndxp_timer_cancel(end->rig.adapter.spi.loop, &end->rig.conn.watchdog);
}

static void call_on_loop(struct end *end, ndxp_loop_fn *what)
{
	ndxp_loop_call(end->rig.adapter.spi.loop, what, end);
}

static void end_close(struct end *end)
{
	call_on_loop(end, stop_timers);
	end->rig.adapter.soft_roce = false;
	rig_close(&end->rig);
	(void)fclose(end->counter);
}

static void receive_field(struct end *end, enum verbs_field which)
{
	(void)verbs_mailbox_write(&end->rig.conn, which);
	end->rig.conn.mailbox[which] = end->rig.conn.mailbox[VERBS_FIELD_OWN];
}

static void count_rnr_answer(struct end *end)
{
	rewind(end->counter);
	(void)fprintf(end->counter, "%08llu", (unsigned long long)++end->count);
	(void)fflush(end->counter);
}

static void send_disc(void *arg)
{
	verbs_conn_send_disc(&((struct end *)arg)->rig.conn.spi);
}

static void detach_conn(void *arg)
{
	struct end *end = arg;

	end->status = verbs_conn_detach(&end->rig.conn.spi);
}

static void on_disconnected(void *arg)
{
	verbs_end_on_disconnected(&((struct end *)arg)->rig.conn, 0);
}

static void abort_conn(void *arg)
{
	verbs_conn_abort(&((struct end *)arg)->rig.conn.spi);
}

static void start_drain(void *arg)
{
	verbs_conn_drain(&((struct end *)arg)->rig.conn.spi);
}

static void run_end_timer(void *arg)
{
	struct end *end = arg;

	for (unsigned i = 0; i < end->steps; i++) {
		if (end->rnr_answers)
			count_rnr_answer(end);
		verbs_end_on_timer(&end->rig.conn);
	}
}

static void run_watchdog(void *arg)
{
	struct end *end = arg;

	for (unsigned i = 0; i < end->steps && end->rig.reports == 0; i++)
		verbs_watch_on_timer(&end->rig.conn);
}

static void run_steps(struct end *end, unsigned steps, bool rnr_answers)
{
	end->steps = steps;
	end->rnr_answers = rnr_answers;
	call_on_loop(end, run_end_timer);
}

/* ---- the end that leaves ---- */

static void an_end_whose_goodbye_is_not_out_stays_until_probed(void **state)
{
	enum { PROBED, TIMED_OUT, BROKEN, WAYS };
	static struct end end;

	(void)state;
	for (unsigned way = PROBED; way < WAYS; way++) {
		end_open(&end, false);
		assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
		call_on_loop(&end, send_disc);
		assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 1);
		call_on_loop(&end, detach_conn);
		assert_int_equal(end.status, NDX_PENDING);
		assert_int_equal(rig_native(&end.rig)->state, IBV_QPS_RTS);
		rig_expect_none(&end.rig);
		if (way == PROBED)
			receive_field(&end, VERBS_FIELD_PROBED);
		else if (way == TIMED_OUT)
			end.rig.conn.probe_until = 0;
		else /* a failed queue pair answers no probe */
			rig_qp(&end.rig)->broken = true;
		call_on_loop(&end, detach_conn);
		assert_int_equal(end.status, NDX_OK);
		rig_expect(&end.rig, 1, NDX_E_CANCELED);
		assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 1);
		end_close(&end);
	}
}

static void an_end_whose_goodbye_is_out_ends_at_once(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned late = 0; late <= 1; late++) {
		end_open(&end, false);
		call_on_loop(&end, send_disc);
		if (late) { /* detach before the goodbye is delivered */
			call_on_loop(&end, detach_conn);
			assert_int_equal(end.status, NDX_PENDING);
		}
		fake_complete_sends(rig_native(&end.rig), 1);
		rig_expect_none(&end.rig);
		call_on_loop(&end, detach_conn);
		assert_int_equal(end.status, NDX_OK);
		assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 1);
		end_close(&end);
	}
}

/* An abort writes the field ABORTED to the peer's mailbox first if the peer can read it, and waits
 * for the write only for a limited time. */
static void an_abort_is_written_to_the_peer(void **state)
{
	static const struct {
		bool runs, disc_sent, peer_disconnected, broken, lost;
		unsigned writes;
	} cases[] = {{.runs = true, .writes = 1},       {.runs = false, .writes = 1},
	             {.runs = true, .disc_sent = true}, {.runs = true, .peer_disconnected = true},
	             {.runs = true, .broken = true},    {.runs = true, .lost = true}};
	static struct end end;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		end_open(&end, false);
		end.rig.device.runs = cases[i].runs;
		end.rig.conn.disc_sent = cases[i].disc_sent;
		end.rig.conn.peer_disconnected = cases[i].peer_disconnected;
		rig_qp(&end.rig)->broken = cases[i].broken;
		end.rig.conn.lost = cases[i].lost;
		call_on_loop(&end, abort_conn);
		assert_int_equal(end.rig.device.count[FAKE_POST_SEND], cases[i].writes);
		if (cases[i].writes > 0)
			assert_int_equal(fake_qp_of(rig_native(&end.rig))->sends[0].opcode,
			                 IBV_WR_RDMA_WRITE);
		/* the control thread is free while the write is outstanding */
		if (!cases[i].runs) {
			assert_int_equal(end.rig.reports, 0);
			assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 0);
			run_steps(&end, 1, false);
		}
		assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], !cases[i].disc_sent);
		assert_int_equal(end.rig.reports, NDX_REPORT_QUIET);
		end_close(&end);
	}
}

/* The write completes, or the peer disconnects, before the time limit. */
static void an_abort_waits_until_aborted_is_delivered(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned leaves = 0; leaves <= 1; leaves++) {
		end_open(&end, false);
		call_on_loop(&end, abort_conn);
		assert_int_equal(end.rig.reports, 0);
		if (leaves) {
			call_on_loop(&end, on_disconnected);
		} else {
			fake_complete_sends(rig_native(&end.rig), 1);
			verbs_qp_poll(rig_qp(&end.rig)); /* queues the job that ends the abort */
			call_on_loop(&end, nothing);
		}
		assert_int_equal(end.rig.reports, NDX_REPORT_QUIET);
		assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 1);
		end_close(&end);
	}
}

/* A device that flushes late: the detach waits as a state. A peer that disconnects in this time has
 * disconnected gracefully, because no queue pair is left that could probe it. */
static void a_detach_leaves_the_thread_to_others(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned leaves = 0; leaves <= 1; leaves++) {
		end_open(&end, false);
		end.rig.device.runs = true;
		end.rig.device.flushes_late = true;
		assert_int_equal(rig_receive(&end.rig, 1), NDX_OK);
		call_on_loop(&end, send_disc);
		call_on_loop(&end, detach_conn);
		assert_int_equal(end.status, NDX_PENDING);
		if (leaves) {
			call_on_loop(&end, on_disconnected);
			assert_int_equal(end.rig.reports,
			                 NDX_REPORT_PEER_DISC | NDX_REPORT_DISC_ACKED);
		}
		fake_break(rig_native(&end.rig), IBV_WC_WR_FLUSH_ERR);
		call_on_loop(&end, detach_conn);
		assert_int_equal(end.status, NDX_OK);
		rig_expect(&end.rig, 1, NDX_E_CANCELED);
		end_close(&end);
	}
}

/* ---- the end that probes ---- */

static void an_end_that_was_aborted_sends_no_probe(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned after_goodbye = 0; after_goodbye <= 1; after_goodbye++) {
		end_open(&end, true);
		if (after_goodbye) /* the peer aborts after its goodbye */
			receive_field(&end, VERBS_FIELD_GOODBYE);
		receive_field(&end, VERBS_FIELD_ABORTED);
		call_on_loop(&end, on_disconnected);
		assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
		assert_int_equal(end.rig.device.count[FAKE_POST_SEND], 0);
		end_close(&end);
	}
}

static void an_rnr_answer_proves_liveness(void **state)
{
	static struct end end;

	(void)state;
	end_open(&end, true);
	assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
	call_on_loop(&end, on_disconnected);
	run_steps(&end, STEPS_MOMENT, true);
	assert_int_equal(end.rig.reports, 0);
	run_steps(&end, 2, false);
	assert_int_equal(end.rig.reports, 0);
	run_steps(&end, 1, true);
	assert_int_equal(end.rig.reports, NDX_REPORT_PEER_DISC);
	end_close(&end);
}

static void silence_is_no_answer(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned behind = 0; behind <= 1; behind++) {
		end_open(&end, true);
		if (behind)
			assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
		call_on_loop(&end, on_disconnected);
		run_steps(&end, (behind ? STEPS_BEHIND : STEPS_ALONE) - 1, false);
		assert_int_equal(end.rig.reports, 0);
		run_steps(&end, 1, false);
		assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
		end_close(&end);
	}
}

/* A write consumes no receive, so RNR answers to other requests say nothing about it. */
static void a_write_gets_no_rnr_answer(void **state)
{
	static struct end end;
	const struct ndx_sge sge = {end.rig.memory, sizeof(end.rig.memory), 1};

	(void)state;
	end_open(&end, true);
	assert_int_equal(ndx_qp_write(&end.rig.qp->pub, NULL, &sge, 1, 0, 1, 0), NDX_OK);
	call_on_loop(&end, on_disconnected);
	run_steps(&end, STEPS_ALONE - 1, true);
	assert_int_equal(end.rig.reports, 0);
	run_steps(&end, 1, true);
	assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
	end_close(&end);
}

/* An answer to the probe is final: the peer may take as long as its consumer likes, and no second
 * probe follows. */
static void an_answer_to_the_probe_is_final(void **state)
{
	static struct end end;

	(void)state;
	end_open(&end, false);
	call_on_loop(&end, on_disconnected);
	/* the first answer; a second one follows a moment later */
	fake_complete_sends(rig_native(&end.rig), 1);
	rig_expect_none(&end.rig);
	call_on_loop(&end, stop_timers); /* runs after the job that the answer queues */
	run_steps(&end, 1, false);
	assert_int_equal(end.rig.reports, 0);
	fake_complete_sends(rig_native(&end.rig), 1);
	rig_expect_none(&end.rig);
	call_on_loop(&end, stop_timers);
	assert_int_equal(end.rig.reports, NDX_REPORT_PEER_DISC);
	run_steps(&end, STEPS_BEHIND, false);
	assert_int_equal(end.rig.reports, NDX_REPORT_PEER_DISC);
	end_close(&end);
}

/* The DREQs of both ends cross: neither is the answer to the other one. */
static void crossed_goodbyes_are_both_answered(void **state)
{
	static struct rdma_cm_id id;
	static struct end end;

	(void)state;
	end_open(&end, false);
	end.rig.conn.id = &id;
	call_on_loop(&end, send_disc);
	fake_complete_sends(rig_native(&end.rig), 1);
	rig_expect_none(&end.rig);
	call_on_loop(&end, stop_timers);
	assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 1);
	receive_field(&end, VERBS_FIELD_GOODBYE);
	call_on_loop(&end, on_disconnected);
	assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 2);
	assert_int_equal(end.rig.reports, NDX_REPORT_PEER_DISC | NDX_REPORT_DISC_ACKED);
	end_close(&end);
}

/* RNR answers to requests that were posted after the probe are no answer to it. */
static void later_requests_do_not_prolong_the_probe(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned software = 0; software <= 1; software++) {
		end_open(&end, software);
		assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
		fake_complete_sends(rig_native(&end.rig), 1);
		rig_expect(&end.rig, 1, NDX_OK);
		call_on_loop(&end, on_disconnected);
		assert_int_equal(rig_send(&end.rig, 2, 0), NDX_OK);
		run_steps(&end, STEPS_ALONE - 1, software);
		assert_int_equal(end.rig.reports, 0);
		run_steps(&end, 1, software);
		assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
		end_close(&end);
	}
}

/* Both ends disconnect, and no goodbye of the peer has arrived: the peer may have aborted, so this
 * end stays until its probe ends. */
static void an_end_that_probes_stays_until_the_answer(void **state)
{
	static struct end end;

	(void)state;
	end_open(&end, true);
	call_on_loop(&end, send_disc);
	fake_complete_sends(rig_native(&end.rig), 1);
	rig_expect_none(&end.rig);
	call_on_loop(&end, on_disconnected);
	call_on_loop(&end, detach_conn);
	assert_int_equal(end.status, NDX_PENDING);
	assert_int_equal(end.rig.reports, 0);
	run_steps(&end, STEPS_ALONE, false);
	assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
	end_close(&end);
}

/* An adapter ends requests that the peer does not answer. These requests are still outstanding, so
 * the adapter has had answers. */
static void an_outstanding_request_of_an_adapter_proves_liveness(void **state)
{
	static struct end end;

	(void)state;
	end_open(&end, false);
	assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
	call_on_loop(&end, on_disconnected);
	run_steps(&end, STEPS_BEHIND - 1, false);
	assert_int_equal(end.rig.reports, 0);
	run_steps(&end, 1, false);
	assert_int_equal(end.rig.reports, NDX_REPORT_PEER_DISC);
	end_close(&end);
}

/* ---- requests to a peer that has gone ---- */

static void requests_after_the_peers_goodbye_are_cancelled(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned graceful = 0; graceful <= 1; graceful++) {
		end_open(&end, false);
		assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
		assert_int_equal(rig_send(&end.rig, 2, 0), NDX_OK);
		if (graceful)
			receive_field(&end, VERBS_FIELD_GOODBYE);
		call_on_loop(&end, on_disconnected);
		assert_int_equal(end.rig.reports, graceful ? NDX_REPORT_PEER_DISC : 0);
		end.rig.reports = 0;
		call_on_loop(&end, start_drain);
		fake_break(rig_native(&end.rig), IBV_WC_RETRY_EXC_ERR);
		rig_expect(&end.rig, 1, NDX_E_CANCELED);
		rig_expect(&end.rig, 2, NDX_E_CANCELED);
		assert_int_equal(end.rig.reports, graceful ? NDX_REPORT_DRAINED : NDX_REPORT_ABORT);
		end_close(&end);
	}
}

/* A request that the peer refuses fails with its own status. */
static void a_request_that_the_peer_refuses_fails(void **state)
{
	static struct end end;

	(void)state;
	end_open(&end, false);
	assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
	receive_field(&end, VERBS_FIELD_GOODBYE);
	call_on_loop(&end, on_disconnected);
	end.rig.reports = 0;
	call_on_loop(&end, start_drain);
	fake_break(rig_native(&end.rig), IBV_WC_REM_ACCESS_ERR);
	rig_expect(&end.rig, 1, NDX_E_ACCESS_VIOLATION);
	assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
	end_close(&end);
}

/* Software RoCE repeats a request without limit: the watchdog ends it. */
static void unanswered_requests_end_the_drain(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned graceful = 0; graceful <= 1; graceful++) {
		end_open(&end, true);
		count_rnr_answer(&end);
		assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
		if (graceful)
			receive_field(&end, VERBS_FIELD_GOODBYE);
		call_on_loop(&end, on_disconnected);
		end.rig.reports = 0;
		call_on_loop(&end, start_drain);
		end.steps = 3;
		call_on_loop(&end, run_watchdog);
		assert_int_equal(end.rig.reports, 0);
		call_on_loop(&end, run_watchdog);
		assert_int_equal(end.rig.reports, graceful ? NDX_REPORT_DRAINED : NDX_REPORT_ABORT);
		call_on_loop(&end, send_disc);
		assert_int_equal(end.rig.conn.disc_without_goodbye,
		                 !graceful); /* a peer that has gone sends no probe */
		end_close(&end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_whose_goodbye_is_not_out_stays_until_probed),
		cmocka_unit_test(an_end_whose_goodbye_is_out_ends_at_once),
		cmocka_unit_test(an_abort_is_written_to_the_peer),
		cmocka_unit_test(an_abort_waits_until_aborted_is_delivered),
		cmocka_unit_test(a_detach_leaves_the_thread_to_others),
		cmocka_unit_test(an_end_that_was_aborted_sends_no_probe),
		cmocka_unit_test(an_rnr_answer_proves_liveness),
		cmocka_unit_test(a_write_gets_no_rnr_answer),
		cmocka_unit_test(an_answer_to_the_probe_is_final),
		cmocka_unit_test(crossed_goodbyes_are_both_answered),
		cmocka_unit_test(later_requests_do_not_prolong_the_probe),
		cmocka_unit_test(silence_is_no_answer),
		cmocka_unit_test(an_end_that_probes_stays_until_the_answer),
		cmocka_unit_test(an_outstanding_request_of_an_adapter_proves_liveness),
		cmocka_unit_test(requests_after_the_peers_goodbye_are_cancelled),
		cmocka_unit_test(a_request_that_the_peer_refuses_fails),
		cmocka_unit_test(unanswered_requests_end_the_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
