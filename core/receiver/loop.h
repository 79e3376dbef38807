/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiving thread. It may serve many receivers; each is its own while it is on the list. */
#ifndef RECEIVER_LOOP_H
#define RECEIVER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/receiver.h>

#define LOOP_BATCH_MAX 64

/* One holder more; ndx_receive_loop_close() is one less. */
void loop_hold(struct ndx_receive_loop *loop);
/* Serve a receiver, from some moment soon on; its state is RUNNING. */
void loop_add(struct ndx_receive_loop *loop, struct ndx_receiver *r);
/* Look at the receivers' events. Any thread. */
void loop_poke(struct ndx_receive_loop *loop);
/* Is this its thread? */
bool loop_current(const struct ndx_receive_loop *loop);
uint32_t loop_batch(const struct ndx_receive_loop *loop);

#endif
