/* SPDX-License-Identifier: BSD-2-Clause */
/* Built without ibverbs: there is nothing to compare with. */
#include "lane.h"

bool lane_has_verbs(void)
{
	return false;
}

struct lane *lane_open_verbs(const struct lane_attr *attr, const struct lane_below *below)
{
	(void)attr;
	(void)below;
	lane_die("built without", "ibverbs");
}
