/* SPDX-License-Identifier: BSD-2-Clause */
#include "setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "post.h"
#include "sample_json.h"

enum { BACKLOG = 64, FIRST_RECEIVES = 4 };

static void must(struct round *round, enum ndx_status st, const char *what)
{
	if (st != NDX_OK)
		fail(round, NULL, "%s: %s: %s", what, ndx_status_name(st), ndx_last_error());
}

bool place_open(struct place *place, const char *uri)
{
	char text[512];
	size_t count = 1;
	enum ndx_status st = ndx_adapter_open(uri, &place->adapter);

	place->uri = uri;
	place->info.size = sizeof(place->info);
	if (st == NDX_OK)
		st = ndx_adapter_query(place->adapter, &place->info);
	if (st == NDX_OK) {
		struct sockaddr_storage list[16];

		count = 16;
		st = ndx_adapter_query_addresses(place->adapter, list, &count);
		place->address = list[0];
	}
	if (st == NDX_OK && count > 0)
		return true;
	(void)snprintf(text, sizeof(text), "%s: %s: %s", uri, ndx_status_name(st),
	               ndx_last_error());
	(void)fprintf(stderr, "ndx-torture: %s\n", text);
	sample_json_error(text);
	return false;
}

/* ---- what belongs to no connection ---- */

static void lock_init(pthread_mutex_t *lock)
{
	(void)pthread_mutex_init(lock, NULL);
}

static void setup_end(struct round *round, struct conn *c, uint32_t side, uint8_t *memory)
{
	struct end *e = &c->ends[side];

	/* the tables of requests and messages are as long as the counts say */
	memset(&e->round, 0, offsetof(struct end, initiator) - offsetof(struct end, round));
	memset(&e->message_count, 0, sizeof(*e) - offsetof(struct end, message_count));
	for (struct ledger *l = &e->initiator; l != NULL;
	     l = l == &e->initiator ? &e->receive : NULL) {
		l->posted = 0;
		l->done = 0;
		l->failed = false;
		l->broken = false;
		l->blind = false;
		l->shut = false;
		l->room = 0;
		lock_init(&l->lock);
	}
	lock_init(&e->memory.lock);
	lock_init(&e->window_lock);
	e->round = round;
	e->conn = c;
	e->peer = &c->ends[1 - side];
	e->plan = &c->plan->ends[side];
	e->side = side;
	e->id = 2 * c->index + side;
	e->random = e->plan->seed;
	e->outcome = NDX_PENDING;
	memory_init(e, memory, round->plan.area);
}

size_t setup_memory(const struct plan *plan)
{
	/* and an area for each side's shared receives */
	return 2 * plan->conns * memory_need(plan->area) + (size_t)2 * plan->area;
}

void setup_round(struct round *round, uint8_t *memory)
{
	size_t need = memory_need(round->plan.area);

	round->listening = 0;
	round->child_up = 0;
	round->child_done = 0;
	round->other_adapter = NULL;
	round->child_may_go = 0;
	round->forked = 0;
	round->killed_at = 0;
	round->known_after = 0;
	round->memory = memory;
	for (uint32_t i = 0; i < round->plan.conns; i++) {
		struct conn *c = &round->conns[i];

		c->index = i;
		c->plan = &round->plan.of[i];
		memset(c->graceful, 0, sizeof(c->graceful));
		memset(c->abortive, 0, sizeof(c->abortive));
		memset(c->faults, 0, sizeof(c->faults));
		c->doomed = 0;
		for (uint32_t side = 0; side < SIDES; side++)
			setup_end(round, c, side, memory + (2 * i + side) * need);
	}
	for (uint32_t i = 0; i < SIDES; i++) {
		struct side *s = &round->sides[i];
		uint8_t *base = memory + 2 * round->plan.conns * need + i * round->plan.area;

		memset(s, 0, sizeof(*s));
		s->round = round;
		s->index = i;
		s->plan = &round->plan.sides[i];
		s->srq.base = base;
		s->srq.slot = round->plan.of[0].message;
		for (uint32_t q = 0; q < round->plan.conns; q++) {
			if (round->plan.of[q].message > s->srq.slot)
				s->srq.slot = round->plan.of[q].message;
		}
		memset(base, MEMORY_FILL, round->plan.area);
		lock_init(&s->srq.lock);
		for (uint32_t q = 0; q < CQS_MAX; q++) {
			lock_init(&s->cqs[q].lock);
			s->cqs[q].empty = true;
		}
	}
}

/* ---- what is a side's ---- */

