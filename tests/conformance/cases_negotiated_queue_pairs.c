/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.queue_pairs_*: sessions that connect several queue pairs at once. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>

#include <ndx/negotiation_server.h>
#include <ndx/session.h>

#include "cases.h"
#include "same_plugin.h"
#include "traffic.h"

enum { MOST = 64, ROUNDS = 8, INTERRUPTS = 40 };

struct stage {
	struct check *c;
	struct pair *p[MOST];
	uint32_t count;
	uint32_t starts; /* with so many of them the session begins; the others are added */
	uint32_t broken; /* index of the queue pair that the server breaks after stage info */
	enum ndx_status refuses;
	uint32_t closed; /* how often the server's callback was called */
	uint32_t asked;  /* for how many queue pairs the server was asked */
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	struct ndx_session *session;
};

/* From this index on, the client takes another key for the server's queue pairs. */
static uint32_t lies_from = UINT32_MAX;

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	const enum ndx_status st = same_info(session, x, peer, length, reply);

	if (st == NDX_OK && reply->completed && x->role == NDX_ROLE_CLIENT &&
	    x->queue_pair >= lies_from && x->peer->mailbox_rkey != 0)
		x->peer->mailbox_rkey ^= 0x5a5a00;
	return st;
}

static const struct ndx_variant_ops ops = {.info = info, .ready = same_ready};
static const struct ndx_plugin_variant crooked = {.name = "as-it-is", .help = "test", .ops = &ops};
/* B is the server's. */
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
	if (first + count != s->count)
		return NDX_E_UNSUCCESSFUL;
	for (uint32_t i = 0; i < count; i++) {
		list[i].connector = s->p[first + i]->b.conn;
		list[i].qp = s->p[first + i]->b.qp;
	}
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

static void list_pairs(const struct stage *s, uint32_t first, uint32_t count,
                       struct ndx_session_queue_pair list[MOST])
{
	memset(list, 0, MOST * sizeof(*list));
	for (uint32_t i = 0; i < count; i++) {
		list[i].connector = s->p[first + i]->a.conn;
		list[i].qp = s->p[first + i]->a.qp;
	}
}

/* `count` pairs and a session of `starts` of them that is not connected; the server takes `most`
 * queue pairs. */
static bool stage_open_some(struct stage *s, struct check *c, uint32_t count, uint32_t starts,
                            uint32_t most)
{
	static struct ndx_plugin plugin;
	struct ndx_session_queue_pair list[MOST];
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
	list_pairs(s, 0, starts, list);
	ndx_session_attr_init(&attr);
	attr.variant = s->variant;
	attr.servers = servers;
	attr.server_count = 1;
	attr.queue_pairs = list;
	attr.queue_pair_count = starts;
	attr.max_history = 512;
	return check_status(c, ndx_session_create(&attr, &s->session), NDX_OK, "a session");
}

static bool stage_open(struct stage *s, struct check *c, uint32_t count, uint32_t most)
{
	return stage_open_some(s, c, count, count, most);
}

static bool stage_up(struct stage *s, struct check *c, uint32_t count)
{
	return stage_open(s, c, count, MOST) &&
	       check_status(c, ndx_session_run(s->session), NDX_OK, "run");
}

static void close_session(struct stage *s)
{
	ndx_session_close(s->session);
	s->session = NULL;
}

static void close_server(struct stage *s)
{
	ndx_negotiation_server_close(s->server);
	s->server = NULL;
}

/* The server's session may still have the connectors, until `closed`. */
static void stage_down(struct stage *s)
{
	close_session(s);
	close_server(s);
	pair_close_all(s->c);
	ndx_variant_close(s->variant);
	if (s->negotiation)
		check_status(s->c, ndx_negotiation_close(s->negotiation), NDX_OK,
		             "close the framework");
}

/* Each queue pair is connected to that of its index: what is sent is different for each. */
static bool all_pass(struct stage *s, uint32_t but)
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

static bool agreements_differ(struct stage *s)
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

static void all_the_way(struct check *c, uint32_t count)
{
	struct stage s;

	if (stage_up(&s, c, count) && agreements_differ(&s) && all_pass(&s, count) &&
	    check_that(c, s.asked == count, "the server was asked for %u, not %u", s.asked,
	               count) &&
	    check_status(c, ndx_session_execute(s.session, NDX_STAGE_DONE), NDX_OK, "done"))
		for (uint32_t i = 0; i < count && pair_disconnect(s.p[i]); i++)
			;
	stage_down(&s);
	check_that(c, s.closed == 1, "closed was called %u times", s.closed);
}

