/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: queue pairs. */
#include <stdio.h>

#include <ndx/ndx.h>

/* A queue pair for 64 receives and 64 other requests, with results in one queue. */
enum ndx_status example_qp(struct ndx_adapter *adapter, struct ndx_cq *cq, void *client,
                           struct ndx_qp **out)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = cq;
	attr.initiator_cq = cq;
	attr.context = client; /* in every result of this queue pair */
	attr.inline_size = 64;
	return ndx_qp_create(adapter, &attr, out);
}

/* Post a receive, then a send that needs no registered memory and has a result only on failure. */
enum ndx_status example_exchange(struct ndx_qp *qp, const struct ndx_sge *in, const char *text,
                                 uint32_t length)
{
	struct ndx_sge out = {text, length, 0};
	enum ndx_status st = ndx_qp_receive(qp, NULL, in, 1);

	if (st == NDX_OK)
		st = ndx_qp_send(qp, NULL, &out, 1, NDX_OP_INLINE | NDX_OP_SILENT_SUCCESS);
	if (st == NDX_E_NO_MORE_ENTRIES)
		fprintf(stderr, "take results first\n");
	return st;
}

/* Read from the peer, and write there once that read has ended. The peer sent address and token. */
enum ndx_status example_copy(struct ndx_qp *qp, const struct ndx_sge *sge,
                             const struct ndx_memory_description *from,
                             const struct ndx_memory_description *to)
{
	enum ndx_status st = ndx_qp_read(qp, NULL, sge, 1, from->address, from->token, 0);

	if (st == NDX_OK)
		st = ndx_qp_write(qp, NULL, sge, 1, to->address, to->token, NDX_OP_READ_FENCE);
	return st; /* two results follow, in this order */
}

/* Tell the peer which slot is full: 32 bits of immediate data in the result of its receive. */
enum ndx_status example_slot(struct ndx_qp *qp, const struct ndx_sge *sge,
                             const struct ndx_memory_description *slots, uint32_t slot)
{
	const uint64_t address = slots->address + (uint64_t)slot * sge->length;

	return ndx_qp_write_immediate(qp, NULL, sge, 1, address, slots->token, slot,
	                              NDX_OP_SOLICIT_EVENT);
}

/* Give a slot back: no bytes, only the immediate data. */
enum ndx_status example_credit(struct ndx_qp *qp, uint32_t slot)
{
	return ndx_qp_send_immediate(qp, NULL, NULL, 0, slot, NDX_OP_SILENT_SUCCESS);
}

/* Bind a window so that the peer may write part of a region, and end that again. */
enum ndx_status example_bind(struct ndx_qp *qp, struct ndx_mr *mr, struct ndx_mw *mw, void *part,
                             size_t length)
{
	enum ndx_status st = ndx_qp_bind(qp, NULL, mr, mw, part, length,
	                                 NDX_OP_ALLOW_WRITE | NDX_OP_SILENT_SUCCESS);

	if (st != NDX_OK)
		return st;
	/* Send ndx_mw_get_remote_token(mw) to the peer; when the peer has written: */
	return ndx_qp_invalidate(qp, NULL, mw, 0);
}

/* Post two sends and two receives at once. */
enum ndx_status example_lists(struct ndx_qp *qp, struct ndx_sge *out, struct ndx_sge *in)
{
	const struct ndx_receive receives[] = {
		{.sge = &in[0], .sge_count = 1},
		{.sge = &in[1], .sge_count = 1},
	};
	const struct ndx_request sends[] = {
		{.sge = &out[0], .sge_count = 1, .type = NDX_POST_SEND},
		{.sge = &out[1], .sge_count = 1, .type = NDX_POST_SEND},
	};
	size_t posted;
	enum ndx_status st = ndx_qp_receive_list(qp, receives, 2, &posted);

	if (st == NDX_OK)
		st = ndx_qp_post_list(qp, sends, 2, &posted);
	if (st != NDX_OK)
		fprintf(stderr, "only %zu were posted: %s\n", posted, ndx_last_error());
	return st;
}

/* Give up: all requests end, and their results can be taken. The peer sees an abort. */
void example_qp_end(struct ndx_qp *qp, struct ndx_cq *cq)
{
	struct ndx_result results[16];

	if (ndx_qp_flush(qp) == NDX_OK)
		while (ndx_cq_get_results(cq, results, 16) == 16)
			continue;
	ndx_qp_close(qp);
}

/* What a binding for another language calls, which knows the sizes of its own structures. */
enum ndx_status example_qp_sizes(struct ndx_qp *qp, struct ndx_qp_attr *attr, size_t attr_size,
                                 const struct ndx_request *requests, size_t request_size,
                                 const struct ndx_receive *receives, size_t receive_size)
{
	size_t posted;
	enum ndx_status st;

	ndx_qp_attr_init_sized(attr, attr_size);
	st = ndx_qp_receive_list_sized(qp, receives, receive_size, 1, &posted);
	if (st == NDX_OK)
		st = ndx_qp_post_list_sized(qp, requests, request_size, 1, &posted);
	return st;
}
