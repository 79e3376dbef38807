/* SPDX-License-Identifier: BSD-2-Clause */
/* An adapter: its lock, its references, its objects, its counters. */
#ifndef ADAPTER_ADAPTER_H
#define ADAPTER_ADAPTER_H

#include <pthread.h>
#include <stdbool.h>

#include <ndx/spi/provider.h>

#include "base_list.h"
#include "base_loop.h"
#include "select.h"

struct conn_grave; /* connection.h */

/* How long a caller waits for what a provider has promised to finish, before it is given up. */
#define CORE_PROVIDER_PATIENCE_MS 15000u

/* Kinds of objects that are numbered. */
enum core_kind { CORE_CQ, CORE_QP, CORE_SRQ, CORE_MR, CORE_MW, CORE_CONNECTOR, CORE_LISTENER };

struct ndx_adapter {
	const struct ndx_provider_ops *ops;
	struct ndx_spi_adapter *native;
	struct ndx_loop *loop;
	struct selection selection;
	struct ndx_adapter_info info;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* some connection changed its state, or refs fell */
	/* under the lock: */
	unsigned wakes;   /* of the control thread that are due when the lock is let go */
	unsigned refs;    /* the handle, every public object, every goodbye under way */
	unsigned handles; /* public objects alone */
	struct ndx_spi_object *cqs;
	struct ndx_spi_object *qps;
	struct base_list connectors;
	struct base_list listeners;
	struct ndx_adapter_stats stats; /* all but the work of queue pairs that are there */
	struct conn_grave *graves;      /* CORE_GRAVES of them, made with the first; ... */
	uint64_t buried;                /* ... number n is at n % CORE_GRAVES */
	/* peers that come by description; connection/rendezvous.c */
	unsigned meeting_users;      /* of listeners for them */
	struct base_job meeting_job; /* closes those when nobody is left */
	struct base_list described;
};

void adapter_lock(struct ndx_adapter *adapter);
void adapter_unlock(struct ndx_adapter *adapter);
/* Lock held: as base_loop_post(); the control thread is woken when the lock is let go, which it is
 * going to take. */
void adapter_post(struct ndx_adapter *adapter, struct base_job *job);
/* Lock held: sleep until `changed`, at most until deadline_ns; false when time is over. */
bool adapter_wait(struct ndx_adapter *adapter, uint64_t deadline_ns);
/* A public object was made: keeps the adapter. Fills the object's head. */
void adapter_adopt(struct ndx_adapter *adapter, struct ndx_spi_object *object, enum core_kind kind);
/* The object is about to be destroyed. */
void adapter_disown(struct ndx_adapter *adapter, struct ndx_spi_object *object,
                    enum core_kind kind);
void adapter_get(struct ndx_adapter *adapter, bool handle);
void adapter_put(struct ndx_adapter *adapter, bool handle);
/* Nobody holds it any more: closes the provider's side, ends the control thread, frees. */
void adapter_destroy(struct ndx_adapter *adapter);
/* Wait until the control thread has run the callbacks of all that completed before. */
void adapter_settle(struct ndx_adapter *adapter);

/* Lock held: one more of a kind, its number; and one less. */
uint32_t stats_count_new(struct ndx_adapter *adapter, enum core_kind kind);
void stats_count_gone(struct ndx_adapter *adapter, enum core_kind kind,
                      struct ndx_spi_object *object);
/* Lock held. Out of all but `size`; false if the provider does not count. */
bool stats_of_qp(struct ndx_spi_qp *qp, struct ndx_qp_stats *stats);
bool stats_of_cq(struct ndx_spi_cq *cq, struct ndx_cq_stats *stats);
/* All but the connections that are up: see conn_count_up(). */
void stats_of_adapter(struct ndx_adapter *adapter, struct ndx_adapter_stats *stats);
void stats_add_duration(struct ndx_duration_stats *to, uint64_t ns);

/* Room for the longest ndx_last_error(). */
#define CALL_TEXT 512

/* What a failure on the control thread had to say, for the thread that called. */
struct call_text {
	char text[CALL_TEXT];
};

/* Control thread: before and behind what may fail. */
void call_text_begin(void);
void call_text_take(struct call_text *said);
/* Calling thread: returns `status`; if that is a failure, ndx_last_error() is what was said. */
enum ndx_status call_text_give(enum ndx_status status, const struct call_text *said);

/* Drop a reference of a queue; destroys it with the last. */
void cq_put(struct ndx_spi_cq *cq);
void srq_put(struct ndx_spi_srq *srq);

static inline struct ndx_spi_cq *spi_cq(struct ndx_cq *cq)
{
	return (struct ndx_spi_cq *)(void *)cq;
}

static inline struct ndx_spi_srq *spi_srq(struct ndx_srq *srq)
{
	return (struct ndx_spi_srq *)(void *)srq;
}

static inline struct ndx_spi_qp *spi_qp(struct ndx_qp *qp)
{
	return (struct ndx_spi_qp *)(void *)qp;
}

#endif
