/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interop-server: a server for a client that does not use NDX. It receives a message of 16 bytes,
 * sends one back and waits for the end of the connection, as rdma_client of rdmacm-utils expects it
 * (on verbs; on any other adapter for interop-client).
 */
#include <stdio.h>

#include <ndx/ndx.h>

#include "sample_address.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "interop-server"
#define MESSAGE 16u
#define PATIENCE_MS 20000u

struct server {
	struct ndx_adapter *adapter;
	struct ndx_listener *listener;
	struct ndx_connector *connector;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	char memory[2 * MESSAGE];
};

static enum ndx_status prepare(struct server *s, const char *uri, struct sample_address *address)
{
	struct ndx_qp_attr attr;
	enum ndx_status st = ndx_adapter_open(uri, &s->adapter);

	if (st == NDX_OK)
		st = ndx_listen_on(s->adapter, (struct sockaddr *)&address->storage,
		                   address->length, 0, &s->listener);
	if (st == NDX_OK)
		st = ndx_listener_get_local_address(
			s->listener, (struct sockaddr *)&address->storage, &address->length);
	if (st == NDX_OK)
		st = ndx_cq_create_depth(s->adapter, 2, &s->cq);
	if (st == NDX_OK)
		st = ndx_mr_register_new(s->adapter, s->memory, sizeof(s->memory),
		                         NDX_MR_ALLOW_LOCAL_WRITE, &s->mr);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = s->cq;
	attr.receive_depth = attr.initiator_depth = 1;
	if (st == NDX_OK)
		st = ndx_qp_create(s->adapter, &attr, &s->qp);
	return st;
}

/* The result of the only request in flight. */
static enum ndx_status finish(struct server *s)
{
	struct ndx_result result = {.status = NDX_OK};
	size_t got;
	enum ndx_status st = ndx_cq_wait_results(s->cq, &result, 1, PATIENCE_MS, &got);

	return st == NDX_OK ? result.status : st;
}

/*
 * Request and answer. The receive is posted before the accept, because the peer sends without
 * waiting for it.
 */
static int talk(struct server *s)
{
	uint32_t token = ndx_mr_get_local_token(s->mr);
	struct ndx_sge question = {s->memory, MESSAGE, token};
	struct ndx_sge answer = {s->memory + MESSAGE, MESSAGE, token};
	enum ndx_status st = ndx_qp_receive(s->qp, NULL, &question, 1);

	if (st == NDX_OK)
		st = ndx_accept_from(s->adapter, s->listener, s->qp, NULL, 0, PATIENCE_MS,
		                     &s->connector);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "accept");
	st = finish(s);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "receive");
	st = ndx_qp_send(s->qp, NULL, &answer, 1, 0);
	if (st == NDX_OK)
		st = finish(s);
	return st == NDX_OK ? SAMPLE_EXIT_OK : sample_failed(WHO, st, "send");
}

/* The client disconnects first: wait for that, then answer. */
static int disconnect(struct server *s)
{
	struct ndx_overlapped gone = {0};
	enum ndx_status st = ndx_connector_notify_disconnect(s->connector, &gone);

	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&gone, PATIENCE_MS);
	if (st == NDX_OK)
		st = ndx_disconnect(s->connector, PATIENCE_MS);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "disconnect");
	printf(WHO ": served one client, which parted: %s\n",
	       ndx_disconnect_reason_name(ndx_connector_get_disconnect_reason(s->connector)));
	return SAMPLE_EXIT_OK;
}

static void drop(struct server *s)
{
	ndx_connector_close(s->connector);
	ndx_qp_close(s->qp);
	ndx_mr_close(s->mr);
	ndx_cq_close(s->cq);
	ndx_listener_close(s->listener);
	ndx_adapter_close(s->adapter);
}

int main(int argc, char **argv)
{
	const char *uri = NULL;
	struct server s = {.adapter = NULL};
	const struct sample_option options[] = {
		{"--adapter", "URI", "which adapter, e.g. verbs:rxe0", .text = &uri},
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "[ADDRESS:PORT] [options]",
		.about = "Serves one rdma_client of rdmacm-utils, or one interop-client.",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 1,
	};
	char text[SAMPLE_ADDRESS_TEXT];
	struct sample_address address;
	enum ndx_status st;
	const char *why;
	size_t operands;
	int rc;

	if (!sample_parse(&program, argc, argv, &operands, &rc))
		return rc;
	if (!sample_address_parse(operands == 1 ? argv[1] : "0.0.0.0:7471", &address, &why))
		return sample_usage(&program, "%s: %s", argv[1], why);
	st = prepare(&s, uri, &address);
	if (st == NDX_OK) {
		printf(WHO ": listening on %s\n",
		       sample_address_format(&address, text, sizeof(text)));
		fflush(stdout);
		rc = talk(&s);
		if (rc == SAMPLE_EXIT_OK)
			rc = disconnect(&s);
	} else {
		rc = sample_failed(WHO, st, "prepare");
	}
	drop(&s);
	return rc;
}
