/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The in-process provider: the reference for what the SPI means. It supports everything that an
 * adapter can do, completes at once and in order, and prefers clarity to speed.
 *
 * One lock, that of the switch, guards all loop adapters of the process: connecting, posting and
 * copying data happen with it held. It replaces the lock of every queue pair, so ndxp_qp.lock is
 * not used. Order: adapter lock (the core's), switch, completion queue, the core's leaf locks. With
 * the switch's lock held this provider neither logs nor allocates memory. A transfer is one copy
 * under the lock, so a very long one delays all others.
 */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/completion_queue.h>
#include <ndx/spi/list.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/loop.h>
#include <ndx/spi/mw.h>
#include <ndx/spi/overlapped.h>
#include <ndx/spi/queue_pair.h>
#include <ndx/spi/table.h>

#define LOOP_MAX_SGE 16u
#define LOOP_MAX_TRANSFER (UINT32_C(1) << 30)
#define LOOP_MAX_REGION (UINT64_C(1) << 40)
#define LOOP_MAX_INLINE 4096u
#define LOOP_MAX_READS 16u
#define LOOP_MAX_DEPTH 16384u
#define LOOP_MAX_CQ_DEPTH (UINT32_C(1) << 20)

#define LOOP_PORT_BUCKETS 256u
#define LOOP_KEY_BUCKETS 4096u

struct loop_conn;
struct loop_qp;

/* ---- the switch: where connectors find listeners (loop_switch.c) ---- */

/* A local address in use. */
struct loop_port {
	struct ndxp_table_node node;     /* in the switch's table while in use */
	struct sockaddr_storage address; /* AF_UNSPEC: not in use */
	struct loop_listener *listener;  /* NULL: the port of a connector */
};

struct loop_switch {
	struct ndxp_lock lock;
	struct ndxp_table ports; /* by port number */
	struct ndxp_table_node *buckets[LOOP_PORT_BUCKETS];
	uint16_t last_port; /* the latest ephemeral port */
};

static inline void loop_switch_lock(struct loop_switch *sw)
{
	ndxp_lock_acquire(&sw->lock);
}

static inline void loop_switch_unlock(struct loop_switch *sw)
{
	ndxp_lock_release(&sw->lock);
}

/* The adapter's address of the family AF_INET or AF_INET6, with port 0. */
void loop_address(sa_family_t family, struct sockaddr_storage *out);
/* Is `address` one of the adapter's two addresses? */
bool loop_address_is_ours(const struct sockaddr_storage *address);
/* Lock held. Bind `port` to `address` (port 0: any free one); SHARING_VIOLATION,
 * TOO_MANY_ADDRESSES. */
enum ndx_status loop_switch_bind(struct loop_switch *sw, struct loop_port *port,
                                 const struct sockaddr_storage *address);
/* Lock held. A no-op for a port that is not in use. */
void loop_switch_unbind(struct loop_port *port);
/* Lock held. The listener at `address`; NULL: there is none. */
struct loop_listener *loop_switch_find(struct loop_switch *sw,
                                       const struct sockaddr_storage *address);
/* For conn_bind and listener_bind: check the address, then bind it. Takes the lock. */
enum ndx_status loop_switch_claim(struct loop_switch *sw, struct loop_port *port,
                                  const struct sockaddr *address, socklen_t len);

/* ---- adapters and completion queues (loop_adapter.c) ---- */

/* The memory and the rights behind a token. A key has local rights or remote rights, never both. */
struct loop_key {
	struct ndxp_table_node node; /* in the adapter's table */
	uint32_t token;
	uint32_t rights; /* OR of enum loop_right */
	uintptr_t start;
	size_t length;
	const struct loop_qp *only; /* of a window: only this queue pair's peer may use it */
};

struct loop_adapter {
	struct ndx_spi_adapter spi;
	struct loop_switch *sw;
	char device[64];
	struct ndxp_table keys; /* by token */
	struct ndxp_table_node *buckets[LOOP_KEY_BUCKETS];
	struct ndxp_list pending; /* struct loop_req: binds and invalidates that have not run */
};

struct loop_cq {
	struct ndxp_cq base;
	struct loop_switch *sw;
	uint64_t affinity;
	struct ndxp_list slot_waiters; /* struct loop_conn: senders that wait for a free slot */
	uint32_t has_slot_waiters;     /* the list is not empty; atomic, read without the lock */
};

/* The CPUs to report: those that the caller asked for, or all. */
uint64_t loop_affinity(uint64_t wished);

enum ndx_status loop_list_adapters(const struct ndx_provider *self,
                                   const struct ndx_spi_open *defaults, ndx_spi_list_fn *each,
                                   void *arg);
enum ndx_status loop_adapter_open(const struct ndx_spi_adapter *head,
                                  const struct ndx_spi_open *how, struct ndx_spi_adapter **out);
void loop_adapter_close(struct ndx_spi_adapter *spi);
void loop_adapter_query(struct ndx_spi_adapter *spi, struct ndx_adapter_info *info);
size_t loop_adapter_addresses(struct ndx_spi_adapter *spi, struct sockaddr_storage *list,
                              size_t room);
enum ndx_status loop_cq_create(struct ndx_spi_adapter *adapter, const struct ndx_cq_attr *attr,
                               struct ndx_spi_cq **out);
void loop_cq_destroy(struct ndx_spi_cq *spi);
enum ndx_status loop_cq_affinity(struct ndx_spi_cq *cq, uint16_t *group, uint64_t *affinity);

/* ---- memory (loop_key.c, loop_mr.c, loop_mw.c, loop_memory.c) ---- */

enum loop_right {
	LOOP_LOCAL_READ = 1 << 0,
	LOOP_LOCAL_WRITE = 1 << 1, /* target of receives */
	LOOP_READ_SINK = 1 << 2,   /* target of this side's reads */
	LOOP_REMOTE_READ = 1 << 3,
	LOOP_REMOTE_WRITE = 1 << 4,
};

struct loop_mr {
	struct ndx_spi_mr spi;
	struct loop_adapter *adapter;
	struct loop_key local;
	struct loop_key remote;
	struct ndxp_list windows; /* struct loop_mw.of_mr */
};

struct loop_mw {
	struct ndx_spi_mw spi;
	struct loop_adapter *adapter;
	struct loop_key key;
	struct ndxp_mw state;
	struct ndxp_list of_mr;
	struct ndxp_list of_qp;
};

struct loop_req;

/* Copy `bytes` from one list to the other; both are long enough. The bytes become visible in
 * order. */
void loop_memory_move(const struct ndx_sge *to, const struct ndx_sge *from, uint32_t bytes);

/* Lock held, for all of these. */
enum ndx_status loop_key_new_token(struct loop_adapter *adapter, uint32_t *token);
void loop_key_add(struct loop_adapter *adapter, struct loop_key *key);
/* A no-op for a key that is not in the table. */
void loop_key_remove(struct loop_key *key);
/* Does `token` grant `right` on these bytes? `via`: the queue pair whose peer asks, NULL if
 * local. */
bool loop_key_admits(const struct loop_adapter *adapter, uint32_t token, uint64_t address,
                     size_t length, enum loop_right right, const struct loop_qp *via);
/* The same for the first `bytes` of a local list. */
bool loop_key_admits_list(const struct loop_adapter *adapter, const struct ndx_sge *sge,
                          uint32_t bytes, enum loop_right right);
/* Which check has failed of what is not admitted, in words. */
const char *loop_key_why(const struct loop_adapter *adapter, uint32_t token, enum loop_right right,
                         const struct loop_qp *via);
const char *loop_key_why_list(const struct loop_adapter *adapter, const struct ndx_sge *sge,
                              uint32_t bytes, enum loop_right right);
/* The region with this local token; NULL: there is none. */
struct loop_mr *loop_mr_find(const struct loop_adapter *adapter, uint32_t local_token);

enum ndx_status loop_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out);
void loop_mr_destroy(struct ndx_spi_mr *spi);
enum ndx_status loop_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length,
                                 uint32_t flags);
