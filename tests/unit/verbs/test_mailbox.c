/* SPDX-License-Identifier: BSD-2-Clause */
/* Mailboxes share memory regions, and no peer can write another peer's goodbye. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "rig.h"

#define DEPTH 16u
#define ENDS 130u /* more than two regions have room for */

static const struct verbs_numbers near_numbers = {
	.peer_number = 77, .own_psn = 0x123456, .peer_psn = 0xabcdef};
static const struct verbs_numbers far_numbers = {.own_psn = 0xabcdef, .peer_psn = 0x123456};

/* An end whose native queue pair has the number that the test chose. */
struct end {
	struct ibv_qp native;
	struct verbs_qp qp;
	struct verbs_conn conn;
};

static void open_end(struct rig *rig, struct end *end, uint32_t number,
                     const struct verbs_numbers *path)
{
	memset(end, 0, sizeof(*end));
	end->native.qp_num = number;
	end->qp.native = &end->native;
	end->qp.path = *path;
	end->conn.adapter = &rig->adapter;
	end->conn.spi.qp = &end->qp.base.spi;
	end->conn.qp = &end->qp;
	assert_int_equal(verbs_mailbox_open(&end->conn), NDX_OK);
}

/* Do what the device does with a control write: both ends are in this process. */
static void deliver_field(const struct end *from, const struct end *to, enum verbs_field which)
{
	const struct verbs_ctrl_write write = verbs_mailbox_write(&from->conn, which);
	const char *source = from->conn.mailbox_mr->addr;
	char *target = to->conn.mailbox_mr->addr;

	assert_true(write.to + sizeof(uint64_t) <= to->conn.mailbox_mr->length);
	memcpy(target + write.to, source + write.from, sizeof(uint64_t));
}

static void many_share_a_region_and_no_field(void **state)
{
	static struct end ends[ENDS];
	struct rig rig;

	(void)state;
	rig_open(&rig);
	for (uint32_t i = 0; i < ENDS; i++)
		open_end(&rig, &ends[i], 1000 + i, &near_numbers);
	assert_int_equal(rig.device.regions, 3 * 2); /* and one each for packets */
	for (uint32_t i = 0; i < ENDS; i++) {
		for (uint32_t j = 0; j < i; j++)
			assert_true(ends[i].conn.mailbox >= ends[j].conn.mailbox + VERBS_FIELDS ||
			            ends[i].conn.mailbox + VERBS_FIELDS <= ends[j].conn.mailbox);
	}
	/* a free mailbox is used again, with all fields zero */
	ends[5].conn.mailbox[VERBS_FIELD_GOODBYE] = 1;
	verbs_mailbox_close(&ends[5].conn);
	verbs_mailbox_close(&ends[5].conn);
	open_end(&rig, &ends[5], 5 + 1000 + 64, &near_numbers);
	assert_int_equal(rig.device.regions, 3 * 2); /* and one each for packets */
	assert_int_equal(ends[5].conn.mailbox[VERBS_FIELD_GOODBYE], 0);
	rig_close(&rig);
}

static void a_field_arrives_where_it_is_read(void **state)
{
	struct rig rig;
	struct end a;
	struct end b;

	(void)state;
	rig_open(&rig);
	open_end(&rig, &a, 12, &near_numbers);
	open_end(&rig, &b, 77, &far_numbers);
	assert_false(verbs_mailbox_has(&b.conn, VERBS_FIELD_GOODBYE));
	deliver_field(&a, &b, VERBS_FIELD_GOODBYE);
	assert_true(verbs_mailbox_has(&b.conn, VERBS_FIELD_GOODBYE));
	assert_false(verbs_mailbox_has(&b.conn, VERBS_FIELD_PROBED));
	deliver_field(&a, &b, VERBS_FIELD_PROBED);
	assert_true(verbs_mailbox_has(&b.conn, VERBS_FIELD_PROBED));
	assert_false(verbs_mailbox_has(&a.conn, VERBS_FIELD_GOODBYE));
	rig_close(&rig);
}

/* This holds before and after all fields are written. */
static void a_noop_write_changes_no_field(void **state)
{
	uint64_t before[VERBS_FIELDS];
	struct verbs_ctrl_write write;
	struct rig rig;
	struct end a;
	struct end b;

	(void)state;
	rig_open(&rig);
	open_end(&rig, &a, 12, &near_numbers);
	open_end(&rig, &b, 77, &far_numbers);
	/* the key of the peer's mailbox is not known */
	assert_int_equal(verbs_mailbox_noop(&a.conn).length, 0);
	a.conn.peer.mailbox_key = b.conn.mailbox_mr->rkey;
	for (int fields_written = 0; fields_written <= 1; fields_written++) {
		memcpy(before, b.conn.mailbox, sizeof(before));
		write = verbs_mailbox_noop(&a.conn);
		assert_int_equal(write.length, 1);
		assert_int_equal(write.rkey, b.conn.mailbox_mr->rkey);
		memcpy((char *)b.conn.mailbox_mr->addr + write.to,
		       (char *)a.conn.mailbox_mr->addr + write.from, write.length);
		assert_memory_equal(before, b.conn.mailbox, sizeof(before));
		assert_true(write.to / sizeof(uint64_t) / VERBS_FIELDS == 77 % 64);
		for (enum verbs_field w = VERBS_FIELD_GOODBYE; w < VERBS_FIELD_OWN; w++)
			deliver_field(&a, &b, w);
	}
	rig_close(&rig);
}

