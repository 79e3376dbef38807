/* SPDX-License-Identifier: BSD-2-Clause */
/* The first frame of a client: identify plugin, variant and session. Loop thread. */
#include <stdio.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "connection.h"
#include "many_add.h"
#include "server.h"
#include "suggest.h"

static struct ndx_variant *find_variant(const struct ndx_negotiation_server *server,
                                        const struct frame_hello *hello, char *why, size_t room)
{
	char both[2 * NDX_PLUGIN_NAME_MAX + 2];
	char known[SUGGEST_TEXT];
	struct suggest s;

	(void)snprintf(both, sizeof(both), "%s/%s", hello->plugin, hello->variant);
	suggest_begin(&s, both);
	for (size_t i = 0; i < server->attr.variant_count; i++) {
		struct ndx_variant *v = server->variants[i];
		char name[2 * NDX_PLUGIN_NAME_MAX + 2];

		if (strcmp(ndx_variant_plugin_name(v), hello->plugin) == 0 &&
		    strcmp(ndx_variant_name(v), hello->variant) == 0)
			return v;
		(void)snprintf(name, sizeof(name), "%s/%s", ndx_variant_plugin_name(v),
		               ndx_variant_name(v));
		suggest_offer(&s, name, NULL);
	}
	(void)snprintf(why, room, "no variant %s here; %.120s", both, suggest_text(&s, known));
	return NULL;
}

static bool send_welcome(struct client *c, uint8_t flags)
{
	const struct replay *replay = &c->session.driver.replay;
	const bool adds = c->session.many != NULL && c->session.many->adds;
	const struct ndx_negotiation_server_attr *a = &c->server->attr;
	const struct frame_welcome w = {a->max_message, a->stage_timeout_ms, a->session_timeout_ms};
	const struct frame f = {.type = FRAME_WELCOME,
	                        .flags = (uint8_t)(flags | (replay->on ? FRAME_REPLAYS : 0) |
	                                           (adds ? FRAME_ADDS : 0)),
	                        .round = flags != 0 && replay->on ? replay_count(replay) : 0,
	                        .length = FRAME_WELCOME_SIZE};
	uint8_t bytes[FRAME_HEADER + FRAME_WELCOME_SIZE];

	(void)frame_write_welcome(bytes + FRAME_HEADER, &w);
	frame_write_header(bytes, &f);
	/* These are the first bytes on the connection: if they do not fit, the connection is
	 * useless. */
	if ((flags == 0 ? driver_send_soon : driver_send)(&c->session, bytes, sizeof(bytes)) !=
	    IO_DONE)
		return false;
	history_add_hello(&c->session.history, c->session.dialogue.view.stage, FRAME_WELCOME_SIZE,
	                  c->session.many != NULL ? FRAME_HELLO_SIZE_MAX : FRAME_HELLO_SIZE,
	                  ndxp_now_ns());
	return true;
}

/* Whether the pool has the session for a call in mid-stage, the server's program included. What the
 * pool writes is not looked at. */
static bool is_called(const struct ndx_session *s)
{
	return s->driver.phase == DRIVER_POOL && !s->driver.over &&
	       (int)s->dialogue.view.stage > s->dialogue.finished;
}

/* Whether another transport can be given to the session, which may not have detected yet that the
 * present one broke. */
static bool may_resume(const struct client *c)
{
	const struct ndx_session *s = &c->session;
	const struct driver *d = &s->driver;

	if (s->many != NULL || c->cut)
		return false;
	if (d->replay.on)
		return !d->over && driver_can_resume(s) &&
		       (d->phase == DRIVER_ORPHAN || d->phase == DRIVER_ACTIVE ||
		        d->phase == DRIVER_POOL || d->phase == DRIVER_QP);
	return (d->phase == DRIVER_ORPHAN ||
	        (d->phase == DRIVER_ACTIVE &&
	         (s->dialogue.next == DIALOGUE_RECEIVE || s->dialogue.next == DIALOGUE_CALL)) ||
	        is_called(s)) &&
	       d->oob == NULL && s->dialogue.view.stage != NDX_STAGE_VALIDATE &&
	       s->attr.variant->table->ops->reset != NULL;
}

static struct client *find_session(struct ndx_negotiation_server *server, const struct client *but,
                                   const uint8_t cookie[16])
{
	for (struct ndxp_list *n = server->clients.next; n != &server->clients; n = n->next) {
		struct client *c = container_of(n, struct client, node);

		if (c != but && c->talking && memcmp(c->session.cookie, cookie, 16) == 0 &&
		    may_resume(c))
			return c;
	}
	return NULL;
}

/* The session has another transport: go on where it is. */
static void go_on(struct client *c)
{
	if (c->session.driver.phase == DRIVER_ORPHAN)
		c->session.driver.phase = DRIVER_ACTIVE;
	driver_go_soon(&c->session);
}

const char client_cut[] = "its client lacks messages that are not kept, and cannot go on";

