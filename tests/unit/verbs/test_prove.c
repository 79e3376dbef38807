/* SPDX-License-Identifier: BSD-2-Clause */
/* What the writes of a proof tell of the path, by the way in which they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <endian.h>

#include "rig.h"
#include "verbs_wr.h"

#define DEPTH 16u
#define WRITE UINT64_C(0x8000000000000001)
#define EXPECT UINT64_C(0x8000000000000002)

static void open_described(struct rig *rig)
{
	rig_open(rig);
	rig_connect(rig, DEPTH, NULL);
	rig->conn.spi.qp = rig->qp;
	rig->conn.oob.on = true;
	rig->conn.oob.mtu = 1024;
	rig->conn.state = VERBS_CONN_UP;
	rig->conn.peer.mailbox_key = 7;
	assert_int_equal(verbs_mailbox_open(&rig->conn), NDX_OK);
}

struct looking {
	struct rig *rig;
	struct ndx_spi_proof proof;
	enum ndx_status status;
};

static void look_on_loop(void *arg)
{
	struct looking *l = arg;

	l->status = verbs_conn_prove(&l->rig->conn.spi, WRITE, EXPECT, &l->proof);
}

/* On the control thread, where the proof is at home. */
static struct ndx_spi_proof look_unpolled(struct rig *rig)
{
	struct looking l = {.rig = rig};

	ndxp_loop_call(rig->adapter.spi.loop, look_on_loop, &l);
	assert_int_equal(l.status, NDX_OK);
	return l.proof;
}

static struct ndx_spi_proof look(struct rig *rig)
{
	verbs_qp_poll(rig_qp(rig));
	return look_unpolled(rig);
}

static void a_refused_write_is_a_denial(void **state)
{
	static const struct {
		enum ibv_wc_status native;
		enum ndx_status status;
	} cases[] = {
		{IBV_WC_REM_ACCESS_ERR, NDX_E_ACCESS_VIOLATION},
		{IBV_WC_REM_INV_REQ_ERR, NDX_E_ACCESS_VIOLATION},
		{IBV_WC_RETRY_EXC_ERR, NDX_E_IO_TIMEOUT},
		{IBV_WC_REM_OP_ERR, NDX_E_REMOTE_ERROR},
	};
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ndx_spi_proof proof;

		open_described(&rig);
		proof = look(&rig);
		assert_int_equal(proof.status, NDX_PENDING);
		assert_int_equal(proof.written, NDX_PROVED_NOTHING);
		fake_break(rig_native(&rig), cases[i].native);
		proof = look(&rig);
		assert_int_equal(proof.status, cases[i].status);
		assert_int_equal(proof.native, cases[i].native);
		verbs_mailbox_close(&rig.conn);
		rig_close(&rig);
	}
}

/* Three writes: a few bytes, a packet, a few bytes. */
static void writes_and_bytes_are_told_apart(void **state)
{
	struct ndx_spi_proof proof;
	struct rig rig;

	(void)state;
	open_described(&rig);
	rig.device.count[FAKE_POST_SEND] = 0;
	assert_int_equal(look(&rig).status, NDX_PENDING);
	assert_int_equal(rig.device.count[FAKE_POST_SEND], 3);
	fake_complete_sends(rig_native(&rig), 1);
	proof = look(&rig);
	assert_int_equal(proof.written, NDX_PROVED_SMALL);
	assert_int_equal(proof.seen, NDX_PROVED_NOTHING);
	rig.conn.mailbox[VERBS_FIELD_SMALL] = htobe64(EXPECT);
	fake_complete_sends(rig_native(&rig), 2);
	proof = look(&rig);
	assert_int_equal(proof.status, NDX_OK);
	assert_int_equal(proof.written, NDX_PROVED_WHOLE);
	assert_int_equal(proof.seen, NDX_PROVED_SMALL);
	/* the own number is not the peer's */
	rig.conn.mailbox[VERBS_FIELD_WHOLE] = htobe64(WRITE);
	assert_int_equal(look(&rig).seen, NDX_PROVED_SMALL);
	rig.conn.mailbox[VERBS_FIELD_WHOLE] = htobe64(EXPECT);
	assert_int_equal(look(&rig).seen, NDX_PROVED_WHOLE);
	assert_int_equal(rig.device.count[FAKE_POST_SEND], 3);
	verbs_mailbox_close(&rig.conn);
	rig_close(&rig);
}

/* The peer does not learn of the refusal from an answer that is lost, so this end has to say. */
static void an_end_knows_what_its_own_device_refuses(void **state)
{
	static const struct {
		enum ibv_wc_status native;
		enum ndx_spi_proved seen;
	} cases[] = {
		{IBV_WC_WR_FLUSH_ERR, NDX_PROVED_REFUSED},
		/* a failure of the own write breaks the own queue pair, too */
		{IBV_WC_REM_ACCESS_ERR, NDX_PROVED_NOTHING},
		{IBV_WC_RETRY_EXC_ERR, NDX_PROVED_NOTHING},
	};
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_described(&rig);
		assert_int_equal(look(&rig).status, NDX_PENDING);
		fake_break(rig_native(&rig), cases[i].native);
		assert_int_equal(look(&rig).seen, cases[i].seen);
		verbs_mailbox_close(&rig.conn);
		rig_close(&rig);
	}
}

