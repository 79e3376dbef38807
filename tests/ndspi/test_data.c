/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and their results: sizes, flags, order, immediate data, and what breaks a connection. */
#include "nd_op.h"

enum { SIZE = 512, HALF = ND_MEMORY / 2 };

static UINT64 there(const struct nd_side *s, size_t offset)
{
	return (UINT64)(uintptr_t)s->memory + offset;
}

static UINT32 token_of(struct nd_side *s)
{
	return CALL(s->mr, GetRemoteToken);
}

static void make_connected(struct nd_pair *p)
{
	nd_make(p);
	nd_connect(p);
}

static void end(struct nd_pair *p)
{
	nd_disconnect(p);
	nd_drop(p);
}

static void no_more(struct nd_side *s)
{
	ND2_RESULT result;

	assert_int_equal(CALL(s->cq, GetResults, &result, 1), 0);
}

/* ---- sizes ---- */

static void requests_may_be_empty(void **state)
{
	struct nd_pair p;
	ND2_RESULT result;

	(void)state;
	make_connected(&p);
	assert_status(CALL(p.b.qp, Receive, (void *)1, NULL, 0), ND_SUCCESS);
	assert_status(CALL(p.a.qp, Send, (void *)2, NULL, 0, 0), ND_SUCCESS);
	assert_status(CALL(p.a.qp, Read, (void *)3, NULL, 0, 0, 0, 0), ND_SUCCESS);
	assert_status(CALL(p.a.qp, Write, (void *)4, NULL, 0, there(&p.b, 0), token_of(&p.b), 0),
	              ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeSend, 2, ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeRead, 3, ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeWrite, 4, ND_SUCCESS);
	result = nd_result(&p.b);
	assert_status(result.Status, ND_SUCCESS);
	assert_int_equal(result.BytesTransferred, 0);
	/* SGEs of no length */
	nd_receive(&p.b, 5, 0, 0);
	nd_send(&p.a, 6, 0, 0, 0);
	nd_expect(&p.b, Nd2RequestTypeReceive, 5, ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeSend, 6, ND_SUCCESS);
	end(&p);
}

/* A message is gathered and scattered; a result tells its length. */
static void data_move_through_several_sges(void **state)
{
	struct nd_pair p;
	ND2_SGE from[3], to[2];
	ND2_RESULT result;

	(void)state;
	nd_make(&p);
	assert_true(p.a.info.MaxInitiatorSge >= 3 && p.a.info.MaxReceiveSge >= 2);
	nd_replace_qp(&p.a, 4, 3, 0);
	nd_replace_qp(&p.b, 4, 3, 0);
	nd_connect(&p);
	nd_fill(p.a.memory, 3 * SIZE, 1);
	for (int i = 0; i < 3; i++)
		from[i] = nd_sge(&p.a, (size_t)i * SIZE, SIZE);
	to[0] = nd_sge(&p.b, 0, SIZE + 1);
	to[1] = nd_sge(&p.b, HALF, 3 * SIZE);
	assert_status(CALL(p.b.qp, Receive, (void *)1, to, 2), ND_SUCCESS);
	assert_status(CALL(p.a.qp, Send, (void *)2, from, 3, 0), ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeSend, 2, ND_SUCCESS);
	result = nd_result(&p.b);
	assert_status(result.Status, ND_SUCCESS);
	assert_int_equal(result.BytesTransferred, 3 * SIZE);
	assert_memory_equal(p.b.memory, p.a.memory, SIZE + 1);
	assert_memory_equal(p.b.memory + HALF, p.a.memory + SIZE + 1, 2 * SIZE - 1);
	end(&p);
}

/* ---- flags ---- */

static void success_may_be_silent(void **state)
{
	struct nd_pair p;
	const ULONG silent = ND_OP_FLAG_SILENT_SUCCESS;
	ND2_SGE sge;

	(void)state;
	make_connected(&p);
	sge = nd_sge(&p.a, 0, SIZE);
	nd_fill(p.a.memory, SIZE, 2);
	for (uintptr_t i = 1; i <= 4 * ND_DEPTH; i++) {
		nd_receive(&p.b, i, 0, SIZE);
		nd_send(&p.a, 1, 0, SIZE, silent);
		assert_status(CALL(p.a.qp, Write, (void *)2, &sge, 1, there(&p.b, HALF),
		                   token_of(&p.b), silent),
		              ND_SUCCESS);
		nd_send(&p.a, i, 0, 0, i % 2 ? silent : 0);
		nd_receive(&p.b, 1000 + i, 0, SIZE);
		/* only every second round has a result, which returns the slots of all */
		if (i % 2 == 0)
			nd_expect(&p.a, Nd2RequestTypeSend, i, ND_SUCCESS);
		nd_expect(&p.b, Nd2RequestTypeReceive, i, ND_SUCCESS);
		nd_expect(&p.b, Nd2RequestTypeReceive, 1000 + i, ND_SUCCESS);
	}
	no_more(&p.a);
	assert_memory_equal(p.b.memory + HALF, p.a.memory, SIZE);
	end(&p);
}

