/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a connection and the ways to connect it, for receivers and senders. */
#ifndef RECEIVER_ENDPOINT_H
#define RECEIVER_ENDPOINT_H

#include <stdbool.h>

#include <ndx/adapter.h>
#include <ndx/connector.h>
#include <ndx/listener.h>

struct endpoint {
	struct ndx_adapter *adapter;
	bool own_adapter;
	struct ndx_qp *qp;
	struct ndx_connector *connector; /* NULL: neither described nor connected */
	struct ndx_peer_description own; /* once described */
	bool described;
};

/* Use `adapter`, or open the one that `uri` names. */
enum ndx_status endpoint_open(struct endpoint *e, struct ndx_adapter *adapter, const char *uri,
                              struct ndx_adapter_info *info);
/* NDX_E_WOULD_BLOCK in a callback of any adapter. */
enum ndx_status endpoint_may_block(const char *call);

enum ndx_status endpoint_connect(struct endpoint *e, const struct sockaddr *destination,
                                 socklen_t destination_len, const void *data, size_t data_len,
                                 uint32_t timeout_ms);
enum ndx_status endpoint_accept(struct endpoint *e, struct ndx_listener *listener, const void *data,
                                size_t data_len, uint32_t timeout_ms);
enum ndx_status endpoint_describe(struct endpoint *e, enum ndx_role role);
enum ndx_status endpoint_connect_peer(struct endpoint *e, const struct ndx_peer_description *peer,
                                      uint32_t timeout_ms);
/* Close the connector and return to the state before describe or connect. */
void endpoint_forget(struct endpoint *e);
/* Close everything except the adapter. The caller makes sure that nothing uses the queue pair. */
void endpoint_dismantle(struct endpoint *e);
void endpoint_close(struct endpoint *e);

#endif
