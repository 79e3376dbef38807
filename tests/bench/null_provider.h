/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data paths that end at once, to count instructions by. The null provider does what every provider
 * of the SPI does (admission, slot, record, result in the completion queue), and nothing else. The
 * stub does nothing of it: it is what a call into any library costs.
 */
#ifndef BENCH_NULL_PROVIDER_H
#define BENCH_NULL_PROVIDER_H

#include <stdint.h>

#include <ndx/spi/queue_pair.h>

#define NULL_DEPTH 64u

struct null_path {
	struct ndxp_cq cq;
	struct ndxp_qp qp;
};

/* False: out of memory. */
bool null_open(struct null_path *path);
void null_close(struct null_path *path);

struct stub_path {
	struct ndx_cq cq;
	struct ndx_qp qp;
	void *ring[NULL_DEPTH];
	uint32_t posted;
	uint32_t taken;
};

void stub_open(struct stub_path *path);

#endif
