/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections and listeners: from the first rdma_cm_id to the end. The control thread's. */
#ifndef VERBS_CONN_H
#define VERBS_CONN_H

#include "verbs.h"

/* ---- private data (verbs_cm.c) ---- */

#define VERBS_TRAILER 8u /* in the last bytes of what rdma_cm carries */
#define VERBS_CONNECT_ROOM 56u
#define VERBS_ACCEPT_ROOM 196u
#define VERBS_REJECT_ROOM 148u
#define VERBS_CALLER_DATA (VERBS_CONNECT_ROOM - VERBS_TRAILER)
#define VERBS_CALLEE_DATA (VERBS_REJECT_ROOM - VERBS_TRAILER)

/* What the other side said of itself. */
struct verbs_cm_peer {
	bool is_ndx;
	bool is_ofi; /* ofi:verbs: another protocol of ours */
	bool has_srq;
	uint32_t mailbox_key; /* host byte order */
};

/* A copy of what rdma_cm told, which was acknowledged already. */
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

/* Fill all of `room` bytes: data, zeros, trailer. */
void verbs_cm_encode(uint8_t *to, size_t room, const void *data, size_t len, uint32_t mailbox_key);
/* What came, `len` bytes; without a trailer all of it is the peer's. */
void verbs_cm_decode(const void *from, size_t len, struct ndx_spi_params *params,
                     struct verbs_cm_peer *peer);
/* The peer's half of an event's parameters. */
void verbs_cm_params(const struct verbs_event *event, struct ndx_spi_params *params,
                     struct verbs_cm_peer *peer);

/* ---- addresses (verbs_address.c) ---- */

/* The address that a GID stands for; RoCE v2 keeps IPv4 addresses mapped. */
void verbs_address_of_gid(const union ibv_gid *gid, struct sockaddr_storage *out);
/* A new rdma_cm_id, bound to an address. */
enum ndx_status verbs_address_bind(struct verbs_adapter *adapter, void *owner,
                                   const struct sockaddr_storage *address, struct rdma_cm_id **out);
/* An address to bind to: one of the adapter's, for the unspecified one the first of its family. */
enum ndx_status verbs_address_own(const struct verbs_adapter *adapter,
                                  const struct sockaddr *wanted, socklen_t len,
                                  struct sockaddr_storage *out);
/* What an rdma_cm_id is bound to. */
void verbs_address_of_id(struct rdma_cm_id *id, struct sockaddr_storage *out);

/* ---- the connection ---- */

/* What an rdma_cm_id belongs to. */
enum verbs_owner { VERBS_CONN, VERBS_LISTENER };

enum verbs_conn_state {
	VERBS_CONN_IDLE,
	VERBS_CONN_RESOLVING, /* active: address, then route */
	VERBS_CONN_ASKING,    /* active: the request is sent */
	VERBS_CONN_ANSWERED,  /* active: the peer accepted */
	VERBS_CONN_REQUESTED, /* passive: holds a request */
	VERBS_CONN_ACCEPTED,  /* passive: has accepted */
	VERBS_CONN_UP,
	VERBS_CONN_OVER,
};

/* What the end of a connection waits for. */
enum verbs_wait {
	VERBS_WAIT_NONE,
	VERBS_WAIT_ANSWER, /* is the peer still there? */
	VERBS_WAIT_MOMENT, /* a process that is killed may answer for a moment */
	VERBS_WAIT_PROBE,  /* is it there now? It may go when it was asked this */
	VERBS_WAIT_PROBED, /* the peer's probe: it needs our queue pair for that */
	VERBS_WAIT_QUIET,  /* cancelled requests */
};

/* The path of a connection without rdma_cm: each end got the other's description out of band. */
struct verbs_oob_path {
	bool on;
	uint8_t gid_index;
	uint8_t peer_gid[16];
	uint16_t peer_lid;
	uint32_t peer_number; /* of its queue pair */
	uint32_t peer_psn;    /* the first, as the own one */
	uint32_t psn;
	uint32_t mtu; /* bytes; the port's, then the path's */
};

/* What a request to connect will say, when the route is known. */
struct verbs_asked {
	uint8_t data[VERBS_CONNECT_ROOM];
	uint8_t inbound_read_limit;
	uint8_t outbound_read_limit;
};

