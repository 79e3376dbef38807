/* SPDX-License-Identifier: BSD-2-Clause */
/* Two sides over ofi:tcp in one process, driven through the public interface by one thread. */
#ifndef TESTS_OFI_PAIR_H
#define TESTS_OFI_PAIR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <stdbool.h>

#include <ndx/ndx.h>

#define PAIR_MEMORY (UINT32_C(1) << 22)
/* Nothing in these tests takes so long; a wait that does is a failure. */
#define PAIR_PATIENCE_MS 10000u

struct pair_side {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_mr *mr; /* all of memory, every right */
	unsigned char *memory;
	struct ndx_overlapped ov;
};

struct pair {
	struct pair_side a; /* active */
	struct pair_side b; /* passive */
	struct ndx_listener *listener;
	struct sockaddr_storage address; /* the listener's */
	struct ndx_qp_attr attr;         /* change before pair_make() */
	uint32_t read_limit;             /* the same, asked for by both sides and ways */
};

/* cmocka fixtures: *state is a struct pair with adapters, regions and a listener. The URI is
 * $PAIR_URI if set. */
int pair_up(void **state);
int pair_down(void **state);

/* Queue, queue pair and connector for a side, or for both. */
void pair_make_side(struct pair *p, struct pair_side *side);
void pair_make(struct pair *p);
void pair_drop_side(struct pair_side *side);
void pair_drop(struct pair *p);
/* ... connected. */
void pair_connect(struct pair *p);

/* The steps of it. */
void pair_ask(struct pair *p);    /* until b holds the request; connect is under way */
void pair_accept(struct pair *p); /* until a has the answer; accept is under way */
enum ndx_status pair_wait(struct ndx_overlapped *ov);
/* Disconnect a, then b; both must succeed. */
void pair_part(struct pair *p);

struct ndx_sge pair_sge(const struct pair_side *side, size_t offset, uint32_t length);
void pair_receive(struct pair_side *side, uintptr_t context, size_t offset, uint32_t length);
void pair_send(struct pair_side *side, uintptr_t context, size_t offset, uint32_t length,
               uint32_t flags);
/* The next result of this side, within patience; it must be this one. */
struct ndx_result pair_expect(struct pair_side *side, enum ndx_request_type type, uintptr_t context,
                              enum ndx_status status);
/* The provider's counter of a side's queue pair, or of its adapter. */
uint64_t pair_counter(const struct pair_side *side, bool of_qp, const char *name);
/* Until the control thread has done what it was asked for before. */
void pair_settle(const struct pair_side *side);
void pair_paint(unsigned char *at, size_t length, unsigned seed);
void pair_assert_painted(const unsigned char *at, size_t length, unsigned seed);
/* From now on the process gets no descriptor more, until they are given back. */
struct pair_hoard {
	int *fds;
	size_t count;
	unsigned long limit; /* the one before */
};

void pair_use_up_descriptors(struct pair_hoard *hoard);
void pair_give_back_descriptors(struct pair_hoard *hoard);
/* Milliseconds of a monotonic clock. */
uint64_t pair_now(void);

#endif
