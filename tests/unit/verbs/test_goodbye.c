/* SPDX-License-Identifier: BSD-2-Clause */
/* Goodbyes of sides whose requests wait for ever: who asks whom, and what becomes of the requests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "rig.h"

#define DEPTH 16u
#define STEPS_ALONE 10u  /* until a question that nothing stands before is unanswered */
#define STEPS_BEHIND 15u /* likewise, behind requests that wait */
#define STEPS_MOMENT 3u  /* in which a peer that was killed may still turn requests away */

/* One end, and what its control thread is to do. */
struct end {
	struct rig rig;
	FILE *counter; /* of software RoCE: requests that the peer turned away */
	enum ndx_status status;
	unsigned steps;
	bool turned_away; /* in each of them */
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
	rig_qp(&end->rig)->path =
		(struct verbs_numbers){77, 5, 5}; /* so its own word is also the peer's */
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

	base_timer_cancel(end->rig.adapter.spi.loop, &end->rig.conn.timer);
	base_timer_cancel(end->rig.adapter.spi.loop, &end->rig.conn.watchdog);
}

static void run(struct end *end, base_loop_fn *what)
{
	base_loop_call(end->rig.adapter.spi.loop, what, end);
}

static void end_close(struct end *end)
{
	run(end, stop_timers);
	end->rig.adapter.soft_roce = false;
	rig_close(&end->rig);
	(void)fclose(end->counter);
}

static void put_word(struct end *end, enum verbs_field which)
{
	(void)verbs_mailbox_write(&end->rig.conn, which);
	end->rig.conn.mailbox[which] = end->rig.conn.mailbox[VERBS_FIELD_OWN];
}

static void turn_away(struct end *end)
{
	rewind(end->counter);
	(void)fprintf(end->counter, "%08llu", (unsigned long long)++end->count);
	(void)fflush(end->counter);
}

static void say_goodbye(void *arg)
{
	verbs_conn_send_disc(&((struct end *)arg)->rig.conn.spi);
}

static void detach(void *arg)
{
	struct end *end = arg;

	end->status = verbs_conn_detach(&end->rig.conn.spi);
}

static void on_disconnected(void *arg)
{
	verbs_end_on_disconnected(&((struct end *)arg)->rig.conn, 0);
}

static void break_off(void *arg)
{
	verbs_conn_abort(&((struct end *)arg)->rig.conn.spi);
}

static void drain(void *arg)
{
	verbs_conn_drain(&((struct end *)arg)->rig.conn.spi);
}

static void wait_on(void *arg)
{
	struct end *end = arg;

	for (unsigned i = 0; i < end->steps; i++) {
		if (end->turned_away)
			turn_away(end);
		verbs_end_on_timer(&end->rig.conn);
	}
}

static void watch(void *arg)
{
	struct end *end = arg;

	for (unsigned i = 0; i < end->steps && end->rig.reports == 0; i++)
		verbs_watch_on_timer(&end->rig.conn);
}

static void step(struct end *end, unsigned steps, bool turned_away)
{
	end->steps = steps;
	end->turned_away = turned_away;
	run(end, wait_on);
}

/* ---- the one that goes ---- */

static void an_end_whose_goodbye_is_not_out_stays_until_probed(void **state)
{
	enum { ASKED, TIME_IS_OVER, BROKEN, WAYS };
	static struct end end;

	(void)state;
	for (unsigned way = ASKED; way < WAYS; way++) {
		end_open(&end, false);
		assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
		run(&end, say_goodbye);
		assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 1);
		run(&end, detach);
		assert_int_equal(end.status, NDX_PENDING);
		assert_int_equal(rig_native(&end.rig)->state, IBV_QPS_RTS);
		rig_expect_none(&end.rig);
		if (way == ASKED)
			put_word(&end, VERBS_FIELD_PROBED);
		else if (way == TIME_IS_OVER)
			end.rig.conn.probe_until = 0;
		else /* a queue pair that has failed answers no question */
			rig_qp(&end.rig)->broken = true;
		run(&end, detach);
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
		run(&end, say_goodbye);
		if (late) { /* the word has not arrived when it wants to go */
			run(&end, detach);
			assert_int_equal(end.status, NDX_PENDING);
		}
		fake_run(rig_native(&end.rig), 1);
		rig_expect_none(&end.rig);
		run(&end, detach);
		assert_int_equal(end.status, NDX_OK);
		assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 1);
		end_close(&end);
	}
}

