/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of ndx_overlapped.state and use of ndx_overlapped.reserved; for core/async only. */
#ifndef BASE_OV_STATE_H
#define BASE_OV_STATE_H

#include <stddef.h>

#include <ndx/overlapped.h>

#include "base_ov.h"

enum base_ov_state {
	BASE_OV_IDLE = 0,    /* never used */
	BASE_OV_PENDING = 1, /* in flight */
	BASE_OV_WAITED = 2,  /* in flight, and a thread sleeps on it */
	BASE_OV_DONE = 3,    /* complete */
	BASE_OV_QUEUED = 4,  /* has its outcome; waits for its callback, or in its port */
};

enum base_ov_slot {
	BASE_OV_LOOP,                /* the struct ndx_loop to which it belongs */
	BASE_OV_NEXT = NDXP_OV_NEXT, /* the next object of its list */
	/* What base_ov_abandon() restores; NULL when not in flight. */
	BASE_OV_LOOP_BEFORE,
	BASE_OV_STATE_BEFORE,
	BASE_OV_TARGET, /* see base_ov_set_target() */
	BASE_OV_CALL,   /* the name of the call that began the operation; NULL: unknown */
	BASE_OV_CALL_BEFORE,
	BASE_OV_SLOTS, /* slots from here on are free */
	/* The same two slots while the object is queued in its loop. */
	BASE_OV_PLACE = BASE_OV_LOOP_BEFORE, /* position in the order of queued objects */
	BASE_OV_OF = BASE_OV_STATE_BEFORE,   /* the owner, see base_loop_behind() */
};

_Static_assert(BASE_OV_SLOTS <= sizeof(((struct ndx_overlapped *)0)->reserved) / sizeof(void *),
               "the library keeps more in an overlapped object than its memory has room for");

/* The object is in flight no more. */
static inline void base_ov_forget_before(struct ndx_overlapped *ov)
{
	ov->reserved[BASE_OV_LOOP_BEFORE] = NULL;
	ov->reserved[BASE_OV_STATE_BEFORE] = NULL;
	ov->reserved[BASE_OV_CALL_BEFORE] = NULL;
}

#endif