void case_negotiated_queue_pairs_one_of_an_array(struct check *c)
{
	all_the_way(c, 1);
}

void case_negotiated_queue_pairs_two(struct check *c)
{
	all_the_way(c, 2);
}

void case_negotiated_queue_pairs_many(struct check *c)
{
	all_the_way(c, MOST);
}

/* The end of one connection, however it comes, is that of no other. */
void case_negotiated_queue_pairs_end_one_by_one(struct check *c)
{
	struct stage s;

	if (!stage_up(&s, c, 8) || !side_start_notify(&s.p[2]->b))
		goto down;
	for (uint32_t i = 0; i < 3; i++) {
		if (!pair_disconnect(s.p[2 * i + 1]) || !all_pass(&s, 2 * i + 1))
			goto down;
		s.p[2 * i + 1] = s.p[0];
	}
	(void)check_pending(c, &s.p[2]->b.notify, "notify_disconnect of a connection that lasts");
	/* abortively */
	check_status(c, ndx_qp_flush(s.p[2]->a.qp), NDX_OK, "flush");
	if (!side_indicated(&s.p[2]->b, NDX_DISCONNECT_ABORTED))
		goto down;
	s.p[2] = s.p[0];
	(void)all_pass(&s, s.count);
down:
	stage_down(&s);
}

void case_negotiated_queue_pairs_last_longer_than_their_session(struct check *c)
{
	struct stage s;

	if (stage_up(&s, c, 5)) {
		close_session(&s);
		if (all_pass(&s, s.count))
			for (uint32_t i = 0; i < s.count && pair_disconnect(s.p[i]); i++)
				;
	}
	stage_down(&s);
}

/* The connection is over, or was never made. */
static void has_no_connection(struct side *s)
{
	enum ndx_status st;

	if (s->conn == NULL)
		return;
	/* of the side, because nothing is waited for once the case has failed */
	st = ndx_connector_notify_disconnect(s->conn, &s->notify);
	if (st == NDX_PENDING)
		(void)check_result_of(s->c, st, &s->notify);
	else
		check_that(s->c, st < 0, "notify_disconnect answers %s", ndx_status_name(st));
}

void case_negotiated_queue_pairs_all_or_none(struct check *c)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	struct stage s;
	char *json;

	if (!stage_open(&s, c, 8, MOST))
		goto down;
	s.broken = 5;
	check_that(c, ndx_session_run(s.session) < 0, "the session runs with a broken queue pair");
	check_status(c, ndx_session_get_error(s.session, &e), NDX_OK, "get_error");
	check_that(c, e.of_queue_pair == 1 && e.queue_pair == 5,
	           "the failure is of queue pair %u (%u), not 5: %s", e.queue_pair, e.of_queue_pair,
	           e.text);
	check_that(c, strstr(e.text, "queue pair 5: ") != NULL,
	           "the text does not name the queue pair: %s", e.text);
	check_that(c, e.stage == NDX_STAGE_VALIDATE, "the failure is in stage %s",
	           ndx_stage_name(e.stage));
	if (check_status(c, ndx_session_snapshot(s.session, &json), NDX_OK, "snapshot")) {
		check_that(c, strstr(json, "\"queue_pair\":") != NULL, "not told in %s", json);
		free(json);
	}
	for (uint32_t i = 0; i < s.count; i++) {
		has_no_connection(&s.p[i]->a);
		has_no_connection(&s.p[i]->b);
	}
	/* of a session that has failed the program gets its connectors back when it is closed */
	close_session(&s);
	close_server(&s);
	check_that(c, s.closed == 1, "closed was called %u times", s.closed);
down:
	stage_down(&s);
}

static void refused(struct check *c, struct stage *s, enum ndx_status want, const char *text)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	check_status(c, ndx_session_run(s->session), want, "run, refused");
	check_status(c, ndx_session_get_error(s->session, &e), NDX_OK, "get_error");
	check_that(c, strstr(e.text, text) != NULL, "the error is \"%s\"", e.text);
}

