/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for raw.c where libfabric was not there at build time. */
#include "figures.h"

bool raw_available(void)
{
	return false;
}

bool raw_run(bool wait_for_sends, const struct options *o, struct tally *tally)
{
	(void)wait_for_sends;
	(void)o;
	(void)tally;
	return false;
}