/* A writer that has access to the region and does not know the first PSNs. */
static void a_write_with_wrong_numbers_is_no_goodbye(void **state)
{
	static const struct verbs_numbers guesses[] = {
		{.peer_number = 77},
		{.peer_number = 77, .own_psn = 0x123456},
		{.peer_number = 77, .peer_psn = 0xabcdef},
		{.peer_number = 77, .own_psn = 0xabcdef, .peer_psn = 0x123456},
		{.peer_number = 77, .own_psn = 0x123457, .peer_psn = 0xabcdef},
	};
	struct rig rig;
	struct end victim;

	(void)state;
	rig_open(&rig);
	open_end(&rig, &victim, 77, &far_numbers);
	for (uint32_t i = 0; i < sizeof(guesses) / sizeof(guesses[0]); i++) {
		struct end other;

		open_end(&rig, &other, 20 + i, &guesses[i]);
		deliver_field(&other, &victim, VERBS_FIELD_GOODBYE);
		assert_int_not_equal(victim.conn.mailbox[VERBS_FIELD_GOODBYE], 0);
		assert_false(verbs_mailbox_has(&victim.conn, VERBS_FIELD_GOODBYE));
	}
	rig_close(&rig);
}

/* A disconnect with a valid goodbye is graceful; with an invalid one, this end probes the peer. */
static void only_the_right_field_is_a_goodbye(void **state)
{
	(void)state;
	for (int forged = 0; forged <= 1; forged++) {
		struct rig rig;
		struct end peer;

		rig_open(&rig);
		rig_connect(&rig, DEPTH, NULL);
		rig.conn.spi.qp = rig.qp;
		rig.conn.peer.is_ndx = true;
		rig.conn.state = VERBS_CONN_UP;
		assert_int_equal(verbs_mailbox_open(&rig.conn), NDX_OK);
		rig_qp(&rig)->path = far_numbers;
		open_end(&rig, &peer, rig_native(&rig)->qp_num + 1, &near_numbers);
		peer.qp.path.peer_number = rig_native(&rig)->qp_num;
		peer.qp.path.own_psn += (uint32_t)forged;
		/* the value that the peer would write */
		(void)verbs_mailbox_write(&peer.conn, VERBS_FIELD_GOODBYE);
		memcpy(&rig.conn.mailbox[VERBS_FIELD_GOODBYE], &peer.conn.mailbox[VERBS_FIELD_OWN],
		       sizeof(uint64_t));
		rig.device.count[FAKE_POST_SEND] = 0;
		verbs_end_on_disconnected(&rig.conn, 0);
		assert_int_equal((rig.reports & NDX_REPORT_PEER_DISC) != 0, forged == 0);
		assert_int_equal(rig.device.count[FAKE_POST_SEND], forged);
		ndxp_timer_cancel(rig.adapter.spi.loop, &rig.conn.timer);
		rig_close(&rig);
	}
}

static void a_region_that_is_refused_leaves_nothing(void **state)
{
	struct rig rig;
	struct end end;

	(void)state;
	rig_open(&rig);
	open_end(&rig, &end, 1, &near_numbers);
	verbs_mailbox_close(&end.conn);
	open_end(&rig, &end, 2, &near_numbers);
	end.native.qp_num = 2 + 64;
	for (unsigned nth = 1; nth <= 2; nth++) { /* of the mailboxes, of the packets */
		rig.device.refuse_nth[FAKE_REG_MR] = nth;
		assert_int_not_equal(verbs_mailbox_open(&end.conn), NDX_OK);
		assert_int_equal(rig.device.regions, 2);
	}
	assert_int_equal(verbs_mailbox_open(&end.conn), NDX_OK);
	assert_int_equal(rig.device.regions, 4);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_share_a_region_and_no_field),
		cmocka_unit_test(a_field_arrives_where_it_is_read),
		cmocka_unit_test(a_noop_write_changes_no_field),
		cmocka_unit_test(a_write_with_wrong_numbers_is_no_goodbye),
		cmocka_unit_test(only_the_right_field_is_a_goodbye),
		cmocka_unit_test(a_region_that_is_refused_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
