/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "null": a small provider that is complete. It connects queue pairs within the process and copies
 * the data. docs/writing-a-provider.md explains it; copy these files to begin a provider of your
 * own.
 *
 * One lock guards all adapters of the process, and is the lock of every queue pair, too. Order of
 * locks: the adapter's (the core's), this one, that of a completion queue. With this lock held the
 * provider neither logs nor allocates: a log record may call the program.
 */
#ifndef NULL_H
#define NULL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/loop.h>
#include <ndx/spi/provider.h>
#include <ndx/spi/queue_pair.h>
#include <ndx/spi/table.h>

#define NULL_MAX_SGE 4u
#define NULL_MAX_TRANSFER (UINT32_C(1) << 30)

/* A local port. */
struct null_port {
	struct ndxp_table_node node;    /* in a table while bound; `hash` is the number */
	struct null_listener *listener; /* NULL: does not listen */
};

struct null_qp {
	struct ndxp_qp base;
	struct null_conn *conn; /* from the attempt to connect to the end */
	uint32_t reads;         /* the outbound read limit */
};

enum null_conn_state {
	NULL_IDLE,
	NULL_ASKING,   /* active side: has sent its request */
	NULL_ANSWERED, /* active side: the peer has accepted */
	NULL_TAKEN,    /* passive side: has the peer's request */
	NULL_UP,       /* connected, also during the disconnect */
	NULL_ENDED,    /* broken, aborted or finished */
};

struct null_conn {
	struct ndx_spi_conn spi;
	enum null_conn_state state;
	struct null_request *request; /* ASKING, and no connector has taken the request yet */
	struct null_conn *peer;
	struct null_qp *qp; /* NULL: none yet, or detached */
	struct null_port port;
	bool draining;           /* DRAINED has to be reported */
	struct ndxp_timer timer; /* of a send that waits for a receive */
};

static inline struct null_qp *null_qp_of(struct ndx_spi_qp *spi)
{
	return ndxp_container_of(spi, struct null_qp, base.spi);
}

/* ---- memory, queue pairs and the data path (null_data.c) ---- */

void null_lock(void);
void null_unlock(void);

enum ndx_status null_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out);
void null_mr_destroy(struct ndx_spi_mr *spi);
enum ndx_status null_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length,
                                 uint32_t flags);
enum ndx_status null_mr_deregister(struct ndx_spi_mr *spi, bool closing);
enum ndx_status null_qp_create(struct ndx_spi_adapter *adapter, const struct ndx_qp_attr *attr,
                               struct ndx_spi_qp **out);
void null_qp_cancel(struct ndx_spi_qp *spi);
void null_qp_destroy(struct ndx_spi_qp *spi);
void null_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats);

/* Function of null_conn.timer; `arg` is the connector, whose oldest send waits for a receive. */
void null_no_receive(void *arg);

/* Lock held, here and below: cancel the requests of the initiator queue. */
void null_cancel_initiator(struct null_qp *qp);
void null_report(struct null_conn *conn, uint32_t bits, const char *cause);
/* Break a connection that is up. A cause is NULL for a side that knows already. */
void null_disrupt(struct null_conn *conn, const char *own_cause, const char *peers_cause);
/* Report DRAINED if the core waits for it and no request is left. */
void null_check_drained(struct null_conn *conn);
/* Run this side's requests as far as possible. */
void null_pump(struct null_conn *conn);

/* ---- listeners, connecting and the disconnect (null_conn.c) ---- */

/* The only address, with this port. */
struct sockaddr_storage null_address(uint16_t port);

enum ndx_status null_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                     struct ndx_spi_listener **out);
void null_listener_destroy(struct ndx_spi_listener *spi);
enum ndx_status null_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                   socklen_t len);
enum ndx_status null_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog);
enum ndx_status null_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                 struct ndx_spi_conn **out);
enum ndx_status null_conn_bind(struct ndx_spi_conn *spi, const struct sockaddr *address,
                               socklen_t len);
void null_conn_abandon(struct ndx_spi_conn *spi);
void null_conn_destroy(struct ndx_spi_conn *spi);
enum ndx_status null_conn_connect(struct ndx_spi_conn *spi, const struct sockaddr *destination,
                                  socklen_t len, const struct ndx_spi_params *params);
void null_conn_take(struct ndx_spi_conn *spi, struct ndx_spi_request *spi_request);
void null_request_refuse(struct ndx_spi_request *spi);
enum ndx_status null_conn_accept(struct ndx_spi_conn *spi, const struct ndx_spi_params *params);
enum ndx_status null_conn_complete(struct ndx_spi_conn *spi);
enum ndx_status null_conn_reject(struct ndx_spi_conn *spi, const void *private_data, size_t len);
void null_conn_drain(struct ndx_spi_conn *spi);
void null_conn_cancel_initiator(struct ndx_spi_conn *spi);
void null_conn_send_disc(struct ndx_spi_conn *spi);
void null_conn_finish(struct ndx_spi_conn *spi);
void null_conn_abort(struct ndx_spi_conn *spi);
enum ndx_status null_conn_detach(struct ndx_spi_conn *spi);

#endif
