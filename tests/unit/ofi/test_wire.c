/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of a peer are decoded, or refused with a reason. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "ofi_wire.h"

static struct ofi_cm sample(enum ofi_cm_kind kind, size_t private_len)
{
	struct ofi_cm cm = {
		.kind = kind,
		.id = 0x01020304,
		.key = 0xfefdfcfb,
		.address = UINT64_C(0x1122334455667788),
		.credits = 7,
		.depth = 64,
		.initiator_depth = 32,
		.receive_size = UINT32_C(0x09080706),
		.inbound_read_limit = 3,
		.outbound_read_limit = 5,
		.private_len = private_len,
	};

	for (size_t i = 0; i < private_len; i++)
		cm.private_data[i] = (uint8_t)(i * 7 + 1);
	return cm;
}

static void connection_data_come_out_as_they_went_in(void **state)
{
	static const size_t lengths[] = {0, 1, 40, OFI_CM_PRIVATE};
	uint8_t bytes[OFI_CM_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const struct ofi_cm in = sample(OFI_CM_ACCEPT, lengths[i]);
		struct ofi_cm out = {0};
		const size_t len = ofi_cm_encode(&in, bytes);

		assert_int_equal(len, OFI_CM_HEADER + lengths[i]);
		assert_null(ofi_cm_decode(bytes, len, OFI_CM_ACCEPT, &out));
		assert_memory_equal(&in, &out, sizeof(in));
	}
}

