/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/version.h>

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *ndx_version(void)
{
	return VERSION_TEXT(NDX_VERSION_MAJOR, NDX_VERSION_MINOR, NDX_VERSION_PATCH);
}