/* The other transport has broken already. */
static void lose_again(struct client *c)
{
	const enum driver_phase phase = c->session.driver.phase;

	if (phase == DRIVER_POOL || phase == DRIVER_QP)
		driver_detach(&c->session); /* as the first one: a third may come */
	else if (client_fail(c, NDX_E_CONNECTION_ABORTED, "its second transport broke, too"))
		driver_go_soon(&c->session);
}

/* No transport is of use for the session: end what it does, or as soon as the pool gives it back.
 */
static void fail_resumption(struct client *c)
{
	struct ndx_session *s = &c->session;

	switch (s->driver.phase) {
	case DRIVER_POOL:
		c->cut = true;
		driver_detach(s);
		break;
	case DRIVER_QP:
		driver_detach(s);
		dialogue_fail(&s->dialogue, NDX_LAYER_TRANSPORT, NDX_E_CONNECTION_ABORTED, false,
		              client_cut);
		conn_cancel_attempt(s->attr.connector); /* what waits for it finds the failure */
		break;
	case DRIVER_ROLE:
	case DRIVER_ACTIVE:
	case DRIVER_ORPHAN:
	case DRIVER_ENDING:
	case DRIVER_CLOSING:
	default:
		if (client_fail(c, NDX_E_CONNECTION_ABORTED, client_cut))
			driver_go_soon(s);
	}
}

bool client_begin_anew(struct client *c)
{
	struct ndx_session *s = &c->session;

	c->anew = false;
	if (s->dialogue.next == DIALOGUE_FAILED)
		return true;
	if (!driver_bind(s))
		return client_fail(c, NDX_E_NO_MEMORY, "no key of the channel of TLS");
	s->driver.restart = true;
	s->driver.since_ns = 0; /* the wait for a frame begins anew */
	driver_call(s);
	return false;
}

/* Continue the session over the transport of `from`, whose client has received `count` frames;
 * frees `from`. */
static void resume(struct client *c, struct client *from, uint32_t count)
{
	struct driver *d = &c->session.driver;
	struct driver *other = &from->session.driver;
	struct tls *tls = other->tls;
	const int fd = other->fd;
	bool attached;

	ndxp_watch_remove(other->engine->loop, &other->watch);
	other->watched = false;
	other->fd = -1;
	other->tls = NULL;
	client_stop(from);
	if (d->replay.on)
		replay_hold(d);
	driver_detach(&c->session);
	attached = driver_attach(&c->session, fd);
	driver_take_ahead(&c->session, other); /* `from` is freed later, by a job */
	c->session.driver.tls = tls;
	c->session.driver.secured = tls != NULL;
	if (!attached || !send_welcome(c, FRAME_RESUMED)) {
		lose_again(c);
		return;
	}
	if (d->replay.on && !replay_resume(d, count)) {
		fail_resumption(c);
		return;
	}
	server_count(c->server, &c->server->stats.resumed);
	log_info("session %llu of %s: goes on in stage %s", (unsigned long long)c->session.id,
	         c->address, frame_stage_name(c->session.dialogue.view.stage));
	if (d->replay.on) {
		go_on(c);
		return;
	}
	/* The dialogue, and what binds it to a channel of TLS, may be the pool's. */
	c->anew = d->phase == DRIVER_POOL;
	if (!c->anew && client_begin_anew(c))
		driver_go_soon(&c->session);
}

/* Take the identity that TLS has proved; in plaintext there is none. */
static bool identify(struct client *c)
{
	return c->session.driver.tls == NULL || tls_identify(c->session.driver.tls, &c->identity);
}

static bool refuse(struct client *c, uint64_t *counter, enum ndx_status st, const char *why)
{
	struct ndx_negotiation_server *server = c->server;

	if (counter != NULL) {
		server_count(server, &server->stats.refused);
		server_count(server, counter);
	}
	return client_fail(c, st, why);
}

/* A cookie is no proof of identity: another peer that has it must not get the session, which waits
 * for its own client. */
static bool refuse_other(struct client *c, const struct client *owner)
{
	char why[240];

	(void)snprintf(why, sizeof(why),
	               "\"%.60s\" wants to go on with session %llu, which is of \"%.60s\": the "
	               "identities differ",
	               c->identity.name, (unsigned long long)owner->session.id,
	               owner->identity.name);
	if (server_may_log(c->server))
		log_warn(0, "session %llu of %s: %s", (unsigned long long)c->session.id, c->address,
		         why);
	return refuse(c, &c->server->stats.refused_identities, NDX_E_CONNECTION_REFUSED,
	              "the session to go on with is of another identity");
}

/* Whether the server's program and the variant take so many queue pairs in one session. */
static bool takes(const struct ndx_negotiation_server *server, const struct ndx_variant *variant,
                  uint32_t count, char *why, size_t room)
{
	const struct ndx_negotiation_server_attr *a = &server->attr;

	if (count == 1)
		return true;
	if (a->open_many == NULL || a->max_queue_pairs == 1)
		(void)snprintf(why, room,
		               "the client asks for %u queue pairs, the server's program takes one "
		               "in a session",
		               count);
	else if (count > a->max_queue_pairs)
		(void)snprintf(
			why, room,
			"the client asks for %u queue pairs, this server takes %u at most in "
			"a session",
			count, a->max_queue_pairs);
	else
		return describe_takes(variant, count, why, room);
	return false;
}

