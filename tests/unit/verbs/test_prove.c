/* SPDX-License-Identifier: BSD-2-Clause */
/* What the writes of a proof tell of the path, by the way in which they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <endian.h>

#include "rig.h"

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
static struct ndx_spi_proof look(struct rig *rig)
{
	struct looking l = {.rig = rig};

	verbs_qp_poll(rig_qp(rig));
	ndxp_loop_call(rig->adapter.spi.loop, look_on_loop, &l);
	assert_int_equal(l.status, NDX_OK);
	return l.proof;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_write_is_a_denial),
		cmocka_unit_test(writes_and_bytes_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
