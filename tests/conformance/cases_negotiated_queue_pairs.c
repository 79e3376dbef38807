/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.queue_pairs_*: sessions that connect several queue pairs at once. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "same_plugin.h"
#include "session_stage.h"

enum { ROUNDS = 8, INTERRUPTS = 40 };

static void all_the_way(struct check *c, uint32_t count)
{
	struct stage s;

	if (stage_up(&s, c, count) && stage_agreements_differ(&s) && stage_all_pass(&s, count) &&
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
	all_the_way(c, STAGE_MOST);
}

/* The end of one connection, however it comes, is that of no other. */
void case_negotiated_queue_pairs_end_one_by_one(struct check *c)
{
	struct stage s;

	if (!stage_up(&s, c, 8) || !side_start_notify(&s.p[2]->b))
		goto down;
	for (uint32_t i = 0; i < 3; i++) {
		if (!pair_disconnect(s.p[2 * i + 1]) || !stage_all_pass(&s, 2 * i + 1))
			goto down;
		s.p[2 * i + 1] = s.p[0];
	}
	(void)check_pending(c, &s.p[2]->b.notify, "notify_disconnect of a connection that lasts");
	/* abortively */
	check_status(c, ndx_qp_flush(s.p[2]->a.qp), NDX_OK, "flush");
	if (!side_indicated(&s.p[2]->b, NDX_DISCONNECT_ABORTED))
		goto down;
	s.p[2] = s.p[0];
	(void)stage_all_pass(&s, s.count);
down:
	stage_down(&s);
}

void case_negotiated_queue_pairs_last_longer_than_their_session(struct check *c)
{
	struct stage s;

	if (stage_up(&s, c, 5)) {
		stage_close_session(&s);
		if (stage_all_pass(&s, s.count))
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

	if (!stage_open(&s, c, 8, STAGE_MOST))
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
	stage_close_session(&s);
	stage_close_server(&s);
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
		(void)stage_all_pass(s, s->count);
	for (uint32_t i = 0; i < s->count; i++) {
		if (check_chance(c, 30))
			side_close_qp(check_chance(c, 50) ? &s->p[i]->a : &s->p[i]->b);
		if (check_chance(c, 30))
			side_close_connector(&s->p[i]->a);
		if (check_chance(c, 20))
			stage_close_session(s);
		if (check_chance(c, 10))
			stage_close_server(s);
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
		stage_close_session(s);
		break;
	case 2:
		stage_close_server(s);
		break;
	default:
		break;
	}
	(void)check_result_of(c, NDX_PENDING, &ov);
	stage_close_session(s);
	stage_close_server(s);
}

void case_negotiated_queue_pairs_interrupted_at_random(struct check *c)
{
	for (int i = 0; i < INTERRUPTS && !check_over(c); i++) {
		struct stage s;

		if (stage_open(&s, c, 2 + check_below(c, 8), STAGE_MOST))
			interrupt(&s, 8000);
		stage_down(&s);
	}
}