/* The write of what the read has fetched. */
static void a_fence_waits_for_reads(void **state)
{
	struct nd_pair p;

	(void)state;
	make_connected(&p);
	for (int i = 0; i < ND_DEPTH; i++) {
		ND2_SGE sge = nd_sge(&p.a, 0, SIZE);

		nd_fill(p.b.memory, SIZE, i);
		memset(p.a.memory, 0, SIZE);
		assert_status(
			CALL(p.a.qp, Read, (void *)1, &sge, 1, there(&p.b, 0), token_of(&p.b), 0),
			ND_SUCCESS);
		assert_status(CALL(p.a.qp, Write, (void *)2, &sge, 1, there(&p.b, HALF),
		                   token_of(&p.b), ND_OP_FLAG_READ_FENCE),
		              ND_SUCCESS);
		nd_receive(&p.b, 4, SIZE, SIZE);
		nd_send(&p.a, 3, 0, SIZE, ND_OP_FLAG_READ_FENCE);
		nd_expect(&p.a, Nd2RequestTypeRead, 1, ND_SUCCESS);
		nd_expect(&p.a, Nd2RequestTypeWrite, 2, ND_SUCCESS);
		nd_expect(&p.a, Nd2RequestTypeSend, 3, ND_SUCCESS);
		nd_expect(&p.b, Nd2RequestTypeReceive, 4, ND_SUCCESS);
		assert_memory_equal(p.b.memory + HALF, p.b.memory, SIZE);
		assert_memory_equal(p.b.memory + SIZE, p.b.memory, SIZE);
	}
	end(&p);
}

/* The data are of the stack, and may change when the call has returned; more SGEs than granted. */
static void inline_data_are_copied(void **state)
{
	enum { PIECES = 8 };
	struct nd_pair p;
	char data[64];
	ND2_SGE sge[PIECES];
	ULONG length;

	(void)state;
	nd_make(&p);
	length = p.a.info.MaxInlineDataSize < sizeof(data) ? p.a.info.MaxInlineDataSize
	                                                   : sizeof(data);
	assert_true(length >= PIECES);
	length -= length % PIECES;
	nd_replace_qp(&p.a, ND_DEPTH, 1, length);
	nd_connect(&p);
	nd_receive(&p.b, 1, 0, SIZE);
	for (int i = 0; i < PIECES; i++) {
		sge[i].Buffer = data + (ULONG)i * (length / PIECES);
		sge[i].BufferLength = length / PIECES;
		sge[i].MemoryRegionToken = 0xdead;
	}
	nd_fill(data, length, 3);
	assert_status(CALL(p.a.qp, Send, (void *)2, sge, PIECES, ND_OP_FLAG_INLINE), ND_SUCCESS);
	assert_status(CALL(p.a.qp, Write, (void *)3, sge, PIECES, there(&p.b, HALF), token_of(&p.b),
	                   ND_OP_FLAG_INLINE),
	              ND_SUCCESS);
	memset(data, 0, sizeof(data));
	nd_expect(&p.a, Nd2RequestTypeSend, 2, ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeWrite, 3, ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 1, ND_SUCCESS);
	nd_fill(data, length, 3);
	assert_memory_equal(p.b.memory, data, length);
	assert_memory_equal(p.b.memory + HALF, data, length);
	sge[0].BufferLength++;
	assert_status(CALL(p.a.qp, Send, NULL, sge, PIECES, ND_OP_FLAG_INLINE), ND_BUFFER_OVERFLOW);
	end(&p);
}

/* A post that is refused takes no slot. */
static void refused_posts_change_nothing(void **state)
{
	struct nd_pair p;

	(void)state;
	make_connected(&p);
	for (uintptr_t i = 0; i < ND_DEPTH; i++) {
		assert_status(CALL(p.a.qp, Send, NULL, NULL, 0, 0x4000), ND_INVALID_PARAMETER_4);
		nd_receive(&p.b, i, 0, SIZE);
		nd_send(&p.a, i, 0, SIZE, 0);
	}
	assert_status(CALL(p.a.qp, Send, NULL, NULL, 0, 0), ND_NO_MORE_ENTRIES);
	for (uintptr_t i = 0; i < ND_DEPTH; i++) {
		nd_expect(&p.a, Nd2RequestTypeSend, i, ND_SUCCESS);
		nd_expect(&p.b, Nd2RequestTypeReceive, i, ND_SUCCESS);
	}
	no_more(&p.a);
	end(&p);
}

