/* SPDX-License-Identifier: BSD-2-Clause */
/* The smallest client: `hello-client PORT` sends one message and disconnects. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include <ndx/ndx.h>

static void must(enum ndx_status status, const char *what)
{
	if (status == NDX_OK)
		return;
	fprintf(stderr, "%s: %s (%s) %s\n", what, ndx_status_name(status), ndx_status_text(status),
	        ndx_last_error());
	exit(1);
}

int main(int argc, char **argv)
{
	struct sockaddr_in server = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	char text[] = "hello from the other process", why[512] = "";
	struct ndx_adapter *adapter;
	struct ndx_connector *connector;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_qp_attr attr;
	struct ndx_result result;
	size_t got, room = sizeof(why);
	const unsigned long port = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;

	server.sin_port = htons((in_port_t)port);
	if (port == 0 || port > 65535)
		return fprintf(stderr, "usage: hello-client PORT, as hello-server prints it\n"), 2;
	must(ndx_adapter_open("ofi:tcp?iface=lo", &adapter), "open the adapter");
	must(ndx_cq_create_depth(adapter, 4, &cq), "create a completion queue");
	must(ndx_mr_register_new(adapter, text, sizeof(text), 0, &mr), "register memory");
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = cq;
	must(ndx_qp_create(adapter, &attr, &qp), "create a queue pair");
	must(ndx_connect_to(adapter, qp, (struct sockaddr *)&server, sizeof(server), NULL, 0, 10000,
	                    &connector),
	     "connect");
	struct ndx_sge sge = {text, sizeof(text), ndx_mr_get_local_token(mr)};
	must(ndx_qp_send(qp, NULL, &sge, 1, 0), "post a send");
	must(ndx_cq_wait_results(cq, &result, 1, 10000, &got), "wait for the send");
	if (result.status != NDX_OK) {
		ndx_connector_get_error_text(connector, why, &room);
		return fprintf(stderr, "send: %s\n", why), 1;
	}
	must(ndx_disconnect(connector, 10000), "disconnect"); /* nothing that was sent is lost */
	puts("sent, and parted without losing it");
	ndx_connector_close(connector);
	ndx_qp_close(qp);
	ndx_mr_close(mr);
	ndx_cq_close(cq);
	ndx_adapter_close(adapter);
	return 0;
}
