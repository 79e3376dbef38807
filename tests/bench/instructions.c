/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndx-instructions null|stub COUNT
 * COUNT times: post a send of one SGE, poll, take its result. To be run by instructions.sh, which
 * counts what happens in pairs().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "null_provider.h"

#define ROOM 16

/* The number of results that were as they should be. */
__attribute__((noinline)) unsigned long pairs(struct ndx_qp *qp, struct ndx_cq *cq,
                                              unsigned long count);

unsigned long pairs(struct ndx_qp *qp, struct ndx_cq *cq, unsigned long count)
{
	static char buffer[64];
	const struct ndx_sge sge = {buffer, sizeof(buffer), 1};
	struct ndx_result results[ROOM];
	unsigned long good = 0;

	for (unsigned long i = 0; i < count; i++) {
		if (ndx_qp_send(qp, qp, &sge, 1, 0) == NDX_OK &&
		    ndx_cq_get_results(cq, results, ROOM) == 1)
			good += results[0].request_context == qp;
	}
	return good;
}

int main(int argc, char **argv)
{
	static struct null_path null;
	static struct stub_path stub;
	const unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long good;

	if (count == 0 || (strcmp(argv[1], "null") != 0 && strcmp(argv[1], "stub") != 0)) {
		(void)fputs("usage: ndx-instructions null|stub COUNT\n", stderr);
		return 2;
	}
	if (!null_open(&null))
		return 1;
	stub_open(&stub);
	good = strcmp(argv[1], "null") == 0 ? pairs(&null.qp.spi.pub, &null.cq.spi.pub, count)
	                                    : pairs(&stub.qp, &stub.cq, count);
	null_close(&null);
	return good == count ? 0 : 1;
}
