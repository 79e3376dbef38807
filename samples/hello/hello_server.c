/* SPDX-License-Identifier: BSD-2-Clause */
/* The smallest server: accept one client, print its message, disconnect. */
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

int main(void)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(here);
	struct ndx_adapter *adapter;
	struct ndx_listener *listener;
	struct ndx_connector *connector;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_qp_attr attr;
	struct ndx_result result;
	char text[64] = "";
	size_t got;

	must(ndx_adapter_open("ofi:tcp?iface=lo", &adapter), "open the adapter");
	must(ndx_listen_on(adapter, (struct sockaddr *)&here, length, 0, &listener), "listen");
	must(ndx_listener_get_local_address(listener, (struct sockaddr *)&here, &length), "port");
	printf("port %u\n", ntohs(here.sin_port));
	fflush(stdout);
	must(ndx_cq_create_depth(adapter, 4, &cq), "create a completion queue");
	must(ndx_mr_register_new(adapter, text, sizeof(text), NDX_MR_ALLOW_LOCAL_WRITE, &mr),
	     "register memory");
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = cq;
	must(ndx_qp_create(adapter, &attr, &qp), "create a queue pair");
	struct ndx_sge sge = {text, sizeof(text) - 1, ndx_mr_get_local_token(mr)};
	must(ndx_qp_receive(qp, NULL, &sge, 1), "post a receive");
	must(ndx_accept_from(adapter, listener, qp, NULL, 0, 60000, &connector), "accept");
	must(ndx_cq_wait_results(cq, &result, 1, 10000, &got), "wait for a message");
	must(result.status, "receive");
	printf("received: %s\n", text);
	must(ndx_disconnect(connector, 10000), "disconnect");
	ndx_connector_close(connector);
	ndx_qp_close(qp);
	ndx_mr_close(mr);
	ndx_cq_close(cq);
	ndx_listener_close(listener);
	ndx_adapter_close(adapter);
	return 0;
}