static void connection_data_have_their_documented_layout(void **state)
{
	static const uint8_t expected[OFI_CM_HEADER + 1] = {
		'N',  'D',  'X',  'o',  5,    1,    0,    1,    1,    2, 3, 4, 0xfe, 0xfd, 0xfc,
		0xfb, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 7, 0, 64,   0,    0,
		0,    3,    0,    0,    0,    5,    0,    32,   9,    8, 7, 6, 1};
	const struct ofi_cm cm = sample(OFI_CM_CONNECT, 1);
	uint8_t bytes[OFI_CM_SIZE];

	(void)state;
	assert_int_equal(ofi_cm_encode(&cm, bytes), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
}

/* Change one byte. The decoder must return a reason and leave the output unchanged. */
static void assert_refused(const uint8_t *good, size_t len, size_t at, uint8_t value)
{
	const struct ofi_cm untouched = {.id = 42};
	struct ofi_cm out = untouched;
	uint8_t bytes[OFI_CM_SIZE];

	memcpy(bytes, good, len);
	bytes[at] = value;
	assert_non_null(ofi_cm_decode(bytes, len, OFI_CM_CONNECT, &out));
	assert_memory_equal(&out, &untouched, sizeof(out));
}

static void spoilt_connection_data_are_refused(void **state)
{
	const struct ofi_cm cm = sample(OFI_CM_CONNECT, 4);
	uint8_t good[OFI_CM_SIZE];
	struct ofi_cm out;
	const size_t len = ofi_cm_encode(&cm, good);

	(void)state;
	assert_refused(good, len, 0, 'X');  /* magic */
	assert_refused(good, len, 4, 1);    /* version */
	assert_refused(good, len, 5, 2);    /* kind */
	assert_refused(good, len, 6, 1);    /* private length, high byte */
	assert_refused(good, len, 7, 5);    /* private length, one more than the message has */
	assert_refused(good, len, 24, 255); /* more credits than depth */
	assert_refused(good, len, 26, 17);  /* a depth of more than 4,096 */
	for (size_t n = 0; n < len; n++)
		assert_non_null(ofi_cm_decode(good, n, OFI_CM_CONNECT, &out));
	assert_null(ofi_cm_decode(good, len, OFI_CM_CONNECT, &out));
}

static void a_shared_receive_queue_is_told_apart(void **state)
{
	struct ofi_cm cm = sample(OFI_CM_CONNECT, 4);
	uint8_t bytes[OFI_CM_SIZE];
	struct ofi_cm out;
	size_t len;

	(void)state;
	cm.shared = true;
	cm.credits = 0;
	cm.depth = 64;
	len = ofi_cm_encode(&cm, bytes);
	assert_null(ofi_cm_decode(bytes, len, OFI_CM_CONNECT, &out));
	assert_true(out.shared);
	assert_int_equal(out.depth, 64);
	/* a version that knows of none: a depth that no adapter has */
	assert_in_range(bytes[26] << 8 | bytes[27], OFI_CM_DEPTH_MAX + 1, UINT16_MAX);
	bytes[25] = 1; /* a credit that was not asked for */
	assert_non_null(ofi_cm_decode(bytes, len, OFI_CM_CONNECT, &out));
	cm.shared = false;
	len = ofi_cm_encode(&cm, bytes);
	assert_null(ofi_cm_decode(bytes, len, OFI_CM_CONNECT, &out));
	assert_false(out.shared);
}

static void random_bytes_are_never_taken_for_connection_data(void **state)
{
	uint8_t bytes[OFI_CM_SIZE];
	struct ofi_cm out;

	(void)state;
	srand(1);
	for (int i = 0; i < 20000; i++) {
		const size_t len = (size_t)rand() % sizeof(bytes);

		for (size_t n = 0; n < len; n++)
			bytes[n] = (uint8_t)rand();
		assert_non_null(ofi_cm_decode(bytes, len, OFI_CM_CONNECT, &out));
	}
}

static void assert_split(uint64_t word, const struct ofi_ctrl *expected)
{
	const struct ofi_ctrl split = ofi_ctrl_split(word);

	assert_int_equal(split.type, expected->type);
	assert_int_equal(split.flags, expected->flags);
	assert_int_equal(split.count, expected->count);
	assert_int_equal(split.arrived, expected->arrived);
	assert_int_equal(split.value, expected->value);
}

static void a_control_message_keeps_its_fields_apart(void **state)
{
	const uint64_t plain = ofi_ctrl_encode_data(OFI_CTRL_SOLICITED, 0x1234, 0x5678, 9);
	const uint64_t immediate =
		ofi_ctrl_encode_data(OFI_CTRL_IMMEDIATE, 4096, 0x5678, 0x9abcdef0);
	const uint64_t alone = ofi_ctrl_encode(0x2b, 0xcdef, 0x1234, 0xff56789a);

	(void)state;
	assert_true(plain == UINT64_C(0x0232347800000056));
	assert_split(plain,
	             &(struct ofi_ctrl){OFI_CTRL_DATA, OFI_CTRL_SOLICITED, 0x1234, 0x5678, 0});
	assert_true(immediate == UINT64_C(0x025000789abcdef0));
	assert_split(immediate,
	             &(struct ofi_ctrl){OFI_CTRL_DATA, OFI_CTRL_IMMEDIATE, 4096, 0x78, 0x9abcdef0});
	assert_true(alone == UINT64_C(0x56cdef123456789a));
	assert_split(alone | OFI_CTRL_ASKS,
	             &(struct ofi_ctrl){0x2b, OFI_CTRL_ACK_REQ, 0xcdef, 0x1234, 0x56789a});
	assert_split(alone, &(struct ofi_ctrl){0x2b, 0, 0xcdef, 0x1234, 0x56789a});
}

static const char *check_word(uint64_t data)
{
	const struct ofi_ctrl word = ofi_ctrl_split(data);

	return ofi_ctrl_check_data(&word);
}

static const char *check_data(uint8_t flags, uint16_t arrived, uint32_t immediate)
{
	return check_word(ofi_ctrl_encode_data(flags, 3, arrived, immediate));
}

static const char *check_alone(uint64_t data)
{
	const struct ofi_ctrl word = ofi_ctrl_split(data);

	return ofi_ctrl_check_alone(&word);
}

static const char *check_control(uint8_t type, uint16_t arrived, uint16_t count)
{
	return check_alone(ofi_ctrl_encode(type, count, arrived, 9));
}

static void control_data_beside_messages_is_checked(void **state)
{
	const uint64_t plain = ofi_ctrl_encode_data(0, 0, 0, 0);

	(void)state;
	assert_null(check_data(0, 0, 0));
	assert_null(check_data(0, UINT16_MAX, 0));
	assert_null(check_data(OFI_CTRL_SOLICITED, 0, 0));
	assert_null(check_data(OFI_CTRL_ACK_REQ, 0, 0));
	assert_null(check_data(OFI_CTRL_IMMEDIATE, UINT16_MAX, UINT32_MAX));
	assert_non_null(check_word(plain | 0x100)); /* immediate data without the flag */
	assert_null(check_data(OFI_CTRL_IMMEDIATE | OFI_CTRL_IS_WRITE, 0, 17));
	assert_non_null(check_data(OFI_CTRL_IS_WRITE, 0, 0));
	assert_non_null(check_word(ofi_ctrl_encode(OFI_CTRL_CREDIT, 1, 0, 0)));
	/* the value of a completion without control data */
	assert_non_null(check_word(0));
}

static void control_messages_that_come_alone_are_checked(void **state)
{
	(void)state;
	assert_null(check_control(OFI_CTRL_CREDIT, 0, 1));
	assert_null(check_control(OFI_CTRL_READY, 0, 0));
	assert_null(check_control(OFI_CTRL_REJECT, 0, 0));
	assert_null(check_control(OFI_CTRL_REJECT, 0, OFI_CM_PRIVATE));
	assert_null(check_control(OFI_CTRL_DISC, 0, 0));
	assert_null(check_control(OFI_CTRL_PING, 0, 0));
	assert_null(check_control(OFI_CTRL_PONG, 0, 0));
	assert_null(check_control(OFI_CTRL_CREDIT, 7, 0));
	assert_null(check_control(OFI_CTRL_CREDIT, 7, 1));
	assert_null(check_alone(ofi_ctrl_encode(OFI_CTRL_CREDIT, 0, 7, 9) | OFI_CTRL_ASKS));
	assert_non_null(check_alone(ofi_ctrl_encode(OFI_CTRL_PING, 0, 0, 9) | OFI_CTRL_ASKS));
	assert_non_null(check_control(OFI_CTRL_DISC, 7, 0));
	assert_non_null(check_control(OFI_CTRL_WRITTEN, 7, 1));
	assert_non_null(check_control(OFI_CTRL_REJECT, 0, OFI_CM_PRIVATE + 1));
	assert_non_null(check_control(OFI_CTRL_READY, 0, 1));
	assert_non_null(check_control(OFI_CTRL_DISC, 0, 7));
	assert_non_null(check_control(OFI_CTRL_DATA, 0, 0));
	assert_non_null(check_control(0, 0, 0));
	assert_null(check_control(OFI_CTRL_SYNC, 0, 0));
	assert_null(check_control(OFI_CTRL_SYNC, 0, OFI_TOKENS_MAX));
	assert_null(check_control(OFI_CTRL_SYNC, 0, OFI_TOKENS_ALL));
	assert_null(check_control(OFI_CTRL_ASK, 0, 0));
	assert_null(check_control(OFI_CTRL_ANSWER, 0, 0));
	assert_null(check_control(OFI_CTRL_WRITTEN, 0, 65535));
	assert_null(check_control(OFI_CTRL_WRITTEN_HIGH, 0, 16384));
	assert_non_null(check_control(OFI_CTRL_SYNC, 0, OFI_TOKENS_MAX + 1));
	assert_non_null(check_control(OFI_CTRL_ANSWER, 0, 1));
	assert_null(check_control(OFI_CTRL_SIZE, 0xffff, 0xffff));
	assert_null(check_control(OFI_CTRL_TOO_LONG, 1, 0x4000));
	assert_null(check_control(OFI_CTRL_WANT, 0, 1));
	assert_null(check_control(OFI_CTRL_WANT, 0, 4096));
	assert_non_null(check_control(OFI_CTRL_WANT, 0, 0));
	assert_non_null(check_control(OFI_CTRL_WANT, 1, 1));
	assert_non_null(check_control(OFI_CTRL_HELLO, 0, 0));
	for (unsigned type = OFI_CTRL_WANT + 1; type < 128; type++)
		assert_non_null(check_control((uint8_t)type, 0, 0));
}

static void a_grant_comes_out_as_it_went_in(void **state)
{
	static const uint8_t expected[OFI_GRANT_SIZE] = {1, 2, 3, 4, 0, 0, 0, 3, 0, 0, 0, 5,
	                                                 6, 7, 8, 9, 0, 0, 0, 0, 0, 1, 0, 0};
	const struct ofi_grant in = {UINT64_C(0x0506070809), 65536, 0x01020304,
	                             OFI_GRANT_READ | OFI_GRANT_WRITE};
	struct ofi_grant out = {0};
	uint8_t bytes[OFI_GRANT_SIZE];

	(void)state;
	ofi_grant_encode(&in, bytes);
	assert_memory_equal(bytes, expected, sizeof(expected));
	assert_null(ofi_grant_decode(bytes, &out));
	assert_memory_equal(&in, &out, sizeof(in));
	bytes[7] = 4;
	assert_non_null(ofi_grant_decode(bytes, &out));
	assert_memory_equal(&in, &out, sizeof(in));
}

static void a_grant_covers_its_bytes_and_no_others(void **state)
{
	const struct ofi_grant g = {1000, 100, 1, OFI_GRANT_READ};
	const struct ofi_grant top = {UINT64_MAX - 99, 100, 1, OFI_GRANT_WRITE};

	(void)state;
	assert_true(ofi_grant_covers(&g, 1000, 100, OFI_GRANT_READ));
	assert_true(ofi_grant_covers(&g, 1099, 1, OFI_GRANT_READ));
	assert_false(ofi_grant_covers(&g, 1000, 100, OFI_GRANT_WRITE));
	assert_false(ofi_grant_covers(&g, 999, 1, OFI_GRANT_READ));
	assert_false(ofi_grant_covers(&g, 1000, 101, OFI_GRANT_READ));
	assert_false(ofi_grant_covers(&g, 1099, 2, OFI_GRANT_READ));
	assert_false(ofi_grant_covers(&g, 1100, 1, OFI_GRANT_READ));
	assert_false(ofi_grant_covers(&g, UINT64_MAX, 1, OFI_GRANT_READ));
	assert_false(ofi_grant_covers(&g, 1000, UINT32_MAX, OFI_GRANT_READ));
	assert_false(ofi_grant_covers(&g, UINT64_MAX - 8, 1100, OFI_GRANT_READ)); /* wraps */
	assert_true(ofi_grant_covers(&top, UINT64_MAX, 1, OFI_GRANT_WRITE));
	assert_false(ofi_grant_covers(&top, UINT64_MAX, 2, OFI_GRANT_WRITE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_data_come_out_as_they_went_in),
		cmocka_unit_test(connection_data_have_their_documented_layout),
		cmocka_unit_test(spoilt_connection_data_are_refused),
		cmocka_unit_test(a_shared_receive_queue_is_told_apart),
		cmocka_unit_test(random_bytes_are_never_taken_for_connection_data),
		cmocka_unit_test(a_control_message_keeps_its_fields_apart),
		cmocka_unit_test(control_data_beside_messages_is_checked),
		cmocka_unit_test(control_messages_that_come_alone_are_checked),
		cmocka_unit_test(a_grant_comes_out_as_it_went_in),
		cmocka_unit_test(a_grant_covers_its_bytes_and_no_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
