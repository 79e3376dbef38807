/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A provider around another one, which delays, reorders and drops its events and makes its calls
 * fail. The inner provider's objects are passed through; only tables of operations are in between:
 * those of the provider itself, that of each queue (a copy, followed by this provider's own part of
 * the queue), and the host's upcalls. An object's head leads to its adapter, and the adapter's host
 * to this provider: fault_of().
 *
 * Locks: with fault_adapter.lock or a plan's lock held, this provider calls nothing but the core's
 * upcalls and the event loop, never the inner provider. With a queue's lock held it calls the inner
 * provider only to arm a notification.
 */
#ifndef FAULT_FAULT_H
#define FAULT_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/list.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/loop.h>
#include <ndx/spi/overlapped.h>

/* The inner provider, and what keeps it loaded. */
struct fault_inner {
	const struct ndx_provider *provider;
	void *file;
};

#define FAULT_CALL(name, ...) FAULT_CALL_##name,
enum fault_call {
#include "fault_calls.def"
	FAULT_CALLS
};
#undef FAULT_CALL

/* ---- what the URI asks for (fault_options.c) ---- */

enum fault_reorder {
	FAULT_REORDER_NONE,
	FAULT_REORDER_QUEUES, /* results of different queue pairs, whose order nothing promises */
	FAULT_REORDER_ANY,    /* planted fault: results of one queue pair, too */
};

struct fault_options {
	uint64_t nth;   /* 0: none */
	bool nth_named; /* ... by the caller */
	uint64_t times;
	enum fault_call only;   /* FAULT_CALLS: every call counts */
	enum ndx_status status; /* NDX_OK: a status that fits the call */
	uint64_t seed;
	uint32_t delay_ms;       /* longest delay of a result */
	uint32_t event_delay_ms; /* longest delay of an upcall */
	uint64_t drop;           /* planted fault: number of the result that is lost; 0: none */
	uint64_t event_drop;     /* planted fault: number of the upcall that is lost; 0: none */
	enum fault_reorder reorder;
};

/* The fault_ options as the caller wrote them: "fault_nth=3&fault_seed=7". */
#define FAULT_TEXT 128

/*
 * Remove the fault_ options from `how`. `inner` gets the other options, for which `room` is large
 * enough, and the device behind the inner provider's name. INVALID_CONFIG for a wrong option, also
 * for one that the inner provider does not know.
 */
enum ndx_status fault_options_read(const struct ndx_spi_open *how, struct fault_inner *provider,
                                   struct fault_options *options, char text[FAULT_TEXT],
                                   struct ndx_spi_open *inner, struct ndx_spi_option *room);

/* ---- which call fails (fault_plan.c) ---- */

struct fault_plan {
	struct ndxp_lock lock;
	uint64_t nth;
	uint64_t times;
	uint64_t calls;
	uint64_t failed;
	enum fault_call latest;
	enum ndx_status status; /* what the latest failed call returned */
	uint64_t random;        /* state of the generator */
};

struct fault_adapter {
	struct ndx_host host; /* first: what the inner adapter's head points to */
	const struct ndx_host *core;
	struct fault_inner inner;
	const struct ndx_provider_ops *ops;
	struct ndx_adapter *front;
	struct ndx_loop *loop;
	struct fault_process *process;
	struct ndxp_list node; /* in fault_process.adapters */
	struct fault_options options;
	char text[FAULT_TEXT];
	struct fault_plan plan;
	struct ndxp_timer timer; /* fires when the first delayed upcall or notification is due */
	struct ndxp_lock timer_lock;
	uint64_t timer_due; /* guarded by timer_lock */

	struct ndxp_lock lock;     /* guards the members down to `dying` */
	struct ndxp_list conns;    /* struct fault_conn */
	struct ndxp_list requests; /* struct fault_request: connection requests that are delayed */
	uint64_t events;           /* upcalls so far */
	const struct ndx_spi_listener *dying; /* its requests are not delayed any more */

	uint32_t delays_ended;     /* count of the events that end every delay of results; atomic */
	uint32_t waiting;          /* count of queues that delay notifications; atomic */
	uint64_t results;          /* count of results that consumers have taken; atomic */
	struct ndxp_lock cqs_lock; /* guards cqs */
	struct ndxp_list cqs;      /* struct fault_cq */
};

