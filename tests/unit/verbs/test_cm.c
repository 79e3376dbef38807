/* SPDX-License-Identifier: BSD-2-Clause */
/* Private data keep their length, and a length that a peer sends is checked. */
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
			/* where a peer that is not NDX looks for its data */
			assert_memory_equal(wire, data, len);
			memset(&params, 0, sizeof(params));
			verbs_cm_decode(wire, rooms[r], NDXP_RC_CONNECT, &params, &peer);
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
	assert_memory_equal(wire, "abc", 4); /* the rest is zero */
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
		verbs_cm_decode(wire, len, NDXP_RC_CONNECT, &params, &peer);
		assert_false(peer.is_ndx);
		assert_int_equal(peer.mailbox_key, 0);
		assert_int_equal(params.private_data_len, len);
	}
	verbs_cm_decode(NULL, 0, NDXP_RC_CONNECT, &params, &peer);
	assert_int_equal(params.private_data_len, 0);
}

/* One wrong field is enough: the provider takes the trailer for private data. */
static void an_invalid_trailer_is_private_data(void **state)
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
		verbs_cm_decode(wire, sizeof(wire), NDXP_RC_CONNECT, &params, &peer);
		assert_false(peer.is_ndx);
		assert_int_equal(params.private_data_len, sizeof(wire));
	}
}

/* ---- a peer on ofi:verbs ---- */

static void data_for_ofi_verbs_come_back(void **state)
{
	uint8_t data[NDXP_RC_CALLEE_DATA];
	uint8_t bytes[VERBS_ACCEPT_ROOM] = {0};
	struct ndx_spi_params params;
	struct verbs_cm_peer peer;

	(void)state;
	memset(data, 'x', sizeof(data));
	for (size_t len = 0; len <= sizeof(data); len++) {
		memset(&params, 0, sizeof(params));
		assert_int_equal(verbs_cm_encode_ofi(bytes, NDXP_RC_ACCEPT, data, len, 3, 5),
		                 1 + NDXP_RC_CM_HEADER + len);
		/* the length byte of libfabric's header */
		assert_int_equal(bytes[0], NDXP_RC_CM_HEADER + len);
		verbs_cm_decode(bytes, sizeof(bytes), NDXP_RC_ACCEPT, &params, &peer);
		assert_true(peer.is_ofi);
		assert_false(peer.is_ndx);
		assert_null(peer.wrong);
		assert_int_equal(params.inbound_read_limit, 3);
		assert_int_equal(params.outbound_read_limit, 5);
		assert_int_equal(params.private_data_len, len);
		assert_memory_equal(params.private_data, data, len);
	}
}

static void assert_refused(size_t at, uint8_t value)
{
	uint8_t bytes[VERBS_ACCEPT_ROOM] = {0};
	struct ndx_spi_params params = {.private_data_len = 1};
	struct verbs_cm_peer peer;

	(void)verbs_cm_encode_ofi(bytes, NDXP_RC_ACCEPT, "abc", 3, 1, 1);
	bytes[at] = value;
	verbs_cm_decode(bytes, sizeof(bytes), NDXP_RC_ACCEPT, &params, &peer);
	assert_true(peer.is_ofi);
	assert_non_null(peer.wrong);
	assert_int_equal(params.private_data_len, 0);
}

static void spoilt_data_of_ofi_verbs_are_refused(void **state)
{
	uint8_t bytes[VERBS_ACCEPT_ROOM] = {0};
	struct ndx_spi_params params = {.private_data_len = 0};
	struct verbs_cm_peer peer;
	size_t len;

	(void)state;
	assert_refused(3, 0x22); /* another version */
	assert_refused(3, 0x31); /* a connect */
	assert_refused(4, 4);    /* one byte more than the message has */
	len = verbs_cm_encode_ofi(bytes, NDXP_RC_ACCEPT, "abc", 3, 1, 1);
	for (size_t n = 0; n < len; n++) { /* fewer bytes than the length byte says */
		verbs_cm_decode(bytes, n, NDXP_RC_ACCEPT, &params, &peer);
		assert_false(peer.is_ofi);
		assert_int_equal(params.private_data_len, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_for_ofi_verbs_come_back),
		cmocka_unit_test(spoilt_data_of_ofi_verbs_are_refused),
		cmocka_unit_test(data_come_back_with_their_length),
		cmocka_unit_test(the_trailer_has_its_place),
		cmocka_unit_test(other_peers_have_no_mailbox),
		cmocka_unit_test(an_invalid_trailer_is_private_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 77; /* the provider is not in this build */
}

#endif