/* An abort: the word goes first, if there is anybody to read it; but nobody waits for it long. */
static void an_abort_is_written_to_the_peer(void **state)
{
	static const struct {
		bool runs, disc_sent, peer_disconnected, broken, lost;
		unsigned words;
	} cases[] = {{.runs = true, .words = 1},        {.runs = false, .words = 1},
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
		run(&end, break_off);
		assert_int_equal(end.rig.device.count[FAKE_POST_SEND], cases[i].words);
		if (cases[i].words > 0)
			assert_int_equal(fake_qp_of(rig_native(&end.rig))->sends[0].opcode,
			                 IBV_WR_RDMA_WRITE);
		if (!cases[i].runs) { /* other connections need the thread */
			assert_int_equal(end.rig.reports, 0);
			assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 0);
			step(&end, 1, false);
		}
		assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], !cases[i].disc_sent);
		assert_int_equal(end.rig.reports, NDX_REPORT_QUIET);
		end_close(&end);
	}
}

/* The write arrives, or the peer leaves, before the time is over. */
static void an_abort_waits_until_aborted_is_delivered(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned leaves = 0; leaves <= 1; leaves++) {
		end_open(&end, false);
		run(&end, break_off);
		assert_int_equal(end.rig.reports, 0);
		if (leaves) {
			run(&end, on_disconnected);
		} else {
			fake_run(rig_native(&end.rig), 1);
			verbs_qp_poll(rig_qp(&end.rig)); /* posts the job that ends the abort */
			run(&end, nothing);
		}
		assert_int_equal(end.rig.reports, NDX_REPORT_QUIET);
		assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 1);
		end_close(&end);
	}
}

/* A device that takes its time: the detach waits for it as a state. A peer that leaves meanwhile
 * has said goodbye, because no queue pair is left that could ask. */
static void a_detach_leaves_the_thread_to_others(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned leaves = 0; leaves <= 1; leaves++) {
		end_open(&end, false);
		end.rig.device.runs = true;
		end.rig.device.flushes_late = true;
		assert_int_equal(rig_receive(&end.rig, 1), NDX_OK);
		run(&end, say_goodbye);
		run(&end, detach);
		assert_int_equal(end.status, NDX_PENDING);
		if (leaves) {
			run(&end, on_disconnected);
			assert_int_equal(end.rig.reports,
			                 NDX_REPORT_PEER_DISC | NDX_REPORT_DISC_ACKED);
		}
		fake_break(rig_native(&end.rig), IBV_WC_WR_FLUSH_ERR);
		run(&end, detach);
		assert_int_equal(end.status, NDX_OK);
		rig_expect(&end.rig, 1, NDX_E_CANCELED);
		end_close(&end);
	}
}

/* ---- the one that asks ---- */

static void an_end_that_was_aborted_sends_no_probe(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned changed = 0; changed <= 1; changed++) {
		end_open(&end, true);
		if (changed) /* its mind, when the goodbye had gone out */
			put_word(&end, VERBS_FIELD_GOODBYE);
		put_word(&end, VERBS_FIELD_ABORTED);
		run(&end, on_disconnected);
		assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
		assert_int_equal(end.rig.device.count[FAKE_POST_SEND], 0);
		end_close(&end);
	}
}

static void to_be_turned_away_is_an_answer(void **state)
{
	static struct end end;

	(void)state;
	end_open(&end, true);
	assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
	run(&end, on_disconnected);
	step(&end, STEPS_MOMENT, true);
	assert_int_equal(end.rig.reports, 0);
	step(&end, 2, false);
	assert_int_equal(end.rig.reports, 0);
	step(&end, 1, true);
	assert_int_equal(end.rig.reports, NDX_REPORT_PEER_DISC);
	end_close(&end);
}

