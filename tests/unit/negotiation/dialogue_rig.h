/* SPDX-License-Identifier: BSD-2-Clause */
/* Two dialogues, and a wire between them that the test holds in its hands. */
#ifndef TEST_DIALOGUE_RIG_H
#define TEST_DIALOGUE_RIG_H

#include "says.h"

#include "dialogue.h"

enum { MESSAGE = 1024, ROUNDS = 8 };

/* What the plugins of a test do; one for each side. */
struct script {
	uint32_t rounds;       /* completes in this round of each stage */
	bool never;            /* never completes */
	bool long_reply;       /* says more than there is room for */
	enum ndx_status fails; /* in stage info, round 1 */
	bool other_cookie;     /* takes the peer for another one */
	uint32_t mtu;
	uint32_t calls;
	uint32_t resets;
	bool ended;
	uint32_t heard; /* of the peer's latest message */
};

struct rig {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct history history[2];
	struct dialogue d[2];
};

/* What one side sent and the other has not read. */
struct pipe {
	uint8_t bytes[8][FRAME_HEADER + MESSAGE];
	unsigned in;
	unsigned out;
};

extern struct script rig_scripts[2];
extern struct frame_proof rig_proofs[2]; /* by role */
extern bool rig_unconnected[2];          /* by role: the queue pair does not get connected */
extern struct ndx_variant_ops rig_ops;   /* of the plugins */

int rig_begin(void **state);
int rig_end(void **state);
/* Begin the test again, with new dialogues. */
struct rig *rig_again(void **state);
/* The oldest frame of the wire. */
void rig_deliver(struct dialogue *d, struct pipe *w);
/* One step of a side; false if it can do nothing now. */
bool rig_step(struct dialogue *d, struct pipe *to, struct pipe *from);
/* Both sides go through a stage, in an order that `seed` says. */
void rig_run(struct rig *r, enum ndx_stage stage, unsigned seed);

#endif
