/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC-over-RDMA headers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include <ndx/spi/byteorder.h>
#include "rpcrdma.h"

static struct rpcrdma_header h;
static uint8_t bytes[65536];
static uint32_t used;

static void put_be32(uint32_t word)
{
	ndxp_put_be32(bytes + used, word);
	used += 4;
}

static void begin_header(uint32_t version, uint32_t type)
{
	used = 0;
	put_be32(0x1234);
	put_be32(version);
	put_be32(32);
	put_be32(type);
}

static void segment(uint32_t handle)
{
	put_be32(handle);
	put_be32(100);
	put_be32(1);
	put_be32(2);
}

static void rpc_call(void)
{
	put_be32(0x1234);
	put_be32(0);
	put_be32(2);
	put_be32(100003);
	put_be32(4);
	put_be32(1);
}

static enum rpcrdma_verdict parse(void)
{
	return rpcrdma_parse(bytes, used, used, &h);
}

static void calls_with_all_lists_are_read(void **state)
{
	(void)state;
	begin_header(1, RPCRDMA_MSG);
	put_be32(1);
	put_be32(28);
	segment(7);
	put_be32(1);
	put_be32(60);
	segment(8);
	put_be32(0);
	put_be32(1);
	put_be32(2);
	segment(9);
	segment(10);
	put_be32(1);
	put_be32(0);
	put_be32(0);
	put_be32(1);
	put_be32(1);
	segment(11);
	rpc_call();
	assert_int_equal(parse(), RPCRDMA_YES);
	assert_true(h.is_call && !h.is_reply && h.has_reply && !h.cut);
	assert_int_equal(h.reads, 2);
	assert_int_equal(h.segments[1].position, 60);
	assert_int_equal(h.segments[1].offset, 0x100000002);
	assert_int_equal(h.writes, 2);
	assert_int_equal(h.write_chunks, 2);
	assert_int_equal(rpcrdma_writes(&h)[1].handle, 10);
	assert_int_equal(h.replies, 1);
	assert_int_equal(rpcrdma_reply(&h)->handle, 11);
	assert_int_equal(h.program, 100003);
	assert_int_equal(h.size, used - 24);
	for (uint32_t n = 0; n < used; n++) {
		assert_int_equal(rpcrdma_parse(bytes, n, n, &h), RPCRDMA_NO);
		if (n >= 16)
			assert_int_equal(rpcrdma_parse(bytes, n, used, &h), RPCRDMA_YES);
	}
}

static void the_other_types_are_told_apart(void **state)
{
	(void)state;
	begin_header(1, RPCRDMA_MSGP);
	put_be32(4096);
	put_be32(512);
	put_be32(0);
	put_be32(0);
	put_be32(0);
	put_be32(0x1234);
	put_be32(1);
	assert_int_equal(parse(), RPCRDMA_YES);
	assert_true(h.is_reply);
	begin_header(1, RPCRDMA_NOMSG);
	put_be32(1);
	put_be32(0);
	segment(7);
	put_be32(0);
	put_be32(0);
	put_be32(0);
	assert_int_equal(parse(), RPCRDMA_YES);
	assert_true(h.is_call);
	begin_header(1, RPCRDMA_NOMSG);
	put_be32(0);
	put_be32(0);
	put_be32(0);
	assert_int_equal(parse(), RPCRDMA_NO);
	begin_header(1, RPCRDMA_DONE);
	assert_int_equal(parse(), RPCRDMA_YES);
	begin_header(1, RPCRDMA_ERROR);
	put_be32(1);
	put_be32(1);
	put_be32(2);
	assert_int_equal(parse(), RPCRDMA_YES);
	assert_int_equal(h.error_high, 2);
	begin_header(1, RPCRDMA_ERROR);
	put_be32(2);
	assert_int_equal(parse(), RPCRDMA_YES);
	begin_header(1, RPCRDMA_ERROR);
	put_be32(9);
	assert_int_equal(parse(), RPCRDMA_NO);
	begin_header(2, 3);
	assert_int_equal(parse(), RPCRDMA_V2);
	begin_header(2, 99);
	assert_int_equal(parse(), RPCRDMA_NO);
	begin_header(3, 0);
	assert_int_equal(parse(), RPCRDMA_NO);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	begin_header(1, RPCRDMA_MSG);
	put_be32(2);
	put_be32(0);
	put_be32(0);
	rpc_call();
	assert_int_equal(parse(), RPCRDMA_NO);
	begin_header(1, RPCRDMA_MSG);
	put_be32(0);
	put_be32(1);
	put_be32(0xffffffff);
	segment(1);
	assert_int_equal(parse(), RPCRDMA_NO);
	begin_header(1, RPCRDMA_MSG);
	for (int i = 0; i < 2000; i++) {
		put_be32(1);
		put_be32(0);
		segment(1);
	}
	assert_int_equal(parse(), RPCRDMA_NO);
	begin_header(1, RPCRDMA_MSG);
	put_be32(0);
	for (int i = 0; i < 5000; i++) {
		put_be32(1);
		put_be32(0);
	}
	assert_int_equal(parse(), RPCRDMA_NO);
	begin_header(1, RPCRDMA_MSG);
	put_be32(0);
	put_be32(0);
	put_be32(0);
	put_be32(0x9999); /* another xid than the header's */
	put_be32(0);
	assert_int_equal(parse(), RPCRDMA_NO);
	begin_header(1, RPCRDMA_MSG);
	put_be32(0);
	put_be32(0);
	put_be32(0);
	put_be32(0x1234);
	put_be32(0);
	put_be32(3); /* RPC version 3 */
	assert_int_equal(parse(), RPCRDMA_NO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_with_all_lists_are_read),
		cmocka_unit_test(the_other_types_are_told_apart),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests_name("rpcrdma", tests, NULL, NULL);
}
