/* SPDX-License-Identifier: BSD-2-Clause */
/* field.*: memory that its owner takes back while the peer still writes to it. */
#include <string.h>

#include "cases.h"
#include "traffic.h"
#include "window.h"

enum {
	CHUNK = 16384,
	WRITES = 32,
	LENGTH = CHUNK * WRITES,
	ROUNDS = 6,
	OURS = 0xee, /* what the owner keeps there, as soon as no peer may write */
	THEIRS = 0x11,
};

static struct pair *open_writing(struct check *c)
{
	struct side_attr attr[2];

	side_attr_init(&attr[0]);
	attr[0].buffer = LENGTH;
	attr[0].initiator_depth = WRITES;
	attr[1] = attr[0];
	attr[1].access |= NDX_MR_ALLOW_REMOTE_WRITE;
	return pair_up_with(c, &attr[0], &attr[1]);
}

/* A writes to all of B's buffer; some of that has ended when this returns. How much. */
static size_t begin_writing(struct pair *p, uint32_t token)
{
	const size_t some = (size_t)(check_random(p->c) % (WRITES / 2));
	struct ndx_result result;
	size_t taken = 0;

	memset(p->a.buf, THEIRS, LENGTH);
	for (size_t i = 0; i < WRITES && !check_over(p->c); i++) {
		const struct ndx_sge one = sge(&p->a, i * CHUNK, CHUNK);

		check_status(p->c,
		             ndx_qp_write(p->a.qp, tag(&p->a, i), &one, 1,
		                          (uint64_t)(uintptr_t)(p->b.buf + i * CHUNK), token, 0),
		             NDX_OK, "write");
	}
	for (; taken < some && take(&p->a, p->a.cq, &result); taken++)
		result_is(&p->a, &result, NDX_REQUEST_WRITE, taken, NDX_OK);
	return taken;
}

/* The memory is the owner's alone: what the peer still has under way leaves no trace in it. */
static void reuse(struct pair *p, size_t taken)
{
	struct ndx_result result;

	if (check_over(p->c))
		return;
	memset(p->b.buf, OURS, LENGTH);
	while (taken < WRITES && take(&p->a, p->a.cq, &result)) {
		result_is(&p->a, &result, NDX_REQUEST_WRITE, taken, result.status);
		taken++;
	}
	expect_silence(&p->a);
	bytes_are(p->c, p->b.buf, LENGTH, OURS, "memory that was taken back");
}

void case_field_nbs_5708_buffer_reused_after_deregistration(struct check *c)
{
	for (unsigned round = 0; round < ROUNDS && !check_over(c); round++) {
		struct pair *p = open_writing(c);
		struct ndx_overlapped ov;
		size_t taken;

		if (!p)
			return;
		ndx_overlapped_init(&ov);
		taken = begin_writing(p, ndx_mr_get_remote_token(p->b.mr));
		check_async(c, ndx_mr_deregister(p->b.mr, &ov), &ov, NDX_OK, "deregister");
		reuse(p, taken);
		pair_close_all(c);
	}
}

/* The result of the invalidate says so, whether it is in time for the rest of the connection. */
void case_field_nbs_5708_buffer_reused_after_invalidate(struct check *c)
{
	for (unsigned round = 0; round < ROUNDS && !check_over(c); round++) {
		struct pair *p = open_writing(c);
		struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
		struct ndx_result result = {.status = NDX_PENDING};
		size_t taken;

		if (mw && binds(&p->b, mw, 0, LENGTH, WINDOW_BOTH)) {
			taken = begin_writing(p, ndx_mw_get_remote_token(mw));
			check_status(c, ndx_qp_invalidate(p->b.qp, tag(&p->b, 1), mw, 0), NDX_OK,
			             "invalidate");
			if (take(&p->b, p->b.cq, &result))
				result_is(&p->b, &result, NDX_REQUEST_INVALIDATE, 1, NDX_OK);
			reuse(p, taken);
		}
		pair_close_all(c);
		ndx_mw_close(mw);
	}
}
