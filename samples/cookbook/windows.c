/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: cookbook-windows [URI]
 * A window grants a part of a region to one peer for the time of one request. When the window is
 * invalidated the region stays registered, and the peer's next access ends the connection.
 */
#include "cookbook.h"

#include <stdio.h>
#include <string.h>

#define PART 512u
#define SKIP 77

int main(int argc, char **argv)
{
	static char region[4096], source[PART];
	struct ndx_adapter_info info;
	struct ndx_mr *mr, *source_mr;
	struct ndx_result result;
	struct ndx_mw *mw;
	struct pair pair;
	uint32_t token;
	size_t got;

	pair_open(&pair, adapter_of(argc, argv));
	info.size = sizeof(info);
	must(ndx_adapter_query(pair.adapter, &info), "query the adapter");
	if ((info.capabilities & NDX_CAP_MEMORY_WINDOW) == 0) {
		printf("skip: this adapter has no memory windows\n");
		pair_close(&pair);
		return SKIP;
	}
	/* The region itself grants the peer nothing. */
	must(ndx_mr_register_new(pair.adapter, region, sizeof(region), NDX_MR_ALLOW_LOCAL_WRITE,
	                         &mr),
	     "register the region");
	must(ndx_mr_register_new(pair.adapter, source, sizeof(source), 0, &source_mr), "register");
	must(ndx_mw_create(pair.adapter, &mw), "create a window");
	pair_connect(&pair, NULL, 0);

	must(ndx_qp_bind(pair.server.qp, NULL, mr, mw, region + PART, PART, NDX_OP_ALLOW_WRITE),
	     "bind");
	token = ndx_mw_get_remote_token(mw); /* a message would carry it to the client */
	(void)end_result(&pair.server);      /* bound: the client may use the token */

	memset(source, 'x', sizeof(source));
	struct ndx_sge sge = {source, PART, ndx_mr_get_local_token(source_mr)};

	must(ndx_qp_write(pair.client.qp, NULL, &sge, 1, (uintptr_t)region + PART, token, 0),
	     "post a write");
	(void)end_result(&pair.client);
	check(region[PART] == 'x' && region[PART - 1] == 0 && region[PART + PART] == 0,
	      "the write missed the window");

	must(ndx_qp_invalidate(pair.server.qp, NULL, mw, 0), "invalidate");
	(void)end_result(&pair.server); /* from here on nothing of the client reaches `region` */
	must(ndx_qp_write(pair.client.qp, NULL, &sge, 1, (uintptr_t)region + PART, token, 0),
	     "post a second write");
	must(ndx_cq_wait_results(pair.client.cq, &result, 1, WAIT_MS, &got), "wait for it");
	printf("a write after the invalidate: %s\n", ndx_status_name(result.status));
	check(result.status == NDX_E_ACCESS_VIOLATION, "the write should have been refused");

	/* The failed request has ended the connection: there is nothing to disconnect. */
	ndx_connector_close(pair.client.connector);
	pair.client.connector = NULL;
	ndx_qp_close(pair.server.qp);
	pair.server.qp = NULL;
	ndx_mw_close(mw);
	ndx_mr_close(mr);
	ndx_mr_close(source_mr);
	pair_close(&pair);
	return 0;
}
