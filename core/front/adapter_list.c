/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of adapters, from which a program selects one. */
#include <ndx/adapter.h>

#include <stdlib.h>

#include <ndx/spi/log.h>
#include "base_thread.h"
#include "list.h"

enum ndx_status ndx_adapter_list(struct ndx_adapter_entry **entries, size_t *count)
{
	struct listing all = {0};
	enum ndx_status st;
	sigset_t before;

	if (entries == NULL || count == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_adapter_list: %s is NULL; pass where to put the list",
		            entries == NULL ? "entries" : "count");
	/* As in ndx_adapter_open(): no signal handler runs while a stack holds its locks. */
	base_signals_block(&before);
	list_all(&all);
	base_signals_restore(&before);
	st = all.status == NDX_OK ? list_pack(&all) : all.status;
	if (st != NDX_OK) {
		list_clear(&all);
		return st;
	}
	free(all.ranks);
	*entries = all.entries;
	*count = all.count;
	return NDX_OK;
}

void ndx_adapter_list_free(struct ndx_adapter_entry *entries)
{
	free(entries);
}
