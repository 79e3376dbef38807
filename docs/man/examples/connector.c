/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: connectors. */
#include <stdio.h>
#include <unistd.h>

#include <ndx/ndx.h>

/* Connect without the helpers: bind to an address of this host, connect, and complete. */
enum ndx_status example_connect(struct ndx_adapter *adapter, struct ndx_qp *qp,
                                const struct sockaddr *own, const struct sockaddr *server,
                                socklen_t length, struct ndx_connector **out)
{
	struct ndx_overlapped ov = {0};
	struct ndx_connector_attr attr;
	struct ndx_connect_attr how;
	enum ndx_status st;

	ndx_connector_attr_init(&attr);
	attr.disconnect_timeout_ms = 3000;
	st = ndx_connector_create(adapter, &attr, out);
	if (st != NDX_OK)
		return st;
	ndx_connect_attr_init(&how);
	how.private_data = "hello";
	how.private_data_len = 5;
	st = ndx_connector_bind(*out, own, length);
	if (st == NDX_OK)
		st = ndx_connector_connect(*out, qp, server, length, &how, &ov);
	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&ov, NDX_INFINITE);
	if (st == NDX_OK)
		st = ndx_connector_complete_connect(*out, &ov);
	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&ov, NDX_INFINITE);
	if (st != NDX_OK)
		ndx_connector_close(*out);
	return st;
}

/* Answer a request that ndx_listener_get_connection_request() has put into a connector. */
enum ndx_status example_answer(struct ndx_connector *connector, struct ndx_qp *qp,
                               struct ndx_overlapped *ov)
{
	struct sockaddr_storage peer;
	socklen_t peer_length = sizeof(peer);
	struct ndx_connect_attr how;
	char asked[64];
	size_t length = sizeof(asked);
	uint32_t inbound, outbound;

	if (ndx_connector_get_peer_address(connector, (struct sockaddr *)&peer, &peer_length) !=
	            NDX_OK ||
	    ndx_connector_get_private_data(connector, asked, &length) != NDX_OK)
		return ndx_connector_reject(connector, "what?", 5);
	if (ndx_connector_get_read_limits(connector, &inbound, &outbound) == NDX_OK)
		printf("%zu bytes of private data, reads: %u in, %u out\n", length, inbound,
		       outbound);
	ndx_connect_attr_init(&how);
	return ndx_connector_accept(connector, qp, &how, ov); /* NDX_PENDING: see ov */
}

/* Notice the end of a connection, and take part in it. */
enum ndx_status example_end(struct ndx_connector *connector)
{
	struct ndx_overlapped gone = {0}, over = {0};
	enum ndx_status st = ndx_connector_notify_disconnect(connector, &gone);

	if (st != NDX_PENDING)
		return st;
	if (ndx_overlapped_wait(&gone, 60000) == NDX_PENDING)
		(void)ndx_connector_cancel(connector); /* completes it: NDX_E_CANCELED */
	printf("the peer's end: %s\n",
	       ndx_disconnect_reason_name(ndx_connector_get_disconnect_reason(connector)));
	st = ndx_connector_disconnect(connector, &over);
	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&over, NDX_INFINITE);
	ndx_connector_close(connector);
	return st;
}

/* What an operation that completed with a failure has to say, and from which address. */
void example_explain(struct ndx_connector *connector)
{
	struct sockaddr_storage own;
	socklen_t own_length = sizeof(own);
	char text[512];
	size_t length = sizeof(text);

	if (ndx_connector_get_error_text(connector, text, &length) == NDX_OK)
		fprintf(stderr, "%s\n", text);
	if (ndx_connector_get_local_address(connector, (struct sockaddr *)&own, &own_length) ==
	    NDX_OK)
		fprintf(stderr, "address family %d\n", own.ss_family);
}

/* Connect by descriptions, which the two ends exchange over a stream of their own. */
enum ndx_status example_describe(struct ndx_connector *connector, struct ndx_qp *qp, int stream,
                                 struct ndx_overlapped *ov)
{
	struct ndx_peer_description own, peer;
	enum ndx_status st = ndx_connector_describe(connector, qp, NDX_ROLE_CLIENT, 1, 1, &own);

	if (st != NDX_OK)
		return st;
	/* Both ends are the same program on the same kind of machine: the bytes will do. */
	if (write(stream, &own, sizeof(own)) != (ssize_t)sizeof(own) ||
	    read(stream, &peer, sizeof(peer)) != (ssize_t)sizeof(peer))
		return NDX_E_CONNECTION_ABORTED;
	st = ndx_connector_set_oob_stream(connector, stream); /* for the goodbyes, on verbs */
	return st == NDX_OK ? ndx_connector_connect_peer(connector, &peer, ov) : st;
}

/* What a binding for another language calls, which knows the sizes of its own structures. */
void example_connector_sizes(struct ndx_connector_attr *attr, size_t attr_size,
                             struct ndx_connect_attr *how, size_t how_size)
{
	ndx_connector_attr_init_sized(attr, attr_size);
	ndx_connect_attr_init_sized(how, how_size);
}