void case_negotiated_queue_pairs_refused_by_the_server(struct check *c)
{
	struct stage s;

	if (stage_open(&s, c, 5, 4))
		refused(c, &s, NDX_E_NOT_SUPPORTED, "asks for 5 queue pairs, this server takes 4");
	stage_down(&s);
	if (stage_open(&s, c, 5, 5)) {
		s.refuses = NDX_E_INSUFFICIENT_RESOURCES;
		refused(c, &s, NDX_E_REMOTE_ERROR, "refuses 5 queue pairs: ");
	}
	stage_down(&s);
	check_that(c, s.closed == 0, "closed was called for a session that was refused");
}

/* As a plugin that knows nothing of several queue pairs. */
void case_negotiated_queue_pairs_need_a_plugin_that_can(struct check *c)
{
	const char *const servers[] = {"127.0.0.1:1"};
	struct ndx_session_queue_pair list[2];
	struct ndx_plugin plain = same_plugin;
	struct ndx_negotiation *negotiation = NULL;
	struct ndx_variant *variant = NULL;
	struct ndx_session *session = NULL;
	struct ndx_session_attr attr;

	memset(list, 0, sizeof(list));
	plain.flags = 0;
	check_status(c, ndx_negotiation_create(&negotiation), NDX_OK, "a framework");
	check_status(c, ndx_negotiation_register(negotiation, &plain), NDX_OK, "register");
	check_status(
		c, ndx_negotiation_get_variant(negotiation, "same", "as-it-is", NULL, 0, &variant),
		NDX_OK, "get_variant");
	ndx_session_attr_init(&attr);
	attr.variant = variant;
	attr.servers = servers;
	attr.server_count = 1;
	attr.queue_pairs = list;
	attr.queue_pair_count = 2;
	check_status(c, ndx_session_create(&attr, &session), NDX_E_NOT_SUPPORTED,
	             "a session of two queue pairs");
	check_that(c, strstr(ndx_last_error(), "takes one queue pair in a session, not 2") != NULL,
	           "the text is \"%s\"", ndx_last_error());
	attr.queue_pair_count = NDX_SESSION_QUEUE_PAIRS_MOST + 1;
	check_status(c, ndx_session_create(&attr, &session), NDX_E_INVALID_PARAMETER,
	             "a session of too many queue pairs");
	ndx_variant_close(variant);
	check_status(c, ndx_negotiation_close(negotiation), NDX_OK, "close the framework");
}

static void close_some(struct stage *s)
{
	struct check *c = s->c;

	if (check_chance(c, 50))
		(void)all_pass(s, s->count);
	for (uint32_t i = 0; i < s->count; i++) {
		if (check_chance(c, 30))
			side_close_qp(check_chance(c, 50) ? &s->p[i]->a : &s->p[i]->b);
		if (check_chance(c, 30))
			side_close_connector(&s->p[i]->a);
		if (check_chance(c, 20))
			close_session(s);
		if (check_chance(c, 10))
			close_server(s);
	}
}

void case_negotiated_queue_pairs_end_in_any_order(struct check *c)
{
	for (int i = 0; i < ROUNDS && !check_over(c); i++) {
		struct stage s;

		if (stage_up(&s, c, 2 + check_below(c, 4)))
			close_some(&s);
		stage_down(&s);
	}
}

/* Cancel, close, or take the server away, at any time of the session's way to its end. */
static void interrupt(struct stage *s, uint32_t within_us)
{
	struct check *c = s->c;
	struct ndx_overlapped ov = {.reserved = {0}};
	const struct timespec pause = {.tv_nsec = (long)check_below(c, within_us + 1) * 1000};
	sigset_t none;

	if (!check_status(c, ndx_session_run_overlapped(s->session, &ov), NDX_PENDING, "run"))
		return;
	(void)sigemptyset(&none);
	(void)ppoll(NULL, 0, &pause, &none);
	switch (check_below(c, 4)) {
	case 0:
		ndx_session_cancel(s->session);
		break;
	case 1:
		close_session(s);
		break;
	case 2:
		close_server(s);
		break;
	default:
		break;
	}
	(void)check_result_of(c, NDX_PENDING, &ov);
	close_session(s);
	close_server(s);
}

void case_negotiated_queue_pairs_interrupted_at_random(struct check *c)
{
	for (int i = 0; i < INTERRUPTS && !check_over(c); i++) {
		struct stage s;

		if (stage_open(&s, c, 2 + check_below(c, 8), MOST))
			interrupt(&s, 8000);
		stage_down(&s);
	}
}

