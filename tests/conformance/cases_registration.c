/* SPDX-License-Identifier: BSD-2-Clause */
/* registration.*: memory regions, and what their rights permit. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

void case_registration_register_and_deregister(struct check *c)
{
	struct ndx_overlapped ov;
	struct ndx_mr *mr = NULL;
	uint8_t memory[256];

	ndx_overlapped_init(&ov);
	if (!check_status(c, ndx_mr_create(c->world->places[0].adapter, &mr), NDX_OK, "mr_create"))
		return;
	check_that(c, ndx_mr_get_local_token(mr) == 0 && ndx_mr_get_remote_token(mr) == 0,
	           "a new region has tokens");
	check_async(c, ndx_mr_register(mr, memory, sizeof(memory), NDX_MR_ALLOW_REMOTE_WRITE, &ov),
	            &ov, NDX_OK, "register");
	check_that(c, ndx_mr_get_local_token(mr) != 0 && ndx_mr_get_remote_token(mr) != 0,
	           "a registered region lacks a token");
	check_async(c, ndx_mr_deregister(mr, &ov), &ov, NDX_OK, "deregister");
	check_that(c, ndx_mr_get_local_token(mr) == 0 && ndx_mr_get_remote_token(mr) == 0,
	           "a deregistered region has tokens");
	ndx_mr_close(mr);
}