/* The peer's end of the connection comes before this end has polled. */
static void the_last_look_reads_the_completions(void **state)
{
	struct ndx_spi_proof proof;
	struct rig rig;

	(void)state;
	open_described(&rig);
	assert_int_equal(look(&rig).status, NDX_PENDING);
	fake_break(rig_native(&rig), IBV_WC_REM_ACCESS_ERR);
	proof = look_unpolled(&rig);
	assert_int_equal(proof.status, NDX_E_ACCESS_VIOLATION);
	verbs_mailbox_close(&rig.conn);
	rig_close(&rig);
}

/* The probe of an idle connection uses the same key, and may be ahead of the proof. */
static void a_probe_that_is_refused_tells_too(void **state)
{
	struct ndx_spi_proof proof;
	struct rig rig;

	(void)state;
	for (unsigned early = 0; early < 2; early++) {
		const struct verbs_ctrl_write noop = {.length = 1, .rkey = 7};

		open_described(&rig);
		ndxp_lock_acquire(&rig_qp(&rig)->base.lock);
		assert_int_equal(verbs_wr_post_control(rig_qp(&rig), VERBS_KEEPALIVE, &noop), 0);
		ndxp_lock_release(&rig_qp(&rig)->base.lock);
		if (early == 0)
			(void)look(&rig);
		fake_break(rig_native(&rig), IBV_WC_REM_ACCESS_ERR);
		proof = look(&rig);
		assert_int_equal(proof.status, NDX_E_ACCESS_VIOLATION);
		assert_int_equal(proof.native, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(proof.seen, NDX_PROVED_NOTHING);
		verbs_mailbox_close(&rig.conn);
		rig_close(&rig);
	}
}

static void requests_that_this_end_cancels_are_no_refusal(void **state)
{
	struct rig rig;

	(void)state;
	open_described(&rig);
	assert_int_equal(look(&rig).status, NDX_PENDING);
	ndxp_lock_acquire(&rig_qp(&rig)->base.lock);
	verbs_qp_kill(rig_qp(&rig));
	ndxp_lock_release(&rig_qp(&rig)->base.lock);
	assert_int_equal(look(&rig).seen, NDX_PROVED_NOTHING);
	rig.adapter.soft_roce = true;
	rig.conn.queried_ns = 0;
	assert_int_equal(look(&rig).seen, NDX_PROVED_NOTHING);
	rig.adapter.soft_roce = false;
	verbs_mailbox_close(&rig.conn);
	rig_close(&rig);
}

/* Nothing is posted that could be flushed: only the state of the queue pair tells, now and then. */
static void the_state_of_software_tells(void **state)
{
	struct rig rig;

	(void)state;
	open_described(&rig);
	rig.adapter.soft_roce = true;
	assert_int_equal(look(&rig).status, NDX_PENDING);
	fake_complete_sends(rig_native(&rig), 3);
	assert_int_equal(look(&rig).status, NDX_OK);
	fake_break(rig_native(&rig), IBV_WC_SUCCESS);
	rig.conn.queried_ns = ndxp_now_ns();
	assert_int_equal(look(&rig).seen, NDX_PROVED_NOTHING);
	rig.conn.queried_ns = 0;
	assert_int_equal(look(&rig).seen, NDX_PROVED_REFUSED);
	/* that all has arrived is no refusal, whatever has failed since */
	rig.conn.mailbox[VERBS_FIELD_WHOLE] = htobe64(EXPECT);
	assert_int_equal(look(&rig).seen, NDX_PROVED_WHOLE);
	rig.adapter.soft_roce = false;
	verbs_mailbox_close(&rig.conn);
	rig_close(&rig);
}

/* An adapter reports it. */
static void the_event_of_an_adapter_tells(void **state)
{
	static const struct {
		enum ibv_event_type event;
		enum ndx_spi_proved seen;
	} cases[] = {
		{IBV_EVENT_QP_ACCESS_ERR, NDX_PROVED_REFUSED},
		{IBV_EVENT_QP_REQ_ERR, NDX_PROVED_REFUSED},
		{IBV_EVENT_QP_FATAL, NDX_PROVED_NOTHING},
	};
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_described(&rig);
		assert_int_equal(look(&rig).status, NDX_PENDING);
		fake_complete_sends(rig_native(&rig), 3);
		fake_raise_event(&rig.device, cases[i].event, rig_native(&rig));
		verbs_async_on_event(&rig.adapter, 0);
		assert_int_equal(look(&rig).seen, cases[i].seen);
		verbs_mailbox_close(&rig.conn);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_write_is_a_denial),
		cmocka_unit_test(writes_and_bytes_are_told_apart),
		cmocka_unit_test(an_end_knows_what_its_own_device_refuses),
		cmocka_unit_test(the_last_look_reads_the_completions),
		cmocka_unit_test(a_probe_that_is_refused_tells_too),
		cmocka_unit_test(requests_that_this_end_cancels_are_no_refusal),
		cmocka_unit_test(the_state_of_software_tells),
		cmocka_unit_test(the_event_of_an_adapter_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
