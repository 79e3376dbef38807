/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters, memory, connecting. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

bool went_wrong(const char *what, enum ndx_status status)
{
	(void)fprintf(stderr, "ndx-disconnect-figures: %s: %s %s\n", what, ndx_status_name(status),
	              ndx_last_error());
	return false;
}

static bool fine(enum ndx_status status, enum ndx_status want, const char *what)
{
	return status == want || went_wrong(what, status);
}

static bool end_open(struct end *end, const char *uri, size_t memory)
{
	end->memory = calloc(1, memory);
	if (!end->memory)
		return went_wrong("memory", NDX_E_NO_MEMORY);
	return fine(ndx_adapter_open(uri, &end->adapter), NDX_OK, uri) &&
	       fine(ndx_cq_create_depth(end->adapter, (uint32_t)(4 * REQUESTS), &end->cq), NDX_OK,
	            "cq_create") &&
	       fine(ndx_mr_register_new(end->adapter, end->memory, memory,
	                                NDX_MR_ALLOW_REMOTE_WRITE, &end->mr),
	            NDX_OK, "mr_register_new");
}

static void end_close(struct end *end)
{
	ndx_mr_close(end->mr);
	ndx_cq_close(end->cq);
	ndx_adapter_close(end->adapter);
	free(end->memory);
}

static bool listen_at(struct stage *stage, struct end *end)
{
	struct sockaddr *address = (struct sockaddr *)&stage->address;
	struct sockaddr_storage addresses[16];
	size_t count = sizeof(addresses) / sizeof(addresses[0]);

	if (!fine(ndx_adapter_query_addresses(end->adapter, addresses, &count), NDX_OK,
	          "adapter_query_addresses"))
		return false;
	if (count == 0)
		return went_wrong("no address to listen on", NDX_E_INVALID_ADDRESS);
	stage->address_len = sizeof(stage->address);
	return fine(ndx_listen_on(end->adapter, (struct sockaddr *)&addresses[0],
	                          addresses[0].ss_family == AF_INET ? sizeof(struct sockaddr_in)
	                                                            : sizeof(struct sockaddr_in6),
	                          0, &stage->listener),
	            NDX_OK, "listen_on") &&
	       fine(ndx_listener_get_local_address(stage->listener, address, &stage->address_len),
	            NDX_OK, "listener_get_local_address");
}

bool stage_open(struct stage *stage, const char *uri, size_t memory)
{
	memset(stage, 0, sizeof(*stage));
	if (end_open(&stage->ends[0], uri, memory) && end_open(&stage->ends[1], uri, memory) &&
	    listen_at(stage, &stage->ends[1]))
		return true;
	stage_close(stage);
	return false;
}

void stage_close(struct stage *stage)
{
	ndx_listener_close(stage->listener);
	end_close(&stage->ends[0]);
	end_close(&stage->ends[1]);
}

bool line_open(struct line *line, struct end *end, void *context)
{
	struct ndx_qp_attr attr;

	memset(line, 0, sizeof(*line));
	line->end = end;
	ndx_overlapped_init(&line->ov);
	ndx_overlapped_init(&line->notify);
	ndx_overlapped_init(&line->disc);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = end->cq;
	attr.receive_depth = MESSAGES;
	attr.initiator_depth = MESSAGES + WRITES;
	attr.context = context;
	return fine(ndx_qp_create(end->adapter, &attr, &line->qp), NDX_OK, "qp_create") &&
	       fine(ndx_connector_create(end->adapter, NULL, &line->connector), NDX_OK,
	            "connector_create");
}

void line_close(struct line *line)
{
	ndx_connector_close(line->connector);
	ndx_qp_close(line->qp);
	line->connector = NULL;
	line->qp = NULL;
}

bool wait_for(struct ndx_overlapped *ov, const char *what)
{
	enum ndx_status status = ndx_overlapped_wait(ov, WAIT_MS);

	return status != NDX_PENDING || went_wrong(what, status);
}

static bool wait_ok(struct ndx_overlapped *ov, const char *what)
{
	return fine(ndx_overlapped_wait(ov, WAIT_MS), NDX_OK, what);
}

bool lines_connect(struct stage *stage, struct line lines[2])
{
	struct line *a = &lines[0];
	struct line *b = &lines[1];

	return fine(ndx_listener_get_connection_request(stage->listener, b->connector, &b->ov),
	            NDX_PENDING, "get_connection_request") &&
	       fine(ndx_connector_connect(
			    a->connector, a->qp, (struct sockaddr *)&stage->address,
			    stage->address_len,
			    &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                               .inbound_read_limit = 16,
	                                               .outbound_read_limit = 16},
			    &a->ov),
	            NDX_PENDING, "connect") &&
	       wait_ok(&b->ov, "get_connection_request") &&
	       fine(ndx_connector_accept(
			    b->connector, b->qp,
			    &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                               .inbound_read_limit = 16,
	                                               .outbound_read_limit = 16},
			    &b->ov),
	            NDX_PENDING, "accept") &&
	       wait_ok(&a->ov, "connect") &&
	       fine(ndx_connector_complete_connect(a->connector, &a->ov), NDX_PENDING,
	            "complete_connect") &&
	       wait_ok(&a->ov, "complete_connect") && wait_ok(&b->ov, "accept") &&
	       fine(ndx_connector_notify_disconnect(a->connector, &a->notify), NDX_PENDING,
	            "notify_disconnect") &&
	       fine(ndx_connector_notify_disconnect(b->connector, &b->notify), NDX_PENDING,
	            "notify_disconnect");
}

static struct ndx_sge piece(const struct end *end, size_t at, size_t length)
{
	struct ndx_sge sge = {end->memory + at, (uint32_t)length, ndx_mr_get_local_token(end->mr)};

	return sge;
}

bool line_receive(struct line *line, size_t number, size_t at, size_t length)
{
	struct ndx_sge sge = piece(line->end, at, length);

	return fine(ndx_qp_receive(line->qp, (void *)(uintptr_t)number, &sge, 1), NDX_OK,
	            "receive");
}

bool line_send(struct line *line, size_t number, size_t at, size_t length)
{
	struct ndx_sge sge = piece(line->end, at, length);

	return fine(ndx_qp_send(line->qp, (void *)(uintptr_t)number, &sge, 1, 0), NDX_OK, "send");
}

bool line_write(struct line *line, size_t number, size_t at, size_t length, const struct end *peer,
                size_t peer_at)
{
	struct ndx_sge sge = piece(line->end, at, length);

	return fine(ndx_qp_write(line->qp, (void *)(uintptr_t)number, &sge, 1,
	                         (uint64_t)(uintptr_t)(peer->memory + peer_at),
	                         ndx_mr_get_remote_token(peer->mr), 0),
	            NDX_OK, "write");
}

bool line_disconnect(struct line *line)
{
	return fine(ndx_connector_disconnect(line->connector, &line->disc), NDX_PENDING,
	            "disconnect");
}
