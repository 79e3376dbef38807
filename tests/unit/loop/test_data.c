/* SPDX-License-Identifier: BSD-2-Clause */
/* Data over loop: order, waiting for receives, every failure and what it does to both sides. */
#include "rig.h"

#include <ndx/spi/system.h>

static void every_alignment_and_small_length_arrives_whole(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	rig_paint(rig->a.memory, RIG_MEMORY, 3);
	for (uint32_t i = 0; i < 9 * 9 * 40; i++) {
		size_t from = i % 9;
		size_t to = 16 + i / 9 % 9;
		uint32_t length = i / 81;

		memset(rig->b.memory, 0, 128);
		assert_int_equal(rig_write(&rig->a, i, from, length, &rig->b, to), NDX_OK);
		(void)rig_expect(&rig->a, NDX_REQUEST_WRITE, i, NDX_OK);
		assert_memory_equal(rig->b.memory + to, rig->a.memory + from, length);
		assert_int_equal(rig->b.memory[to - 1], 0);
		assert_int_equal(rig->b.memory[to + length], 0);
	}
}

static void an_inline_send_copies_at_once_and_needs_no_region(void **state)
{
	struct rig *rig = *state;
	char words[6][3] = {"ab", "cd", "ef", "gh", "ij", "kl"};
	struct ndx_sge sge[7] = {{.buffer = NULL, .length = 0}};

	rig_connect_new(rig);
	for (int i = 0; i < 6; i++)
		sge[i + 1] = (struct ndx_sge){.buffer = words[i], .length = 2, .token = 12345};
	/* more pieces than granted, one of them empty, while the send has to wait */
	assert_int_equal(ndx_qp_send(&rig->a.qp->pub, NULL, sge, 7, NDX_OP_INLINE), NDX_OK);
	memset(words, 'x', sizeof(words));
	rig_expect_none(&rig->a);
	assert_int_equal(rig_receive(&rig->b, 1, 0, 64), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 0, NDX_OK);
	assert_int_equal(rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 1, NDX_OK).bytes_transferred, 12);
	assert_memory_equal(rig->b.memory, "abcdefghijkl", 12);
	sge[1].length = 65;
	assert_int_equal(ndx_qp_send(&rig->a.qp->pub, NULL, &sge[1], 1, NDX_OP_INLINE),
	                 NDX_E_BUFFER_OVERFLOW);
}

static void immediate_data_come_with_the_receive(void **state)
{
	struct rig *rig = *state;
	const struct ndx_sge sge = rig_sge(&rig->a, 0, 20);
	struct ndx_result result;

	rig_connect_new(rig);
	assert_int_equal(rig_receive(&rig->b, 1, 0, 20), NDX_OK);
	assert_int_equal(rig_receive(&rig->b, 2, 0, 20), NDX_OK);
	assert_int_equal(ndx_qp_send_immediate(&rig->a.qp->pub, NULL, &sge, 1, 0xdeadbeef,
	                                       NDX_OP_SOLICIT_EVENT),
	                 NDX_OK);
	assert_int_equal(rig_send(&rig->a, 0, 0, 20, 0), NDX_OK);
	result = rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	assert_int_equal(result.flags, NDX_RESULT_IMMEDIATE | NDX_RESULT_SOLICITED);
	assert_int_equal(result.immediate, 0xdeadbeef);
	result = rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 2, NDX_OK);
	assert_int_equal(result.flags, 0);
	assert_int_equal(result.immediate, 0);
	/* the sender's result says nothing of it */
	assert_int_equal(rig_expect(&rig->a, NDX_REQUEST_SEND, 0, NDX_OK).flags, 0);
}

static void a_write_with_immediate_takes_a_receive_but_not_its_memory(void **state)
{
	struct rig *rig = *state;
	const struct ndx_sge sge = rig_sge(&rig->a, 0, 20);
	struct ndx_result result;

	rig_connect_new(rig);
	rig_paint(rig->a.memory, 20, 5);
	assert_int_equal(ndx_qp_write_immediate(&rig->a.qp->pub, NULL, &sge, 1,
	                                        rig_remote(&rig->b, 100), rig->b.mr->remote_token,
	                                        7, 0),
	                 NDX_OK);
	/* nothing is placed before the receive is there */
	rig_expect_none(&rig->a);
	assert_int_equal(rig->b.memory[100], 0);
	assert_int_equal(rig_receive(&rig->b, 1, 0, 4), NDX_OK);
	result = rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	assert_int_equal(result.bytes_transferred, 20);
	assert_int_equal(result.immediate, 7);
	assert_int_equal(result.flags, NDX_RESULT_IMMEDIATE | NDX_RESULT_WRITTEN);
	(void)rig_expect(&rig->a, NDX_REQUEST_WRITE, 0, NDX_OK);
	rig_assert_painted(rig->b.memory + 100, 20, 5);
	assert_int_equal(rig->b.memory[0], 0);
}