static void silence_is_none(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned behind = 0; behind <= 1; behind++) {
		end_open(&end, true);
		if (behind)
			assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
		run(&end, on_disconnected);
		step(&end, (behind ? STEPS_BEHIND : STEPS_ALONE) - 1, false);
		assert_int_equal(end.rig.reports, 0);
		step(&end, 1, false);
		assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
		end_close(&end);
	}
}

/* A write waits for nobody's receive: that others are turned away says nothing of it. */
static void a_write_is_not_turned_away(void **state)
{
	static struct end end;
	const struct ndx_sge sge = {end.rig.memory, sizeof(end.rig.memory), 1};

	(void)state;
	end_open(&end, true);
	assert_int_equal(ndx_qp_write(&end.rig.qp->pub, NULL, &sge, 1, 0, 1, 0), NDX_OK);
	run(&end, on_disconnected);
	step(&end, STEPS_ALONE - 1, true);
	assert_int_equal(end.rig.reports, 0);
	step(&end, 1, true);
	assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
	end_close(&end);
}

/* Its end may take as long as the own program likes: nobody asks any more. */
static void an_answer_is_the_last_word(void **state)
{
	static struct end end;

	(void)state;
	end_open(&end, false);
	run(&end, on_disconnected);
	fake_run(rig_native(&end.rig), 1); /* somebody is there, and still so a moment later */
	rig_expect_none(&end.rig);
	run(&end, stop_timers); /* behind what the answer asks for */
	step(&end, 1, false);
	assert_int_equal(end.rig.reports, 0);
	fake_run(rig_native(&end.rig), 1);
	rig_expect_none(&end.rig);
	run(&end, stop_timers);
	assert_int_equal(end.rig.reports, NDX_REPORT_PEER_DISC);
	step(&end, STEPS_BEHIND, false);
	assert_int_equal(end.rig.reports, NDX_REPORT_PEER_DISC);
	end_close(&end);
}

/* Each side's request to disconnect crosses the other's: neither is the answer to one. */
static void crossed_goodbyes_are_both_answered(void **state)
{
	static struct rdma_cm_id id;
	static struct end end;

	(void)state;
	end_open(&end, false);
	end.rig.conn.id = &id;
	run(&end, say_goodbye);
	fake_run(rig_native(&end.rig), 1);
	rig_expect_none(&end.rig);
	run(&end, stop_timers);
	assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 1);
	put_word(&end, VERBS_FIELD_GOODBYE);
	run(&end, on_disconnected);
	assert_int_equal(end.rig.device.count[FAKE_DISCONNECT], 2);
	assert_int_equal(end.rig.reports, NDX_REPORT_PEER_DISC | NDX_REPORT_DISC_ACKED);
	end_close(&end);
}

/* What others are told by the same device is no answer to us. */
static void what_is_posted_later_does_not_stand_before_the_question(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned software = 0; software <= 1; software++) {
		end_open(&end, software);
		assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
		fake_run(rig_native(&end.rig), 1);
		rig_expect(&end.rig, 1, NDX_OK);
		run(&end, on_disconnected);
		assert_int_equal(rig_send(&end.rig, 2, 0), NDX_OK);
		step(&end, STEPS_ALONE - 1, software);
		assert_int_equal(end.rig.reports, 0);
		step(&end, 1, software);
		assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
		end_close(&end);
	}
}

/* Both say it, the peer without a word: it may have aborted, so we stay until that is known. */
static void an_end_that_probes_stays_until_the_answer(void **state)
{
	static struct end end;

	(void)state;
	end_open(&end, true);
	run(&end, say_goodbye);
	fake_run(rig_native(&end.rig), 1);
	rig_expect_none(&end.rig);
	run(&end, on_disconnected);
	run(&end, detach);
	assert_int_equal(end.status, NDX_PENDING);
	assert_int_equal(end.rig.reports, 0);
	step(&end, STEPS_ALONE, false);
	assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
	end_close(&end);
}

