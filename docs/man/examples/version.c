/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: the version. */
#include <stdio.h>

#include <ndx/ndx.h>

/* The version of the library that is loaded; the headers' are NDX_VERSION_MAJOR and so on. */
void example_version(void)
{
	printf("NDX %s\n", ndx_version());
}