static void requests_without_bytes_look_at_no_key(void **state)
{
	struct rig *rig = *state;
	const struct ndx_sge nothing = {.buffer = NULL, .length = 0, .token = 77};
	struct ndx_qp *a;

	rig_connect_new(rig);
	a = &rig->a.qp->pub;
	assert_int_equal(ndx_qp_read(a, NULL, NULL, 0, 1, 2, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_READ, 0, NDX_OK);
	assert_int_equal(ndx_qp_write(a, NULL, &nothing, 1, 1, 2, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_WRITE, 0, NDX_OK);
	assert_int_equal(ndx_qp_receive(&rig->b.qp->pub, NULL, NULL, 0), NDX_OK);
	assert_int_equal(ndx_qp_send(a, NULL, &nothing, 1, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 0, NDX_OK);
	assert_int_equal(rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 0, NDX_OK).bytes_transferred, 0);
	assert_int_equal(ndx_qp_receive(&rig->b.qp->pub, NULL, &nothing, 1), NDX_OK);
	assert_int_equal(ndx_qp_write_immediate(a, NULL, NULL, 0, 1, 2, 3, 0), NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 0, NDX_OK);
	assert_int_equal(rig->a.book.aborts, 0);
}

/* ---- waiting ---- */

static void a_send_waits_for_its_receive_and_all_behind_it_waits(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	rig_paint(rig->a.memory, 8, 6);
	assert_int_equal(rig_write(&rig->a, 1, 0, 8, &rig->b, 0), NDX_OK);
	assert_int_equal(rig_send(&rig->a, 2, 0, 8, 0), NDX_OK);
	assert_int_equal(rig_write(&rig->a, 3, 0, 8, &rig->b, 100), NDX_OK);
	assert_int_equal(rig_send(&rig->a, 4, 0, 8, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_WRITE, 1, NDX_OK);
	rig_expect_none(&rig->a);
	assert_int_equal(rig->b.memory[100], 0);
	/* the other direction is free */
	assert_int_equal(rig_write(&rig->b, 9, 0, 8, &rig->a, 3000), NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_WRITE, 9, NDX_OK);
	assert_int_equal(rig_receive(&rig->b, 5, 200, 8), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 2, NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_WRITE, 3, NDX_OK);
	rig_expect_none(&rig->a);
	rig_assert_painted(rig->b.memory + 100, 8, 6);
	assert_int_equal(rig_receive(&rig->b, 6, 300, 8), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 4, NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 5, NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 6, NDX_OK);
}

/* The cause that each side has heard. */
static void said(const struct rig *rig, const char *to_a, const char *to_b)
{
	assert_string_equal(rig->a.book.cause, to_a);
	assert_string_equal(rig->b.book.cause, to_b);
}

static void each_send_has_the_whole_time(void **state)
{
	struct rig *rig = *state;
	uint64_t begin;

	rig->attr.no_receive_timeout_ms = 200;
	rig_connect_new(rig);
	assert_int_equal(rig_send(&rig->a, 1, 0, 8, 0), NDX_OK);
	assert_int_equal(rig_receive(&rig->b, 1, 0, 8), NDX_OK);
	begin = ndxp_now_ns();
	assert_int_equal(rig_send(&rig->a, 2, 0, 8, 0), NDX_OK);
	rig_assert_broken(rig);
	said(rig, "the peer posted no receive in no_receive_timeout_ms",
	     "no receive was posted in the no_receive_timeout_ms of the peer's send");
	assert_true(ndxp_now_ns() - begin >= UINT64_C(200000000));
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 1, NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 2, NDX_E_IO_TIMEOUT);
}

/* ---- failures: every one ends the connection on both sides ---- */

static void a_message_longer_than_the_receive_fails_both(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	rig_paint(rig->a.memory, 9, 7);
	assert_int_equal(rig_receive(&rig->b, 2, 0, 8), NDX_OK);
	assert_int_equal(rig_receive(&rig->b, 3, 0, 8), NDX_OK);
	assert_int_equal(rig_send(&rig->a, 1, 0, 9, NDX_OP_SILENT_SUCCESS), NDX_OK);
	assert_int_equal(rig->b.memory[0], 0);
	/* between the failure and core's answer posts are taken, and nothing moves */
	assert_int_equal(rig_send(&rig->a, 4, 0, 8, 0), NDX_OK);
	assert_int_equal(rig_send(&rig->b, 5, 0, 8, 0), NDX_OK);
	assert_int_equal(rig_receive(&rig->b, 6, 0, 8), NDX_OK);
	rig_assert_broken(rig);
	said(rig, "a message was longer than the peer's receive: 9 bytes, for 8",
	     "a message was longer than its receive: 9 bytes, for 8");
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 1, NDX_E_DATA_OVERRUN);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 4, NDX_E_CANCELED);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 2, NDX_E_BUFFER_OVERFLOW);
	(void)rig_expect(&rig->b, NDX_REQUEST_SEND, 5, NDX_E_CANCELED);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 3, NDX_E_CANCELED);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 6, NDX_E_CANCELED);
	assert_int_equal(rig_send(&rig->a, 7, 0, 8, 0), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 7, NDX_E_CANCELED);
	assert_int_equal(rig_receive(&rig->a, 8, 0, 8), NDX_OK);
	(void)rig_expect(&rig->a, NDX_REQUEST_RECEIVE, 8, NDX_E_CANCELED);
}

