/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ndx_test: two threads send a message over the adapter that $NDX_ADAPTER names. It stands for the
 * tests of a program that uses NDX; exit status 0 if the message arrived.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/ndx.h>

enum { WAIT_MS = 60000 };

static const char message[] = "a message";

struct end {
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	char text[sizeof(message)];
};

static struct ndx_adapter *adapter;
static struct sockaddr_in server = {.sin_family = AF_INET};

static void must(enum ndx_status status, const char *what)
{
	if (status == NDX_OK)
		return;
	fprintf(stderr, "ndx_test: %s: %s %s\n", what, ndx_status_name(status), ndx_last_error());
	exit(1);
}

static struct ndx_sge create(struct end *end)
{
	struct ndx_qp_attr attr;

	must(ndx_cq_create_depth(adapter, 4, &end->cq), "create a completion queue");
	must(ndx_mr_register_new(adapter, end->text, sizeof(end->text), NDX_MR_ALLOW_LOCAL_WRITE,
	                         &end->mr),
	     "register memory");
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = end->cq;
	must(ndx_qp_create(adapter, &attr, &end->qp), "create a queue pair");
	return (struct ndx_sge){end->text, sizeof(end->text), ndx_mr_get_local_token(end->mr)};
}

/* Wait for the only result, disconnect, close. */
static void finish(struct end *end, struct ndx_connector *connector)
{
	struct ndx_result result;
	size_t got;

	must(ndx_cq_wait_results(end->cq, &result, 1, WAIT_MS, &got), "wait");
	must(result.status, "the message");
	must(ndx_disconnect(connector, WAIT_MS), "disconnect");
	ndx_connector_close(connector);
	ndx_qp_close(end->qp);
	ndx_mr_close(end->mr);
	ndx_cq_close(end->cq);
}

static void *client(void *arg)
{
	struct end end = {0};
	struct ndx_connector *connector;
	struct ndx_sge sge = create(&end);

	(void)arg;
	memcpy(end.text, message, sizeof(message));
	must(ndx_connect_to(adapter, end.qp, (struct sockaddr *)&server, sizeof(server), NULL, 0,
	                    WAIT_MS, &connector),
	     "connect");
	must(ndx_qp_send(end.qp, NULL, &sge, 1, 0), "send");
	finish(&end, connector);
	return NULL;
}

int main(void)
{
	struct end end = {0};
	struct ndx_listener *listener;
	struct ndx_connector *connector;
	socklen_t length = sizeof(server);
	pthread_t thread;

	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(ndx_adapter_open(NULL, &adapter), "open the adapter");
	must(ndx_listen_on(adapter, (struct sockaddr *)&server, length, 0, &listener), "listen");
	must(ndx_listener_get_local_address(listener, (struct sockaddr *)&server, &length), "port");
	struct ndx_sge sge = create(&end);
	must(ndx_qp_receive(end.qp, NULL, &sge, 1), "receive");
	if (pthread_create(&thread, NULL, client, NULL) != 0)
		return 1;
	must(ndx_accept_from(adapter, listener, end.qp, NULL, 0, WAIT_MS, &connector), "accept");
	finish(&end, connector);
	pthread_join(thread, NULL);
	ndx_listener_close(listener);
	ndx_adapter_close(adapter);
	if (strcmp(end.text, message) != 0)
		return 1;
	printf("%s arrived\n", message);
	return 0;
}
