/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One overlapped operation, its completion learnt of in one of the three ways. The object that the
 * library sees is new for each operation and freed the moment it completes, so that
 * the address sanitizer finds a later access.
 */
#ifndef OP_H
#define OP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <ndx/ndx.h>

struct round;

/* A port that all threads of a process share; the thread that takes an object out also completes
 * it. */
struct mailbox {
	pthread_mutex_t lock;
	struct ndx_port *port;
};

enum op_state { OP_IDLE, OP_FLYING, OP_DONE };

struct op {
	struct round *round;
	struct mailbox *mail;
	const char *name;
	struct ndx_overlapped *ov;
	uint32_t state; /* enum op_state; atomic: callbacks and ports of other threads set it */
	bool plain;     /* told by status, not by callback or port */
	bool called;    /* told by callback */
	enum ndx_status status; /* valid when done */
	uint32_t information;
};

/* A new object for the operation `name`; the way is chosen by `dice`. */
struct ndx_overlapped *op_begin(struct op *op, struct round *round, struct mailbox *mail,
                                const char *name, uint32_t dice);

/* What the call returned: anything but NDX_PENDING completes nothing. Gives it back. */
enum ndx_status op_began(struct op *op, enum ndx_status returned);

bool op_flying(const struct op *op);

/* Has it completed? True once only, then it is idle again. */
bool op_ended(struct op *op);

/*
 * As op_ended(), for an operation that has to have completed by now: fails if not. "Unless it has a
 * callback itself", and we are in one: false if it has not, then it will.
 */
bool op_must_have_ended(struct op *op, const char *why);

/* Let completions come, for a moment. */
void op_wait(struct op *op);

#endif
