/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: the calls that block. */
#include <netinet/in.h>
#include <stdio.h>

#include <ndx/ndx.h>

/* A client: connect, send a text that is in the region, wait for the result, and disconnect. */
enum ndx_status example_client(struct ndx_adapter *adapter, struct ndx_qp *qp, struct ndx_cq *cq,
                               struct ndx_sge text, const struct sockaddr_in *server)
{
	struct ndx_connector *connector;
	struct ndx_result result;
	size_t got;
	enum ndx_status st = ndx_connect_to(adapter, qp, (const struct sockaddr *)server,
	                                    sizeof(*server), NULL, 0, 5000, &connector);

	if (st != NDX_OK) {
		fprintf(stderr, "connect: %s: %s\n", ndx_status_name(st), ndx_last_error());
		return st;
	}
	st = ndx_qp_send(qp, NULL, &text, 1, 0);
	if (st == NDX_OK)
		st = ndx_cq_wait_results(cq, &result, 1, 5000, &got);
	if (st == NDX_OK)
		st = result.status;
	if (ndx_disconnect(connector, 5000) != NDX_OK)
		fprintf(stderr, "disconnect: %s\n", ndx_last_error());
	ndx_connector_close(connector);
	return st;
}

/* A server: listen, and take the next client. Receives were posted to the queue pair before. */
enum ndx_status example_server(struct ndx_adapter *adapter, struct ndx_qp *qp,
                               const struct sockaddr_in *own, struct ndx_connector **out)
{
	struct ndx_listener *listener;
	enum ndx_status st =
		ndx_listen_on(adapter, (const struct sockaddr *)own, sizeof(*own), 16, &listener);

	if (st != NDX_OK)
		return st;
	st = ndx_accept_from(adapter, listener, qp, NULL, 0, 60000, out);
	ndx_listener_close(listener);
	return st;
}

/* Look at a request before it is accepted. */
enum ndx_status example_request(struct ndx_adapter *adapter, struct ndx_listener *listener,
                                struct ndx_qp *qp, struct ndx_connector **out)
{
	char asked[64];
	size_t length = sizeof(asked);
	enum ndx_status st = ndx_get_request(adapter, listener, 60000, out);

	if (st != NDX_OK)
		return st;
	st = ndx_connector_get_private_data(*out, asked, &length);
	if (st == NDX_OK)
		st = ndx_accept(*out, qp, NULL, 0, 5000);
	if (st != NDX_OK)
		ndx_connector_close(*out); /* a request that was not accepted is refused */
	return st;
}

/* Register a buffer that the peer may read and write, and describe it for sending and receiving. */
enum ndx_status example_register(struct ndx_adapter *adapter, void *buffer, uint32_t length,
                                 struct ndx_mr **mr, struct ndx_sge *sge)
{
	enum ndx_status st = ndx_mr_register_new(
		adapter, buffer, length, NDX_MR_ALLOW_REMOTE_READ | NDX_MR_ALLOW_REMOTE_WRITE, mr);

	if (st == NDX_OK)
		*sge = (struct ndx_sge){buffer, length, ndx_mr_get_local_token(*mr)};
	return st;
}
