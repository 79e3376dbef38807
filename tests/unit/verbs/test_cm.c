/* SPDX-License-Identifier: BSD-2-Clause */
/* Private data keep their length; what comes from a peer is never believed to be longer. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#ifdef NDX_PROVIDER_VERBS

#include "verbs_conn.h"

static void data_come_back_with_their_length(void **state)
{
	static const size_t rooms[] = {VERBS_CONNECT_ROOM, VERBS_ACCEPT_ROOM, VERBS_REJECT_ROOM};
	uint8_t data[VERBS_ACCEPT_ROOM];
	uint8_t wire[VERBS_ACCEPT_ROOM];
	struct ndx_spi_params params;
	struct verbs_cm_peer peer;

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	for (size_t r = 0; r < sizeof(rooms) / sizeof(rooms[0]); r++) {
		for (size_t len = 0; len <= rooms[r] - VERBS_TRAILER; len++) {
			verbs_cm_encode(wire, rooms[r], data, len, 0x01020304);
			assert_memory_equal(wire, data, len); /* where others look for it */
			memset(&params, 0, sizeof(params));
			verbs_cm_decode(wire, rooms[r], &params, &peer);
			assert_true(peer.is_ndx);
			assert_int_equal(peer.mailbox_key, 0x01020304);
			assert_int_equal(params.private_data_len, len);
			assert_memory_equal(params.private_data, data, len);
		}
	}
}

static void the_trailer_has_its_place(void **state)
{
	static const uint8_t trailer[] = {'N', 'X', 3, 3, 0xa1, 0xa2, 0xa3, 0xa4};
	uint8_t wire[VERBS_CONNECT_ROOM];

	(void)state;
	verbs_cm_encode(wire, sizeof(wire), "abc", 3, 0xa1a2a3a4);
	assert_memory_equal(wire, "abc", 4); /* zeros behind */
	assert_memory_equal(wire + sizeof(wire) - sizeof(trailer), trailer, sizeof(trailer));
}

static void other_peers_have_no_mailbox(void **state)
{
	uint8_t wire[VERBS_CONNECT_ROOM];
	struct ndx_spi_params params;
	struct verbs_cm_peer peer;

	(void)state;
	memset(wire, 'N', sizeof(wire));
	for (size_t len = 0; len <= sizeof(wire); len++) {
		memset(&params, 0, sizeof(params));
		verbs_cm_decode(wire, len, &params, &peer);
		assert_false(peer.is_ndx);
		assert_int_equal(peer.mailbox_key, 0);
		assert_int_equal(params.private_data_len, len);
	}
	verbs_cm_decode(NULL, 0, &params, &peer);
	assert_int_equal(params.private_data_len, 0);
}

/* Each wrong field alone makes it data like any other. */
static void a_trailer_that_lies_is_none(void **state)
{
	static const struct {
		size_t from_end;
		uint8_t value;
	} lies[] = {{8, 'n'}, {7, 'Y'}, {6, 1}, {5, VERBS_CALLER_DATA + 1}, {5, 255}};
	uint8_t wire[VERBS_CONNECT_ROOM];
	struct ndx_spi_params params;
	struct verbs_cm_peer peer;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		verbs_cm_encode(wire, sizeof(wire), "x", 1, 7);
		wire[sizeof(wire) - lies[i].from_end] = lies[i].value;
		verbs_cm_decode(wire, sizeof(wire), &params, &peer);
		assert_false(peer.is_ndx);
		assert_int_equal(params.private_data_len, sizeof(wire));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_come_back_with_their_length),
		cmocka_unit_test(the_trailer_has_its_place),
		cmocka_unit_test(other_peers_have_no_mailbox),
		cmocka_unit_test(a_trailer_that_lies_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 77; /* the provider is not in this build */
}

#endif
