/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for json.c where jansson was not there at build time. */
#include "decode.h"

bool json_available(void)
{
	return false;
}

void json_print(const struct ndx_reassembly_event *event)
{
	(void)event;
}

void json_print_summary(const struct summary *summary)
{
	(void)summary;
}
