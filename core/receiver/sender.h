/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sender's files share. */
#ifndef RECEIVER_SENDER_H
#define RECEIVER_SENDER_H

#include <ndx/sender.h>

#include "endpoint.h"

#define SEQUENCE_WRAP_MAX (1u << 24)

struct ndx_sender {
	struct ndx_sender_attr attr;
	struct endpoint end;           /* with a receiver: the adapter only */
	struct ndx_receiver *receiver; /* held; or NULL */
	struct ndx_cq *cq;             /* the receiver's, with one */
	struct ndx_mr *mr;
	uint8_t *memory;   /* the ring, and behind it what is too long for the peer */
	uint32_t oversize; /* bytes of that */
	uint32_t *lengths; /* of each slot's frame */
	bool can_write;    /* with immediate data */
	bool connected;
	uint32_t number; /* of the senders of the receiver */
	bool acquired;   /* slot `next` was given to the caller */
	uint32_t next;
	uint32_t under_way;
	uint32_t sequence;
	uint64_t looked_ns; /* when it last looked for results */
	uint64_t due_ns;    /* when the rate allows the next one */
	uint64_t posted;    /* frames that were to be sent, faults included */
	struct ndx_sender_stats stats;
};

/* sender.c */
enum ndx_status sender_make_qp(struct ndx_sender *s);

#endif
