/* SPDX-License-Identifier: BSD-2-Clause */
/* Sides, pairs, and how they come together and part. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

void side_attr_init(struct side_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->receive_depth = 64;
	attr->initiator_depth = 64;
	attr->receive_sge = 1;
	attr->initiator_sge = 1;
	attr->inbound_reads = 16;
	attr->outbound_reads = 16;
	attr->buffer = (size_t)64 * 1024;
	attr->access = NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ;
	attr->family = AF_UNSPEC;
}

static bool open_cqs(struct side *s)
{
	uint32_t depth = s->attr.cq_depth;

	if (s->attr.cq) {
		s->cq = s->attr.cq;
		s->rcq = s->attr.cq;
		return true;
	}
	if (depth == 0)
		depth = s->attr.receive_depth + s->attr.initiator_depth;
	if (!check_status(s->c, ndx_cq_create_depth(s->adapter, depth, &s->cq), NDX_OK,
	                  "cq_create"))
		return false;
	s->rcq = s->cq;
	if (!s->attr.separate_cqs)
		return true;
	s->rcq = NULL;
	return check_status(s->c, ndx_cq_create_depth(s->adapter, depth, &s->rcq), NDX_OK,
	                    "cq_create");
}

bool side_new_qp(struct side *s)
{
	struct ndx_qp_attr attr;

	side_close_qp(s);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = s->rcq;
	attr.initiator_cq = s->cq;
	attr.srq = s->attr.srq;
	attr.context = s;
	attr.receive_depth = s->attr.receive_depth;
	attr.initiator_depth = s->attr.initiator_depth;
	attr.max_receive_sge = s->attr.receive_sge;
	attr.max_initiator_sge = s->attr.initiator_sge;
	attr.inline_size = s->attr.inline_size;
	if (s->attr.keepalive_ms)
		attr.keepalive_ms = s->attr.keepalive_ms;
	if (s->attr.no_receive_timeout_ms)
		attr.no_receive_timeout_ms = s->attr.no_receive_timeout_ms;
	return check_status(s->c, ndx_qp_create(s->adapter, &attr, &s->qp), NDX_OK, "qp_create");
}

bool side_new_connector(struct side *s)
{
	struct ndx_connector_attr attr;

	side_close_connector(s);
	ndx_connector_attr_init(&attr);
	if (s->attr.drain_ms)
		attr.drain_timeout_ms = s->attr.drain_ms;
	if (s->attr.disconnect_ms)
		attr.disconnect_timeout_ms = s->attr.disconnect_ms;
	if (s->attr.connect_ms)
		attr.connect_timeout_ms = s->attr.connect_ms;
	return check_status(s->c, ndx_connector_create(s->adapter, &attr, &s->conn), NDX_OK,
	                    "connector_create");
}

static bool open_memory(struct side *s)
{
	s->buf = calloc(1, s->attr.buffer);
	return check_that(s->c, s->buf != NULL, "no memory for %zu bytes", s->attr.buffer) &&
	       check_status(s->c,
	                    ndx_mr_register_new(s->adapter, s->buf, s->attr.buffer, s->attr.access,
	                                        &s->mr),
	                    NDX_OK, "mr_register_new");
}

bool side_open(struct check *c, struct side *s, unsigned place, const struct side_attr *attr,
               const char *name)
{
	memset(s, 0, sizeof(*s));
	s->c = c;
	s->name = name;
	s->attr = *attr;
	s->place = &c->world->places[place];
	s->adapter = attr->adapter ? attr->adapter : s->place->adapter;
	if (check_over(c))
		return false;
	if (open_cqs(s) && side_new_qp(s) && side_new_connector(s) && open_memory(s))
		return true;
	side_close(s);
	return false;
}

void side_close_connector(struct side *s)
{
	ndx_connector_close(s->conn);
	s->conn = NULL;
}

void side_close_qp(struct side *s)
{
	ndx_qp_close(s->qp);
	s->qp = NULL;
}

void side_close_cqs(struct side *s)
{
	if (s->rcq != s->cq)
		ndx_cq_close(s->rcq);
	if (!s->attr.cq)
		ndx_cq_close(s->cq);
	s->rcq = NULL;
	s->cq = NULL;
}

void side_close_mr(struct side *s)
{
	ndx_mr_close(s->mr);
	s->mr = NULL;
}

void side_close(struct side *s)
{
	side_close_connector(s);
	side_close_qp(s);
	side_close_mr(s);
	side_close_cqs(s);
	free(s->buf);
	s->buf = NULL;
}

struct ndx_listener *listener_open(struct check *c, struct ndx_adapter *adapter,
                                   const struct sockaddr_storage *address, uint32_t backlog,
                                   struct sockaddr_storage *listening)
{
	struct ndx_listener *listener = NULL;
	socklen_t length = sizeof(*listening);

	if (check_over(c) || !check_that(c, address != NULL, "no address to listen on"))
		return NULL;
	if (!check_status(c,
	                  ndx_listen_on(adapter, address_of_const(address), address_length(address),
	                                backlog, &listener),
	                  NDX_OK, "listen_on"))
		return NULL;
	memset(listening, 0, sizeof(*listening));
	if (check_status(c,
	                 ndx_listener_get_local_address(listener, address_of(listening), &length),
	                 NDX_OK, "listener_get_local_address"))
		return listener;
	ndx_listener_close(listener);
	return NULL;
}

static struct pair *pair_make(struct check *c, const struct side_attr *a, const struct side_attr *b)
{
	struct side_attr defaults;
	struct pair *p;

	if (check_over(c))
		return NULL;
	side_attr_init(&defaults);
	p = calloc(1, sizeof(*p));
	if (!p) {
		check_fail(c, "no memory for a pair");
		return NULL;
	}
	p->c = c;
	if (!a)
		a = &defaults;
	if (!side_open(c, &p->a, 0, a, "A")) {
		free(p);
		return NULL;
	}
	if (!side_open(c, &p->b, 1, b ? b : a, "B")) {
		side_close(&p->a);
		free(p);
		return NULL;
	}
	p->next = c->pairs;
	c->pairs = p;
	return p;
}

struct pair *pair_open(struct check *c, const struct side_attr *a, const struct side_attr *b)
{
	struct pair *p = pair_make(c, a, b);

	if (!p)
		return NULL;
	p->listener = listener_open(c, p->b.adapter, place_address(p->b.place, p->b.attr.family), 0,
	                            &p->address);
	p->own_listener = true;
	return p->listener ? p : NULL;
}

struct pair *pair_open_on(struct pair *first, const struct side_attr *a, const struct side_attr *b)
{
	struct pair *p = pair_make(first->c, a, b);

	if (p) {
		p->listener = first->listener;
		p->address = first->address;
	}
	return p;
}

bool pair_without_listener(struct pair *p)
{
	const struct sockaddr_storage *host = place_address(p->b.place, p->b.attr.family);
	socklen_t room = sizeof(p->address);

	ndx_listener_close(p->listener);
	p->listener = NULL;
	memset(&p->address, 0, sizeof(p->address));
	return check_status(
		       p->c,
		       ndx_connector_bind(p->b.conn, address_of_const(host), address_length(host)),
		       NDX_OK, "connector_bind") &&
	       check_status(
		       p->c,
		       ndx_connector_get_local_address(p->b.conn, address_of(&p->address), &room),
		       NDX_OK, "get_local_address");
}

bool pairs_open(struct check *c, struct pair **pairs, size_t count, const struct side_attr *a,
                const struct side_attr *b)
{
	for (size_t i = 0; i < count; i++) {
		pairs[i] = i ? pair_open_on(pairs[0], a, b) : pair_open(c, a, b);
		if (!pairs[i])
			return false;
	}
	return true;
}

struct pair *pair_up(struct check *c, const struct side_attr *a)
{
	return pair_up_with(c, a, NULL);
}

struct pair *pair_up_with(struct check *c, const struct side_attr *a, const struct side_attr *b)
{
	struct pair *p = pair_open(c, a, b);

	return p && pair_connect(p) ? p : NULL;
}

void pair_close_all(struct check *c)
{
	while (c->pairs) {
		struct pair *p = c->pairs;

		c->pairs = p->next;
		side_close(&p->a);
		side_close(&p->b);
		if (p->own_listener)
			ndx_listener_close(p->listener);
		free(p);
	}
}

enum ndx_status side_connect(struct side *s, const struct sockaddr_storage *to, const void *data,
                             size_t length)
{
	return ndx_connector_connect(
		s->conn, s->qp, address_of_const(to), address_length(to),
		&(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                   .private_data = data,
	                                   .private_data_len = length,
	                                   .inbound_read_limit = s->attr.inbound_reads,
	                                   .outbound_read_limit = s->attr.outbound_reads},
		&s->ov);
}

enum ndx_status side_accept(struct side *s, const void *data, size_t length)
{
	return ndx_connector_accept(
		s->conn, s->qp,
		&(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                   .private_data = data,
	                                   .private_data_len = length,
	                                   .inbound_read_limit = s->attr.inbound_reads,
	                                   .outbound_read_limit = s->attr.outbound_reads},
		&s->ov);
}

bool pair_ask(struct pair *p)
{
	struct check *c = p->c;

	return check_status(c,
	                    ndx_listener_get_connection_request(p->listener, p->b.conn, &p->b.ov),
	                    NDX_PENDING, "get_connection_request") &&
	       check_status(c, side_connect(&p->a, &p->address, NULL, 0), NDX_PENDING, "connect") &&
	       check_ends(c, &p->b.ov, NDX_OK, "get_connection_request");
}

bool pair_answer(struct pair *p)
{
	return check_status(p->c, side_accept(&p->b, NULL, 0), NDX_PENDING, "accept") &&
	       check_ends(p->c, &p->a.ov, NDX_OK, "connect");
}

bool pair_complete(struct pair *p)
{
	return check_async(p->c, ndx_connector_complete_connect(p->a.conn, &p->a.ov), &p->a.ov,
	                   NDX_OK, "complete_connect") &&
	       check_ends(p->c, &p->b.ov, NDX_OK, "accept");
}

bool pair_connect(struct pair *p)
{
	return pair_ask(p) && pair_answer(p) && pair_complete(p);
}

bool side_start_notify(struct side *s)
{
	return check_status(s->c, ndx_connector_notify_disconnect(s->conn, &s->notify), NDX_PENDING,
	                    "notify_disconnect");
}

bool side_start_disconnect(struct side *s)
{
	return check_status(s->c, ndx_connector_disconnect(s->conn, &s->disc), NDX_PENDING,
	                    "disconnect");
}

bool side_disconnect(struct side *s, enum ndx_status want)
{
	return side_start_disconnect(s) && check_ends(s->c, &s->disc, want, "disconnect");
}

bool side_indicated(struct side *s, enum ndx_disconnect_reason want)
{
	enum ndx_disconnect_reason got;

	if (!check_ends(s->c, &s->notify, NDX_OK, "notify_disconnect"))
		return false;
	got = (enum ndx_disconnect_reason)s->notify.information;
	if (got == NDX_DISCONNECT_UNKNOWN && !has_capability(s, NDX_CAP_DISCONNECT_REASON))
		return true;
	return check_that(s->c, got == want, "notify_disconnect at %s says %s, not %s", s->name,
	                  ndx_disconnect_reason_name(got), ndx_disconnect_reason_name(want));
}

bool pair_disconnect(struct pair *p)
{
	return side_start_notify(&p->b) && side_disconnect(&p->a, NDX_OK) &&
	       side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL) && side_disconnect(&p->b, NDX_OK);
}

bool has_capability(const struct side *s, uint64_t bit)
{
	return (s->place->info.capabilities & bit) != 0;
}

struct side *pair_other(struct pair *p, struct side *s)
{
	return s == &p->a ? &p->b : &p->a;
}
