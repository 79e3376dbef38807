/* SPDX-License-Identifier: BSD-2-Clause */
/* What a plugin is tried with. */
#include "ends.h"

#include <arpa/inet.h>

void side_begin(struct side *s, const struct ndx_plugin_variant *variant, enum ndx_role role,
                const struct ndx_plugin_value *values)
{
	const struct ndx_variant_ops *ops = variant->ops;
	char why[160] = "";

	memset(s, 0, sizeof(*s));
	s->variant = variant;
	s->x = (struct ndx_exchange){.session = 1, .role = role};
	s->reply.room = ENDS_MESSAGE;
	if (ops->create != NULL)
		assert_int_equal(ops->create(NULL, variant, values, &s->instance, why, sizeof(why)),
		                 NDX_OK);
	s->session = s->instance;
	if (ops->begin != NULL)
		assert_int_equal(ops->begin(s->instance, &s->x, &s->session, &s->reply), NDX_OK);
}

void side_end(struct side *s)
{
	const struct ndx_variant_ops *ops = s->variant->ops;

	if (ops->end != NULL)
		ops->end(s->session);
	if (ops->destroy != NULL)
		ops->destroy(s->instance);
}

void side_call(struct side *s, side_fn *fn, const struct side *peer)
{
	/* As long as what was said, so that a sanitizer sees a byte too many. */
	uint8_t *heard = peer != NULL ? malloc(peer->reply.length + 1) : NULL;
	const size_t length = peer != NULL ? peer->reply.length : 0;

	if (length > 0) {
		assert_non_null(heard);
		heard = realloc(heard, length);
		assert_non_null(heard);
		memcpy(heard, peer->said, length);
	}
	s->x.own = &s->own;
	s->x.peer = &s->peer;
	s->x.agreed = &s->agreed;
	s->reply = (struct ndx_exchange_reply){.data = s->said, .room = ENDS_MESSAGE};
	s->status = fn(s->session, &s->x, heard, length, &s->reply);
	free(heard);
}

static side_fn *function_of(const struct side *s)
{
	const struct ndx_variant_ops *ops = s->variant->ops;

	if (s->x.stage == NDX_STAGE_INFO)
		return ops->info;
	return s->x.stage == NDX_STAGE_READY ? ops->ready : ops->done;
}

/* The first round has no peer. */
static void talk_once(struct side *a, struct side *b, bool first)
{
	const struct side said = *a;

	side_call(a, function_of(a), first ? NULL : b);
	side_call(b, function_of(b), first ? NULL : &said);
}

bool sides_talk(struct side *a, struct side *b, enum ndx_stage stage)
{
	a->x.stage = stage;
	b->x.stage = stage;
	for (uint32_t round = 0; round < 16; round++) {
		a->x.round = round;
		b->x.round = round;
		talk_once(a, b, round == 0);
		if (a->status != NDX_OK || b->status != NDX_OK)
			return false;
		if (a->reply.completed || b->reply.completed)
			return a->reply.completed && b->reply.completed;
	}
	return false;
}

bool end_open(struct end *e, const char *uri)
{
	struct ndx_connector_attr connector;
	struct ndx_qp_attr qp;

	memset(e, 0, sizeof(*e));
	if (ndx_adapter_open(uri, &e->adapter) != NDX_OK)
		return false;
	assert_int_equal(ndx_cq_create(e->adapter, 16, 0, 0, &e->cq), NDX_OK);
	ndx_qp_attr_init(&qp);
	qp.receive_cq = e->cq;
	qp.initiator_cq = e->cq;
	qp.receive_depth = 4;
	qp.initiator_depth = 4;
	assert_int_equal(ndx_qp_create(e->adapter, &qp, &e->qp), NDX_OK);
	ndx_connector_attr_init(&connector);
	assert_int_equal(ndx_connector_create(e->adapter, &connector, &e->connector), NDX_OK);
	return true;
}

void end_close(struct end *e)
{
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
	ndx_adapter_close(e->adapter);
}

static enum ndx_status on_open(void *arg, struct ndx_session *s, struct ndx_session_resources *r)
{
	struct meeting *m = arg;

	(void)s;
	r->connector = m->server.connector;
	r->qp = m->server.qp;
	r->memory = m->memory;
	r->inbound_read_limit = m->reads[2];
	r->outbound_read_limit = m->reads[3];
	return NDX_OK;
}

static void on_staged(void *arg, struct ndx_session *s, enum ndx_stage stage)
{
	struct meeting *m = arg;

	if (stage == NDX_STAGE_INFO)
		assert_int_equal(ndx_session_get_agreement(s, NULL, &m->peer[1], &m->agreed[1]),
		                 NDX_OK);
}

void meeting_run(struct meeting *m, struct ndx_variant *client, struct ndx_variant *server)
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_negotiation_server *listening;
	struct ndx_session_attr session;
	struct ndx_session *s;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);
	char address[32];
	const char *servers = address;

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &server;
	attr.variant_count = 1;
	attr.stage_timeout_ms = ENDS_WAIT_MS;
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .staged = on_staged, .arg = m};
	assert_int_equal(ndx_negotiation_server_create(&attr, &listening), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(listening, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	ndx_session_attr_init(&session);
	session.variant = client;
	session.servers = &servers;
	session.server_count = 1;
	session.stage_timeout_ms = ENDS_WAIT_MS;
	session.connector = m->client.connector;
	session.qp = m->client.qp;
	session.inbound_read_limit = m->reads[0];
	session.outbound_read_limit = m->reads[1];
	assert_int_equal(ndx_session_create(&session, &s), NDX_OK);
	m->status = ndx_session_run(s);
	ndx_session_get_error(s, &m->error);
	(void)ndx_session_get_agreement(s, NULL, &m->peer[0], &m->agreed[0]);
	ndx_session_close(s);
	/* Every callback of the server's has returned behind this. */
	ndx_negotiation_server_close(listening);
}
