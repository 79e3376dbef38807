/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections and listeners, from the first rdma_cm_id to the end. Used by the control thread
 * only. */
#ifndef VERBS_CONN_H
#define VERBS_CONN_H

#include <ndx/spi/rc_wire.h>
#include "verbs.h"

/* ---- private data (verbs_cm.c) ---- */

#define VERBS_TRAILER 8u /* at the end of the bytes that rdma_cm carries */
#define VERBS_CONNECT_ROOM 56u
#define VERBS_ACCEPT_ROOM 196u
#define VERBS_REJECT_ROOM 148u
#define VERBS_CALLER_DATA (VERBS_CONNECT_ROOM - VERBS_TRAILER)
#define VERBS_CALLEE_DATA (VERBS_REJECT_ROOM - VERBS_TRAILER)

/* The peer's data about itself. */
struct verbs_cm_peer {
	bool is_ndx;
	bool is_ofi; /* the peer is on ofi:verbs: see verbs_ofi.h */
	bool has_srq;
	uint32_t mailbox_key; /* in host byte order */
	const char *wrong;    /* of a peer on ofi:verbs: why its data cannot be used, or NULL */
};

/* A copy of an event of rdma_cm, which is acknowledged already. */
struct verbs_event {
	enum rdma_cm_event_type what;
	int status;
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	bool srq;
	size_t data_len;
	uint8_t data[NDX_SPI_PRIVATE_DATA_MAX];
};

/* Fill all `room` bytes: data, zeros, trailer. */
void verbs_cm_encode(uint8_t *to, size_t room, const void *data, size_t len, uint32_t mailbox_key);
/* The same for a peer on ofi:verbs; `to` has VERBS_REJECT_ROOM bytes. Returns the number of bytes.
 */
size_t verbs_cm_encode_ofi(uint8_t *to, enum ndxp_rc_kind kind, const void *data, size_t len,
                           uint32_t inbound_read_limit, uint32_t outbound_read_limit);
/* Decode `len` bytes; without a trailer all of them are private data. `kind` is what is expected of
 * a peer on ofi:verbs. */
void verbs_cm_decode(const void *from, size_t len, enum ndxp_rc_kind kind,
                     struct ndx_spi_params *params, struct verbs_cm_peer *peer);
/* Refuse, in the protocol of the peer. 0, or -1 and errno. */
int verbs_cm_reject(struct rdma_cm_id *id, const struct verbs_cm_peer *peer, const void *data,
                    size_t len);
/* The peer's parameters in an event. */
void verbs_cm_params(const struct verbs_event *event, struct ndx_spi_params *params,
                     struct verbs_cm_peer *peer);

/* ---- addresses (verbs_address.c) ---- */

/* The address that a GID stands for; RoCE v2 has IPv4 addresses in mapped form. */
void verbs_address_of_gid(const union ibv_gid *gid, struct sockaddr_storage *out);
/* Make an rdma_cm_id that is bound to an address. */
enum ndx_status verbs_address_bind(struct verbs_adapter *adapter, void *owner,
                                   const struct sockaddr_storage *address, struct rdma_cm_id **out);
/* The adapter's address to bind to; for the unspecified address the first one of its family. */
enum ndx_status verbs_address_own(const struct verbs_adapter *adapter,
                                  const struct sockaddr *wanted, socklen_t len,
                                  struct sockaddr_storage *out);
/* The address that an rdma_cm_id is bound to. */
void verbs_address_of_id(struct rdma_cm_id *id, struct sockaddr_storage *out);

struct verbs_conn;
/* Make the id of a conn that connects to `to`. The first attempt has the id from binding; later
 * attempts bind the same address again. */
enum ndx_status verbs_address_make_id(struct verbs_conn *conn, const struct sockaddr_storage *to);

/* ---- the connection ---- */

/* The owner of an rdma_cm_id. */
enum verbs_owner { VERBS_CONN, VERBS_LISTENER };

enum verbs_conn_state {
	VERBS_CONN_IDLE,
	VERBS_CONN_RESOLVING,  /* active side: resolving the address, then the route */
	VERBS_CONN_CONNECTING, /* active side: the request is sent */
	VERBS_CONN_ANSWERED,   /* active side: the peer has accepted */
	VERBS_CONN_REQUESTED,  /* passive side: holds a request */
	VERBS_CONN_ACCEPTED,   /* passive side: has accepted */
	VERBS_CONN_UP,
	VERBS_CONN_OVER,
};

/* The event for which the end of a connection waits. */
enum verbs_wait {
	VERBS_WAIT_NONE,
	VERBS_WAIT_ANSWER,   /* the answer to a first probe */
	VERBS_WAIT_MOMENT,   /* a process that is being killed may answer for a short time */
	VERBS_WAIT_PROBE,    /* the answer to a second probe, which lets the peer go */
	VERBS_WAIT_PROBED,   /* the peer's probe, for which the peer needs this end's queue pair */
	VERBS_WAIT_ABORTED,  /* the delivery of this end's ABORTED */
	VERBS_WAIT_RECEIVES, /* the last receive of the shared queue to complete */
	VERBS_WAIT_QUIET,    /* canceled requests to come back */
};

