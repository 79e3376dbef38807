/* SPDX-License-Identifier: BSD-2-Clause */
#include "passive.h"

#include <ndx/ndx.h>

#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "lane.h"
#include "traffic.h"

#define TIMEOUT_MS 10000u
#define DEPTH 16u
#define SECOND UINT64_C(1000000000)
#define LAST UINT64_MAX           /* the content of the last message */
#define POLL_NS UINT64_C(1000000) /* of a target that polls now and then */

/* What a side writes or sends, and what it is told. */
struct passive_memory {
	uint64_t out;
	uint64_t in;
};

struct passive_side {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_connector *connector;
	struct passive_memory memory;
	struct passive_side *peer;
};

struct passive {
	struct passive_side active;
	struct passive_side target;
	struct ndx_listener *listener;
	enum passive_kind kind;
	bool stop; /* atomic */
};

static void must(const char *what, enum ndx_status st)
{
	if (st != NDX_OK)
		lane_die(what,
		         ndx_last_error()[0] != '\0' ? ndx_last_error() : ndx_status_name(st));
}

static bool stops(const struct passive *p)
{
	return __atomic_load_n(&p->stop, __ATOMIC_ACQUIRE);
}

/* ---- requests ---- */

static struct ndx_sge sge(struct passive_side *side, uint64_t *at)
{
	return (struct ndx_sge){at, sizeof(*at), ndx_mr_get_local_token(side->mr)};
}

static void post_receive(struct passive_side *side)
{
	const struct ndx_sge in = sge(side, &side->memory.in);

	must("ndx_qp_receive", ndx_qp_receive(side->qp, NULL, &in, 1));
}

static void post_send(struct passive_side *side)
{
	const struct ndx_sge out = sge(side, &side->memory.out);

	must("ndx_qp_send", ndx_qp_send(side->qp, NULL, &out, 1, 0));
}

static void post_write(struct passive_side *side, uint64_t value)
{
	const struct ndx_sge out = sge(side, &side->memory.out);

	side->memory.out = value;
	must("ndx_qp_write",
	     ndx_qp_write(side->qp, NULL, &out, 1, (uintptr_t)&side->peer->memory.in,
	                  ndx_mr_get_remote_token(side->peer->mr), 0));
}

/* Take what there is; a receive is posted again. True: one of this type was there. */
static bool take_results(struct passive_side *side, enum ndx_request_type type)
{
	struct ndx_result results[DEPTH];
	const size_t n = ndx_cq_get_results(side->cq, results, DEPTH);
	bool found = false;

	for (size_t i = 0; i < n; i++) {
		if (results[i].status != NDX_OK)
			lane_die("a request failed", ndx_status_name(results[i].status));
		if (results[i].request_type == NDX_REQUEST_RECEIVE)
			post_receive(side);
		found = found || results[i].request_type == type;
	}
	return found;
}

static void poll_for(struct passive_side *side, enum ndx_request_type type)
{
	while (!take_results(side, type)) {
		/* that is all there is to do */
	}
}

static void sleep_for(struct passive_side *side, enum ndx_request_type type)
{
	while (!take_results(side, type)) {
		struct ndx_overlapped ov = {0};
		const enum ndx_status st = ndx_cq_notify(side->cq, NDX_CQ_NOTIFY_ANY, &ov);

		must("ndx_cq_notify", st == NDX_PENDING ? NDX_OK : st);
		must("ndx_cq_notify", ndx_overlapped_wait(&ov, NDX_INFINITE));
	}
}

/* Look at memory until it is told something new. */
static uint64_t look_for(const struct passive *p, const struct passive_side *side, uint64_t old)
{
	uint64_t value = old;

	while (value == old && !stops(p)) {
		(void)sched_yield();
		value = __atomic_load_n(&side->memory.in, __ATOMIC_ACQUIRE);
	}
	return value;
}

/* ---- the target ---- */

static void look_and_poll(const struct passive *p, struct passive_side *side)
{
	uint64_t next = traffic_now_ns() + POLL_NS;
	uint64_t seen = 0;

	while (!stops(p)) {
		seen += __atomic_load_n(&side->memory.in, __ATOMIC_ACQUIRE) != seen;
		(void)sched_yield();
		if (p->kind != PASSIVE_SPIN_POLL || traffic_now_ns() < next)
			continue;
		(void)take_results(side, NDX_REQUEST_RECEIVE);
		next = traffic_now_ns() + POLL_NS;
	}
}

static void answer_in_memory(const struct passive *p, struct passive_side *side)
{
	uint64_t value = 0;

	for (;;) {
		value = look_for(p, side, value);
		if (stops(p))
			return;
		post_write(side, value);
		poll_for(side, NDX_REQUEST_WRITE);
	}
}

static void *target_thread(void *arg)
{
	struct passive *p = arg;
	struct passive_side *side = &p->target;

	switch (p->kind) {
	case PASSIVE_SPIN:
	case PASSIVE_SPIN_POLL:
		look_and_poll(p, side);
		break;
	case PASSIVE_PING_MEMORY:
		answer_in_memory(p, side);
		break;
	/* The last message tells of the end. A target that looked at `stop` could leave while the
	 * messages before that one hold all receives. */
	case PASSIVE_MESSAGES:
	case PASSIVE_ASLEEP:
	case PASSIVE_PING_MESSAGES:
		while (__atomic_load_n(&side->memory.in, __ATOMIC_ACQUIRE) != LAST) {
			sleep_for(side, NDX_REQUEST_RECEIVE);
			if (p->kind == PASSIVE_PING_MESSAGES)
				post_send(side);
		}
		break;
	case PASSIVE_KINDS:
		break;
	}
	return NULL;
}