enum ndx_status loop_mr_deregister(struct ndx_spi_mr *spi, bool closing);

enum ndx_status loop_mw_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mw **out);
void loop_mw_destroy(struct ndx_spi_mw *spi);
/* Lock held here and below: end the window's binding, if there is one. */
void loop_mw_unbind(struct loop_mw *mw);
/* A bind or invalidate: it was posted; it runs; it will not run any more. */
void loop_mw_plan(struct loop_adapter *adapter, struct loop_req *req, struct loop_mw *mw);
enum ndx_status loop_mw_run(struct loop_qp *qp, struct loop_req *req);
void loop_mw_forget(struct loop_req *req);
/* The checks before a bind is admitted; `token`: the window's new one. */
enum ndx_status loop_mw_check_bind(struct loop_adapter *adapter, const struct loop_mr *mr,
                                   const struct loop_mw *mw, const void *buffer, size_t length,
                                   uint32_t flags, uint32_t *token);

/* ---- queue pairs and the data path (loop_qp.c, loop_data.c) ---- */

/* An initiator request. */
struct loop_req {
	struct ndxp_req base;
	uint32_t length;
	uint32_t immediate;
	bool with_immediate;
	uint32_t remote_token;   /* of a bind: the window's new token */
	uint64_t remote_address; /* of a bind: address of the window's first byte */
	struct loop_mw *mw;      /* NULL: the window was closed after the post */
	uint32_t region_token;   /* of a bind: local token of the region */
	size_t window_length;
	struct ndxp_list pending; /* in loop_adapter.pending, until the request has run */
	struct ndx_sge sge[];     /* of an inline request: one entry, with the bytes behind it */
};

