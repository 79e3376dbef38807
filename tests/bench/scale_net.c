/* SPDX-License-Identifier: BSD-2-Clause */
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lane.h"
#include "scale.h"
#include "traffic.h"

#define TIMEOUT_MS 20000u
#define BATCH 64u
#define AT_ONCE 64u /* messages under way */

static void must(const char *what, enum ndx_status st)
{
	if (st != NDX_OK)
		lane_die(what,
		         ndx_last_error()[0] != '\0' ? ndx_last_error() : ndx_status_name(st));
}

/* ---- making ---- */

static void open_side(struct scale_net *net, int side, const char *uri, unsigned most)
{
	must("ndx_adapter_open", ndx_adapter_open(uri, &net->adapter[side]));
	must("ndx_cq_create",
	     ndx_cq_create_depth(net->adapter[side], most * 2 * SCALE_DEPTH, &net->cq[side]));
	must("ndx_mr_register_new",
	     ndx_mr_register_new(net->adapter[side], net->memory[side], sizeof(net->memory[side]),
	                         NDX_MR_ALLOW_LOCAL_WRITE, &net->mr[side]));
}

void scale_open(struct scale_net *net, const char *uri, unsigned most, uint32_t reads)
{
	struct sockaddr_storage list[16];
	size_t count = sizeof(list) / sizeof(list[0]);

	memset(net, 0, sizeof(*net));
	net->reads = reads;
	net->conns = calloc(most, sizeof(*net->conns));
	if (net->conns == NULL)
		lane_die("no memory", "for connections");
	open_side(net, 0, uri, most);
	open_side(net, 1, uri, most);
	must("ndx_adapter_query_addresses",
	     ndx_adapter_query_addresses(net->adapter[1], list, &count));
	must("ndx_listen_on",
	     ndx_listen_on(net->adapter[1], (struct sockaddr *)&list[0],
	                   list[0].ss_family == AF_INET ? sizeof(struct sockaddr_in)
	                                                : sizeof(struct sockaddr_in6),
	                   16, &net->listener));
	net->address_len = sizeof(net->address);
	must("ndx_listener_get_local_address",
	     ndx_listener_get_local_address(net->listener, (struct sockaddr *)&net->address,
	                                    &net->address_len));
}

static struct ndx_sge sge(const struct scale_net *net, int side, bool in)
{
	return (struct ndx_sge){.buffer = (char *)(uintptr_t)net->memory[side] +
	                                  (in ? SCALE_MESSAGE : 0),
	                        .length = SCALE_MESSAGE,
	                        .token = ndx_mr_get_local_token(net->mr[side])};
}

static void post_receive(const struct scale_net *net, int side, struct scale_conn *conn)
{
	const struct ndx_sge in = sge(net, side, true);

	must("ndx_qp_receive", ndx_qp_receive(conn->qp[side], conn, &in, 1));
}

static void post_send(const struct scale_net *net, int side, struct scale_conn *conn)
{
	const struct ndx_sge out = sge(net, side, false);

	must("ndx_qp_send", ndx_qp_send(conn->qp[side], conn, &out, 1, NDX_OP_SILENT_SUCCESS));
}

/* A step of a connector, with a time-out. */
static enum ndx_status step(struct ndx_connector *c, struct ndx_overlapped *ov, enum ndx_status st)
{
	if (st != NDX_PENDING)
		return st;
	st = ndx_overlapped_wait(ov, TIMEOUT_MS);
	if (st != NDX_PENDING)
		return st;
	(void)ndx_connector_cancel(c);
	return ndx_overlapped_status(ov);
}

static enum ndx_status connect_to(const struct scale_net *net, struct ndx_qp *qp,
                                  struct ndx_connector **c)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_connector_create(net->adapter[0], NULL, c);

	if (st == NDX_OK)
		st = step(
			*c, &ov,
			ndx_connector_connect(
				*c, qp, (const struct sockaddr *)&net->address, net->address_len,
				&(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
		                                           .inbound_read_limit = net->reads,
		                                           .outbound_read_limit = net->reads},
				&ov));
	if (st == NDX_OK)
		st = step(*c, &ov, ndx_connector_complete_connect(*c, &ov));
	return st;
}

static enum ndx_status accept_from(const struct scale_net *net, struct ndx_qp *qp,
                                   struct ndx_connector **c)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_connector_create(net->adapter[1], NULL, c);

	if (st == NDX_OK)
		st = step(*c, &ov, ndx_listener_get_connection_request(net->listener, *c, &ov));
	if (st == NDX_OK)
		st = step(*c, &ov,
		          ndx_connector_accept(*c, qp,
		                               &(struct ndx_connect_attr){
						       .size = sizeof(struct ndx_connect_attr),
						       .inbound_read_limit = net->reads,
						       .outbound_read_limit = net->reads},
		                               &ov));
	return st;
}

struct acceptance {
	struct scale_net *net;
	struct scale_conn *conn;
	enum ndx_status status;
};

