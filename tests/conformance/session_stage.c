/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of several queue pairs: side A of each pair is the client's, side B the server's. */
#include "session_stage.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "same_plugin.h"

uint32_t stage_lies_from = UINT32_MAX;

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	const enum ndx_status st = same_info(session, x, peer, length, reply);

	if (st == NDX_OK && reply->completed && x->role == NDX_ROLE_CLIENT &&
	    x->queue_pair >= stage_lies_from && x->peer->mailbox_rkey != 0)
		x->peer->mailbox_rkey ^= 0x5a5a00;
	return st;
}

static const struct ndx_variant_ops ops = {.info = info, .ready = same_ready};
static const struct ndx_plugin_variant crooked = {.name = "as-it-is", .help = "test", .ops = &ops};

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	struct stage *s = arg;

	(void)session;
	s->asked = 1;
	resources->connector = s->p[0]->b.conn;
	resources->qp = s->p[0]->b.qp;
	return NDX_OK;
}

static enum ndx_status on_open_many(void *arg, struct ndx_session *session, uint32_t count,
                                    struct ndx_session_queue_pair *list,
                                    struct ndx_session_resources *resources)
{
	struct stage *s = arg;

	(void)session;
	(void)resources;
	s->asked = count;
	for (uint32_t i = 0; i < count && i < s->count; i++) {
		list[i].connector = s->p[i]->b.conn;
		list[i].qp = s->p[i]->b.qp;
	}
	return count == s->starts ? s->refuses : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status on_add_many(void *arg, struct ndx_session *session, uint32_t first,
                                   uint32_t count, struct ndx_session_queue_pair *list)
{
	struct stage *s = arg;

	(void)session;
	if (first + count > s->count)
		return NDX_E_UNSUCCESSFUL;
	for (uint32_t i = 0; i < count; i++) {
		list[i].connector = s->p[first + i]->b.conn;
		list[i].qp = s->p[first + i]->b.qp;
	}
	if (s->cancels)
		ndx_session_cancel(s->session);
	return NDX_OK;
}

static void on_staged(void *arg, struct ndx_session *session, enum ndx_stage stage)
{
	struct stage *s = arg;

	(void)session;
	if (stage == NDX_STAGE_INFO && s->broken < s->count)
		side_close_qp(&s->p[s->broken]->b);
}

static void on_closed(void *arg, struct ndx_session *session)
{
	struct stage *s = arg;

	(void)session;
	__atomic_add_fetch(&s->closed, 1, __ATOMIC_RELEASE);
}

static bool serve(struct stage *s, uint32_t most, char address[32])
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &s->variant;
	attr.variant_count = 1;
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .staged = on_staged, .closed = on_closed, .arg = s};
	attr.open_many = on_open_many;
	attr.add_many = on_add_many;
	attr.max_queue_pairs = most;
	if (!check_status(s->c, ndx_negotiation_server_create(&attr, &s->server), NDX_OK,
	                  "a server"))
		return false;
	(void)ndx_negotiation_server_get_address(s->server, (struct sockaddr *)&at, &length);
	(void)snprintf(address, 32, "127.0.0.1:%u", ntohs(at.sin_port));
	return true;
}

void stage_list(const struct stage *s, uint32_t first, uint32_t count,
                struct ndx_session_queue_pair list[STAGE_MOST])
{
	memset(list, 0, STAGE_MOST * sizeof(*list));
	for (uint32_t i = 0; i < count; i++) {
		list[i].connector = s->p[first + i]->a.conn;
		list[i].qp = s->p[first + i]->a.qp;
	}
}