/* A receive, of a queue pair or of a shared receive queue. */
struct loop_receive {
	struct ndxp_req base;
	uint32_t length;
	struct ndx_sge sge[];
};

struct loop_qp {
	struct ndxp_qp base;
	struct loop_adapter *adapter;
	struct loop_cq *receive_cq;
	struct loop_srq *srq;
	struct ndxp_queue from_srq; /* slots for results of the shared receive queue's receives */
	struct loop_conn *conn;     /* set when an attempt to connect begins */
	uint32_t outbound_reads;
	struct ndxp_list windows; /* struct loop_mw.of_qp */
};

static inline struct loop_qp *loop_qp_of(struct ndx_spi_qp *qp)
{
	return (struct loop_qp *)(void *)qp;
}

enum ndx_status loop_qp_create(struct ndx_spi_adapter *adapter, const struct ndx_qp_attr *attr,
                               struct ndx_spi_qp **out);
void loop_qp_destroy(struct ndx_spi_qp *spi);
void loop_qp_cancel(struct ndx_spi_qp *spi);
void loop_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats);
/* Lock held: complete the initiator requests that have not run as CANCELED. */
void loop_qp_cancel_initiator(struct loop_qp *qp);

/* Lock held: run this side's requests as far as possible. NULL is a no-op. */
void loop_data_pump(struct loop_conn *conn);
/* Lock held: loop_data_pump() for a request that was just posted. */
void loop_data_posted(struct loop_conn *conn);
/* Lock held: this side waits for nothing any more. */
void loop_data_stop_waiting(struct loop_conn *conn);
/* Timer of a send that waits for a receive; `arg` is its struct loop_conn. */
void loop_data_timeout(void *arg);
/* The data-path entry point of completion queues. */
size_t loop_data_get_results(struct ndx_cq *pub, struct ndx_result *results, size_t count);

/* ---- shared receive queues (loop_srq.c) ---- */

struct loop_srq {
	struct ndx_spi_srq spi;
	struct loop_adapter *adapter;
	char *ring; /* struct loop_receive, `stride` bytes each */
	size_t stride;
	uint32_t depth;
	uint32_t max_sge;
	uint32_t threshold;
	uint32_t first; /* index of the oldest receive */
	uint32_t posted;
	uint64_t affinity;
	struct ndxp_ov_list notifies;
	struct ndxp_list waiters; /* struct loop_conn: senders that wait for a receive */
};

static inline struct loop_srq *loop_srq_of(struct ndx_srq *srq)
{
	return (struct loop_srq *)(void *)srq;
}

enum ndx_status loop_srq_create(struct ndx_spi_adapter *adapter, const struct ndx_srq_attr *attr,
                                struct ndx_spi_srq **out);
void loop_srq_destroy(struct ndx_spi_srq *spi);
enum ndx_status loop_srq_modify(struct ndx_spi_srq *spi, uint32_t depth, uint32_t threshold);
enum ndx_status loop_srq_notify(struct ndx_spi_srq *spi, struct ndx_overlapped *ov);
void loop_srq_cancel(struct ndx_spi_srq *spi, enum ndx_status status);
enum ndx_status loop_srq_affinity(struct ndx_spi_srq *spi, uint16_t *group, uint64_t *affinity);
/* Lock held (loop_srq_queue.c): an entry of a ring; complete the notifications if the threshold is
 * crossed. */
struct loop_receive *loop_srq_at(const struct loop_srq *srq, char *ring, uint32_t depth,
                                 uint32_t index);
void loop_srq_check_threshold(struct loop_srq *srq);
/* Lock held: the oldest receive, NULL if there is none; remove it. */
struct loop_receive *loop_srq_first(struct loop_srq *srq);
void loop_srq_drop_first(struct loop_srq *srq);

/* ---- connections (loop_conn.c, loop_end.c) and listeners (loop_listener.c) ---- */

enum loop_conn_state {
	LOOP_CONN_IDLE,      /* no attempt yet, or an attempt has ended */
	LOOP_CONN_ASKING,    /* active side: the request is with the listener or its consumer */
	LOOP_CONN_ANSWERED,  /* active side: the peer has accepted */
	LOOP_CONN_REQUESTED, /* passive side: holds a request */
	LOOP_CONN_ACCEPTED,  /* passive side: has accepted */
	LOOP_CONN_UP,        /* connected, also during the disconnect */
	LOOP_CONN_BROKEN,    /* ABORT was reported; no data moves until conn_abort */
	LOOP_CONN_OVER,      /* after conn_finish or conn_abort */
};

