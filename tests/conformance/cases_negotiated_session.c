/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.session_*: sessions that make connections, and which of the two outlives the other. */
#include <stdio.h>
#include <string.h>

#include <netinet/in.h>

#include <ndx/negotiation_server.h>
#include <ndx/session.h>

#include "cases.h"
#include "same_plugin.h"
#include "traffic.h"

enum { ROUNDS = 12 };

struct stage {
	struct check *c;
	struct pair *p;
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	struct ndx_session *session;
};

/* B is the server's. */
static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	const struct stage *s = arg;

	(void)session;
	resources->connector = s->p->b.conn;
	resources->qp = s->p->b.qp;
	return NDX_OK;
}

static bool serve(struct stage *s, char address[32])
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &s->variant;
	attr.variant_count = 1;
	attr.events = (struct ndx_negotiation_server_events){.open = on_open, .arg = s};
	if (!check_status(s->c, ndx_negotiation_server_create(&attr, &s->server), NDX_OK,
	                  "a server"))
		return false;
	(void)ndx_negotiation_server_get_address(s->server, (struct sockaddr *)&at, &length);
	(void)snprintf(address, 32, "127.0.0.1:%u", ntohs(at.sin_port));
	return true;
}

/* Two sides that a session has connected. */
static bool stage_up(struct stage *s, struct check *c)
{
	char address[32];
	const char *const servers[] = {address};
	struct ndx_session_attr attr;

	memset(s, 0, sizeof(*s));
	s->c = c;
	s->p = pair_open(c, NULL, NULL);
	if (!s->p ||
	    !check_status(c, ndx_negotiation_create(&s->negotiation), NDX_OK, "a framework") ||
	    !check_status(c, ndx_negotiation_register(s->negotiation, &same_plugin), NDX_OK,
	                  "register") ||
	    !check_status(c,
	                  ndx_negotiation_get_variant(s->negotiation, "same", "as-it-is", NULL, 0,
	                                              &s->variant),
	                  NDX_OK, "get_variant") ||
	    !serve(s, address))
		return false;
	ndx_session_attr_init(&attr);
	attr.variant = s->variant;
	attr.servers = servers;
	attr.server_count = 1;
	attr.connector = s->p->a.conn;
	attr.qp = s->p->a.qp;
	return check_status(c, ndx_session_create(&attr, &s->session), NDX_OK, "a session") &&
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

/* What is left. The two sides first: the session may have to carry their goodbyes. */
static void stage_down(struct stage *s)
{
	pair_close_all(s->c);
	close_session(s);
	close_server(s);
	ndx_variant_close(s->variant);
	if (s->negotiation)
		check_status(s->c, ndx_negotiation_close(s->negotiation), NDX_OK,
		             "close the framework");
}

void case_negotiated_session_moves_data_and_disconnects(struct check *c)
{
	struct stage s;

	if (stage_up(&s, c) && message_passes(&s.p->a, &s.p->b, 1000) &&
	    message_passes(&s.p->b, &s.p->a, 1) &&
	    check_status(c, ndx_session_execute(s.session, NDX_STAGE_DONE), NDX_OK, "done"))
		(void)pair_disconnect(s.p);
	stage_down(&s);
}

void case_negotiated_session_is_done_after_the_disconnect(struct check *c)
{
	struct stage s;

	if (stage_up(&s, c) && message_passes(&s.p->b, &s.p->a, 64) && pair_disconnect(s.p))
		check_status(c, ndx_session_execute(s.session, NDX_STAGE_DONE), NDX_OK, "done");
	stage_down(&s);
}

void case_negotiated_session_closed_first_the_connection_stays(struct check *c)
{
	struct stage s;

	if (stage_up(&s, c)) {
		close_session(&s);
		if (message_passes(&s.p->a, &s.p->b, 1000) && message_passes(&s.p->b, &s.p->a, 10))
			(void)pair_disconnect(s.p);
	}
	stage_down(&s);
}

static void close_some(struct stage *s)
{
	struct check *c = s->c;

	if (check_chance(c, 50))
		(void)message_passes(&s->p->a, &s->p->b, 64);
	if (check_chance(c, 50))
		side_close_qp(check_chance(c, 50) ? &s->p->a : &s->p->b);
	if (check_chance(c, 50))
		close_session(s);
	if (check_chance(c, 50))
		side_close_connector(&s->p->a);
	if (check_chance(c, 30))
		close_server(s);
}

void case_negotiated_session_ends_in_any_order(struct check *c)
{
	for (int i = 0; i < ROUNDS && !check_over(c); i++) {
		struct stage s;

		if (stage_up(&s, c))
			close_some(&s);
		stage_down(&s);
	}
}