/* The paths of these were proved, if the stack proves any. */
static bool are_proved(const struct stage *s, uint32_t first)
{
	struct ndx_history_entry e[512];
	size_t count = 512;
	uint64_t seen = 0;

	(void)ndx_session_get_history(s->session, e, &count, NULL);
	for (size_t i = 0; i < count; i++)
		if (e[i].kind == NDX_HISTORY_PROOF &&
		    strstr(e[i].text, ": written 2 of 2, seen 2 of 2"))
			seen |= UINT64_C(1)
			        << strtoul(e[i].text + strlen("queue pair "), NULL, 10) % MOST;
	return check_that(s->c,
	                  seen == 0 || seen >> first == (UINT64_C(1) << (s->count - first)) - 1,
	                  "proofs of the queue pairs %#llx", (unsigned long long)seen);
}

/* Some are added while the others live, and those whose connections have ended are removed. */
void case_negotiated_queue_pairs_added_and_removed(struct check *c)
{
	enum { ALL = 8, FIRST = 4 };
	struct ndx_session_queue_pair list[MOST];
	uint32_t first = 0;
	struct stage s;

	if (!stage_open_some(&s, c, ALL, FIRST, ALL) ||
	    !check_status(c, ndx_session_run(s.session), NDX_OK, "run"))
		goto down;
	list_pairs(&s, FIRST, ALL - FIRST, list);
	if (!check_status(c, ndx_session_add_queue_pairs(s.session, list, ALL - FIRST, &first),
	                  NDX_OK, "add_queue_pairs") ||
	    !check_that(c, first == FIRST, "the first index is %u", first) ||
	    !are_proved(&s, FIRST) || !agreements_differ(&s) || !all_pass(&s, ALL))
		goto down;
	for (uint32_t i = 1; i < ALL; i += FIRST) {
		if (!pair_disconnect(s.p[i]))
			goto down;
		s.p[i] = s.p[0];
		check_status(c, ndx_session_remove_queue_pairs(s.session, i, 1), NDX_OK,
		             "remove_queue_pairs");
	}
	check_that(c, ndx_session_get_queue_pair_count(s.session) == ALL - 2,
	           "the session has %u queue pairs", ndx_session_get_queue_pair_count(s.session));
	memset(list, 0, sizeof(list)); /* of the plugin's own */
	check_status(c, ndx_session_add_queue_pairs(s.session, list, 3, NULL), NDX_E_REMOTE_ERROR,
	             "add_queue_pairs beyond the limit");
	if (all_pass(&s, ALL))
		check_status(c, ndx_session_execute(s.session, NDX_STAGE_DONE), NDX_OK, "done");
down:
	stage_down(&s);
}

/* The proof fails for one of those that are added; so none of them is. */
void case_negotiated_queue_pairs_added_with_a_wrong_key(struct check *c)
{
	enum { ALL = 4, FIRST = 2 };
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_session_queue_pair list[MOST];
	struct ndx_peer_description peer;
	struct stage s;

	if (!stage_open_some(&s, c, ALL, FIRST, ALL) ||
	    !check_status(c, ndx_session_run(s.session), NDX_OK, "run") ||
	    ndx_session_get_agreement(s.session, NULL, &peer, NULL) != NDX_OK)
		goto down;
	list_pairs(&s, FIRST, ALL - FIRST, list);
	lies_from = FIRST + 1;
	if (peer.kind != NDX_DESCRIPTION_VERBS_RC || peer.mailbox_rkey == 0)
		check_skip(c, "ends of this stack have no key for the proof");
	else if (check_status(c, ndx_session_add_queue_pairs(s.session, list, ALL - FIRST, NULL),
	                      NDX_E_ACCESS_VIOLATION, "add_queue_pairs")) {
		(void)ndx_session_get_add_error(s.session, &e);
		check_that(c, e.stage == NDX_STAGE_VALIDATE && e.queue_pair == FIRST + 1,
		           "stage %s, queue pair %u", ndx_stage_name(e.stage), e.queue_pair);
		check_that(c, strstr(e.text, "client to server") && strstr(e.text, "key"),
		           "the error is \"%s\"", e.text);
		s.count = FIRST;
		(void)all_pass(&s, ALL);
	}
	lies_from = UINT32_MAX;
down:
	stage_down(&s);
}
