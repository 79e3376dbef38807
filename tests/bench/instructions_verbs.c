/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndx-instructions-verbs ndx|bare|lists|bare-lists COUNT
 * COUNT times over a null device: post a send of one SGE, poll, take its result; or a list of
 * VERBS_PATH_LIST such sends, and all results. To be run by instructions.sh, which counts what
 * happens in pairs().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_path.h"

#define ROOM 16

enum kind { NDX, BARE, LISTS, BARE_LISTS, KINDS };
static const char *const kinds[KINDS] = {"ndx", "bare", "lists", "bare-lists"};

/* The number of results that were as they should be. */
__attribute__((noinline)) unsigned long pairs(struct verbs_path *path, enum kind kind,
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

static unsigned long ndx_lists(struct ndx_qp *qp, struct ndx_cq *cq, unsigned long count)
{
	static char buffer[64];
	const struct ndx_sge sge = {buffer, sizeof(buffer), 1};
	struct ndx_request list[VERBS_PATH_LIST];
	struct ndx_result results[ROOM];
	unsigned long good = 0;
	size_t posted;

	for (unsigned long i = 0; i < count; i++) {
		for (unsigned j = 0; j < VERBS_PATH_LIST; j++)
			list[j] = (struct ndx_request){
				.type = NDX_POST_SEND, .context = qp, .sge = &sge, .sge_count = 1};
		if (ndx_qp_post_list(qp, list, VERBS_PATH_LIST, &posted) == NDX_OK &&
		    ndx_cq_get_results(cq, results, ROOM) == VERBS_PATH_LIST)
			good += results[VERBS_PATH_LIST - 1].request_context == qp;
	}
	return good;
}

unsigned long pairs(struct verbs_path *path, enum kind kind, unsigned long count)
{
	const struct verbs_cq *cq = verbs_cq_of(&path->cq->pub);

	if (kind == BARE)
		return bare_pairs(verbs_qp_of(path->qp)->native, cq->native, count);
	if (kind == BARE_LISTS)
		return bare_lists(verbs_qp_of(path->qp)->native, cq->native, count);
	if (kind == LISTS)
		return ndx_lists(&path->qp->pub, &path->cq->pub, count);
	return ndx_pairs(&path->qp->pub, &path->cq->pub, count);
}

int main(int argc, char **argv)
{
	static struct verbs_path path;
	const unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	enum kind kind = NDX;
	unsigned long good;

	while (argc == 3 && kind < KINDS && strcmp(argv[1], kinds[kind]) != 0)
		kind++;
	if (count == 0 || kind == KINDS) {
		(void)fputs("usage: ndx-instructions-verbs ndx|bare|lists|bare-lists COUNT\n",
		            stderr);
		return 2;
	}
	if (!verbs_open(&path))
		return 1;
	good = pairs(&path, kind, count);
	verbs_close(&path);
	return good == count ? 0 : 1;
}
