/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of a peer over libfabric's verbs provider are decoded, or refused with a reason. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "ofi_verbs.h"

#define PADDED 196u /* the length that rdma_cm delivers of every accept */

/* ---- connection data ---- */

static struct ofi_cm sample_cm(size_t private_len)
{
	struct ofi_cm cm = {.kind = OFI_CM_ACCEPT,
	                    .inbound_read_limit = 3,
	                    .outbound_read_limit = 5,
	                    .private_len = private_len};

	for (size_t i = 0; i < private_len; i++)
		cm.private_data[i] = (uint8_t)(i * 7 + 1);
	return cm;
}

static void connection_data_come_out_as_they_went_in(void **state)
{
	static const size_t lengths[] = {0, 1, NDXP_RC_CALLEE_DATA};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const struct ofi_cm in = sample_cm(lengths[i]);
		uint8_t bytes[PADDED] = {0};
		struct ofi_cm out;
		const size_t len = ofi_verbs_cm_encode(&in, bytes);

		assert_int_equal(len, NDXP_RC_CM_HEADER + lengths[i]);
		assert_null(ofi_verbs_cm_decode(bytes, len, OFI_CM_ACCEPT, &out));
		assert_memory_equal(&in, &out, sizeof(in));
		assert_null(ofi_verbs_cm_decode(bytes, sizeof(bytes), OFI_CM_ACCEPT, &out));
		assert_memory_equal(&in, &out, sizeof(in));
	}
}

