/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "cq_bench.h"

void set_up(struct bench *b, uint32_t depth)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	*b = (struct bench){0};
	assert_int_equal(ndxp_cq_init(&b->cq, NULL, 2), NDX_OK);
	attr.receive_cq = &b->cq.spi.pub;
	attr.initiator_cq = &b->cq.spi.pub;
	attr.receive_depth = depth;
	attr.initiator_depth = depth;
	attr.inline_size = 8;
	attr.context = b;
	assert_int_equal(ndxp_qp_init(&b->qp, NULL, &attr, 1000, sizeof(struct ndxp_req),
	                              sizeof(struct ndxp_req)),
	                 NDX_OK);
}

void tear_down(struct bench *b)
{
	ndxp_qp_fini(&b->qp);
	ndxp_cq_fini(&b->cq);
}

struct ndxp_req *post_send(struct bench *b, uintptr_t context, uint32_t flags)
{
	struct ndxp_req *req = NULL;
	uint32_t length;

	assert_int_equal(ndxp_admit_initiator(&b->qp, NDX_REQUEST_SEND, (void *)context, NULL, 0,
	                                      flags, flags, 1, &length, &req),
	                 NDX_OK);
	return req;
}

size_t take_results(struct bench *b, struct ndx_result *results, size_t count)
{
	return ndxp_cq_take(&b->cq, results, count);
}
