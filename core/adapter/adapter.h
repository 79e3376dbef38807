/* SPDX-License-Identifier: BSD-2-Clause */
/* An adapter: its lock, its references, its objects, its counters. */
#ifndef ADAPTER_ADAPTER_H
#define ADAPTER_ADAPTER_H

#include <pthread.h>
#include <stdbool.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/list.h>
#include <ndx/spi/loop.h>
#include "events.h"
#include "select.h"

struct conn_postmortem; /* connection.h */

/* How long a caller waits for work that a provider has to finish, before the caller gives up. */
#define CORE_PROVIDER_PATIENCE_MS 15000u

/* Kinds of objects that have numbers and counters. */
enum core_kind { CORE_CQ, CORE_QP, CORE_SRQ, CORE_MR, CORE_MW, CORE_CONNECTOR, CORE_LISTENER };

struct ndx_adapter {
	const struct ndx_provider_ops *ops;
	struct ndx_spi_adapter *native;
	struct ndx_loop *loop;
	struct selection selection;
	struct ndx_adapter_info info;
	struct adapter_events events; /* has a lock of its own */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a connection changed its state, or refs fell */
	/* under the lock: */
	unsigned wakes; /* wake-ups of the control thread that are due when the lock is released */
	unsigned refs;  /* the handle, every public object, every goodbye under way */
	unsigned handles; /* public objects only */
	struct ndx_spi_object *cqs;
	struct ndx_spi_object *qps;
	struct ndxp_list connectors;
	struct ndxp_list listeners;
	struct ndx_adapter_stats stats; /* without the work of queue pairs that exist */
	struct conn_postmortem
		*postmortems;      /* CORE_POSTMORTEMS of them, made with the first; ... */
	uint64_t postmortem_total; /* ... number n is at n % CORE_POSTMORTEMS */
	/* peers that come by description; connection/rendezvous.c */
	unsigned rendezvous_users;      /* ends that need the listeners for them */
	struct ndxp_job rendezvous_job; /* closes those listeners when no end needs them */
	struct ndxp_list described;
};

void adapter_lock(struct ndx_adapter *adapter);
void adapter_unlock(struct ndx_adapter *adapter);
/* Lock held: like ndxp_loop_post(), but the control thread is woken when the lock is released,
 * because the job needs the lock. */
void adapter_post(struct ndx_adapter *adapter, struct ndxp_job *job);
/* Lock held: sleep until `changed`, at most until deadline_ns; false after the deadline. */
bool adapter_wait(struct ndx_adapter *adapter, uint64_t deadline_ns);
/* Add a new public object: it holds the adapter. Initialises the object's head. */
void adapter_add_object(struct ndx_adapter *adapter, struct ndx_spi_object *object,
                        enum core_kind kind);
/* Remove an object that is about to be destroyed. */
void adapter_remove_object(struct ndx_adapter *adapter, struct ndx_spi_object *object,
                           enum core_kind kind);
void adapter_get(struct ndx_adapter *adapter, bool handle);
void adapter_put(struct ndx_adapter *adapter, bool handle);
/* After the last reference: close the provider's side, end the control thread, free. */
void adapter_destroy(struct ndx_adapter *adapter);
/* Wait until the control thread has run the callbacks of everything that completed earlier. */
void adapter_flush_callbacks(struct ndx_adapter *adapter);

/* Lock held: count a new object of a kind and return its number; count an object that is
 * destroyed. */
uint32_t stats_count_new(struct ndx_adapter *adapter, enum core_kind kind);
void stats_count_gone(struct ndx_adapter *adapter, enum core_kind kind,
                      struct ndx_spi_object *object);
/* Lock held. Sets everything in `stats` except `size`; false if the provider does not count. */
bool stats_of_qp(struct ndx_spi_qp *qp, struct ndx_qp_stats *stats);
bool stats_of_cq(struct ndx_spi_cq *cq, struct ndx_cq_stats *stats);
/* Everything except the connections that are up: see conn_count_up(). */
void stats_of_adapter(struct ndx_adapter *adapter, struct ndx_adapter_stats *stats);
void stats_add_duration(struct ndx_duration_stats *to, uint64_t ns);

/* Room for the longest ndx_last_error(). */
#define CALL_TEXT 512

/* The error text of a failure on the control thread, for the thread that called. */
struct error_capture {
	char text[CALL_TEXT];
};

/* Control thread: before and after an operation that may fail. */
void error_capture_begin(void);
void error_capture_end(struct error_capture *said);
/* Calling thread: returns `status`; for a failure, sets ndx_last_error() to the text. */
enum ndx_status error_capture_restore(enum ndx_status status, const struct error_capture *said);

/* Drop a reference of a queue; the last one destroys the queue. */
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
