/* SPDX-License-Identifier: BSD-2-Clause */
/* Built without libfabric: there is nothing to compare with. */
#include "lane.h"

bool lane_has_raw(void)
{
	return false;
}

struct lane *lane_open_raw(const struct lane_attr *attr, const char *device,
                           const struct sockaddr *address, socklen_t len, bool same)
{
	(void)attr;
	(void)device;
	(void)address;
	(void)len;
	(void)same;
	lane_die("built without", "libfabric");
}
