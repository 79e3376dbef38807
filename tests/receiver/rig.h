/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver, a sender, and what lies between them, on the adapters that the command line names. */
#ifndef TESTS_RECEIVER_RIG_H
#define TESTS_RECEIVER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ndx/ndx.h>

#include "spoil.h"

/* Long enough for anything that is to happen; what takes longer hangs. */
#define WAIT_MS 20000u
#define SLOTS 16u
#define SLOT_SIZE 2048u

extern const char *rig_uris[2]; /* of the receiver, of the sender */
extern unsigned rig_rounds;     /* how often what is a matter of luck is tried */
extern uint64_t rig_seed;
extern uint32_t rig_hold_ms; /* how long all slots are held */

struct rig {
	struct ndx_adapter *adapters[2];
	struct ndx_adapter_info info;
	struct ndx_listener *listener;
	struct sockaddr_storage address;
	struct ndx_receiver_attr attr;
	struct ndx_sender_attr sender_attr;
	struct ndx_receiver *receiver;
	struct ndx_sender *sender;
	struct ndx_mr *asked; /* a byte by which a sender that gave numbers is asked */
	uint8_t byte;
	struct spoiler spoiler; /* if `every` is set, rig_start() applies it */
	struct ndx_mr *oversize;
};

int rig_setup(void **state);
int rig_teardown(void **state);
uint64_t rig_now_ms(void);

socklen_t rig_address_length(const struct rig *r);
/* Create both from `attr` and `sender_attr`, and connect them. */
void rig_start(struct rig *r);
/* Connect what was created. */
void rig_join(struct rig *r);
/* Connect two queue pairs, of the one adapter and the other. */
void rig_connect_qps(struct rig *r, struct ndx_qp *here, struct ndx_qp *there,
                     struct ndx_connector *connectors[2]);
/* Connect what was created by bare numbers, as a device is; false: the stack has none. */
bool rig_join_by_numbers(struct rig *r);
/* Its halves: what the receiver is told of the sender, with packets of 512 bytes, so that frames
 * are of several; and what the sender is told of the receiver. */
struct ndx_receiver_peer rig_describe_sender(struct rig *r,
                                             const struct ndx_receiver_numbers *numbers);
void rig_meet_numbers(struct rig *r, const struct ndx_receiver_numbers *numbers);
/* Wait until the receiver is in that state. */
void rig_await(struct rig *r, enum ndx_receiver_state state);
/* Wait until so many frames were counted; consumers may not have seen the last one yet. */
void rig_counted(struct rig *r, uint64_t frames);
/* Wait until so many slots are held: of a frame that its consumers have seen, the receiving thread
 * lets go a moment later. */
void rig_held(struct rig *r, uint32_t slots);
struct ndx_receiver_stats rig_stats(struct rig *r);
struct ndx_receiver_cause rig_cause(struct rig *r);

/* A frame's bytes say which they are, so that each checks itself. */
void rig_fill(uint8_t *data, uint32_t length, uint32_t seed);
bool rig_check(const void *data, uint32_t length, uint32_t seed);
/* Send frame number `n` of that length on channel n % 256. */
enum ndx_status rig_send(struct rig *r, uint32_t n, uint32_t length);

/* A consumer that counts, checks what rig_send() sent, and keeps what it is told to. */
struct sink {
	uint64_t frames; /* atomic */
	uint64_t wrong;  /* atomic */
	uint32_t keep;   /* keep that many */
	uint32_t kept;   /* atomic */
	uint32_t next;   /* number of the next frame */
	uint32_t length; /* of each; 0: any */
	bool any_order;
	bool unread; /* the peer may write over the data while the frame is out */
	const struct ndx_frame *frame[4 * SLOTS];
};
bool sink_take(void *context, const struct ndx_frame *frame);
void sink_attach(struct rig *r, int at, struct sink *sink);
/* Let go of what it kept. */
void sink_release(struct sink *sink);
void sink_await(struct sink *sink, uint64_t frames);

/* How often the program has called malloc() and its like; 0 where that cannot be counted. */
uint64_t rig_allocations(void);

extern const struct CMUnitTest frame_cases[];
extern const size_t frame_case_count;
extern const struct CMUnitTest life_cases[];
extern const size_t life_case_count;
extern const struct CMUnitTest callback_cases[];
extern const size_t callback_case_count;
extern const struct CMUnitTest fault_cases[];
extern const size_t fault_case_count;
extern const struct CMUnitTest order_cases[];
extern const size_t order_case_count;
extern const struct CMUnitTest wire_cases[];
extern const size_t wire_case_count;

#define CASE(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

#endif