static void a_remote_token_does_not_serve_as_a_local_one(void **state)
{
	struct rig *rig = *state;
	struct ndx_sge sge = rig_sge(&rig->a, 0, 8);

	rig_connect_new(rig);
	sge.token = rig->a.mr->remote_token;
	assert_int_equal(ndx_qp_write(&rig->a.qp->pub, NULL, &sge, 1, rig_remote(&rig->b, 0),
	                              rig->b.mr->remote_token, 0),
	                 NDX_OK);
	rig_assert_broken(rig);
	said(rig, "a request named memory that it may not use: its token is no local one",
	     "the peer's request named memory of its own that it may not use: its token is no "
	     "local one");
	(void)rig_expect(&rig->a, NDX_REQUEST_WRITE, 0, NDX_E_ACCESS_VIOLATION);
}

static void reading_beyond_the_own_region_is_a_violation(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(rig_read(&rig->a, 1, RIG_MEMORY - 7, 8, &rig->b, 0), NDX_OK);
	rig_assert_broken(rig);
	said(rig,
	     "a request named memory that it may not use: it is not all inside the region or "
	     "window",
	     "the peer's request named memory of its own that it may not use: it is not all inside "
	     "the region or window");
	(void)rig_expect(&rig->a, NDX_REQUEST_READ, 1, NDX_E_ACCESS_VIOLATION);
}

static void writing_beyond_the_peers_region_is_a_violation(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(rig_receive(&rig->b, 2, 0, 8), NDX_OK);
	assert_int_equal(rig_write(&rig->a, 1, 0, 8, &rig->b, RIG_MEMORY - 7), NDX_OK);
	rig_assert_broken(rig);
	said(rig,
	     "a request named memory of the peer that it may not access: it is not all inside the "
	     "region or window",
	     "the peer named memory that it may not access: it is not all inside the region or "
	     "window");
	(void)rig_expect(&rig->a, NDX_REQUEST_WRITE, 1, NDX_E_ACCESS_VIOLATION);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 2, NDX_E_CANCELED);
}

static void reading_before_the_peers_region_is_a_violation(void **state)
{
	struct rig *rig = *state;
	const struct ndx_sge sge = rig_sge(&rig->a, 0, 8);

	rig_connect_new(rig);
	assert_int_equal(ndx_qp_read(&rig->a.qp->pub, NULL, &sge, 1, rig_remote(&rig->b, 0) - 1,
	                             rig->b.mr->remote_token, 0),
	                 NDX_OK);
	rig_assert_broken(rig);
	said(rig,
	     "a request named memory of the peer that it may not access: it is not all inside the "
	     "region or window",
	     "the peer named memory that it may not access: it is not all inside the region or "
	     "window");
	(void)rig_expect(&rig->a, NDX_REQUEST_READ, 0, NDX_E_ACCESS_VIOLATION);
}

