/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: statuses. */
#include <stdio.h>

#include <ndx/ndx.h>

/* Open an adapter, or say why not: the name, what it means, and what happened. */
struct ndx_adapter *example_complain(const char *uri)
{
	struct ndx_adapter *adapter;
	enum ndx_status st = ndx_adapter_open(uri, &adapter);

	if (st == NDX_OK)
		return adapter;
	fprintf(stderr, "%s (%s): %s\n", ndx_status_name(st), ndx_status_text(st),
	        ndx_last_error());
	return NULL;
}