static bool begin_session(struct client *c, struct ndx_variant *variant,
                          const struct frame_hello *hello, bool replays)
{
	const struct dialogue_limits limits = {c->server->attr.max_message,
	                                       c->server->attr.max_rounds};
	struct many *many = hello->queue_pairs > 1 ? many_alloc(hello->queue_pairs) : NULL;
	struct dialogue *d = &c->session.dialogue;
	char why[200];

	if (hello->queue_pairs > 1 && many == NULL)
		return client_fail(c, NDX_E_NO_MEMORY, "no memory for so many queue pairs");

	c->session.attr.variant = variant;
	memcpy(c->session.cookie, hello->session, sizeof(c->session.cookie));
	dialogue_init(d, variant, NDX_ROLE_SERVER, c->session.id, &limits, &c->session.history);
	dialogue_limit(d, hello->max_message);
	if (many != NULL) {
		many_init(&c->session, many, &addition_server);
		/* `replays` is the same bit; with a plugin that takes none, nothing is granted */
		many->adds = replays && describe_adds(variant, why, sizeof(why));
	}
	c->talking = true;
	session_set_state(&c->session, NDX_SESSION_EXCHANGING);
	if (!driver_bind(&c->session))
		return client_fail(c, NDX_E_NO_MEMORY, "no key of the channel of TLS");
	c->session.deadline_ns = ndxp_deadline(c->server->attr.session_timeout_ms);
	c->session.driver.phase = DRIVER_ACTIVE;
	/* What TLS has bound to its connection cannot go on over another one. */
	replay_begin(&c->session.driver.replay, replays && c->session.driver.tls == NULL &&
	                                                many == NULL &&
	                                                variant->table->ops->reset != NULL);
	if (!send_welcome(c, 0))
		return client_fail(c, NDX_E_CONNECTION_ABORTED, "the client went away at once");
	return true;
}

/* The client may use the variant, and has a place left. */
static bool admit(struct client *c, struct ndx_variant *variant, const struct frame_hello *hello,
                  bool replays)
{
	struct ndx_negotiation_server *server = c->server;
	char why[BUDGET_TEXT];

	if (!server_grants(c, variant)) {
		(void)snprintf(why, sizeof(why), "\"%.80s\" has no grant for variant %s/%s",
		               c->identity.name, ndx_variant_plugin_name(variant),
		               ndx_variant_name(variant));
		return refuse(c, &server->stats.refused_variants, NDX_E_NOT_SUPPORTED, why);
	}
	if (!takes(server, variant, hello->queue_pairs, why, sizeof(why)))
		return refuse(c, NULL, NDX_E_NOT_SUPPORTED, why);
	if (!budget_session(c, why))
		return refuse(c, NULL, NDX_E_INSUFFICIENT_RESOURCES, why);
	return begin_session(c, variant, hello, replays);
}

bool client_hello(struct client *c, const struct frame *f)
{
	struct ndx_negotiation_server *server = c->server;
	struct ndx_variant *variant = NULL;
	struct client *other = NULL;
	struct frame_hello hello;
	const char *fault = "the first message is no hello";
	const bool replays = (f->flags & FRAME_REPLAYS) != 0;
	const uint32_t count = f->round;
	char why[240];

	if (f->type != FRAME_HELLO || !frame_parse_hello(f, &hello, &fault) ||
	    hello.max_message < FRAME_ERROR_SIZE_MAX) {
		server_count(server, &server->stats.without_hello);
		return client_fail(c, NDX_E_REMOTE_ERROR, fault);
	}
	budget_heard(server, &c->share);
	if (!identify(c))
		return client_fail(c, NDX_E_NO_MEMORY, "no memory for its identity");
	variant = find_variant(server, &hello, why, sizeof(why));
	if ((f->flags & FRAME_RESUMED) != 0 && hello.queue_pairs == 1)
		other = find_session(server, c, hello.session);
	if (other != NULL && !tls_is_same(&other->identity, &c->identity))
		return refuse_other(c, other);
	if (variant != NULL && other != NULL && other->session.attr.variant == variant) {
		driver_consume(&c->session);
		resume(other, c, count);
		return false; /* `c` is gone */
	}
	/* A stage info that began elsewhere can begin anew here. */
	if (variant != NULL && (f->flags & FRAME_RESUMED) != 0 && f->stage != NDX_STAGE_INFO) {
		(void)snprintf(why, sizeof(why),
		               "no session is known here that could go on in stage %s",
		               frame_stage_name(f->stage));
		variant = NULL;
	}
	driver_consume(&c->session);
	if (variant == NULL) {
		server_count(server, &server->stats.refused);
		return client_fail(c, NDX_E_NOT_FOUND, why);
	}
	return admit(c, variant, &hello, replays);
}
