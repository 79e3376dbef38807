/* SPDX-License-Identifier: BSD-2-Clause */
/* Built without UCX: there is nothing to compare with. */
#include "lane.h"

bool lane_has_ucx(void)
{
	return false;
}

struct lane *lane_open_ucx(const struct lane_attr *attr, const struct sockaddr *address)
{
	(void)attr;
	(void)address;
	lane_die("built without", "UCX");
}