/* Why the first request of the initiator queue waits. */
enum loop_wait {
	LOOP_WAIT_NONE,
	LOOP_WAIT_RECEIVE, /* the peer's receive queue is empty */
	LOOP_WAIT_SRQ,     /* the peer's shared receive queue is empty */
	LOOP_WAIT_CQ,      /* the peer has not taken earlier results of the shared receive queue */
	LOOP_WAIT_END,     /* the peer's queue pair is detached: the own disconnect cancels it */
};

#define LOOP_CAUSE 160

struct loop_conn {
	struct ndx_spi_conn spi;
	struct loop_adapter *adapter;
	enum loop_conn_state state;
	struct loop_request *request; /* ASKING, and no connector has taken the request yet */
	struct loop_conn *peer;       /* the other end; NULL: none yet, or none any more */
	struct loop_qp *qp;           /* of the attempt or connection; NULL after conn_detach */
	struct loop_port port;
	bool port_is_ephemeral; /* connect has bound the port, for this attempt only */
	bool draining;          /* DRAINED has to be reported */
	enum loop_wait wait;
	uint64_t wait_since_ns;
	struct ndxp_list wait_node; /* in loop_srq.waiters or loop_cq.slot_waiters */
	struct ndxp_timer timer;    /* of LOOP_WAIT_RECEIVE */
	bool timer_set;
	char cause[LOOP_CAUSE]; /* the text that was reported, if it is not a constant */
};

struct loop_request {
	struct ndx_spi_request spi;
	struct loop_switch *sw;
	struct loop_conn *active; /* NULL: the active side gave up */
};

struct loop_listener {
	struct ndx_spi_listener spi;
	struct loop_adapter *adapter;
	struct loop_port port;
	bool listening;
};

static inline struct loop_conn *loop_conn_of(struct ndx_spi_conn *conn)
{
	return container_of(conn, struct loop_conn, spi);
}

static inline struct loop_adapter *loop_adapter_of(struct ndx_spi_adapter *adapter)
{
	return container_of(adapter, struct loop_adapter, spi);
}

enum ndx_status loop_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                 struct ndx_spi_conn **out);
void loop_conn_destroy(struct ndx_spi_conn *spi);
enum ndx_status loop_conn_bind(struct ndx_spi_conn *spi, const struct sockaddr *address,
                               socklen_t len);
enum ndx_status loop_conn_connect(struct ndx_spi_conn *spi, const struct sockaddr *destination,
                                  socklen_t len, const struct ndx_spi_params *params);
enum ndx_status loop_conn_complete(struct ndx_spi_conn *spi);
void loop_conn_take(struct ndx_spi_conn *spi, struct ndx_spi_request *spi_request);
enum ndx_status loop_conn_accept(struct ndx_spi_conn *spi, const struct ndx_spi_params *params);
enum ndx_status loop_conn_reject(struct ndx_spi_conn *spi, const void *private_data, size_t len);
void loop_conn_abandon(struct ndx_spi_conn *spi);

void loop_conn_drain(struct ndx_spi_conn *spi);
void loop_conn_cancel_initiator(struct ndx_spi_conn *spi);
void loop_conn_send_disc(struct ndx_spi_conn *spi);
void loop_conn_finish(struct ndx_spi_conn *spi);
void loop_conn_abort(struct ndx_spi_conn *spi);
enum ndx_status loop_conn_detach(struct ndx_spi_conn *spi);

/* Lock held here and below (loop_break.c). */
void loop_end_report(struct loop_conn *conn, uint32_t bits, const char *cause);
/* The connection breaks: report ABORT to both sides; no more data moves. */
void loop_end_break(struct loop_conn *conn, const char *own_cause, const char *peers_cause);
/* Separate queue pair and connection; the peer no longer waits for this queue pair. */
void loop_end_decouple(struct loop_conn *conn);
/* Report DRAINED if the core waits for it and nothing is outstanding. */
void loop_end_check_drained(struct loop_conn *conn);

enum ndx_status loop_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                     struct ndx_spi_listener **out);
void loop_listener_destroy(struct ndx_spi_listener *spi);
enum ndx_status loop_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                   socklen_t len);
enum ndx_status loop_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog);
void loop_request_refuse(struct ndx_spi_request *spi);
bool loop_request_is_stale(const struct ndx_spi_request *spi);

#endif
