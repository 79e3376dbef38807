/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting and disconnecting (ofi_conn.c, ofi_end.c, ofi_listener.c). Part of ofi.h. */
#ifndef OFI_OFI_CONN_H
#define OFI_OFI_CONN_H

#include <sys/socket.h>

#include <rdma/fabric.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/list.h>
#include "ofi_wire.h"

struct ofi_adapter;
struct ofi_cm_event;
struct ofi_link;

struct ofi_request {
	struct ndx_spi_request spi;
	struct ofi_adapter *adapter;
	struct fi_info *info;
	struct ofi_cm peer;
};

#define OFI_CAUSE 160

struct ofi_conn {
	struct ndx_spi_conn spi;
	struct ofi_adapter *adapter;
	struct ndxp_list node;
	struct sockaddr_storage bound; /* AF_UNSPEC: not bound */
	int reserved;                  /* socket that reserves the port, or -1 */
	struct ofi_link *link;         /* control thread */
	/* What connecting has shown of the path, see ofi_prove.c; enum ndx_spi_proved, atomic. */
	uint32_t written;
	uint32_t seen;
	struct ofi_request *request; /* taken, not answered yet; control thread */
	/* The cause that ofi_qp_break_with() has reported; guarded by the queue pair's lock until
	 * then, constant after that. */
	char cause[OFI_CAUSE];
};

static inline struct ofi_conn *ofi_conn_of(struct ndx_spi_conn *spi)
{
	return (struct ofi_conn *)(void *)spi;
}

void ofi_params_of(const struct ofi_cm *cm, struct ndx_spi_params *params);
void ofi_conn_event(void *owner, const struct ofi_cm_event *event);
void ofi_refuse(struct ofi_adapter *adapter, struct fi_info *info, const void *data, size_t len);

enum ndx_status ofi_conn_create(struct ndx_spi_adapter *adapter, struct ndx_connector *front,
                                struct ndx_spi_conn **out);
void ofi_conn_destroy(struct ndx_spi_conn *spi);
enum ndx_status ofi_conn_bind(struct ndx_spi_conn *spi, const struct sockaddr *address,
                              socklen_t len);
enum ndx_status ofi_conn_connect(struct ndx_spi_conn *spi, const struct sockaddr *destination,
                                 socklen_t len, const struct ndx_spi_params *params);
enum ndx_status ofi_conn_complete(struct ndx_spi_conn *spi);
void ofi_conn_take(struct ndx_spi_conn *spi, struct ndx_spi_request *request);
enum ndx_status ofi_conn_accept(struct ndx_spi_conn *spi, const struct ndx_spi_params *params);
enum ndx_status ofi_conn_reject(struct ndx_spi_conn *spi, const void *private_data, size_t len);
void ofi_conn_abandon(struct ndx_spi_conn *spi);

enum ndx_status ofi_conn_prove(struct ndx_spi_conn *spi, uint64_t write, uint64_t expect,
                               struct ndx_spi_proof *proof);
/* A new attempt: nothing is known. */
void ofi_prove_begin(struct ofi_conn *conn);
/* A message of the peer has arrived, of this length; conn: may be NULL. Any thread. */
void ofi_prove_seen(struct ofi_conn *conn, enum ndx_spi_proved how);
/* The own message of the length of a packet has arrived at the peer. */
void ofi_prove_written(struct ofi_conn *conn);

void ofi_conn_drain(struct ndx_spi_conn *spi);
void ofi_conn_cancel_initiator(struct ndx_spi_conn *spi);
void ofi_conn_send_disc(struct ndx_spi_conn *spi);
void ofi_conn_finish(struct ndx_spi_conn *spi);
void ofi_conn_abort(struct ndx_spi_conn *spi);
enum ndx_status ofi_conn_detach(struct ndx_spi_conn *spi);

enum ndx_status ofi_listener_create(struct ndx_spi_adapter *adapter, struct ndx_listener *front,
                                    struct ndx_spi_listener **out);
/* A request came by the adapter's event queue. */
void ofi_listener_event(void *owner, const struct ofi_cm_event *event);
void ofi_listener_destroy(struct ndx_spi_listener *spi);
/* Free at once the destroyed listeners that still wait for late requests to refuse. */
void ofi_listener_end_all(struct ofi_adapter *adapter);
enum ndx_status ofi_listener_bind(struct ndx_spi_listener *spi, const struct sockaddr *address,
                                  socklen_t len);
enum ndx_status ofi_listener_listen(struct ndx_spi_listener *spi, uint32_t backlog);
void ofi_request_refuse(struct ndx_spi_request *spi);
bool ofi_request_is_stale(const struct ndx_spi_request *spi);

#endif
