/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two loop adapters and a host that keeps books: drives the provider's operations as core would,
 * from one thread, and sees every upcall.
 */
#ifndef TESTS_LOOP_RIG_H
#define TESTS_LOOP_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/loop.h>
#include <ndx/spi/overlapped.h>
#include "builtin.h"

#define RIG_MEMORY 8192u
#define RIG_DEPTH 8u
/* Nothing in these tests takes so long; a wait that does is a failure. */
#define RIG_PATIENCE_MS 5000

/* What the host heard about one conn. */
struct rig_book {
	unsigned connected; /* upcalls */
	enum ndx_status connected_status;
	unsigned established;
	enum ndx_status established_status;
	uint32_t reports; /* all bits ever */
	unsigned aborts;
	unsigned peer_discs;
	unsigned drained;
	unsigned quiet;
	const char *cause;
};

struct rig_side {
	struct ndx_spi_adapter *adapter;
	struct ndx_loop *loop;
	struct ndx_spi_cq *cq;
	struct ndx_spi_qp *qp;
	struct ndx_spi_conn *conn;
	struct rig_book book;
	struct ndx_spi_mr *mr; /* all of memory, every right */
	unsigned char *memory;
};

struct rig {
	struct rig_side a; /* active */
	struct rig_side b; /* passive */
	struct ndx_spi_listener *listener;
	struct ndx_spi_request *requests; /* that were not taken, oldest first */
	struct ndx_qp_attr attr;          /* for queue pairs; change it before rig_make_qps() */
};

static inline const struct ndx_provider_ops *rig_ops(void)
{
	return ndx_provider_loop.ops;
}

/* cmocka fixtures: *state is a struct rig with adapters, queues, regions, conns and a listener. */
int rig_up(void **state);
int rig_down(void **state);

/* Queue pairs by rig->attr, whose queues are filled in; destroyed by rig_down(). */
void rig_make_qps(struct rig *rig);
struct ndx_spi_qp *rig_make_qp(struct rig *rig, struct rig_side *side, struct ndx_srq *srq);
struct ndx_spi_conn *rig_make_conn(struct rig_side *side, struct rig_book *book);
void rig_drop_conn(struct rig_side *side, struct ndx_spi_conn *conn);
struct ndx_spi_mr *rig_register(struct rig_side *side, void *buffer, size_t length, uint32_t flags);
void rig_drop_mr(struct ndx_spi_mr *mr);

/* The steps of connecting; each asserts that it goes well. */
void rig_ask(struct rig *rig);    /* ... until b holds the request */
void rig_answer(struct rig *rig); /* ... until a has the answer */
void rig_connect(struct rig *rig);
/* Make queue pairs and connect. */
void rig_connect_new(struct rig *rig);
/* A second connection, over given queue pairs. */
struct rig_pair {
	struct ndx_spi_conn *active;
	struct ndx_spi_conn *passive;
	struct rig_book active_book;
	struct rig_book passive_book;
};
void rig_connect_pair(struct rig *rig, struct rig_pair *pair, struct ndx_spi_qp *from,
                      struct ndx_spi_qp *to);
void rig_drop_pair(struct rig *rig, struct rig_pair *pair);

struct sockaddr_storage rig_address(const char *text, uint16_t port);
struct ndx_spi_request *rig_take_request(struct rig *rig);

/* A piece of a side's memory. */
struct ndx_sge rig_sge(const struct rig_side *side, size_t offset, uint32_t length);
uint64_t rig_remote(const struct rig_side *side, size_t offset);
/* Fill with a pattern that `seed` tells apart; compare with it. */
void rig_paint(unsigned char *to, size_t length, unsigned seed);
void rig_assert_painted(const unsigned char *at, size_t length, unsigned seed);

enum ndx_status rig_send(struct rig_side *side, uintptr_t context, size_t offset, uint32_t length,
                         uint32_t flags);
enum ndx_status rig_receive(struct rig_side *side, uintptr_t context, size_t offset,
                            uint32_t length);
enum ndx_status rig_write(struct rig_side *side, uintptr_t context, size_t offset, uint32_t length,
                          const struct rig_side *to, size_t to_offset);
enum ndx_status rig_read(struct rig_side *side, uintptr_t context, size_t offset, uint32_t length,
                         const struct rig_side *from, size_t from_offset);

/* The next result must be this one; returns it. */
struct ndx_result rig_expect(struct rig_side *side, enum ndx_request_type type, uintptr_t context,
                             enum ndx_status status);
void rig_expect_none(struct rig_side *side);
/* Wait until the book has the bits. */
void rig_wait_report(struct rig_book *book, uint32_t bits);
/* What core does when it hears ABORT. */
void rig_abort(struct ndx_spi_conn *conn, struct rig_book *book);
/* The connection of the rig is broken on both sides; ends it. */
void rig_assert_broken(struct rig *rig);

#endif