/* All adapters of the process, for fault_control.h. Every member but the list may begin as zero. */
struct fault_process {
	struct ndxp_lock lock;
	struct ndxp_list adapters;
};

void fault_process_add(struct fault_adapter *fa);
void fault_process_remove(struct fault_adapter *fa);

static inline struct fault_adapter *fault_of(const struct ndx_spi_adapter *native)
{
	return container_of((struct ndx_host *)(uintptr_t)native->host, struct fault_adapter, host);
}

/* Count the call. NDX_OK, or the status with which the call has to fail. */
enum ndx_status fault_inject(struct fault_adapter *fa, enum fault_call call);
/* A random number below `below`, which is not 0. */
uint64_t fault_random(struct fault_adapter *fa, uint64_t below);
const char *fault_call_name(enum fault_call call);
/* The call with this name; FAULT_CALLS: there is none. */
enum fault_call fault_call_find(const char *name);

/* A failed call leaves this value in its out parameter: a caller that uses the value crashes. */
static inline void *fault_bad_pointer(void)
{
	return (void *)(uintptr_t)0xfa0175c41bb1e5ull;
}

/* ---- adapters (fault_adapter.c) ---- */

enum ndx_status fault_list_nothing(const struct ndx_provider *self,
                                   const struct ndx_spi_open *defaults, ndx_spi_list_fn *each,
                                   void *arg);
enum ndx_status fault_adapter_open(const struct ndx_spi_adapter *head,
                                   const struct ndx_spi_open *how, struct ndx_spi_adapter **out);
void fault_adapter_close(struct ndx_spi_adapter *native);
void fault_adapter_query(struct ndx_spi_adapter *native, struct ndx_adapter_info *info);
size_t fault_adapter_addresses(struct ndx_spi_adapter *native, struct sockaddr_storage *list,
                               size_t room);

/* ---- results (fault_results.c) ---- */

enum ndx_status fault_cq_create(struct ndx_spi_adapter *adapter, const struct ndx_cq_attr *attr,
                                struct ndx_spi_cq **out);
void fault_cq_destroy(struct ndx_spi_cq *cq);
enum ndx_status fault_cq_notify(struct ndx_spi_cq *cq, enum ndx_cq_notify_type type,
                                struct ndx_overlapped *ov);
void fault_cq_cancel(struct ndx_spi_cq *cq, enum ndx_status status);
/* Control thread: arm the notifications that are due. Returns when the next one is due, UINT64_MAX:
 * none is. */
uint64_t fault_cqs_tick(struct fault_adapter *fa, uint64_t now);

/* ---- upcalls (fault_events.c) ---- */

struct fault_conn;

/* Fill fa->host. */
void fault_events_init(struct fault_adapter *fa);
/* Any thread. Call before the consumer sees results that failed: a provider reports the end of a
 * connection before it shows the results that the end has canceled. */
void fault_events_flush_ends(struct fault_adapter *fa);
/* Control thread: pass on the upcalls that are due. Returns when the next one is due, UINT64_MAX:
 * none is. */
uint64_t fault_events_tick(struct fault_adapter *fa, uint64_t now);
/* Make this provider's part of a connection; NULL: out of memory. */
struct fault_conn *fault_events_new(struct fault_adapter *fa);
void fault_events_name(struct fault_adapter *fa, struct fault_conn *fc, struct ndx_spi_conn *conn);
void fault_events_free(struct fault_adapter *fa, struct fault_conn *fc);
/* The core has given up the attempt: drop the upcalls of `conn` that are delayed. */
void fault_events_forget(struct fault_adapter *fa, const struct ndx_spi_conn *conn);
/* Pass on the delayed upcalls of `conn`. While `hurry` is set, its upcalls are not delayed. */
void fault_events_hurry(struct fault_adapter *fa, const struct ndx_spi_conn *conn, bool hurry);
/* The inner provider has destroyed `conn`: free this provider's part. */
void fault_events_drop(struct fault_adapter *fa, const struct ndx_spi_conn *conn);
/* Before a listener is destroyed: pass on its delayed requests, and from now on pass on new ones at
 * once. */
void fault_events_flush_requests(struct fault_adapter *fa, const struct ndx_spi_listener *listener);
/* After a listener has been destroyed. */
void fault_events_listener_gone(struct fault_adapter *fa);