/* The path of a connection without rdma_cm: each end got the other's description out of band. */
struct verbs_oob_path {
	bool on;
	uint8_t gid_index;
	uint8_t peer_gid[16];
	uint16_t peer_lid;
	uint32_t peer_number; /* of the peer's queue pair */
	uint32_t peer_psn;    /* first PSN of the peer, and of this end */
	uint32_t psn;
	uint32_t mtu;    /* bytes; that of the port, then that of the path */
	uint32_t policy; /* of the peer: bits of enum ndx_peer_policy */
};

/* The contents of a request to connect, kept until the route is resolved. */
struct verbs_request_data {
	uint8_t data[VERBS_CONNECT_ROOM];
	uint8_t private_len; /* of the consumer's data, which are at the start of `data` */
	uint8_t inbound_read_limit;
	uint8_t outbound_read_limit;
};

struct verbs_conn {
	enum verbs_owner owner;
	enum verbs_conn_state state;
	struct ndx_spi_conn spi;
	struct verbs_adapter *adapter;
	struct ndxp_list node;         /* in verbs_adapter.conns, from the first rdma_cm_id on */
	struct sockaddr_storage bound; /* AF_UNSPEC: connect binds */
	struct rdma_cm_id *id;
	struct verbs_qp *qp; /* NULL: none yet, or none any more */
	struct verbs_request_data request_data;
	struct verbs_cm_peer peer;
	struct verbs_ofi *ofi; /* NULL: the peer is not on ofi:verbs, as far as is known */
	struct verbs_oob_path oob;
	struct verbs_mailboxes *mailboxes; /* NULL: there is no mailbox */
	struct ibv_mr *mailbox_mr;         /* the region of `mailboxes` */
	uint64_t *mailbox;                 /* the peer writes all but the last field */
	struct ndxp_job work;              /* handles what completions report */
	struct ndxp_job last;
	struct ndxp_timer timer; /* time limit of `wait` */
	enum verbs_wait wait;
	uint32_t probed_ms;         /* time since the probe was posted */
	uint64_t not_ready;         /* VERBS_NOT_READY at that time */
	uint64_t detach_ns;         /* when the first verbs_conn_detach() came */
	uint64_t probe_until;       /* until then the peer may probe after a disc_without_goodbye */
	struct ndxp_timer watchdog; /* checks sends that wait, and a silent peer */
	uint32_t watched_head;      /* index of the oldest initiator request, ... */
	uint32_t watched_ms;        /* ... and for how long it has been that */
	uint32_t silent_ms;         /* a probe is under way */
	uint32_t quiet_ms;          /* no probe is, and nothing has come */
	uint32_t heard;             /* completed requests of both sides at the last check */
	uint32_t idle_ms;    /* time without an outstanding request that would report a failure */
	uint32_t stuck_head; /* software RoCE: the same, for any request, ... */
	uint32_t stuck_ms;
	uint32_t no_packet_ms;     /* ... for how long the device has received nothing ... */
	uint64_t packets;          /* ... beyond these packets */
	bool disc_sent;            /* rdma_disconnect() was called */
	bool disc_without_goodbye; /* ... without a goodbye in the peer's mailbox */
	bool peer_closed;       /* the peer has closed: it neither reads the mailbox nor probes */
	bool lost;              /* the connection has failed: the peer would not read ABORTED */
	bool peer_disconnected; /* rdma_cm has reported the peer's disconnect */
	bool peer_reported;     /* PEER_DISC was reported */
	bool dead;              /* conn_destroy was called */
	bool proving;           /* conn_prove was called ... */
	uint32_t proved;        /* ... and these of its writes have ended well; as controls_done */
	uint64_t queried_ns;    /* when the proof last queried the state of the queue pair */
	/* guarded by qp->base.lock: */
	uint32_t controls_done;            /* bits of enum verbs_control */
	enum ibv_wc_status control_native; /* of the first control request that failed */
	bool refused; /* the queue pair failed, and no request of its own: one of the peer did */
};

static inline struct verbs_conn *verbs_conn_of(struct ndx_spi_conn *conn)
{
	return container_of(conn, struct verbs_conn, spi);
}

/* ---- connections without rdma_cm (verbs_oob_path.c, verbs_oob.c, verbs_prove.c) ---- */

/* The bytes of a path MTU. */
uint32_t verbs_oob_path_bytes(enum ibv_mtu mtu);
/* In place of rdma_init_qp_attr(), for a connection that rdma_cm does not know. */
void verbs_oob_path_attr(const struct verbs_conn *conn, struct ibv_qp_attr *attr, int *mask);
enum ndx_status verbs_qp_describe(struct ndx_spi_conn *spi, const struct sockaddr_storage *near,
                                  struct ndx_peer_description *out);
enum ndx_status verbs_qp_connect_peer(struct ndx_spi_conn *spi,
                                      const struct ndx_peer_description *peer);
enum ndx_status verbs_conn_prove(struct ndx_spi_conn *spi, uint64_t write, uint64_t expect,
                                 struct ndx_spi_proof *proof);
/* Control thread: these control requests have ended well. */
void verbs_prove_on_done(struct verbs_conn *conn, uint32_t done);

