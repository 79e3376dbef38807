/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndx-instructions-verbs ndx|bare COUNT
 * COUNT times over a null device: post a send of one SGE, poll, take its result. To be run by
 * instructions.sh, which counts what happens in pairs().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_path.h"

#define ROOM 16

/* The number of results that were as they should be. */
__attribute__((noinline)) unsigned long pairs(struct verbs_path *path, bool bare,
                                              unsigned long count);

static unsigned long ndx_pairs(struct ndx_qp *qp, struct ndx_cq *cq, unsigned long count)
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

unsigned long pairs(struct verbs_path *path, bool bare, unsigned long count)
{
	const struct verbs_cq *cq = verbs_cq_of(&path->cq->pub);

	if (bare)
		return bare_pairs(verbs_qp_of(path->qp)->native, cq->native, count);
	return ndx_pairs(&path->qp->pub, &path->cq->pub, count);
}

int main(int argc, char **argv)
{
	static struct verbs_path path;
	const unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long good;

	if (count == 0 || (strcmp(argv[1], "ndx") != 0 && strcmp(argv[1], "bare") != 0)) {
		(void)fputs("usage: ndx-instructions-verbs ndx|bare COUNT\n", stderr);
		return 2;
	}
	if (!verbs_open(&path))
		return 1;
	good = pairs(&path, strcmp(argv[1], "bare") == 0, count);
	verbs_close(&path);
	return good == count ? 0 : 1;
}