static void *accept_one(void *arg)
{
	struct acceptance *a = arg;

	a->status = accept_from(a->net, a->conn->qp[1], &a->conn->connector[1]);
	return NULL;
}

static enum ndx_status make_qp(struct scale_net *net, int side, struct scale_conn *conn)
{
	struct ndx_qp_attr attr;
	enum ndx_status st;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = net->cq[side];
	attr.initiator_cq = net->cq[side];
	attr.receive_depth = SCALE_DEPTH;
	attr.initiator_depth = SCALE_DEPTH;
	st = ndx_qp_create(net->adapter[side], &attr, &conn->qp[side]);
	for (unsigned i = 0; st == NDX_OK && i < SCALE_DEPTH; i++)
		post_receive(net, side, conn);
	return st;
}

/* False: no room; what there is of it stays for scale_close(). */
static bool connect_one(struct scale_net *net, struct scale_conn *conn)
{
	struct acceptance a = {.net = net, .conn = conn};
	enum ndx_status st = make_qp(net, 0, conn);
	pthread_t thread;

	if (st == NDX_OK)
		st = make_qp(net, 1, conn);
	if (st != NDX_OK || pthread_create(&thread, NULL, accept_one, &a) != 0)
		return false;
	st = connect_to(net, conn->qp[0], &conn->connector[0]);
	if (st != NDX_OK)
		ndx_listener_close(net->listener); /* ends the accept */
	(void)pthread_join(thread, NULL);
	if (st != NDX_OK)
		net->listener = NULL;
	return st == NDX_OK && a.status == NDX_OK;
}

bool scale_grow(struct scale_net *net, unsigned count)
{
	while (net->count < count) {
		if (!connect_one(net, &net->conns[net->count]))
			return false;
		net->count++;
	}
	return true;
}

void scale_close(struct scale_net *net)
{
	/* A connection that could not be made may have half of what it needs. */
	for (unsigned i = 0; i <= net->count; i++) {
		struct scale_conn *conn = &net->conns[i];

		for (int side = 0; side < 2; side++) {
			ndx_qp_close(conn->qp[side]);
			ndx_connector_close(conn->connector[side]);
		}
	}
	ndx_listener_close(net->listener);
	for (int side = 0; side < 2; side++) {
		ndx_cq_close(net->cq[side]);
		ndx_mr_close(net->mr[side]);
		ndx_adapter_close(net->adapter[side]);
	}
	free(net->conns);
}

static void leave(struct scale_net *net, struct scale_conn *conn)
{
	for (int side = 0; side < 2; side++) {
		struct ndx_connector *c = conn->connector[side];
		struct ndx_overlapped ov = {0};

		must("ndx_connector_disconnect", step(c, &ov, ndx_connector_disconnect(c, &ov)));
	}
	for (int side = 0; side < 2; side++) {
		struct ndx_result results[BATCH];

		ndx_connector_close(conn->connector[side]);
		ndx_qp_close(conn->qp[side]);
		/* Its receives have come back. */
		while (ndx_cq_get_results(net->cq[side], results, BATCH) > 0) {
			/* nothing else is under way */
		}
	}
	memset(conn, 0, sizeof(*conn));
}

bool scale_churn(struct scale_net *net, unsigned count, double *connect, double *away)
{
	const unsigned before = net->count;
	uint64_t start = traffic_now_ns();
	bool ok = scale_grow(net, before + count);

	*connect = (double)(traffic_now_ns() - start) / count;
	start = traffic_now_ns();
	while (net->count > before)
		leave(net, &net->conns[--net->count]);
	*away = (double)(traffic_now_ns() - start) / count;
	return ok;
}

/* ---- traffic ---- */

/* Take messages of a side; B sends each back. How many there were. */
static unsigned serve(struct scale_net *net, int side)
{
	struct ndx_result results[BATCH];
	const size_t n = ndx_cq_get_results(net->cq[side], results, BATCH);

	for (size_t i = 0; i < n; i++) {
		struct scale_conn *conn = results[i].request_context;

		if (results[i].status != NDX_OK)
			lane_die("a request failed", ndx_status_name(results[i].status));
		post_receive(net, side, conn);
		conn->busy = side == 1;
		if (side == 1)
			post_send(net, 1, conn);
	}
	return (unsigned)n;
}

double scale_echo(struct scale_net *net, unsigned first, unsigned width, unsigned messages)
{
	const unsigned at_once = width < AT_ONCE ? width : AT_ONCE;
	const uint64_t start = traffic_now_ns();
	unsigned turn = 0;
	unsigned sent = 0;
	unsigned back = 0;

	while (back < messages) {
		while (sent < messages && sent - back < at_once) {
			struct scale_conn *conn = &net->conns[first + turn++ % width];

			if (conn->busy)
				continue;
			conn->busy = true;
			post_send(net, 0, conn);
			sent++;
		}
		(void)serve(net, 1);
		back += serve(net, 0);
	}
	return (double)(traffic_now_ns() - start) / (2.0 * messages);
}