static void connection_data_have_their_documented_layout(void **state)
{
	static const uint8_t expected[] = {'N', 'v', 0x42, 1, 3, 255, 0, 1};
	struct ofi_cm cm = sample_cm(1);
	uint8_t bytes[NDXP_RC_CM_REJECT];

	(void)state;
	cm.outbound_read_limit = 256; /* more than a byte holds */
	assert_int_equal(ofi_verbs_cm_encode(&cm, bytes), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
}

static void assert_cm_refused(size_t at, uint8_t value)
{
	const struct ofi_cm cm = sample_cm(4);
	const struct ofi_cm untouched = {.id = 42};
	struct ofi_cm out = untouched;
	uint8_t bytes[NDXP_RC_CM_REJECT];
	const size_t len = ofi_verbs_cm_encode(&cm, bytes);

	bytes[at] = value;
	assert_non_null(ofi_verbs_cm_decode(bytes, len, OFI_CM_ACCEPT, &out));
	assert_memory_equal(&out, &untouched, sizeof(out));
}

static void spoilt_connection_data_are_refused(void **state)
{
	const struct ofi_cm cm = sample_cm(NDXP_RC_CALLEE_DATA);
	uint8_t bytes[PADDED] = {0};
	struct ofi_cm out;
	const size_t len = ofi_verbs_cm_encode(&cm, bytes);

	(void)state;
	assert_cm_refused(0, 'X');
	assert_cm_refused(1, 'X');
	assert_cm_refused(2, 0x22); /* version */
	assert_cm_refused(2, 0x41); /* kind */
	assert_cm_refused(3, 5);    /* one byte more than the message has */
	for (size_t n = 0; n < len; n++)
		assert_non_null(ofi_verbs_cm_decode(bytes, n, OFI_CM_ACCEPT, &out));
	/* the message has as many bytes, but they are padding */
	bytes[3] = NDXP_RC_CALLEE_DATA + 1;
	assert_non_null(ofi_verbs_cm_decode(bytes, sizeof(bytes), OFI_CM_ACCEPT, &out));
}

/* ---- first messages ---- */

static struct ndxp_rc_record sample_record(size_t private_len)
{
	struct ndxp_rc_record record = {.type = OFI_CTRL_REJECT,
	                                .depth = 0x0203,
	                                .key = 0x04050607,
	                                .address = UINT64_C(0x08090a0b0c0d0e0f),
	                                .credits = 0x0203,
	                                .private_len = private_len};

	memset(record.private_data, 'x', private_len);
	return record;
}

static void first_messages_come_out_as_they_went_in(void **state)
{
	static const uint8_t expected[] = {OFI_CTRL_REJECT,
	                                   1,
	                                   2,
	                                   3,
	                                   4,
	                                   5,
	                                   6,
	                                   7,
	                                   8,
	                                   9,
	                                   10,
	                                   11,
	                                   12,
	                                   13,
	                                   14,
	                                   15,
	                                   0,
	                                   0,
	                                   2,
	                                   3,
	                                   'x'};
	const struct ndxp_rc_record in = sample_record(1);
	uint8_t bytes[NDXP_RC_RECORD_SIZE];
	struct ndxp_rc_record out = {0};

	(void)state;
	assert_int_equal(ndxp_rc_record_encode(&in, bytes), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
	assert_null(ndxp_rc_record_decode(bytes, sizeof(expected), &out));
	assert_memory_equal(&in, &out, sizeof(in));
}

static void first_messages_of_a_wrong_length_are_refused(void **state)
{
	static const size_t lengths[] = {0, 1, NDXP_RC_CALLER_DATA};
	uint8_t bytes[2 * NDXP_RC_RECORD_SIZE] = {0};
	struct ndxp_rc_record out;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const struct ndxp_rc_record in = sample_record(lengths[i]);
		const size_t len = ndxp_rc_record_encode(&in, bytes);

		for (size_t n = 0; n < sizeof(bytes); n++)
			assert_true((ndxp_rc_record_decode(bytes, n, &out) == NULL) == (n == len));
	}
	/* A device reports a write of the peer by its length, and no bytes were received. */
	bytes[1] = (uint8_t)(sizeof(bytes) - NDXP_RC_RECORD_HEADER);
	assert_non_null(ndxp_rc_record_decode(bytes, sizeof(bytes), &out));
}

static void more_receives_than_there_can_be_are_refused(void **state)
{
	struct ndxp_rc_record in = sample_record(0);
	uint8_t bytes[NDXP_RC_RECORD_SIZE];
	struct ndxp_rc_record out;

	(void)state;
	in.credits = in.depth + 1u;
	(void)ndxp_rc_record_encode(&in, bytes);
	assert_non_null(ndxp_rc_record_decode(bytes, NDXP_RC_RECORD_HEADER, &out));
	in.credits = UINT32_MAX;
	(void)ndxp_rc_record_encode(&in, bytes);
	assert_non_null(ndxp_rc_record_decode(bytes, NDXP_RC_RECORD_HEADER, &out));
}

/* An older version finds that the queue holds less than what is offered, and refuses. */
static void a_shared_queue_is_told_as_an_impossible_one(void **state)
{
	struct ndxp_rc_record in = sample_record(2);
	uint8_t bytes[NDXP_RC_RECORD_SIZE];
	struct ndxp_rc_record out = {0};
	size_t len;

	(void)state;
	in.shared = true;
	in.depth = 0x1234;
	in.credits = 0;
	len = ndxp_rc_record_encode(&in, bytes);
	assert_int_equal(bytes[2] << 8 | bytes[3], 0);
	assert_memory_equal(bytes + 16, "\0\0\x12\x34", 4);
	assert_null(ndxp_rc_record_decode(bytes, len, &out));
	assert_memory_equal(&in, &out, sizeof(in));
	/* more than fits into a depth, and a queue that is not shared and holds nothing */
	bytes[17] = 1;
	assert_non_null(ndxp_rc_record_decode(bytes, len, &out));
	memset(bytes + 16, 0, 4);
	assert_null(ndxp_rc_record_decode(bytes, len, &out));
	assert_false(out.shared);
	assert_int_equal(out.depth, 0);
}

/* ---- the control region ---- */

struct region {
	struct ofi_qp qp;
	struct ofi_link link;
};

static int set_up(void **state)
{
	struct region *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->link.qp = &r->qp;
	r->qp.verbs.area = r->link.area;
	r->qp.open = true;
	r->qp.peer_depth = 8;
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void write_as_peer(struct region *r, size_t offset, uint64_t value)
{
	const uint64_t field = htobe64(value);

	memcpy(r->link.area + offset, &field, sizeof(field));
}

static void credits_are_what_was_posted_less_what_was_used(void **state)
{
	struct region *r = *state;

	r->qp.credits = 2;
	ofi_verbs_refresh(&r->qp);
	assert_int_equal(r->qp.credits, 2); /* the peer has written no credits yet */
	r->qp.verbs.used = 5;
	write_as_peer(r, OFI_VERBS_MAIL + NDXP_RC_CREDITS, 13);
	ofi_verbs_refresh(&r->qp);
	assert_int_equal(r->qp.credits, 8);
	/* Both counters pass 2^32 in the long run. */
	r->qp.verbs.used = UINT32_MAX;
	write_as_peer(r, OFI_VERBS_MAIL + NDXP_RC_CREDITS, (UINT64_C(1) << 32) + 2);
	ofi_verbs_refresh(&r->qp);
	assert_int_equal(r->qp.credits, 3);
}

static void impossible_credits_are_ignored(void **state)
{
	struct region *r = *state;

	r->qp.credits = 1;
	r->qp.verbs.used = 5;
	/* nine credits for a queue of eight receives */
	write_as_peer(r, OFI_VERBS_MAIL + NDXP_RC_CREDITS, 14);
	ofi_verbs_refresh(&r->qp);
	assert_int_equal(r->qp.credits, 1);
	/* fewer credits than this end has used */
	write_as_peer(r, OFI_VERBS_MAIL + NDXP_RC_CREDITS, 4);
	ofi_verbs_refresh(&r->qp);
	assert_int_equal(r->qp.credits, 1);
	write_as_peer(r, OFI_VERBS_MAIL + NDXP_RC_CREDITS, UINT64_MAX);
	ofi_verbs_refresh(&r->qp);
	assert_int_equal(r->qp.credits, 1);
}

static void a_goodbye_counts_when_all_before_it_has_come(void **state)
{
	struct region *r = *state;

	r->qp.verbs.arrived = 3;
	assert_false(ofi_verbs_heard_goodbye(&r->link));
	write_as_peer(r, OFI_VERBS_MAIL + NDXP_RC_GOODBYE, 3); /* without the flag of a goodbye */
	assert_false(ofi_verbs_heard_goodbye(&r->link));
	write_as_peer(r, OFI_VERBS_MAIL + NDXP_RC_GOODBYE, NDXP_RC_SAID | 4);
	assert_false(ofi_verbs_heard_goodbye(&r->link));
	write_as_peer(r, OFI_VERBS_MAIL + NDXP_RC_GOODBYE, NDXP_RC_SAID | 3);
	assert_true(ofi_verbs_heard_goodbye(&r->link));
	write_as_peer(r, OFI_VERBS_MAIL + NDXP_RC_GOODBYE, NDXP_RC_SAID | NDXP_RC_LEAVING | 3);
	assert_true(ofi_verbs_heard_goodbye(&r->link));
	r->link.qp = NULL;
	assert_false(ofi_verbs_heard_goodbye(&r->link));
}

#define IN_REGION(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_data_come_out_as_they_went_in),
		cmocka_unit_test(connection_data_have_their_documented_layout),
		cmocka_unit_test(spoilt_connection_data_are_refused),
		cmocka_unit_test(first_messages_come_out_as_they_went_in),
		cmocka_unit_test(first_messages_of_a_wrong_length_are_refused),
		cmocka_unit_test(more_receives_than_there_can_be_are_refused),
		cmocka_unit_test(a_shared_queue_is_told_as_an_impossible_one),
		IN_REGION(credits_are_what_was_posted_less_what_was_used),
		IN_REGION(impossible_credits_are_ignored),
		IN_REGION(a_goodbye_counts_when_all_before_it_has_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