static void an_unknown_token_is_a_violation(void **state)
{
	struct rig *rig = *state;
	const struct ndx_sge sge = rig_sge(&rig->a, 0, 8);

	rig_connect_new(rig);
	assert_int_equal(ndx_qp_write(&rig->a.qp->pub, NULL, &sge, 1, rig_remote(&rig->b, 0), 0, 0),
	                 NDX_OK);
	rig_assert_broken(rig);
	said(rig,
	     "a request named memory of the peer that it may not access: its token is of no region "
	     "or window: it never was, or was revoked",
	     "the peer named memory that it may not access: its token is of no region or window: "
	     "it never was, or was revoked");
	(void)rig_expect(&rig->a, NDX_REQUEST_WRITE, 0, NDX_E_ACCESS_VIOLATION);
}

/* A region without the right, and a list whose second entry is wrong. */
static void a_right_that_is_missing_is_named(void **state)
{
	struct rig *rig = *state;
	struct ndx_spi_mr *plain = rig_register(&rig->b, rig->b.memory, 64, 0);
	const struct ndx_sge list[] = {
		rig_sge(&rig->b, 64, 4),
		{.buffer = rig->b.memory, .length = 8, .token = plain->local_token}};

	rig_connect_new(rig);
	assert_int_equal(ndx_qp_receive(&rig->b.qp->pub, NULL, list, 2), NDX_OK);
	assert_int_equal(rig_send(&rig->a, 1, 0, 8, 0), NDX_OK);
	rig_assert_broken(rig);
	said(rig,
	     "the peer's receive named memory that it may not write: the region grants no local "
	     "write",
	     "a receive named memory that it may not write: the region grants no local write");
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 1, NDX_E_REMOTE_ERROR);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 0, NDX_E_ACCESS_VIOLATION);
	rig_drop_mr(plain);
}

static void only_the_part_of_a_receive_that_is_filled_must_be_good(void **state)
{
	struct rig *rig = *state;
	const struct ndx_sge sge[] = {rig_sge(&rig->b, 0, 8), {.buffer = NULL, .length = 8}};

	rig_connect_new(rig);
	assert_int_equal(ndx_qp_receive(&rig->b.qp->pub, NULL, sge, 2), NDX_OK);
	assert_int_equal(rig_send(&rig->a, 1, 0, 8, 0), NDX_OK);
	(void)rig_expect(&rig->b, NDX_REQUEST_RECEIVE, 0, NDX_OK);
}

static void memory_deregistered_while_a_send_waits_is_not_read(void **state)
{
	struct rig *rig = *state;

	rig_connect_new(rig);
	assert_int_equal(rig_send(&rig->a, 1, 0, 8, 0), NDX_OK);
	assert_int_equal(rig_ops()->mr_deregister(rig->a.mr, true), NDX_OK);
	assert_int_equal(rig_receive(&rig->b, 2, 0, 8), NDX_OK);
	rig_assert_broken(rig);
	said(rig,
	     "a request named memory that it may not use: its token is of no region or window: it "
	     "never was, or was revoked",
	     "the peer's request named memory of its own that it may not use: its token is of no "
	     "region or window: it never was, or was revoked");
	(void)rig_expect(&rig->a, NDX_REQUEST_SEND, 1, NDX_E_ACCESS_VIOLATION);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_alignment_and_small_length_arrives_whole),
		TEST(an_inline_send_copies_at_once_and_needs_no_region),
		TEST(immediate_data_come_with_the_receive),
		TEST(a_write_with_immediate_takes_a_receive_but_not_its_memory),
		TEST(requests_without_bytes_look_at_no_key),
		TEST(a_send_waits_for_its_receive_and_all_behind_it_waits),
		TEST(each_send_has_the_whole_time),
		TEST(a_message_longer_than_the_receive_fails_both),
		TEST(a_remote_token_does_not_serve_as_a_local_one),
		TEST(reading_beyond_the_own_region_is_a_violation),
		TEST(writing_beyond_the_peers_region_is_a_violation),
		TEST(reading_before_the_peers_region_is_a_violation),
		TEST(an_unknown_token_is_a_violation),
		TEST(a_right_that_is_missing_is_named),
		TEST(only_the_part_of_a_receive_that_is_filled_must_be_good),
		TEST(memory_deregistered_while_a_send_waits_is_not_read),
	};

	return cmocka_run_group_tests_name("loop: data", tests, NULL, NULL);
}
