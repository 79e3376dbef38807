/* SPDX-License-Identifier: BSD-2-Clause */
/* The data path of the verbs provider over a device that is not there (tests/fakes), and the bare
 * calls of libibverbs over the same one. */
#ifndef BENCH_VERBS_PATH_H
#define BENCH_VERBS_PATH_H

#include "fake_verbs.h"
#include "verbs_conn.h"

#define VERBS_PATH_LIST 8u /* requests of a list */

struct verbs_path {
	struct fake_device device;
	struct verbs_adapter adapter;
	struct ndx_host host;
	struct verbs_conn conn;
	struct ndx_spi_cq *cq;
	struct ndx_spi_qp *qp;
};

bool verbs_open(struct verbs_path *path);
void verbs_close(struct verbs_path *path);
/* What pairs() does, without NDX. */
unsigned long bare_pairs(struct ibv_qp *qp, struct ibv_cq *cq, unsigned long count);
unsigned long bare_lists(struct ibv_qp *qp, struct ibv_cq *cq, unsigned long count);

#endif
