/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of base that this room needs, for the library that consists of this room only:
 * without error texts and log. */
#include <ndx/spi/log.h>

enum ndx_status ndxp_fail(enum ndx_status status, const char *where, int native, const char *fmt,
                          ...)
{
	(void)where;
	(void)native;
	(void)fmt;
	return status;
}
