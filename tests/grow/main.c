/* SPDX-License-Identifier: BSD-2-Clause */
/* usage: grow-first|grow-appended URI. A connection from this process to itself, and its counters.
 */
#include <arpa/inet.h>
#include <pthread.h>

#include "grow.h"

#define TIMEOUT_MS 20000u

struct end {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_listener *listener;
	struct ndx_connector *connector;
	char data[64];
};

static void end_open(struct end *end, struct ndx_adapter *adapter)
{
	struct ndx_cq_attr cq_attr;
	struct ndx_qp_attr attr;

	end->adapter = adapter;
	ndx_cq_attr_init(&cq_attr);
	REFUSED(cq_attr, NDX_E_INVALID_PARAMETER, ndx_cq_create(adapter, &cq_attr, &end->cq));
	must(ndx_cq_create(adapter, &cq_attr, &end->cq), "create a completion queue");
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = end->cq;
	REFUSED(attr, NDX_E_INVALID_PARAMETER, ndx_qp_create(adapter, &attr, &end->qp));
	must(ndx_qp_create(adapter, &attr, &end->qp), "create a queue pair");
	must(ndx_mr_register_new(adapter, end->data, sizeof(end->data), NDX_MR_ALLOW_LOCAL_WRITE,
	                         &end->mr),
	     "register memory");
}

static struct ndx_sge sge_of(struct end *end)
{
	return (struct ndx_sge){.buffer = end->data,
	                        .length = sizeof(end->data),
	                        .token = ndx_mr_get_local_token(end->mr)};
}

static void end_result(struct end *end, const char *what)
{
	struct ndx_result result;
	size_t got;

	must(ndx_cq_wait_results(end->cq, &result, 1, TIMEOUT_MS, &got), what);
	must(result.status, what);
}

static void end_close(struct end *end)
{
	ndx_connector_close(end->connector);
	ndx_qp_close(end->qp);
	ndx_mr_close(end->mr);
	ndx_cq_close(end->cq);
}

static void *serve(void *arg)
{
	struct end *end = arg;
	struct ndx_sge sge = sge_of(end);

	struct ndx_receive receives[2] = {{.sge = &sge, .sge_count = 1}};
	size_t posted;

	REFUSED(receives[0], NDX_E_INVALID_PARAMETER,
	        ndx_qp_receive_list(end->qp, receives, 2, &posted));
	must(ndx_qp_receive_list(end->qp, receives, 2, &posted), "post receives");
	must(ndx_accept_from(end->adapter, end->listener, end->qp, NULL, 0, TIMEOUT_MS,
	                     &end->connector),
	     "accept");
	end_result(end, "receive");
	end_result(end, "receive without bytes");
	must(ndx_disconnect(end->connector, TIMEOUT_MS), "disconnect the passive end");
	return NULL;
}

static void counters(struct end *end)
{
	struct ndx_adapter_stats all;
	struct ndx_cq_stats cq;
	struct ndx_qp_stats qp;

	PREPARE(all);
	must(ndx_adapter_get_stats(end->adapter, &all), "counters of the adapter");
	must_hold(all.initiator.posted == 2 && all.qps.now == 2, "wrong counters of the adapter");
	LEFT_ALONE(all);
	PREPARE(cq);
	must(ndx_cq_get_stats(end->cq, &cq), "counters of a queue");
	must_hold(cq.taken == 2, "wrong counters of a queue");
	LEFT_ALONE(cq);
	PREPARE(qp);
	must(ndx_qp_get_stats(end->qp, &qp), "counters of a queue pair");
	must_hold(qp.initiator.posted == 2, "wrong counters of a queue pair");
	LEFT_ALONE(qp);
}

static void connect_to(struct end *end, const struct sockaddr_in *address)
{
	struct ndx_overlapped ov = {0};
	struct ndx_connect_attr attr;

	must(ndx_connector_create(end->adapter, NULL, &end->connector), "create a connector");
	ndx_connect_attr_init(&attr);
	REFUSED(attr, NDX_E_INVALID_PARAMETER,
	        ndx_connector_connect(end->connector, end->qp, (const struct sockaddr *)address,
	                              sizeof(*address), &attr, &ov));
	must_be(ndx_connector_connect(end->connector, end->qp, (const struct sockaddr *)address,
	                              sizeof(*address), &attr, &ov),
	        NDX_PENDING, "connect");
	must(ndx_overlapped_wait(&ov, TIMEOUT_MS), "connect");
	must_be(ndx_connector_complete_connect(end->connector, &ov), NDX_PENDING, "complete");
	must(ndx_overlapped_wait(&ov, TIMEOUT_MS), "complete");
}

static void connect_and_send(struct ndx_adapter *adapter)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(address);
	struct end client = {.data = "to an end of another age"};
	struct end server = {0};
	struct ndx_request sends[2] = {{.type = NDX_POST_SEND}, {.type = NDX_POST_SEND}};
	struct ndx_sge sge;
	size_t posted;
	pthread_t thread;

	end_open(&client, adapter);
	end_open(&server, adapter);
	must(ndx_listen_on(adapter, (struct sockaddr *)&address, length, 0, &server.listener),
	     "listen");
	must(ndx_listener_get_local_address(server.listener, (struct sockaddr *)&address, &length),
	     "get the port");
	must_hold(pthread_create(&thread, NULL, serve, &server) == 0, "no thread");
	connect_to(&client, &address);
	sge = sge_of(&client);
	sends[0].sge = &sge;
	sends[0].sge_count = 1;
	REFUSED(sends[1], NDX_E_INVALID_PARAMETER, ndx_qp_post_list(client.qp, sends, 2, &posted));
	must(ndx_qp_post_list(client.qp, sends, 2, &posted), "post sends");
	end_result(&client, "send");
	end_result(&client, "send without bytes");
	must(ndx_disconnect(client.connector, TIMEOUT_MS), "disconnect the active end");
	(void)pthread_join(thread, NULL);
	must_hold(strcmp(client.data, server.data) == 0, "the message arrived changed");
	counters(&client);
	ndx_listener_close(server.listener);
	end_close(&client);
	end_close(&server);
}

int main(int argc, char **argv)
{
	struct ndx_adapter_info info;
	struct ndx_adapter *adapter;

	must_hold(argc == 2, "usage: grow-first|grow-appended URI");
	must(ndx_adapter_open(argv[1], &adapter), "open the adapter");
	PREPARE(info);
	must(ndx_adapter_query(adapter, &info), "query the adapter");
	must_hold(info.max_callee_data > 0, "the last member of the first version is not filled");
	LEFT_ALONE(info);
	connect_and_send(adapter);
	grow_attributes(adapter);
	ndx_adapter_close(adapter);
	return 0;
}