static void register_areas(struct end *e)
{
	static const uint32_t rights[AREAS] = {
		NDX_MR_ALLOW_LOCAL_WRITE | NDX_MR_RDMA_READ_SINK,
		NDX_MR_ALLOW_LOCAL_WRITE,
		NDX_MR_ALLOW_REMOTE_READ,
		NDX_MR_ALLOW_REMOTE_WRITE,
	};
	struct ndx_adapter *adapter = side_of(e)->adapter;
	uint32_t all = 0;

	for (uint32_t i = 0; i < AREAS; i++)
		all |= rights[i];
	if (e->plan->one_region)
		must(e->round,
		     ndx_mr_register_new(adapter, e->memory.area[0], (size_t)AREAS * e->memory.size,
		                         all, &e->mr[0]),
		     "register");
	for (uint32_t i = 0; i < AREAS; i++) {
		if (e->plan->one_region)
			e->mr[i] = e->mr[0];
		else
			must(e->round,
			     ndx_mr_register_new(adapter, e->memory.area[i], e->memory.size,
			                         rights[i], &e->mr[i]),
			     "register");
	}
	e->local_token = ndx_mr_get_local_token(e->mr[AREA_LOCAL]);
	e->receive_token = ndx_mr_get_local_token(e->mr[AREA_RECEIVE]);
	e->read_token = ndx_mr_get_remote_token(e->mr[AREA_READ]);
	e->write_token = ndx_mr_get_remote_token(e->mr[AREA_WRITE]);
}

static void make_qp(struct end *e)
{
	struct side *s = side_of(e);
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = s->cqs[e->plan->receive_cq].cq;
	attr.initiator_cq = s->cqs[e->plan->initiator_cq].cq;
	attr.srq = end_has_srq(e) ? s->srq.srq : NULL;
	attr.context = e;
	attr.receive_depth = e->plan->receive_depth;
	attr.initiator_depth = e->plan->initiator_depth;
	attr.max_receive_sge = e->plan->sge;
	attr.max_initiator_sge = e->plan->sge;
	attr.inline_size = e->plan->inline_size;
	attr.no_receive_timeout_ms = e->plan->no_receive_ms;
	attr.keepalive_ms = e->plan->keepalive_ms;
	must(e->round, ndx_qp_create(s->adapter, &attr, &e->qp), "ndx_qp_create");
}

static void make_end(struct end *e)
{
	struct ndx_adapter *adapter = side_of(e)->adapter;
	struct ndx_connector_attr attr;
	uint64_t random = e->random;

	register_areas(e);
	make_qp(e);
	if (e->round->plan.windows)
		must(e->round, ndx_mw_create(adapter, &e->mw), "ndx_mw_create");
	for (uint32_t i = below(&random, FIRST_RECEIVES + 1); i > 0 && !end_has_srq(e); i--)
		(void)post_receive(e, &e->random);
	if (e->side == SIDE_B)
		return; /* the listener brings it */
	ndx_connector_attr_init(&attr);
	attr.drain_timeout_ms = e->round->plan.drain_ms;
	attr.disconnect_timeout_ms = e->round->plan.disconnect_ms;
	must(e->round, ndx_connector_create(adapter, &attr, &e->connector), "ndx_connector_create");
}

static void make_listener(struct side *s, const struct place *place)
{
	socklen_t length = sizeof(s->round->address);
	socklen_t given = place->address.ss_family == AF_INET ? 16 : 28;

	must(s->round,
	     ndx_listen_on(s->adapter, (const struct sockaddr *)(const void *)&place->address,
	                   given, BACKLOG, &s->listener),
	     "listen");
	must(s->round,
	     ndx_listener_get_local_address(s->listener,
	                                    (struct sockaddr *)(void *)&s->round->address, &length),
	     "address of the listener");
	__atomic_store_n(&s->round->listening, 1, __ATOMIC_RELEASE);
}

static void make_srq(struct side *s)
{
	struct srq *srq = &s->srq;

	if (!s->plan->srq)
		return;
	must(s->round,
	     ndx_srq_create(s->adapter,
	                    &(struct ndx_srq_attr){.size = sizeof(struct ndx_srq_attr),
	                                           .depth = s->plan->srq_depth,
	                                           .max_sge = 1},
	                    &srq->srq),
	     "ndx_srq_create");
	must(s->round,
	     ndx_mr_register_new(s->adapter, srq->base, s->round->plan.area,
	                         NDX_MR_ALLOW_LOCAL_WRITE, &srq->mr),
	     "register");
	srq->token = ndx_mr_get_local_token(srq->mr);
}

void setup_side(struct round *round, uint32_t side, const struct place *place, struct mailbox *mail)
{
	struct side *s = &round->sides[side];

	s->owner = getpid();
	s->mail = mail;
	s->info = place->info;
	s->adapter = place->adapter;
	if (s->plan->own_adapter) {
		must(round, ndx_adapter_open(place->uri, &s->own), "ndx_adapter_open");
		s->adapter = s->own;
	}
	for (uint32_t i = 0; i < s->plan->cqs; i++)
		must(round, ndx_cq_create_depth(s->adapter, s->plan->cq_depth[i], &s->cqs[i].cq),
		     "ndx_cq_create");
	make_srq(s);
	for (uint32_t i = 0; i < round->plan.conns; i++)
		make_end(&round->conns[i].ends[side]);
	if (side == SIDE_B)
		make_listener(s, place);
}
