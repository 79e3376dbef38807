/* SPDX-License-Identifier: BSD-2-Clause */
#include "nd_pair.h"

#include <stdio.h>
#include <time.h>

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void nd_assert_status(HRESULT status, HRESULT expected, const char *what, const char *file,
                      int line)
{
	if (status == expected)
		return;
	print_error("%s: %08x, expected %08x\n", what, (unsigned)status, (unsigned)expected);
	_fail(file, line);
}

int nd_begin(int argc, char **argv)
{
	if (argc < 2) {
		printf("skip: usage: %s ADAPTER\n", argv[0]);
		return 77;
	}
	if (setenv("NDX_ADAPTER", argv[1], 1) != 0)
		return 1;
	return NdStartup() == ND_SUCCESS ? 0 : 1;
}

const char *nd_adapter(void)
{
	const char *uri = getenv("NDX_ADAPTER");

	return uri != NULL ? uri : "";
}

ULONG nd_local_address(struct sockaddr_storage *address)
{
	union {
		SOCKET_ADDRESS_LIST list;
		char bytes[8192];
	} u;
	SIZE_T size = sizeof(u);
	ULONG length;

	u.list.iAddressCount = 0;
	assert_status(NdQueryAddressList(0, &u.list, &size), ND_SUCCESS);
	assert_true(u.list.iAddressCount > 0);
	length = (ULONG)u.list.Address[0].iSockaddrLength;
	memset(address, 0, sizeof(*address));
	memcpy(address, u.list.Address[0].lpSockaddr, length);
	return length;
}

IND2Adapter *nd_open(void)
{
	struct sockaddr_storage address;
	const ULONG length = nd_local_address(&address);
	IND2Adapter *adapter = NULL;

	assert_status(NdOpenAdapter(BY_ID(IID_IND2Adapter), (struct sockaddr *)&address, length,
	                            OUT(adapter)),
	              ND_SUCCESS);
	return adapter;
}

HRESULT nd_end(struct nd_side *s, HRESULT started)
{
	if (started != ND_PENDING)
		return started;
	return CALL(s->cq, GetOverlappedResult, &s->ov, TRUE);
}

void nd_make_side(struct nd_side *s)
{
	ULONG size = sizeof(s->info);

	memset(s, 0, sizeof(*s));
	s->adapter = nd_open();
	s->info.InfoVersion = ND_VERSION_2;
	assert_status(CALL(s->adapter, Query, &s->info, &size), ND_SUCCESS);
	assert_status(CALL(s->adapter, CreateOverlappedFile, &s->file), ND_SUCCESS);
	s->event = CreateEvent(NULL, FALSE, FALSE, NULL);
	assert_non_null(s->event);
	s->ov.hEvent = s->event;
	assert_status(CALL(s->adapter, CreateCompletionQueue, BY_ID(IID_IND2CompletionQueue),
	                   s->file, 4 * ND_DEPTH, 0, 0, OUT(s->cq)),
	              ND_SUCCESS);
	assert_status(CALL(s->adapter, CreateConnector, BY_ID(IID_IND2Connector), s->file,
	                   OUT(s->connector)),
	              ND_SUCCESS);
	assert_status(CALL(s->adapter, CreateQueuePair, BY_ID(IID_IND2QueuePair), UNKNOWN(s->cq),
	                   UNKNOWN(s->cq), s, ND_DEPTH, ND_DEPTH, 1, 1, 0, OUT(s->qp)),
	              ND_SUCCESS);
	s->memory = (char *)calloc(1, ND_MEMORY);
	assert_non_null(s->memory);
	assert_status(CALL(s->adapter, CreateMemoryRegion, BY_ID(IID_IND2MemoryRegion), s->file,
	                   OUT(s->mr)),
	              ND_SUCCESS);
	assert_status(nd_end(s, CALL(s->mr, Register, s->memory, ND_MEMORY,
	                             ND_MR_FLAG_ALLOW_REMOTE_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ |
	                                     ND_MR_FLAG_RDMA_READ_SINK,
	                             &s->ov)),
	              ND_SUCCESS);
}

