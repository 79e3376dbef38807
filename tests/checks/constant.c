/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that sends constant data, in C and in C++; it is only compiled. */
#include <ndx/ndx.h>

static const char greeting[] = "hello";

enum ndx_status send_greeting(struct ndx_adapter *adapter, struct ndx_qp *qp, struct ndx_mr **mr);

enum ndx_status send_greeting(struct ndx_adapter *adapter, struct ndx_qp *qp, struct ndx_mr **mr)
{
	struct ndx_sge sge = {greeting, sizeof(greeting), 0};
	enum ndx_status st = ndx_qp_send(qp, NULL, &sge, 1, NDX_OP_INLINE);

	if (st != NDX_OK)
		return st;
	st = ndx_mr_register_new(adapter, greeting, sizeof(greeting), 0, mr);
	if (st != NDX_OK)
		return st;
	sge.buffer = &greeting[1];
	sge.length = 4;
	sge.token = ndx_mr_get_local_token(*mr);
	return ndx_qp_send(qp, NULL, &sge, 1, 0);
}