/* ---- what breaks a connection ---- */

static void a_receive_that_is_too_short(void **state)
{
	struct nd_pair p;

	(void)state;
	make_connected(&p);
	nd_receive(&p.b, 1, 0, SIZE);
	nd_receive(&p.b, 2, 0, SIZE);
	nd_receive(&p.a, 3, 0, SIZE);
	nd_send(&p.a, 4, 0, SIZE + 1, 0);
	nd_expect(&p.b, Nd2RequestTypeReceive, 1, ND_BUFFER_OVERFLOW);
	nd_expect(&p.b, Nd2RequestTypeReceive, 2, ND_CANCELED);
	{
		const ND2_RESULT one = nd_result(&p.a);
		const ND2_RESULT two = nd_result(&p.a);
		const bool send_first = one.RequestType == Nd2RequestTypeSend;

		/* no order between the two sides of a queue pair */
		assert_status(send_first ? one.Status : two.Status,
		              nd_expected("sender of a message that is too long", ND_DATA_OVERRUN));
		assert_status(send_first ? two.Status : one.Status, ND_CANCELED);
	}
	end(&p);
}

/* The initiator is told; the target's receives are cancelled. */
static void violate(ND2_REQUEST_TYPE type, size_t offset, ULONG length, UINT32 wrong)
{
	struct nd_pair p;
	ND2_SGE sge;
	UINT32 token;

	make_connected(&p);
	token = token_of(&p.b) ^ wrong;
	sge = nd_sge(&p.a, 0, length);
	nd_receive(&p.b, 1, 0, SIZE);
	if (type == Nd2RequestTypeRead)
		assert_status(CALL(p.a.qp, Read, (void *)2, &sge, 1, there(&p.b, offset), token, 0),
		              ND_SUCCESS);
	else
		assert_status(
			CALL(p.a.qp, Write, (void *)2, &sge, 1, there(&p.b, offset), token, 0),
			ND_SUCCESS);
	nd_expect(&p.a, type, 2, ND_ACCESS_VIOLATION);
	nd_expect(&p.b, Nd2RequestTypeReceive, 1, ND_CANCELED);
	nd_send(&p.a, 3, 0, SIZE, 0);
	nd_expect(&p.a, Nd2RequestTypeSend, 3, ND_CANCELED);
	end(&p);
}

static void remote_violations_are_told(void **state)
{
	const ND2_REQUEST_TYPE types[] = {Nd2RequestTypeRead, Nd2RequestTypeWrite};

	(void)state;
	for (int i = 0; i < 2; i++) {
		violate(types[i], 0, SIZE, 0x55555555);
		violate(types[i], ND_MEMORY - SIZE + 1, SIZE, 0);
		violate(types[i], (size_t)-1, SIZE, 0);
	}
}

static void local_violations_are_told(void **state)
{
	(void)state;
	for (int reading = 0; reading < 2; reading++) {
		struct nd_pair p;
		ND2_SGE sge;
		UINT32 token;

		make_connected(&p);
		token = token_of(&p.b);
		sge = nd_sge(&p.a, 0, SIZE);
		sge.MemoryRegionToken ^= 0x55555555;
		if (reading)
			assert_status(
				CALL(p.a.qp, Read, (void *)1, &sge, 1, there(&p.b, 0), token, 0),
				ND_SUCCESS);
		else
			assert_status(CALL(p.a.qp, Send, (void *)1, &sge, 1, 0), ND_SUCCESS);
		nd_expect(&p.a, reading ? Nd2RequestTypeRead : Nd2RequestTypeSend, 1,
		          ND_ACCESS_VIOLATION);
		end(&p);
	}
}

/* A send for which no receive is posted ends within Microsoft's five seconds. */
static void nobody_receives(void **state)
{
	struct nd_pair p;

	(void)state;
	make_connected(&p);
	nd_send(&p.a, 1, 0, SIZE, 0);
	nd_expect(&p.a, Nd2RequestTypeSend, 1, ND_IO_TIMEOUT);
	end(&p);
}

/* ---- immediate data ---- */

