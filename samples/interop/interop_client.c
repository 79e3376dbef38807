/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interop-client: a client for a server that does not use NDX. It sends a message of 16 bytes,
 * waits for the answer and disconnects, as rdma_server of rdmacm-utils expects it (on verbs; on any
 * other adapter interop-server).
 */
#include <stdio.h>

#include <ndx/ndx.h>

#include "sample_address.h"
#include "sample_options.h"
#include "sample_report.h"

#define WHO "interop-client"
#define MESSAGE 16u
#define PATIENCE_MS 20000u

struct client {
	struct ndx_adapter *adapter;
	struct ndx_connector *connector;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	char memory[2 * MESSAGE];
};

static enum ndx_status prepare(struct client *c, const char *uri)
{
	struct ndx_qp_attr attr;
	enum ndx_status st = ndx_adapter_open(uri, &c->adapter);

	if (st == NDX_OK)
		st = ndx_cq_create_depth(c->adapter, 2, &c->cq);
	if (st == NDX_OK)
		st = ndx_mr_register_new(c->adapter, c->memory, sizeof(c->memory),
		                         NDX_MR_ALLOW_LOCAL_WRITE, &c->mr);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = c->cq;
	attr.receive_depth = attr.initiator_depth = 1;
	if (st == NDX_OK)
		st = ndx_qp_create(c->adapter, &attr, &c->qp);
	return st;
}

/* Wait for both requests: the answer is complete when both have ended. */
static enum ndx_status finish_both(struct client *c)
{
	struct ndx_result result = {.status = NDX_OK};
	enum ndx_status st = NDX_OK;
	size_t got;

	for (int i = 0; i < 2 && st == NDX_OK; i++) {
		st = ndx_cq_wait_results(c->cq, &result, 1, PATIENCE_MS, &got);
		if (st == NDX_OK)
			st = result.status;
	}
	return st;
}

/* Post the receive first: the answer may come before the send call returns. */
static int talk(struct client *c, const struct sample_address *server)
{
	uint32_t token = ndx_mr_get_local_token(c->mr);
	struct ndx_sge question = {c->memory, MESSAGE, token};
	struct ndx_sge answer = {c->memory + MESSAGE, MESSAGE, token};
	enum ndx_status st = ndx_qp_receive(c->qp, NULL, &answer, 1);

	if (st == NDX_OK)
		st = ndx_connect_to(c->adapter, c->qp, (const struct sockaddr *)&server->storage,
		                    server->length, NULL, 0, PATIENCE_MS, &c->connector);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "connect");
	st = ndx_qp_send(c->qp, NULL, &question, 1, 0);
	if (st == NDX_OK)
		st = finish_both(c);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "ask");
	st = ndx_disconnect(c->connector, PATIENCE_MS);
	if (st != NDX_OK)
		return sample_failed(WHO, st, "disconnect");
	printf(WHO ": asked one server, and parted: %s\n",
	       ndx_disconnect_reason_name(ndx_connector_get_disconnect_reason(c->connector)));
	return SAMPLE_EXIT_OK;
}

static void drop(struct client *c)
{
	ndx_connector_close(c->connector);
	ndx_qp_close(c->qp);
	ndx_mr_close(c->mr);
	ndx_cq_close(c->cq);
	ndx_adapter_close(c->adapter);
}

int main(int argc, char **argv)
{
	const char *uri = NULL;
	struct client c = {.adapter = NULL};
	const struct sample_option options[] = {
		{"--adapter", "URI", "which adapter, e.g. verbs:rxe0", .text = &uri},
	};
	const struct sample_program program = {
		.name = WHO,
		.synopsis = "ADDRESS:PORT [options]",
		.about = "Asks rdma_server of rdmacm-utils (port 7471), or interop-server, once.",
		.options = options,
		.option_count = sizeof(options) / sizeof(options[0]),
		.max_operands = 1,
	};
	struct sample_address server;
	enum ndx_status st;
	int rc;

	if (!sample_parse_server(&program, argc, argv, &server, &rc))
		return rc;
	st = prepare(&c, uri);
	rc = st == NDX_OK ? talk(&c, &server) : sample_failed(WHO, st, "prepare");
	drop(&c);
	return rc;
}
