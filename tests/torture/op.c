/* SPDX-License-Identifier: BSD-2-Clause */
#include "op.h"

#include <stdlib.h>

#include "round.h"
#include "stage.h"
#include "trace.h"

enum { BATCH = 16 };

static void complete(struct op *op)
{
	struct ndx_overlapped *ov = op->ov;

	if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != OP_FLYING)
		fail(op->round, NULL, "%s completed twice", op->name);
	op->status = ov->status;
	op->information = ov->information;
	op->ov = NULL;
	free(ov);
	__atomic_store_n(&op->state, OP_DONE, __ATOMIC_RELEASE);
}

static void on_complete(struct ndx_overlapped *ov)
{
	struct op *op = ov->context;

	stage_enter(op->round, op->name);
	complete(op);
	stage_act();
	stage_leave();
}

static void empty(struct mailbox *mail, uint32_t timeout_ms)
{
	struct ndx_overlapped *ovs[BATCH];
	size_t got;

	(void)pthread_mutex_lock(&mail->lock);
	do {
		got = ndx_port_get(mail->port, ovs, BATCH, timeout_ms);
		for (size_t i = 0; i < got; i++)
			complete(ovs[i]->context);
		timeout_ms = 0;
	} while (got == BATCH);
	(void)pthread_mutex_unlock(&mail->lock);
}

struct ndx_overlapped *op_begin(struct op *op, struct round *round, struct mailbox *mail,
                                const char *name, uint32_t dice)
{
	struct ndx_overlapped *ov = malloc(sizeof(*ov));

	if (ov == NULL)
		fail(round, NULL, "no memory");
	if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != OP_IDLE)
		fail(round, NULL, "torture: %s is begun while %s is not over", name, op->name);
	ndx_overlapped_init(ov);
	ov->context = op;
	op->plain = dice % 3 == 0;
	op->called = dice % 3 == 1;
	if (dice % 3 == 1)
		ov->callback = on_complete;
	if (dice % 3 == 2)
		ov->port = mail->port;
	op->round = round;
	op->mail = mail;
	op->name = name;
	op->ov = ov;
	op->status = NDX_PENDING;
	op->information = 0;
	__atomic_store_n(&op->state, OP_FLYING, __ATOMIC_RELEASE);
	return ov;
}

enum ndx_status op_began(struct op *op, enum ndx_status returned)
{
	if (returned == NDX_PENDING)
		return returned;
	if (returned > 0 || __atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != OP_FLYING)
		fail(op->round, NULL, "%s returned %s, and completed", op->name,
		     ndx_status_name(returned));
	free(op->ov);
	op->ov = NULL;
	__atomic_store_n(&op->state, OP_IDLE, __ATOMIC_RELEASE);
	return returned;
}

bool op_flying(const struct op *op)
{
	return __atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != OP_IDLE;
}

bool op_ended(struct op *op)
{
	uint32_t state = __atomic_load_n(&op->state, __ATOMIC_ACQUIRE);

	if (state == OP_IDLE)
		return false;
	if (state == OP_FLYING && op->plain && ndx_overlapped_status(op->ov) != NDX_PENDING)
		complete(op);
	else if (state == OP_FLYING && !op->plain)
		empty(op->mail, 0);
	if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != OP_DONE)
		return false;
	__atomic_store_n(&op->state, OP_IDLE, __ATOMIC_RELEASE);
	return true;
}

bool op_must_have_ended(struct op *op, const char *why)
{
	if (op_ended(op))
		return true;
	if (op->called && stage_inside())
		return false;
	fail(op->round, NULL, "%s is pending still when %s", op->name, why);
}

void op_wait(struct op *op)
{
	if (__atomic_load_n(&op->state, __ATOMIC_ACQUIRE) != OP_FLYING)
		return;
	if (op->plain)
		(void)ndx_overlapped_wait(op->ov, 1);
	else
		empty(op->mail, 1);
}