/* It gives requests up that nobody answers; these it has not. */
static void an_adapter_has_asked_for_us(void **state)
{
	static struct end end;

	(void)state;
	end_open(&end, false);
	assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
	run(&end, on_disconnected);
	step(&end, STEPS_BEHIND - 1, false);
	assert_int_equal(end.rig.reports, 0);
	step(&end, 1, false);
	assert_int_equal(end.rig.reports, NDX_REPORT_PEER_DISC);
	end_close(&end);
}

/* ---- requests to a peer that has gone ---- */

static void requests_after_the_peers_goodbye_are_cancelled(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned well = 0; well <= 1; well++) {
		end_open(&end, false);
		assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
		assert_int_equal(rig_send(&end.rig, 2, 0), NDX_OK);
		if (well)
			put_word(&end, VERBS_FIELD_GOODBYE);
		run(&end, on_disconnected);
		assert_int_equal(end.rig.reports, well ? NDX_REPORT_PEER_DISC : 0);
		end.rig.reports = 0;
		run(&end, drain);
		fake_break(rig_native(&end.rig), IBV_WC_RETRY_EXC_ERR);
		rig_expect(&end.rig, 1, NDX_E_CANCELED);
		rig_expect(&end.rig, 2, NDX_E_CANCELED);
		assert_int_equal(end.rig.reports, well ? NDX_REPORT_DRAINED : NDX_REPORT_ABORT);
		end_close(&end);
	}
}

/* One that the peer refuses is another matter. */
static void a_request_that_fails_there_is_a_failure(void **state)
{
	static struct end end;

	(void)state;
	end_open(&end, false);
	assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
	put_word(&end, VERBS_FIELD_GOODBYE);
	run(&end, on_disconnected);
	end.rig.reports = 0;
	run(&end, drain);
	fake_break(rig_native(&end.rig), IBV_WC_REM_ACCESS_ERR);
	rig_expect(&end.rig, 1, NDX_E_ACCESS_VIOLATION);
	assert_int_equal(end.rig.reports, NDX_REPORT_ABORT);
	end_close(&end);
}

/* Software RoCE does not give up: the watch does. */
static void unanswered_requests_end_the_drain(void **state)
{
	static struct end end;

	(void)state;
	for (unsigned well = 0; well <= 1; well++) {
		end_open(&end, true);
		turn_away(&end);
		assert_int_equal(rig_send(&end.rig, 1, 0), NDX_OK);
		if (well)
			put_word(&end, VERBS_FIELD_GOODBYE);
		run(&end, on_disconnected);
		end.rig.reports = 0;
		run(&end, drain);
		end.steps = 3;
		run(&end, watch);
		assert_int_equal(end.rig.reports, 0);
		run(&end, watch);
		assert_int_equal(end.rig.reports, well ? NDX_REPORT_DRAINED : NDX_REPORT_ABORT);
		run(&end, say_goodbye);
		assert_int_equal(end.rig.conn.disc_without_goodbye,
		                 !well); /* who is gone does not ask */
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
		cmocka_unit_test(to_be_turned_away_is_an_answer),
		cmocka_unit_test(a_write_is_not_turned_away),
		cmocka_unit_test(an_answer_is_the_last_word),
		cmocka_unit_test(crossed_goodbyes_are_both_answered),
		cmocka_unit_test(what_is_posted_later_does_not_stand_before_the_question),
		cmocka_unit_test(silence_is_none),
		cmocka_unit_test(an_end_that_probes_stays_until_the_answer),
		cmocka_unit_test(an_adapter_has_asked_for_us),
		cmocka_unit_test(requests_after_the_peers_goodbye_are_cancelled),
		cmocka_unit_test(a_request_that_fails_there_is_a_failure),
		cmocka_unit_test(unanswered_requests_end_the_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
