/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the sender share. */
#ifndef RECEIVER_SENDER_H
#define RECEIVER_SENDER_H

#include <ndx/sender.h>

#include "endpoint.h"

#define SEQUENCE_WRAP_MAX (1u << 24)

struct ndx_sender {
	struct ndx_sender_attr attr;
	struct endpoint end;           /* with a receiver: only its adapter */
	struct ndx_receiver *receiver; /* a reference, or NULL */
	struct ndx_cq *cq;             /* with a receiver: the receiver's */
	struct ndx_mr *mr;
	uint8_t *memory;   /* the ring */
	uint32_t *lengths; /* length of the frame in each slot */
	bool can_write;    /* the adapter has writes with immediate data */
	bool can_send_immediate;
	bool connected;
	uint32_t number; /* among the receiver's senders */
	bool acquired;   /* the caller has slot `next` */
	uint32_t next;
	uint32_t under_way;
	uint32_t sequence;
	uint64_t looked_ns; /* when the sender last polled */
	uint64_t due_ns;    /* when the rate allows the next frame */
	uint64_t posted;    /* frames of this connection */
	struct ndx_sender_stats stats;
};

/* sender.c */
enum ndx_status sender_make_qp(struct ndx_sender *s);

#endif
