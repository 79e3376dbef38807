/* SPDX-License-Identifier: BSD-2-Clause */
/* Making the objects of a round, and closing them in any order. */
#ifndef SETUP_H
#define SETUP_H

#include "round.h"

/* An adapter under test, opened once for all rounds. */
struct place {
	const char *uri;
	struct ndx_adapter *adapter;
	struct ndx_adapter_info info;
	struct sockaddr_storage address;
};

/* False: it was told why not. */
bool place_open(struct place *place, const char *uri);

/* What does not belong to a side: plan, memory, locks. Before the second process begins. */
void setup_round(struct round *round, uint8_t *memory);
size_t setup_memory(const struct plan *plan);
/* The objects of a side, by the process that owns it. */
void setup_side(struct round *round, uint32_t side, const struct place *place,
                struct mailbox *mail);

/* Close everything of this process's sides, in an order that follows from the plan. */
void teardown(struct round *round);

#endif
