/* SPDX-License-Identifier: BSD-2-Clause */
/* Two sides over ofi:tcp in one process. One thread uses both through the public interface. */
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
/* The time limit of every wait in these tests. */
#define PAIR_TIMEOUT_MS 10000u

struct pair_side {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_mr *mr; /* registers all of memory with every right */
	unsigned char *memory;
	struct ndx_overlapped ov;
};

struct pair {
	struct pair_side a; /* active */
	struct pair_side b; /* passive */
	struct ndx_listener *listener;
	struct sockaddr_storage address; /* the address of the listener */
	struct ndx_qp_attr attr;         /* change before pair_make() */
	uint32_t drain_ms;               /* drain time-out of connectors; 0: the default */
	uint32_t read_limit;             /* inbound and outbound read limit of both sides */
};

/* cmocka fixtures: *state is a struct pair with adapters, regions and a listener. The environment
 * variable PAIR_URI replaces the URI, PAIR_ADDRESS the address of the listener, 127.0.0.1. */
int pair_up(void **state);
int pair_down(void **state);

/* Create, or close, a completion queue, a queue pair and a connector for a side, or for both
 * sides. */
void pair_make_side(struct pair *p, struct pair_side *side);
void pair_make(struct pair *p);
void pair_drop_side(struct pair_side *side);
void pair_drop(struct pair *p);
/* Connect both sides. */
void pair_connect(struct pair *p);

/* The steps of pair_connect(). */
void pair_request(struct pair *p); /* until b has the request; a's connect is pending */
void pair_accept(struct pair *p);  /* until a has the response; b's accept is pending */
enum ndx_status pair_wait(struct ndx_overlapped *ov);
/* Disconnect a, then b; both must succeed. */
void pair_disconnect(struct pair *p);

struct ndx_sge pair_sge(const struct pair_side *side, size_t offset, uint32_t length);
void pair_receive(struct pair_side *side, uintptr_t context, size_t offset, uint32_t length);
void pair_send(struct pair_side *side, uintptr_t context, size_t offset, uint32_t length,
               uint32_t flags);
/* The next result of this side, within the time limit. It must have this type, context and
 * status. */
struct ndx_result pair_expect(struct pair_side *side, enum ndx_request_type type, uintptr_t context,
                              enum ndx_status status);
/* The status of the next result of an initiator request, which has this context; results of
 * receives that come before it are dropped. NDX_PENDING: none comes within the time limit. */
enum ndx_status pair_next_status(struct pair_side *side, uintptr_t context);
/* The provider's counter of a side's queue pair, or of its adapter. */
uint64_t pair_counter(const struct pair_side *side, bool of_qp, const char *name);
/* Return when the control thread has done all jobs that were queued before. */
void pair_run_jobs(const struct pair_side *side);
void pair_fill(unsigned char *at, size_t length, unsigned seed);
void pair_assert_filled(const unsigned char *at, size_t length, unsigned seed);
/* The process gets no new descriptor until the test gives back the used ones. */
struct pair_used_fds {
	int *fds;
	size_t count;
	unsigned long old_limit; /* the limit before */
};

void pair_use_up_descriptors(struct pair_used_fds *used_fds);
void pair_give_back_descriptors(struct pair_used_fds *used_fds);
/* Milliseconds of a monotonic clock. */
uint64_t pair_now(void);

#endif
