/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers and layouts that are NetworkDirect's. A program that has both interfaces, such as a shim,
 * passes flags through as they are, hands arrays of ND2_SGE to a post, and copies the beginning of
 * a result: a change here breaks that without a word of the compiler.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include <ndx/ndx.h>

/* ND2_SGE and ND2_RESULT, on 64 bits. */
struct nd2_sge {
	void *buffer;
	uint32_t buffer_length;
	uint32_t memory_region_token;
};

struct nd2_result {
	int32_t status;
	uint32_t bytes_transferred;
	void *queue_pair_context;
	void *request_context;
	uint32_t request_type;
};

/* The bytes that ND2_RESULT has, without the padding at its end. */
#define RESULT_COMMON (offsetof(struct nd2_result, request_type) + sizeof(uint32_t))

#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(struct ndx_sge) == 16 && sizeof(struct nd2_sge) == 16, "ND2_SGE");
_Static_assert(offsetof(struct ndx_sge, buffer) == 0, "Buffer");
_Static_assert(offsetof(struct ndx_sge, length) == 8, "BufferLength");
_Static_assert(offsetof(struct ndx_sge, token) == 12, "MemoryRegionToken");

_Static_assert(offsetof(struct ndx_result, status) == 0, "Status");
_Static_assert(offsetof(struct ndx_result, bytes_transferred) == 4, "BytesTransferred");
_Static_assert(offsetof(struct ndx_result, queue_pair_context) == 8, "QueuePairContext");
_Static_assert(offsetof(struct ndx_result, request_context) == 16, "RequestContext");
_Static_assert(offsetof(struct ndx_result, request_type) == 24, "RequestType");
_Static_assert(RESULT_COMMON == 28, "ND2_RESULT");
#endif
_Static_assert(sizeof(enum ndx_status) == 4, "Status is an HRESULT");
_Static_assert(sizeof(enum ndx_request_type) == 4, "RequestType");
_Static_assert(sizeof(((struct ndx_sge *)NULL)->length) == 4, "BufferLength");
_Static_assert(sizeof(((struct ndx_sge *)NULL)->token) == 4, "MemoryRegionToken");

/* ND_OP_FLAG_... */
_Static_assert(NDX_OP_SILENT_SUCCESS == 0x1, "SILENT_SUCCESS");
_Static_assert(NDX_OP_READ_FENCE == 0x2, "READ_FENCE");
_Static_assert(NDX_OP_SOLICIT_EVENT == 0x4, "SEND_AND_SOLICIT_EVENT");
_Static_assert(NDX_OP_ALLOW_READ == 0x8, "ALLOW_READ");
_Static_assert(NDX_OP_ALLOW_WRITE == 0x10, "ALLOW_WRITE");
_Static_assert(NDX_OP_INLINE == 0x20, "INLINE");

/* ND_MR_FLAG_... */
_Static_assert(NDX_MR_ALLOW_LOCAL_WRITE == 0x1, "ALLOW_LOCAL_WRITE");
_Static_assert(NDX_MR_ALLOW_REMOTE_READ == 0x2, "ALLOW_REMOTE_READ");
_Static_assert(NDX_MR_ALLOW_REMOTE_WRITE == 0x5, "ALLOW_REMOTE_WRITE, with local write");
_Static_assert(NDX_MR_RDMA_READ_SINK == 0x8, "RDMA_READ_SINK");

/* ND2_REQUEST_TYPE */
_Static_assert(NDX_REQUEST_RECEIVE == 0, "Nd2RequestTypeReceive");
_Static_assert(NDX_REQUEST_SEND == 1, "Nd2RequestTypeSend");
_Static_assert(NDX_REQUEST_BIND == 2, "Nd2RequestTypeBind");
_Static_assert(NDX_REQUEST_INVALIDATE == 3, "Nd2RequestTypeInvalidate");
_Static_assert(NDX_REQUEST_READ == 4, "Nd2RequestTypeRead");
_Static_assert(NDX_REQUEST_WRITE == 5, "Nd2RequestTypeWrite");

/* ND_CQ_NOTIFY_... */
_Static_assert(NDX_CQ_NOTIFY_ERRORS == 0, "ERRORS");
_Static_assert(NDX_CQ_NOTIFY_ANY == 1, "ANY");
_Static_assert(NDX_CQ_NOTIFY_SOLICITED == 2, "SOLICITED");

static void a_result_begins_like_one_of_networkdirect(void **state)
{
	int queue_pair;
	int request;
	const struct ndx_result result = {
		.status = NDX_OK,
		.bytes_transferred = 77,
		.queue_pair_context = &queue_pair,
		.request_context = &request,
		.request_type = NDX_REQUEST_WRITE,
		.flags = UINT32_MAX,
		.immediate = UINT32_MAX,
		.native = -1,
	};
	struct nd2_result copy = {.status = -1};

	(void)state;
	memcpy(&copy, &result, RESULT_COMMON);
	assert_int_equal(copy.status, 0);
	assert_int_equal(copy.bytes_transferred, 77);
	assert_ptr_equal(copy.queue_pair_context, &queue_pair);
	assert_ptr_equal(copy.request_context, &request);
	assert_int_equal(copy.request_type, 5);
}

static void an_sge_is_one_of_networkdirect(void **state)
{
	char memory[8];
	const struct nd2_sge given = {memory, sizeof(memory), 0x12345678};
	struct ndx_sge sge;

	(void)state;
	memcpy(&sge, &given, sizeof(sge));
	assert_ptr_equal(sge.buffer, memory);
	assert_int_equal(sge.length, sizeof(memory));
	assert_int_equal(sge.token, 0x12345678);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_begins_like_one_of_networkdirect),
		cmocka_unit_test(an_sge_is_one_of_networkdirect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
