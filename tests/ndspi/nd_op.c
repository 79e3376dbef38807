/* SPDX-License-Identifier: BSD-2-Clause */
#include "nd_op.h"

#include <stdio.h>

struct deviation {
	const char *provider;
	const char *what;
	HRESULT instead;
	const char *why;
};

/* The one list of what a provider does not keep. A promise that is missing here is kept. */
static const struct deviation deviations[] = {
	{"verbs:rxe", "a window ends where it was bound to end", ND_SUCCESS,
         "software RoCE checks the region, not the window"},
};

static const struct deviation *find_deviation(const char *what)
{
	const char *uri = nd_adapter();

	for (size_t i = 0; i < sizeof(deviations) / sizeof(deviations[0]); i++) {
		const struct deviation *d = &deviations[i];

		if (strncmp(uri, d->provider, strlen(d->provider)) == 0 &&
		    strcmp(what, d->what) == 0)
			return d;
	}
	return NULL;
}

HRESULT nd_expected(const char *what, HRESULT promised)
{
	const struct deviation *d = find_deviation(what);

	if (d == NULL)
		return promised;
	print_message("deviation: %s: %s: %08x instead of %08x: %s\n", d->provider, what,
	              (unsigned)d->instead, (unsigned)promised, d->why);
	return d->instead;
}

void nd_need_kept_for(const char *test, const char *what)
{
	const struct deviation *d = find_deviation(what);

	if (d != NULL)
		nd_skip_it(test, d->why);
}

void nd_ov_make(OVERLAPPED *ov)
{
	memset(ov, 0, sizeof(*ov));
	ov->hEvent = CreateEvent(NULL, FALSE, FALSE, NULL);
	assert_non_null(ov->hEvent);
}

void nd_ov_drop(OVERLAPPED *ov)
{
	assert_true(CloseHandle(ov->hEvent));
	ov->hEvent = NULL;
}

void nd_wait_event(HANDLE event)
{
	assert_int_equal(WaitForSingleObject(event, ND_WAIT_MS), WAIT_OBJECT_0);
}

HRESULT nd_ov_state(const OVERLAPPED *ov)
{
	return (HRESULT)__atomic_load_n(&ov->Internal, __ATOMIC_ACQUIRE);
}

HRESULT nd_ov_end(OVERLAPPED *ov)
{
	nd_wait_event(ov->hEvent);
	return nd_ov_state(ov);
}

static const struct nd_offer no_offer = {0, 0, NULL, 0};

void nd_ask(struct nd_pair *p, const struct nd_offer *offer)
{
	const struct nd_offer *o = offer ? offer : &no_offer;

	assert_status(CALL(p->listener, GetConnectionRequest, UNKNOWN(p->b.connector), &p->b.ov),
	              ND_PENDING);
	assert_status(CALL(p->a.connector, Connect, UNKNOWN(p->a.qp),
	                   (struct sockaddr *)&p->address, p->address_length, o->inbound,
	                   o->outbound, o->data, o->length, &p->a.ov),
	              ND_PENDING);
	assert_status(nd_ov_end(&p->b.ov), ND_SUCCESS);
}

void nd_answer(struct nd_pair *p, const struct nd_offer *offer)
{
	const struct nd_offer *o = offer ? offer : &no_offer;

	assert_status(CALL(p->b.connector, Accept, UNKNOWN(p->b.qp), o->inbound, o->outbound,
	                   o->data, o->length, &p->b.ov),
	              ND_PENDING);
	assert_status(nd_ov_end(&p->a.ov), ND_SUCCESS);
}

void nd_complete(struct nd_pair *p)
{
	assert_ends(CALL(p->a.connector, CompleteConnect, &p->a.ov), &p->a.ov, ND_SUCCESS);
	assert_status(nd_ov_end(&p->b.ov), ND_SUCCESS);
}

IND2Connector *nd_new_connector(struct nd_side *s)
{
	IND2Connector *connector = NULL;

	assert_status(CALL(s->adapter, CreateConnector, BY_ID(IID_IND2Connector), s->file,
	                   OUT(connector)),
	              ND_SUCCESS);
	return connector;
}

void nd_replace_connector(struct nd_side *s)
{
	assert_int_equal(CALL(s->connector, Release), 0);
	s->connector = nd_new_connector(s);
}

IND2QueuePair *nd_new_qp(struct nd_side *s, ULONG depth, ULONG sge, ULONG inline_size)
{
	IND2QueuePair *qp = NULL;

	assert_status(CALL(s->adapter, CreateQueuePair, BY_ID(IID_IND2QueuePair), UNKNOWN(s->cq),
	                   UNKNOWN(s->cq), s, depth, depth, sge, sge, inline_size, OUT(qp)),
	              ND_SUCCESS);
	return qp;
}

void nd_replace_qp(struct nd_side *s, ULONG depth, ULONG sge, ULONG inline_size)
{
	assert_int_equal(CALL(s->qp, Release), 0);
	s->qp = nd_new_qp(s, depth, sge, inline_size);
}

IND2CompletionQueue *nd_new_cq(struct nd_side *s, ULONG depth)
{
	IND2CompletionQueue *cq = NULL;

	assert_status(CALL(s->adapter, CreateCompletionQueue, BY_ID(IID_IND2CompletionQueue),
	                   s->file, depth, 0, 0, OUT(cq)),
	              ND_SUCCESS);
	return cq;
}

IND2MemoryWindow *nd_new_window(struct nd_side *s)
{
	IND2MemoryWindow *mw = NULL;

	assert_status(CALL(s->adapter, CreateMemoryWindow, BY_ID(IID_IND2MemoryWindow), OUT(mw)),
	              ND_SUCCESS);
	return mw;
}

bool nd_has(enum ndx_capability capability)
{
	struct ndx_adapter_info info;
	struct ndx_adapter *adapter = NULL;

	info.size = sizeof(info);
	assert_int_equal(ndx_adapter_open(nd_adapter(), &adapter), NDX_OK);
	assert_int_equal(ndx_adapter_query(adapter, &info), NDX_OK);
	ndx_adapter_close(adapter);
	return (info.capabilities & (uint64_t)capability) != 0;
}

void nd_need_for(const char *test, enum ndx_capability capability)
{
	char why[128];

	if (nd_has(capability))
		return;
	(void)snprintf(why, sizeof(why), "the adapter lacks %s", ndx_capability_name(capability));
	nd_skip_it(test, why);
}

void nd_skip_it(const char *test, const char *why)
{
	print_message("skip: %s: %s\n", test, why);
	skip();
}

void nd_fill(char *memory, size_t length, int seed)
{
	for (size_t i = 0; i < length; i++)
		memory[i] = (char)(seed + (int)(i % 251));
}