/* ---- the other side ---- */

static void go_once(const struct passive *p, struct passive_side *side)
{
	const uint64_t value = side->memory.out + 1;

	switch (p->kind) {
	case PASSIVE_MESSAGES:
		post_send(side);
		poll_for(side, NDX_REQUEST_SEND);
		break;
	case PASSIVE_PING_MESSAGES:
		post_send(side);
		sleep_for(side, NDX_REQUEST_RECEIVE);
		break;
	case PASSIVE_PING_MEMORY:
		post_write(side, value);
		(void)look_for(p, side, value - 1);
		poll_for(side, NDX_REQUEST_WRITE);
		break;
	case PASSIVE_ASLEEP:
	case PASSIVE_SPIN:
	case PASSIVE_SPIN_POLL:
		post_write(side, value);
		poll_for(side, NDX_REQUEST_WRITE);
		break;
	case PASSIVE_KINDS:
		break;
	}
}

static uint64_t go_for(const struct passive *p, struct passive_side *side, uint64_t until)
{
	uint64_t done = 0;

	while (traffic_now_ns() < until) {
		go_once(p, side);
		done++;
	}
	return done;
}

/* ---- both ---- */

static void open_side(struct passive_side *side, const char *uri, struct passive_side *peer)
{
	struct ndx_qp_attr attr;

	side->peer = peer;
	must("ndx_adapter_open", ndx_adapter_open(uri, &side->adapter));
	must("ndx_cq_create", ndx_cq_create_depth(side->adapter, 2 * DEPTH, &side->cq));
	must("ndx_mr_register_new",
	     ndx_mr_register_new(side->adapter, &side->memory, sizeof(side->memory),
	                         NDX_MR_ALLOW_REMOTE_WRITE, &side->mr));
	ndx_qp_attr_init(&attr);
	attr.receive_cq = side->cq;
	attr.initiator_cq = side->cq;
	attr.receive_depth = DEPTH;
	attr.initiator_depth = DEPTH;
	must("ndx_qp_create", ndx_qp_create(side->adapter, &attr, &side->qp));
	for (unsigned i = 0; i < DEPTH / 2; i++)
		post_receive(side);
}

static void *accept_one(void *arg)
{
	struct passive *p = arg;

	must("ndx_accept_from", ndx_accept_from(p->target.adapter, p->listener, p->target.qp, NULL,
	                                        0, TIMEOUT_MS, &p->target.connector));
	return NULL;
}

static void join_sides(struct passive *p)
{
	struct sockaddr_storage list[16];
	size_t count = sizeof(list) / sizeof(list[0]);
	struct sockaddr *address = (struct sockaddr *)&list[0];
	socklen_t len;
	pthread_t thread;

	must("ndx_adapter_query_addresses",
	     ndx_adapter_query_addresses(p->target.adapter, list, &count));
	if (count == 0)
		lane_die("the adapter", "has no address");
	len = list[0].ss_family == AF_INET ? sizeof(struct sockaddr_in)
	                                   : sizeof(struct sockaddr_in6);
	must("ndx_listen_on", ndx_listen_on(p->target.adapter, address, len, 1, &p->listener));
	len = sizeof(list[0]);
	must("ndx_listener_get_local_address",
	     ndx_listener_get_local_address(p->listener, address, &len));
	if (pthread_create(&thread, NULL, accept_one, p) != 0)
		lane_die("pthread_create", "no thread");
	must("ndx_connect_to", ndx_connect_to(p->active.adapter, p->active.qp, address, len, NULL,
	                                      0, TIMEOUT_MS, &p->active.connector));
	(void)pthread_join(thread, NULL);
}

static void close_side(struct passive_side *side)
{
	ndx_connector_close(side->connector);
	ndx_qp_close(side->qp);
	ndx_cq_close(side->cq);
	ndx_mr_close(side->mr);
	ndx_adapter_close(side->adapter);
}

void passive_run(const char *const uris[2], struct passive_row *row)
{
	struct passive p = {.kind = row->kind};
	uint64_t from;
	pthread_t thread;

	open_side(&p.active, uris[0], &p.target);
	open_side(&p.target, uris[1], &p.active);
	join_sides(&p);
	if (pthread_create(&thread, NULL, target_thread, &p) != 0)
		lane_die("pthread_create", "no thread");
	from = traffic_now_ns();
	for (unsigned i = 0; i < row->seconds; i++)
		row->done[i] = go_for(&p, &p.active, from + (i + 1) * SECOND);
	__atomic_store_n(&p.stop, true, __ATOMIC_RELEASE);
	p.active.memory.out = LAST;
	post_send(&p.active);
	poll_for(&p.active, NDX_REQUEST_SEND);
	(void)pthread_join(thread, NULL);
	must("ndx_disconnect", ndx_disconnect(p.active.connector, TIMEOUT_MS));
	must("ndx_disconnect", ndx_disconnect(p.target.connector, TIMEOUT_MS));
	ndx_listener_close(p.listener);
	close_side(&p.active);
	close_side(&p.target);
}