/* ---- waits for the device (verbs_flush.c); control thread ---- */

/* Cancel all requests of the queue pair. True: none is outstanding any more; usually the device
 * flushes all at once. */
bool verbs_flush_begin(struct verbs_qp *qp);
bool verbs_flush_has_begun(struct verbs_qp *qp);
/* Read what has come back. True: nothing is outstanding any more. */
bool verbs_flush_read(struct verbs_qp *qp);
/* Read all completions by event from now on, or not any more: the end of the connection waits for
 * them. With a peer on ofi:verbs: no consumer waits for control messages, and libfabric marks no
 * message as solicited. */
void verbs_flush_watch(struct verbs_qp *qp, bool on);
/* A control request that is in flight must not be lost with the queue pair. True: the caller has to
 * wait for it, at most `ms`. In a callback that wait is in here. */
bool verbs_flush_needs_control(struct verbs_qp *qp, enum verbs_control which, uint32_t ms);

static inline void verbs_conn_report(struct verbs_conn *conn, uint32_t bits, int native,
                                     const char *cause)
{
	verbs_host(conn->adapter)->report(&conn->spi, bits, native, cause);
}

/* ---- the end (verbs_goodbye.c, verbs_end.c) ---- */

void verbs_conn_drain(struct ndx_spi_conn *spi);
void verbs_conn_cancel_initiator(struct ndx_spi_conn *spi);
void verbs_conn_send_disc(struct ndx_spi_conn *spi);
void verbs_conn_finish(struct ndx_spi_conn *spi);
void verbs_conn_abort(struct ndx_spi_conn *spi);
enum ndx_status verbs_conn_detach(struct ndx_spi_conn *spi);
void verbs_conn_oob_received(struct ndx_spi_conn *spi, enum ndx_spi_oob_message message);
/* rdma_cm reports that the peer has disconnected, or that this end's disconnect has timed out. */
void verbs_end_on_disconnected(struct verbs_conn *conn, int status);
void verbs_end_on_work(void *arg); /* handles what completions report */
void verbs_end_on_timer(void *arg);
/* The peer has said goodbye, and does not take this end's write into its mailbox. */
void verbs_end_goodbye_lost(struct verbs_conn *conn);
/* The peer has said goodbye, and does not answer requests in flight. */
void verbs_end_peer_closed(struct verbs_conn *conn);

/* ---- while a connection is up (verbs_watch.c) ---- */

void verbs_watch_begin(struct verbs_conn *conn);
static inline void verbs_watch_end(struct verbs_conn *conn)
{
	ndxp_timer_cancel(conn->adapter->spi.loop, &conn->watchdog);
}
void verbs_watch_on_timer(void *arg);

/* ---- connecting (verbs_conn.c) ---- */

/* Tie the conn to its queue pair. */
void verbs_conn_tie(struct verbs_conn *conn);
void verbs_conn_on_event(struct verbs_conn *conn, const struct verbs_event *event);
/* The device is gone. */
void verbs_conn_on_removal(struct verbs_conn *conn, int native);

enum ndx_status verbs_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                  struct ndx_spi_conn **out);
void verbs_conn_destroy(struct ndx_spi_conn *spi);
enum ndx_status verbs_conn_bind(struct ndx_spi_conn *spi, const struct sockaddr *address,
                                socklen_t len);
enum ndx_status verbs_conn_connect(struct ndx_spi_conn *spi, const struct sockaddr *destination,
                                   socklen_t len, const struct ndx_spi_params *params);
enum ndx_status verbs_conn_complete(struct ndx_spi_conn *spi);
void verbs_conn_take(struct ndx_spi_conn *spi, struct ndx_spi_request *request);
enum ndx_status verbs_conn_accept(struct ndx_spi_conn *spi, const struct ndx_spi_params *params);
enum ndx_status verbs_conn_reject(struct ndx_spi_conn *spi, const void *private_data, size_t len);
void verbs_conn_abandon(struct ndx_spi_conn *spi);

/* ---- listeners (verbs_listener.c) ---- */

struct verbs_request {
	struct ndx_spi_request spi;
	struct verbs_adapter *adapter;
	struct rdma_cm_id *id;
	struct verbs_cm_peer peer;
};

struct verbs_listener;
void verbs_listeners_on_removal(struct verbs_adapter *adapter, int native);
void verbs_listener_on_event(struct verbs_listener *listener, const struct verbs_event *event);
enum ndx_status verbs_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                      struct ndx_spi_listener **out);
void verbs_listener_destroy(struct ndx_spi_listener *spi);
enum ndx_status verbs_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                    socklen_t len);
enum ndx_status verbs_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog);
void verbs_request_refuse(struct ndx_spi_request *spi);

/* ---- events of rdma_cm and of the device (verbs_event.c) ---- */

void verbs_cm_on_event(void *arg, uint32_t events);
void verbs_async_on_event(void *arg, uint32_t events);
/* The device is gone: report that to connections, listeners and completion queues. */
void verbs_device_lost(struct verbs_adapter *adapter, int native);
void verbs_port_on_timer(void *arg);

#endif
