/* SPDX-License-Identifier: BSD-2-Clause */
/* mw.*: memory windows. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

void case_mw_create_and_close(struct check *c)
{
	struct ndx_mw *mw[16] = {NULL};

	for (size_t i = 0; i < 16; i++)
		check_status(c, ndx_mw_create(c->world->places[0].adapter, &mw[i]), NDX_OK,
		             "mw_create");
	for (size_t i = 0; i < 16; i++)
		ndx_mw_close(mw[i]);
	ndx_mw_close(NULL);
}
