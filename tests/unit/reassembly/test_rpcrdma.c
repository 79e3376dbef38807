/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC-over-RDMA headers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include "base_byteorder.h"
#include "rpcrdma.h"

static struct rpcrdma_header h;
static uint8_t bytes[65536];
static uint32_t used;

static void put(uint32_t word)
{
	base_put_be32(bytes + used, word);
	used += 4;
}

static void begin(uint32_t version, uint32_t type)
{
	used = 0;
	put(0x1234);
	put(version);
	put(32);
	put(type);
}

static void segment(uint32_t handle)
{
	put(handle);
	put(100);
	put(1);
	put(2);
}

static void rpc_call(void)
{
	put(0x1234);
	put(0);
	put(2);
	put(100003);
	put(4);
	put(1);
}

static enum rpcrdma_verdict parse(void)
{
	return rpcrdma_parse(bytes, used, used, &h);
}

static void calls_with_all_lists_are_read(void **state)
{
	(void)state;
	begin(1, RPCRDMA_MSG);
	put(1);
	put(28);
	segment(7);
	put(1);
	put(60);
	segment(8);
	put(0);
	put(1);
	put(2);
	segment(9);
	segment(10);
	put(1);
	put(0);
	put(0);
	put(1);
	put(1);
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
	begin(1, RPCRDMA_MSGP);
	put(4096);
	put(512);
	put(0);
	put(0);
	put(0);
	put(0x1234);
	put(1);
	assert_int_equal(parse(), RPCRDMA_YES);
	assert_true(h.is_reply);
	begin(1, RPCRDMA_NOMSG);
	put(1);
	put(0);
	segment(7);
	put(0);
	put(0);
	put(0);
	assert_int_equal(parse(), RPCRDMA_YES);
	assert_true(h.is_call);
	begin(1, RPCRDMA_NOMSG);
	put(0);
	put(0);
	put(0);
	assert_int_equal(parse(), RPCRDMA_NO);
	begin(1, RPCRDMA_DONE);
	assert_int_equal(parse(), RPCRDMA_YES);
	begin(1, RPCRDMA_ERROR);
	put(1);
	put(1);
	put(2);
	assert_int_equal(parse(), RPCRDMA_YES);
	assert_int_equal(h.error_high, 2);
	begin(1, RPCRDMA_ERROR);
	put(2);
	assert_int_equal(parse(), RPCRDMA_YES);
	begin(1, RPCRDMA_ERROR);
	put(9);
	assert_int_equal(parse(), RPCRDMA_NO);
	begin(2, 3);
	assert_int_equal(parse(), RPCRDMA_V2);
	begin(2, 99);
	assert_int_equal(parse(), RPCRDMA_NO);
	begin(3, 0);
	assert_int_equal(parse(), RPCRDMA_NO);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	begin(1, RPCRDMA_MSG);
	put(2);
	put(0);
	put(0);
	rpc_call();
	assert_int_equal(parse(), RPCRDMA_NO);
	begin(1, RPCRDMA_MSG);
	put(0);
	put(1);
	put(0xffffffff);
	segment(1);
	assert_int_equal(parse(), RPCRDMA_NO);
	begin(1, RPCRDMA_MSG);
	for (int i = 0; i < 2000; i++) {
		put(1);
		put(0);
		segment(1);
	}
	assert_int_equal(parse(), RPCRDMA_NO);
	begin(1, RPCRDMA_MSG);
	put(0);
	for (int i = 0; i < 5000; i++) {
		put(1);
		put(0);
	}
	assert_int_equal(parse(), RPCRDMA_NO);
	begin(1, RPCRDMA_MSG);
	put(0);
	put(0);
	put(0);
	put(0x9999); /* another xid than the header's */
	put(0);
	assert_int_equal(parse(), RPCRDMA_NO);
	begin(1, RPCRDMA_MSG);
	put(0);
	put(0);
	put(0);
	put(0x1234);
	put(0);
	put(3); /* RPC version 3 */
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
