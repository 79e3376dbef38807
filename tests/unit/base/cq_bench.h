/* SPDX-License-Identifier: BSD-2-Clause */
/* A completion queue with one queue pair on it, for the tests of both. */
#ifndef NDX_TESTS_UNIT_BASE_CQ_BENCH_H
#define NDX_TESTS_UNIT_BASE_CQ_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include <ndx/spi/completion_queue.h>
#include <ndx/spi/queue_pair.h>

struct bench {
	struct ndxp_cq cq;
	struct ndxp_qp qp;
};

void set_up(struct bench *b, uint32_t depth);
void tear_down(struct bench *b);
struct ndxp_req *post_send(struct bench *b, uintptr_t context, uint32_t flags);
size_t take_results(struct bench *b, struct ndx_result *results, size_t count);

#endif