static IND2ManaQueuePair *immediate_of(IND2QueuePair *qp)
{
	IND2ManaQueuePair *found = NULL;
	const HRESULT status = CALL(qp, QueryInterface, BY_ID(IID_IND2ManaQueuePair), OUT(found));

	assert_true(status == S_OK || (status == E_NOINTERFACE && found == NULL));
	return found;
}

static ND2_MANA_RESULT mana_result(struct nd_side *s, IND2ManaCompletionQueue *cq)
{
	ND2_MANA_RESULT result;

	/* the notification says when there is one */
	while (CALL(cq, GetManaResults, &result, 1) == 0)
		assert_ends(CALL(s->cq, Notify, ND_CQ_NOTIFY_ANY, &s->ov), &s->ov, ND_SUCCESS);
	assert_status(result.Status, ND_SUCCESS);
	assert_ptr_equal(result.QueuePairContext, s);
	return result;
}

static void expect_received(struct nd_pair *p, IND2ManaCompletionQueue *cq, uintptr_t context,
                            ND2_MANA_REQUEST_TYPE type, UINT32 immediate)
{
	const ND2_MANA_RESULT result = mana_result(&p->b, cq);

	assert_ptr_equal(result.RequestContext, (void *)context);
	assert_int_equal(result.RequestType, type);
	assert_int_equal(result.BytesTransferred, SIZE);
	if (type != Nd2ManaRequestTypeRecv)
		assert_int_equal(result.ImmediateDataOrRKey, immediate);
}

static void immediate_data_arrive(void **state)
{
	struct nd_pair p;
	IND2ManaQueuePair *qp;
	IND2ManaCompletionQueue *cq = NULL;
	ND2_SGE sge;

	(void)state;
	make_connected(&p);
	qp = immediate_of(p.a.qp);
	assert_status(CALL(p.b.cq, QueryInterface, BY_ID(IID_IND2ManaCompletionQueue), OUT(cq)),
	              qp ? S_OK : E_NOINTERFACE);
	if (qp == NULL) { /* the adapter has no immediate data, and says so */
		end(&p);
		nd_skip("the adapter has no immediate data");
	}
	sge = nd_sge(&p.a, 0, SIZE);
	nd_fill(p.a.memory, SIZE, 5);
	for (uintptr_t i = 1; i <= 3; i++)
		nd_receive(&p.b, i, 0, SIZE);
	assert_status(CALL(qp, SendWithImmediate, (void *)4, &sge, 1, 0, 0x01020304), ND_SUCCESS);
	assert_status(CALL(qp, WriteWithImmediate, (void *)5, &sge, 1, there(&p.b, HALF),
	                   token_of(&p.b), ND_OP_FLAG_SEND_AND_SOLICIT_EVENT, 0xfffefdfc),
	              ND_SUCCESS);
	assert_status(CALL(qp, Send, (void *)6, &sge, 1, 0), ND_SUCCESS);
	expect_received(&p, cq, 1, Nd2ManaRequestTypeRecvWithImmediate, 0x01020304);
	expect_received(&p, cq, 2, Nd2ManaRequestTypeRecvRdmaWithImmediate, 0xfffefdfc);
	expect_received(&p, cq, 3, Nd2ManaRequestTypeRecv, 0);
	assert_memory_equal(p.b.memory, p.a.memory, SIZE);
	assert_memory_equal(p.b.memory + HALF, p.a.memory, SIZE);
	nd_expect(&p.a, Nd2RequestTypeSend, 4, ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeWrite, 5, ND_SUCCESS);
	nd_expect(&p.a, Nd2RequestTypeSend, 6, ND_SUCCESS);
	assert_status(CALL(qp, SendWithImmediate, NULL, NULL, 0, ND_OP_FLAG_ALLOW_READ, 0),
	              ND_INVALID_PARAMETER_4);
	assert_status(CALL(qp, WriteWithImmediate, NULL, NULL, 0, 0, 0, ND_OP_FLAG_ALLOW_READ, 0),
	              ND_INVALID_PARAMETER_6);
	assert_int_equal(CALL(qp, Release), 1);
	assert_int_equal(CALL(cq, Release), 1);
	end(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_may_be_empty),
		cmocka_unit_test(data_move_through_several_sges),
		cmocka_unit_test(success_may_be_silent),
		cmocka_unit_test(a_fence_waits_for_reads),
		cmocka_unit_test(inline_data_are_copied),
		cmocka_unit_test(refused_posts_change_nothing),
		cmocka_unit_test(a_receive_that_is_too_short),
		cmocka_unit_test(remote_violations_are_told),
		cmocka_unit_test(local_violations_are_told),
		cmocka_unit_test(nobody_receives),
		cmocka_unit_test(immediate_data_arrive),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