/* ---- when the control thread passes on what is delayed (fault_wake.c) ---- */

/* Any thread, any lock: make the control thread look at delayed upcalls and notifications at `due`,
 * a time of ndxp_now_ns(). */
void fault_wake_at(struct fault_adapter *fa, uint64_t due);
/* Any thread, any lock: end the delay of all results. */
void fault_cqs_end_delay(struct fault_adapter *fa);

/* ---- tables (fault_objects.c, fault_data.c, fault_conn.c) ---- */

enum ndx_status fault_cq_get_fd(struct ndx_spi_cq *cq, int *fd);
void fault_cq_wake(struct ndx_spi_cq *cq, bool up);
enum ndx_status fault_cq_resize(struct ndx_spi_cq *cq, uint32_t depth);
enum ndx_status fault_cq_affinity(struct ndx_spi_cq *cq, uint16_t *group, uint64_t *affinity);
enum ndx_status fault_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out);
void fault_mr_destroy(struct ndx_spi_mr *mr);
enum ndx_status fault_mr_register(struct ndx_spi_mr *mr, void *buffer, size_t length,
                                  uint32_t flags);
enum ndx_status fault_mr_deregister(struct ndx_spi_mr *mr, bool closing);
void fault_mr_wait_idle(struct ndx_spi_mr *mr);
enum ndx_status fault_mw_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mw **out);
void fault_mw_destroy(struct ndx_spi_mw *mw);
enum ndx_status fault_srq_modify(struct ndx_spi_srq *srq, uint32_t depth, uint32_t threshold);
enum ndx_status fault_srq_notify(struct ndx_spi_srq *srq, struct ndx_overlapped *ov);
void fault_srq_cancel(struct ndx_spi_srq *srq, enum ndx_status status);
enum ndx_status fault_srq_affinity(struct ndx_spi_srq *srq, uint16_t *group, uint64_t *affinity);

enum ndx_status fault_srq_create(struct ndx_spi_adapter *adapter, const struct ndx_srq_attr *attr,
                                 struct ndx_spi_srq **out);
void fault_srq_destroy(struct ndx_spi_srq *srq);
enum ndx_status fault_qp_create(struct ndx_spi_adapter *adapter, const struct ndx_qp_attr *attr,
                                struct ndx_spi_qp **out);
void fault_qp_destroy(struct ndx_spi_qp *qp);
void fault_qp_cancel(struct ndx_spi_qp *qp);
/* The connection of `qp` ends, so posts may complete at once. NULL is a no-op. */
void fault_qp_ending(struct ndx_spi_qp *qp);

enum ndx_status fault_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                  struct ndx_spi_conn **out);
void fault_conn_destroy(struct ndx_spi_conn *conn);
enum ndx_status fault_conn_bind(struct ndx_spi_conn *conn, const struct sockaddr *address,
                                socklen_t len);
enum ndx_status fault_conn_connect(struct ndx_spi_conn *conn, const struct sockaddr *destination,
                                   socklen_t len, const struct ndx_spi_params *params);
enum ndx_status fault_conn_complete(struct ndx_spi_conn *conn);
void fault_conn_take(struct ndx_spi_conn *conn, struct ndx_spi_request *request);
enum ndx_status fault_conn_accept(struct ndx_spi_conn *conn, const struct ndx_spi_params *params);
enum ndx_status fault_conn_reject(struct ndx_spi_conn *conn, const void *private_data, size_t len);
void fault_conn_abandon(struct ndx_spi_conn *conn);
void fault_conn_drain(struct ndx_spi_conn *conn);
void fault_conn_cancel_initiator(struct ndx_spi_conn *conn);
void fault_conn_send_disc(struct ndx_spi_conn *conn);
void fault_conn_finish(struct ndx_spi_conn *conn);
void fault_conn_abort(struct ndx_spi_conn *conn);
enum ndx_status fault_conn_detach(struct ndx_spi_conn *conn);
enum ndx_status fault_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                      struct ndx_spi_listener **out);
void fault_listener_destroy(struct ndx_spi_listener *listener);
enum ndx_status fault_listener_bind(struct ndx_spi_listener *listener,
                                    const struct sockaddr *address, socklen_t len);
enum ndx_status fault_listener_listen(struct ndx_spi_listener *listener, uint32_t backlog);
void fault_request_refuse(struct ndx_spi_request *request);

#endif
