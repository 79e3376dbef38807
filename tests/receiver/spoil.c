/* SPDX-License-Identifier: BSD-2-Clause */
#include "spoil.h"

#include <stddef.h>

static struct spoiler *spoiler_of(const struct ndx_qp *qp)
{
	return (struct spoiler *)(void *)((char *)(uintptr_t)qp->ops -
	                                  offsetof(struct spoiler, ops));
}

/* What happens to the frame that is posted now. */
static enum spoil_how next_fault(struct spoiler *s)
{
	return ++s->posted % s->every == 0 ? s->how : SPOIL_NOTHING;
}

/* The sender waits for a result; the peer sees nothing of a write without bytes. */
static enum ndx_status post_nothing(struct spoiler *s, struct ndx_qp *qp, void *context)
{
	return s->real->write(qp, context, NULL, 0, 0, 0, 0);
}

static enum ndx_status spoiled_send(struct ndx_qp *qp, void *context, const struct ndx_sge *sge,
                                    size_t count, uint32_t flags)
{
	struct spoiler *s = spoiler_of(qp);

	switch (next_fault(s)) {
	case SPOIL_DROP:
		return post_nothing(s, qp, context);
	case SPOIL_EMPTY:
		return s->real->send(qp, context, NULL, 0, flags);
	case SPOIL_OVERSIZE:
		return s->real->send(qp, context, &s->oversize, 1, flags);
	case SPOIL_NOTHING:
	case SPOIL_REPEAT:
	case SPOIL_NO_IMMEDIATE:
	default:
		return s->real->send(qp, context, sge, count, flags);
	}
}

static enum ndx_status spoiled_send_immediate(struct ndx_qp *qp, void *context,
                                              const struct ndx_sge *sge, size_t count,
                                              uint32_t immediate, uint32_t flags)
{
	struct spoiler *s = spoiler_of(qp);

	switch (next_fault(s)) {
	case SPOIL_DROP:
		return post_nothing(s, qp, context);
	case SPOIL_REPEAT:
		immediate -= 1u << 8; /* the sequence number */
		break;
	case SPOIL_NO_IMMEDIATE:
		return s->real->send(qp, context, sge, count, flags);
	case SPOIL_EMPTY:
		count = 0;
		break;
	case SPOIL_OVERSIZE:
		sge = &s->oversize;
		break;
	case SPOIL_NOTHING:
	default:
		break;
	}
	return s->real->send_immediate(qp, context, sge, count, immediate, flags);
}

void spoil_qp(struct spoiler *spoiler, struct ndx_qp *qp)
{
	spoiler->real = qp->ops;
	spoiler->ops = *qp->ops;
	spoiler->ops.send = spoiled_send;
	if (qp->ops->send_immediate)
		spoiler->ops.send_immediate = spoiled_send_immediate;
	qp->ops = &spoiler->ops;
}
