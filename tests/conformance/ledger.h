/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What became of each request of one side: has it exactly one result, whatever it says? Requests
 * are named by their tag; no two that are open at once may share a number.
 */
#ifndef LEDGER_H
#define LEDGER_H

#include "fixture.h"

struct ledger {
	size_t count; /* results, of them: */
	size_t ok;
	size_t cancelled;
	size_t failed;
	unsigned char seen[SIDE_TAGS];
};

/* Enter one result. A second one of a request, or one of another side, is a failure. */
bool ledger_enter(struct ledger *l, struct side *s, const struct ndx_result *result);
/* Enter what is there now; how many. */
size_t ledger_take(struct ledger *l, struct side *s);
/* Enter results until there are `count`, waiting for them. Any one thread. */
bool ledger_await(struct ledger *l, struct side *s, size_t count);
/* All is there already, every request once, and nothing follows. */
bool ledger_complete(struct ledger *l, struct side *s, size_t count);

#endif
