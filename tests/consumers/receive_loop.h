/* SPDX-License-Identifier: BSD-2-Clause */
/* See receive_loop.c. */
#ifndef RECEIVE_LOOP_H
#define RECEIVE_LOOP_H

#include <stdint.h>

#include <ndx/ndx.h>

struct frame;
struct receiver;

enum receiver_end { RECEIVER_STOPPED, RECEIVER_PEER_ENDED, RECEIVER_FAILED };

struct receiver_counters {
	uint64_t frames, gaps, unwanted, posted, post_failures, sleeps;
};

/** Called with every frame by the receive thread; frame_hold() to keep it. */
typedef void receiver_fn(void *arg, struct frame *frame);

void frame_hold(struct frame *frame);
/** Any thread, also after receiver_stop(). */
void frame_drop(struct frame *frame);
const void *frame_data(const struct frame *frame, uint32_t *length, uint32_t *channel);

/** Takes over `cq` and `qp`, which is not connected yet; posts all slots. */
enum ndx_status receiver_create(struct ndx_adapter *adapter, struct ndx_cq *cq, struct ndx_qp *qp,
                                uint32_t slots, uint32_t slot_size, receiver_fn *fn, void *arg,
                                struct receiver **out);
enum ndx_status receiver_start(struct receiver *r);
/** Once started, once; frames that are held stay valid. */
enum receiver_end receiver_stop(struct receiver *r, struct receiver_counters *counters);

#endif