void nd_drop_side(struct nd_side *s)
{
	if (s->connector != NULL)
		assert_int_equal(CALL(s->connector, Release), 0);
	if (s->qp != NULL)
		assert_int_equal(CALL(s->qp, Release), 0);
	if (s->cq != NULL)
		assert_int_equal(CALL(s->cq, Release), 0);
	if (s->mr != NULL)
		assert_int_equal(CALL(s->mr, Release), 0);
	assert_true(CloseHandle(s->file));
	assert_int_equal(CALL(s->adapter, Release), 0);
	assert_true(CloseHandle(s->event));
	free(s->memory);
	memset(s, 0, sizeof(*s));
}

void nd_listen(struct nd_pair *p)
{
	p->address_length = nd_local_address(&p->address);
	assert_status(CALL(p->b.adapter, CreateListener, BY_ID(IID_IND2Listener), p->b.file,
	                   OUT(p->listener)),
	              ND_SUCCESS);
	assert_status(CALL(p->listener, Bind, (struct sockaddr *)&p->address, p->address_length),
	              ND_SUCCESS);
	assert_status(CALL(p->listener, Listen, 0), ND_SUCCESS);
	assert_status(CALL(p->listener, GetLocalAddress, (struct sockaddr *)&p->address,
	                   &p->address_length),
	              ND_SUCCESS);
}

void nd_make(struct nd_pair *p)
{
	memset(p, 0, sizeof(*p));
	nd_make_side(&p->a);
	nd_make_side(&p->b);
	nd_listen(p);
}

void nd_drop(struct nd_pair *p)
{
	nd_drop_side(&p->a);
	if (p->listener != NULL)
		assert_int_equal(CALL(p->listener, Release), 0);
	nd_drop_side(&p->b);
}

void nd_connect(struct nd_pair *p)
{
	HRESULT accepted;

	assert_status(CALL(p->listener, GetConnectionRequest, UNKNOWN(p->b.connector), &p->b.ov),
	              ND_PENDING);
	assert_status(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp),
	                   (struct sockaddr *)&p->address, p->address_length, 4, 4, NULL, 0,
	                   &p->a.ov),
	              ND_PENDING);
	assert_status(CALL(p->b.cq, GetOverlappedResult, &p->b.ov, TRUE), ND_SUCCESS);
	accepted = CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), 4, 4, NULL, 0, &p->b.ov);
	assert_status(accepted, ND_PENDING);
	assert_status(CALL(p->a.cq, GetOverlappedResult, &p->a.ov, TRUE), ND_SUCCESS);
	assert_status(nd_end(&p->a, CALL(p->a.connector, CompleteConnect, &p->a.ov)), ND_SUCCESS);
	assert_status(nd_end(&p->b, accepted), ND_SUCCESS);
}

void nd_disconnect(struct nd_pair *p)
{
	assert_status(nd_end(&p->a, CALL(p->a.connector, Disconnect, &p->a.ov)), ND_SUCCESS);
	assert_status(nd_end(&p->b, CALL(p->b.connector, Disconnect, &p->b.ov)), ND_SUCCESS);
}

ND2_SGE nd_sge(struct nd_side *s, size_t offset, ULONG length)
{
	ND2_SGE sge;

	sge.Buffer = s->memory + offset;
	sge.BufferLength = length;
	sge.MemoryRegionToken = CALL(s->mr, GetLocalToken);
	return sge;
}

void nd_receive(struct nd_side *s, uintptr_t context, size_t offset, ULONG length)
{
	const ND2_SGE sge = nd_sge(s, offset, length);

	assert_status(CALL(s->qp, Receive, (void *)context, &sge, 1), ND_SUCCESS);
}

void nd_send(struct nd_side *s, uintptr_t context, size_t offset, ULONG length, ULONG flags)
{
	const ND2_SGE sge = nd_sge(s, offset, length);

	assert_status(CALL(s->qp, Send, (void *)context, &sge, 1, flags), ND_SUCCESS);
}

ND2_RESULT nd_result(struct nd_side *s)
{
	const uint64_t end = now_ms() + ND_WAIT_MS;
	ND2_RESULT result;

	while (CALL(s->cq, GetResults, &result, 1) == 0) {
		if (now_ms() > end)
			fail_msg("no result in %d ms", ND_WAIT_MS);
	}
	return result;
}

void nd_expect(struct nd_side *s, ND2_REQUEST_TYPE type, uintptr_t context, HRESULT status)
{
	const ND2_RESULT result = nd_result(s);

	assert_int_equal(result.RequestType, type);
	assert_ptr_equal(result.RequestContext, (void *)context);
	assert_status(result.Status, status);
	assert_ptr_equal(result.QueuePairContext, s);
}
