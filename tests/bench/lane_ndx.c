/* SPDX-License-Identifier: BSD-2-Clause */
/* A lane over NDX: an adapter for each end, as two processes would have. */
#include <ndx/ndx.h>

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lane.h"

#define TIMEOUT_MS 10000u
#define SLEEP_MS 5000

struct ndx_end {
	struct end base;
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_connector *connector;
	char *memory; /* what is sent, then what is received */
	uint32_t size;
	struct ndx_sge out;
	struct ndx_sge in;
	unsigned out_turn;
	unsigned in_turn;
	struct ndx_end *peer;
	uint64_t *number;         /* of the last write, at the end of what is sent */
	const uint64_t *arriving; /* ... of the peer's */
	int fd;
	bool more; /* the last poll may have left something */
};

struct ndx_lane {
	struct lane base;
	struct ndx_end ends[2];
	struct ndx_listener *listener;
};

static void must(const char *what, enum ndx_status st)
{
	if (st != NDX_OK)
		lane_die(what,
		         ndx_last_error()[0] != '\0' ? ndx_last_error() : ndx_status_name(st));
}

static struct ndx_end *of(struct end *end)
{
	return (struct ndx_end *)(void *)end;
}

static void end_receive(struct end *base)
{
	struct ndx_end *end = of(base);
	enum ndx_status st;

	end->in.buffer = lane_turn(end->memory + end->size + LANE_LINE, &end->in_turn);
	st = ndx_qp_receive(end->qp, NULL, &end->in, 1);

	if (st != NDX_OK)
		must("ndx_qp_receive", st);
}

static bool end_send(struct end *base)
{
	struct ndx_end *end = of(base);
	enum ndx_status st;

	end->out.buffer = lane_turn(end->memory, &end->out_turn);
	st = ndx_qp_send(end->qp, NULL, &end->out, 1, 0);

	if (st != NDX_OK && st != NDX_E_NO_MORE_ENTRIES)
		must("ndx_qp_send", st);
	return st == NDX_OK;
}

static void end_poll(struct end *base)
{
	struct ndx_end *end = of(base);
	struct ndx_result results[LANE_BATCH];
	const size_t n = ndx_cq_get_results(end->cq, results, LANE_BATCH);

	end->more = n == LANE_BATCH;
	for (size_t i = 0; i < n; i++) {
		if (results[i].status != NDX_OK)
			lane_die("a request failed", ndx_status_name(results[i].status));
		if (results[i].request_type == NDX_REQUEST_RECEIVE) {
			if (results[i].bytes_transferred != end->size)
				lane_die("a message", "has another length than it was sent with");
			base->received++;
		} else {
			base->sent++;
		}
	}
}

/* ---- messages that are written ---- */

static void end_no_receive(struct end *base)
{
	(void)base;
}

static bool end_write(struct end *base)
{
	struct ndx_end *end = of(base);
	enum ndx_status st;

	(*end->number)++;
	st = ndx_qp_write(end->qp, NULL, &end->out, 1, (uintptr_t)end->peer->in.buffer,
	                  ndx_mr_get_remote_token(end->peer->mr), 0);
	if (st != NDX_OK)
		must("ndx_qp_write", st);
	return true;
}

static void end_look(struct end *base)
{
	end_poll(base);
	base->received = __atomic_load_n(of(base)->arriving, __ATOMIC_ACQUIRE);
}

/* ---- */

static void end_wait(struct end *base)
{
	struct ndx_end *end = of(base);
	struct pollfd p = {.fd = end->fd, .events = POLLIN};

	/* What came since the last poll fires it at once, what was left does not. */
	if (end->more)
		return;
	must("ndx_cq_notify", ndx_cq_notify(end->cq, NDX_CQ_NOTIFY_ANY, NULL));
	if (poll(&p, 1, SLEEP_MS) == 0)
		lane_die("ndx: nothing came for", "five seconds");
}

static const struct end_ops ops = {
	.receive = end_receive,
	.send = end_send,
	.poll = end_poll,
	.wait = end_wait,
};

static const struct end_ops ops_write = {
	.receive = end_no_receive,
	.send = end_write,
	.poll = end_look,
	.wait = end_wait,
};