struct verbs_conn {
	enum verbs_owner owner;
	struct ndx_spi_conn spi;
	struct verbs_adapter *adapter;
	struct base_list node; /* in verbs_adapter.conns, from the first rdma_cm_id on */
	enum verbs_conn_state state;
	struct sockaddr_storage bound; /* AF_UNSPEC: by connect itself */
	struct rdma_cm_id *id;
	struct verbs_qp *qp; /* NULL: none, or not any more */
	struct verbs_asked asked;
	struct verbs_cm_peer peer;
	struct verbs_oob_path oob;
	struct verbs_mailboxes *mailboxes; /* NULL: it has none */
	struct ibv_mr *mailbox_mr;         /* theirs */
	uint64_t *mailbox;                 /* the peer writes to all but the last word */
	struct base_job work;              /* what a completion asks for */
	struct base_job last;
	struct base_timer timer; /* limit of `wait` */
	enum verbs_wait wait;
	uint64_t not_ready;         /* VERBS_NOT_READY when the question was asked */
	uint32_t asked_ms;          /* since then */
	uint64_t bare_until;        /* so long the peer may ask after a disc_bare */
	struct base_timer watchdog; /* of sends that wait, and of silence */
	uint32_t watched_head;      /* initiator request that was the oldest, ... */
	uint32_t watched_ms;        /* ... for so long */
	uint32_t silent_ms;
	uint32_t idle_ms;    /* nothing has been under way that would tell of a failure */
	uint32_t stuck_head; /* with software RoCE: the same, of any request, ... */
	uint32_t stuck_ms;
	uint32_t deaf_ms;   /* ... and for so long the device has received nothing */
	uint64_t packets;   /* ... beyond these */
	bool disc_said;     /* rdma_disconnect was called */
	bool disc_bare;     /* ... without a word in the mailbox */
	bool peer_closed;   /* nobody would read that, or ask: the peer has closed already */
	bool lost;          /* it has failed: nobody would read that it is aborted */
	bool peer_said;     /* rdma_cm told of the peer's */
	bool peer_reported; /* ... and so did we */
	bool dead;          /* conn_destroy was there */
	/* under qp->base.lock: */
	uint32_t controls_done; /* bits of enum verbs_control */
};

static inline struct verbs_conn *verbs_conn_of(struct ndx_spi_conn *conn)
{
	return container_of(conn, struct verbs_conn, spi);
}

/* ---- connected by hand (verbs_oob_path.c, verbs_oob.c) ---- */

/* Bytes of a path MTU. */
uint32_t verbs_oob_path_bytes(enum ibv_mtu mtu);
/* What rdma_init_qp_attr() would say, of a connection that rdma_cm does not know. */
void verbs_oob_path_attr(const struct verbs_conn *conn, struct ibv_qp_attr *attr, int *mask);
enum ndx_status verbs_qp_describe(struct ndx_spi_conn *spi, const struct sockaddr_storage *near,
                                  struct ndx_peer_description *out);
enum ndx_status verbs_qp_connect_peer(struct ndx_spi_conn *spi,
                                      const struct ndx_peer_description *peer);

/* ---- the end (verbs_end.c) ---- */

void verbs_conn_drain(struct ndx_spi_conn *spi);
void verbs_conn_cancel_initiator(struct ndx_spi_conn *spi);
void verbs_conn_send_disc(struct ndx_spi_conn *spi);
void verbs_conn_finish(struct ndx_spi_conn *spi);
void verbs_conn_abort(struct ndx_spi_conn *spi);
enum ndx_status verbs_conn_detach(struct ndx_spi_conn *spi);
void verbs_conn_oob_received(struct ndx_spi_conn *spi, enum ndx_spi_oob_message message);
/* rdma_cm says that the peer disconnected, or that our own request for it timed out. */
void verbs_end_on_disconnected(struct verbs_conn *conn, int status);
void verbs_end_on_work(void *arg); /* what completions have asked for */
void verbs_end_on_timer(void *arg);
/* The peer, which has said goodbye, does not take the word of ours. */
void verbs_end_unheard(struct verbs_conn *conn);
/* The peer, which has said goodbye, does not answer requests that are under way. */
void verbs_end_peer_closed(struct verbs_conn *conn);

/* ---- while a connection is up (verbs_watch.c) ---- */

void verbs_watch_begin(struct verbs_conn *conn);
static inline void verbs_watch_end(struct verbs_conn *conn)
{
	base_timer_cancel(conn->adapter->spi.loop, &conn->watchdog);
}
void verbs_watch_on_timer(void *arg);

/* ---- connecting (verbs_conn.c) ---- */

/* The conn has its queue pair: tie the two. */
void verbs_conn_tie(struct verbs_conn *conn);
void verbs_conn_on_event(struct verbs_conn *conn, const struct verbs_event *event);
/* The device is no more. */
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
/* The device is no more: everybody who waits for something is told. */
void verbs_device_lost(struct verbs_adapter *adapter, int native);
void verbs_port_on_timer(void *arg);

#endif
