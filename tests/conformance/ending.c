/* SPDX-License-Identifier: BSD-2-Clause */
#include "ending.h"

#include "traffic.h"

static enum ndx_status notify_queue(struct object *o, struct ndx_overlapped *ov)
{
	return ndx_cq_notify(o->p->a.cq, NDX_CQ_NOTIFY_ANY, ov);
}

static void cancel_queue(struct object *o)
{
	check_status(o->c, ndx_cq_cancel(o->p->a.cq), NDX_OK, "cq_cancel");
}

static void close_queue(struct object *o)
{
	side_close_qp(&o->p->a);
	side_close_cqs(&o->p->a);
}

static enum ndx_status ask_listener(struct object *o, struct ndx_overlapped *ov)
{
	return ndx_listener_get_connection_request(o->p->listener, o->p->b.conn, ov);
}

static void cancel_listener(struct object *o)
{
	check_status(o->c, ndx_listener_cancel(o->p->listener), NDX_OK, "listener_cancel");
}

static void close_listener(struct object *o)
{
	ndx_listener_close(o->p->listener);
	o->p->listener = NULL;
}

static enum ndx_status connect_to_it(struct object *o, struct ndx_overlapped *ov)
{
	struct pair *p = o->p;

	return ndx_connector_connect(p->a.conn, p->a.qp, address_of(&p->address),
	                             address_length(&p->address), NULL, ov);
}

static void cancel_connector(struct object *o)
{
	check_status(o->c, ndx_connector_cancel(o->p->a.conn), NDX_OK, "connector_cancel");
}

static void close_connector(struct object *o)
{
	side_close_connector(&o->p->a);
}

static enum ndx_status notify_shared(struct object *o, struct ndx_overlapped *ov)
{
	return ndx_srq_notify(o->srq, ov);
}

static void cancel_shared(struct object *o)
{
	check_status(o->c, ndx_srq_cancel(o->srq), NDX_OK, "srq_cancel");
}

static void close_shared(struct object *o)
{
	ndx_srq_close(o->srq);
	o->srq = NULL;
}

static enum ndx_status register_it(struct object *o, struct ndx_overlapped *ov)
{
	check_status(o->c, ndx_mr_create(o->p->a.adapter, &o->mr), NDX_OK, "mr_create");
	return o->mr ? ndx_mr_register(o->mr, o->p->a.buf, 4096, 0, ov) : NDX_OK;
}

static void cancel_region(struct object *o)
{
	check_status(o->c, ndx_mr_cancel(o->mr), NDX_OK, "mr_cancel");
}

static void close_region(struct object *o)
{
	ndx_mr_close(o->mr);
	o->mr = NULL;
}

static enum ndx_status notify_end(struct object *o, struct ndx_overlapped *ov)
{
	return ndx_connector_notify_disconnect(o->p->a.conn, ov);
}

static void flush(struct object *o)
{
	check_status(o->c, ndx_qp_flush(o->p->a.qp), NDX_OK, "qp_flush");
}

static void close_qp(struct object *o)
{
	side_close_qp(&o->p->a);
}

const struct ending endings[] = {
	{"cq_cancel", notify_queue, cancel_queue, NDX_E_CANCELED, false, false, false},
	{"cq_close", notify_queue, close_queue, NDX_E_CANCELED, false, false, false},
	{"listener_cancel", ask_listener, cancel_listener, NDX_E_CANCELED, false, false, true},
	{"listener_close", ask_listener, close_listener, NDX_E_CANCELED, false, false, true},
	{"connector_cancel", connect_to_it, cancel_connector, NDX_E_CANCELED, false, false, false},
	{"connector_close", connect_to_it, close_connector, NDX_E_CANCELED, false, false, false},
	{"qp_flush", connect_to_it, flush, NDX_E_CANCELED, false, false, false},
	{"qp_close", connect_to_it, close_qp, NDX_E_CANCELED, false, false, false},
	{"connector_cancel", notify_end, cancel_connector, NDX_E_CANCELED, true, false, false},
	{"connector_close", notify_end, close_connector, NDX_E_CANCELED, true, false, false},
	{"qp_flush", notify_end, flush, NDX_OK, true, false, false},
	{"srq_cancel", notify_shared, cancel_shared, NDX_E_CANCELED, false, true, false},
	{"srq_close", notify_shared, close_shared, NDX_E_CANCELED, false, true, false},
	{"mr_cancel", register_it, cancel_region, NDX_OK, false, false, false},
	{"mr_close", register_it, close_region, NDX_OK, false, false, false},
};
const size_t ending_count = sizeof(endings) / sizeof(endings[0]);

bool object_open(struct object *o, struct check *c, const struct ending *e)
{
	const struct place *place = &c->world->places[0];

	*o = (struct object){.c = c};
	if (e->shared && !(place->info.capabilities & NDX_CAP_SRQ))
		return false;
	o->p = e->connected ? pair_up(c, NULL) : pair_open(c, NULL, NULL);
	if (!o->p || !e->shared)
		return o->p != NULL;
	if (!check_status(c, make_srq(place->adapter, 4, 1, 1, &o->srq), NDX_OK, "srq_create"))
		return false;
	if (check_status(c, ndx_srq_receive(o->srq, NULL, NULL, 0), NDX_OK, "srq_receive"))
		return true;
	ndx_srq_close(o->srq);
	return false;
}

void object_close(struct object *o)
{
	ndx_srq_close(o->srq);
	ndx_mr_close(o->mr);
}