static void open_end(struct ndx_end *end, const struct lane_attr *attr, const char *uri)
{
	const size_t size = attr->size + LANE_LINE;
	struct ndx_qp_attr qp;

	end->base.ops = attr->write ? &ops_write : &ops;
	end->size = attr->size;
	end->memory = lane_memory(2 * size);
	must("ndx_adapter_open", ndx_adapter_open(uri, &end->adapter));
	must("ndx_cq_create",
	     ndx_cq_create_depth(end->adapter, LANE_WINDOW + attr->depth, &end->cq));
	must("ndx_cq_get_fd", ndx_cq_get_fd(end->cq, &end->fd));
	must("ndx_mr_register_new", ndx_mr_register_new(end->adapter, end->memory, 2 * size,
	                                                NDX_MR_ALLOW_REMOTE_WRITE, &end->mr));
	end->out = (struct ndx_sge){end->memory, attr->size, ndx_mr_get_local_token(end->mr)};
	end->in = (struct ndx_sge){end->memory + size, attr->size, ndx_mr_get_local_token(end->mr)};
	ndx_qp_attr_init(&qp);
	qp.receive_cq = end->cq;
	qp.initiator_cq = end->cq;
	qp.receive_depth = attr->depth;
	qp.initiator_depth = LANE_WINDOW;
	must("ndx_qp_create", ndx_qp_create(end->adapter, &qp, &end->qp));
	if (attr->write) {
		end->number = (uint64_t *)(void *)(end->memory + attr->size - sizeof(uint64_t));
		end->arriving =
			(uint64_t *)(void *)(end->memory + size + attr->size - sizeof(uint64_t));
		memset(end->memory, 0, 2 * size);
		return;
	}
	for (uint32_t i = 0; i < attr->depth; i++)
		end_receive(&end->base);
}

static void *accept_one(void *arg)
{
	struct ndx_lane *lane = arg;
	struct ndx_end *end = &lane->ends[1];

	must("ndx_accept_from", ndx_accept_from(end->adapter, lane->listener, end->qp, NULL, 0,
	                                        TIMEOUT_MS, &end->connector));
	return NULL;
}

static void first_address(struct ndx_adapter *adapter, struct sockaddr_storage *address)
{
	struct sockaddr_storage list[16];
	size_t count = sizeof(list) / sizeof(list[0]);

	must("ndx_adapter_query_addresses", ndx_adapter_query_addresses(adapter, list, &count));
	if (count == 0)
		lane_die("the adapter", "has no address");
	*address = list[0];
}

static socklen_t length_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in)
	                                     : sizeof(struct sockaddr_in6);
}

static void connect_ends(struct ndx_lane *lane)
{
	struct sockaddr_storage address;
	socklen_t len;
	pthread_t thread;

	first_address(lane->ends[1].adapter, &address);
	must("ndx_listen_on", ndx_listen_on(lane->ends[1].adapter, (struct sockaddr *)&address,
	                                    length_of(&address), 1, &lane->listener));
	len = sizeof(address);
	must("ndx_listener_get_local_address",
	     ndx_listener_get_local_address(lane->listener, (struct sockaddr *)&address, &len));
	if (pthread_create(&thread, NULL, accept_one, lane) != 0)
		lane_die("pthread_create", "no thread");
	must("ndx_connect_to",
	     ndx_connect_to(lane->ends[0].adapter, lane->ends[0].qp, (struct sockaddr *)&address,
	                    len, NULL, 0, TIMEOUT_MS, &lane->ends[0].connector));
	(void)pthread_join(thread, NULL);
}

static void close_lane(struct lane *base)
{
	struct ndx_lane *lane = (struct ndx_lane *)(void *)base;

	must("ndx_disconnect", ndx_disconnect(lane->ends[0].connector, TIMEOUT_MS));
	must("ndx_disconnect", ndx_disconnect(lane->ends[1].connector, TIMEOUT_MS));
	ndx_listener_close(lane->listener);
	for (int i = 0; i < 2; i++) {
		struct ndx_end *end = &lane->ends[i];

		ndx_connector_close(end->connector);
		ndx_qp_close(end->qp);
		ndx_cq_close(end->cq);
		ndx_mr_close(end->mr);
		ndx_adapter_close(end->adapter);
		free(end->memory);
	}
	free(lane);
}

struct lane *lane_open_ndx(const struct lane_attr *attr)
{
	struct ndx_lane *lane = calloc(1, sizeof(*lane));

	if (lane == NULL)
		lane_die("no memory", "for a connection");
	lane->base.name = "ndx";
	lane->base.close = close_lane;
	for (int i = 0; i < 2; i++) {
		lane->base.ends[i] = &lane->ends[i].base;
		lane->ends[i].peer = &lane->ends[1 - i];
		open_end(&lane->ends[i], attr, attr->uris[i]);
	}
	connect_ends(lane);
	return &lane->base;
}

static enum lane_stack describe_one(const char *uri, char device[64], struct lane_below *below)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct ndx_adapter *adapter;

	must("ndx_adapter_open", ndx_adapter_open(uri, &adapter));
	must("ndx_adapter_query", ndx_adapter_query(adapter, &info));
	first_address(adapter, &below->address);
	below->len = length_of(&below->address);
	ndx_adapter_close(adapter);
	memcpy(device, info.device, 63);
	if (strcmp(info.provider, "ofi") == 0)
		return strcmp(info.device, "tcp") == 0 ? LANE_OFI : LANE_NOTHING;
	return strcmp(info.provider, "verbs") == 0 ? LANE_VERBS : LANE_NOTHING;
}

void lane_describe(const char *const uris[2], struct lane_below *below)
{
	enum lane_stack other;

	memset(below, 0, sizeof(*below));
	below->stack = describe_one(uris[0], below->devices[0], below);
	other = describe_one(uris[1], below->devices[1], below);
	if (other != below->stack)
		below->stack = LANE_NOTHING;
}
