/* SPDX-License-Identifier: BSD-2-Clause */
#include "base_struct.h"

#include <string.h>

#include <ndx/spi/log.h>

/* A size beyond the known one by more than this was never set. */
#define GROWTH_MAX 4096u

static size_t common(const struct base_struct *layout, size_t size)
{
	return size < layout->known ? size : layout->known;
}

enum ndx_status base_struct_check_size(const struct base_struct *layout, const char *call,
                                       size_t size)
{
	if (size >= layout->first)
		return NDX_OK;
	return ndxp_fail(NDX_E_INVALID_PARAMETER, call, 0,
	                 "%s: %s has size %zu, must be at least %zu; %s", call, layout->name, size,
	                 layout->first, layout->remedy);
}

void base_struct_init(const struct base_struct *layout, void *theirs, size_t size,
                      const void *defaults)
{
	if (theirs == NULL)
		return;
	memset(theirs, 0, size);
	memcpy(theirs, defaults, common(layout, size));
	if (size >= sizeof(size))
		memcpy(theirs, &size, sizeof(size));
}

enum ndx_status base_struct_in(const struct base_struct *layout, const char *call, void *mine,
                               const void *theirs, size_t size)
{
	const unsigned char *bytes = theirs;
	const enum ndx_status st = base_struct_check_size(layout, call, size);

	if (st != NDX_OK)
		return st;
	if (size > layout->known + GROWTH_MAX)
		return ndxp_fail(NDX_E_INVALID_PARAMETER, call, 0,
		                 "%s: %s has size %zu, this library's has %zu; %s", call,
		                 layout->name, size, layout->known, layout->remedy);
	for (size_t at = layout->known; at < size; at++) {
		if (bytes[at] != 0)
			return ndxp_fail(NDX_E_INVALID_PARAMETER, call, 0,
			                 "%s: %s has size %zu, this library knows %zu bytes, and "
			                 "byte %zu is not 0: the program sets a member that came "
			                 "later; leave that member 0, or run with a library as new "
			                 "as the program's headers",
			                 call, layout->name, size, layout->known, at);
	}
	memcpy(mine, theirs, common(layout, size));
	return NDX_OK;
}

enum ndx_status base_struct_out(const struct base_struct *layout, const char *call, void *theirs,
                                size_t size, const void *mine)
{
	const size_t filled = common(layout, size);
	const enum ndx_status st = base_struct_check_size(layout, call, size);

	if (st != NDX_OK)
		return st;
	memcpy(theirs, mine, filled);
	memcpy(theirs, &filled, sizeof(filled));
	return NDX_OK;
}