bool stage_open_some(struct stage *s, struct check *c, uint32_t count, uint32_t starts,
                     uint32_t most)
{
	static struct ndx_plugin plugin;
	struct ndx_session_queue_pair list[STAGE_MOST];
	char address[32];
	const char *const servers[] = {address};
	struct ndx_session_attr attr;
	struct side_attr side;

	plugin = same_plugin;
	plugin.list = &crooked;
	memset(s, 0, sizeof(*s));
	s->c = c;
	s->count = count;
	s->starts = starts;
	s->broken = count;
	side_attr_init(&side);
	side.receive_depth = 8;
	side.initiator_depth = 8;
	side.buffer = 4096;
	if (!pairs_open(c, s->p, count, &side, NULL) ||
	    !check_status(c, ndx_negotiation_create(&s->negotiation), NDX_OK, "a framework") ||
	    !check_status(c, ndx_negotiation_register(s->negotiation, &plugin), NDX_OK,
	                  "register") ||
	    !check_status(c,
	                  ndx_negotiation_get_variant(s->negotiation, "same", "as-it-is", NULL, 0,
	                                              &s->variant),
	                  NDX_OK, "get_variant") ||
	    !serve(s, most, address))
		return false;
	stage_list(s, 0, starts, list);
	ndx_session_attr_init(&attr);
	attr.variant = s->variant;
	attr.servers = servers;
	attr.server_count = 1;
	attr.queue_pairs = list;
	attr.queue_pair_count = starts;
	attr.max_history = 512;
	return check_status(c, ndx_session_create(&attr, &s->session), NDX_OK, "a session");
}

bool stage_open(struct stage *s, struct check *c, uint32_t count, uint32_t most)
{
	return stage_open_some(s, c, count, count, most);
}

bool stage_up(struct stage *s, struct check *c, uint32_t count)
{
	return stage_open(s, c, count, STAGE_MOST) &&
	       check_status(c, ndx_session_run(s->session), NDX_OK, "run");
}

void stage_close_session(struct stage *s)
{
	ndx_session_close(s->session);
	s->session = NULL;
}

void stage_close_server(struct stage *s)
{
	ndx_negotiation_server_close(s->server);
	s->server = NULL;
}

void stage_down(struct stage *s)
{
	stage_close_session(s);
	stage_close_server(s);
	pair_close_all(s->c);
	ndx_variant_close(s->variant);
	if (s->negotiation)
		check_status(s->c, ndx_negotiation_close(s->negotiation), NDX_OK,
		             "close the framework");
}

bool stage_all_pass(struct stage *s, uint32_t but)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct side *a = &s->p[i]->a;
		struct side *b = &s->p[i]->b;

		if (i == but)
			continue;
		pattern_fill(a->buf, 64, (uint64_t)i + 1);
		memset(b->buf, 0, 64);
		if (!receive_ok(b, 1, 0, 64) || !send_ok(a, 2, 0, 64, 0) ||
		    !expect_received(b, 1, 64) || !expect(a, NDX_REQUEST_SEND, 2, NDX_OK) ||
		    !pattern_there(s->c, b->buf, 64, (uint64_t)i + 1, "the message") ||
		    !message_passes(b, a, 10))
			return false;
	}
	return true;
}

bool stage_agreements_differ(struct stage *s)
{
	struct ndx_peer_description first;
	struct ndx_peer_description own;
	struct ndx_agreement agreed;

	check_that(s->c, ndx_session_get_queue_pair_count(s->session) == s->count,
	           "the session has %u queue pairs, not %u",
	           ndx_session_get_queue_pair_count(s->session), s->count);
	check_status(s->c, ndx_session_get_agreement(s->session, &first, NULL, NULL), NDX_OK,
	             "get_agreement");
	check_status(s->c,
	             ndx_session_get_queue_pair_agreement(s->session, s->count, &own, NULL, NULL),
	             NDX_E_INVALID_PARAMETER, "get_queue_pair_agreement of one too many");
	for (uint32_t i = 0; i < s->count; i++) {
		if (!check_status(s->c,
		                  ndx_session_get_queue_pair_agreement(s->session, i, &own, NULL,
		                                                       &agreed),
		                  NDX_OK, "get_queue_pair_agreement"))
			return false;
		check_that(s->c, agreed.kind == own.kind, "agreed on kind %u, not %u", agreed.kind,
		           own.kind);
		check_that(s->c,
		           (own.qpn == first.qpn &&
		            memcmp(own.cookie, first.cookie, sizeof(own.cookie)) == 0) == (i == 0),
		           "queue pair %u is described as queue pair 0, or queue pair 0 is not", i);
	}
	return !check_over(s->c);
}
