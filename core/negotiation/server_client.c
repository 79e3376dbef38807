/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of the server: what the role of the server adds to the driver. Loop thread. */
#include <stdio.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "connection.h"
#include "many_add.h"
#include "server.h"

#define FIRST_MESSAGE 512u

static void set_stage_timer(struct client *c)
{
	struct ndx_session *s = &c->session;
	uint64_t deadline = ndxp_deadline(c->server->attr.stage_timeout_ms);

	if (!c->done && s->deadline_ns < deadline)
		deadline = s->deadline_ns;
	driver_set_timer(s, deadline);
}

/* ---- the course of a session ---- */

static void begin_stage(struct client *c, enum ndx_stage stage)
{
	(void)dialogue_start(&c->session.dialogue, stage);
	session_set_state(&c->session, NDX_SESSION_EXCHANGING);
	set_stage_timer(c);
}

static bool refuse(struct client *c, enum ndx_status st, const char *text)
{
	server_count(c->server, &c->server->stats.without_hello);
	return client_fail(c, st, text);
}

/* A record of TLS with a message of its handshake begins with this byte; so it did in all versions.
 */
static bool speaks_tls(const struct client *c)
{
	const struct frame_reader *r = &c->session.driver.in;

	return c->session.driver.tls == NULL && r->used > 0 && r->bytes[0] == 0x16;
}

static bool greet(struct ndx_session *s)
{
	static const char tls_text[] =
		"the client speaks TLS, this server has none; give the server its TLS attributes";
	struct client *c = client_of(s);
	const char *why = NULL;
	struct frame f;

	switch (driver_read_frame(s, FIRST_MESSAGE, &f, &why)) {
	case IO_WAIT:
		return false;
	case IO_LOST:
		if (driver_tls_failed(s))
			return refuse(c, s->driver.io_status, s->driver.io_text);
		client_lost(c);
		return false;
	case IO_BAD:
		if (speaks_tls(c))
			return refuse(c, NDX_E_INVALID_CONFIG, tls_text);
		return refuse(c, NDX_E_REMOTE_ERROR, why);
	case IO_DONE:
	default:
		return client_hello(c, &f);
	}
}

/* The consumer is to learn of a stage that has ended. True: it does not want to. */
static bool report_stage(struct client *c)
{
	if (c->session.dialogue.finished == NDX_STAGE_READY) {
		c->done = true;
		server_count(c->server, &c->server->stats.completed);
	}
	if (c->done)
		driver_set_timer(&c->session, UINT64_MAX);
	if (c->server->attr.events.staged == NULL && c->session.many == NULL) {
		c->staged = c->session.dialogue.finished;
		return true;
	}
	driver_call(&c->session);
	return false;
}

/* After stage ready: wait for the client's next frame. */
static bool stay(struct client *c)
{
	struct ndx_session *s = &c->session;
	struct dialogue *d = &s->dialogue;
	struct frame f;
	bool more;

	if (!c->idle) {
		c->idle = true;
		c->rests_ns = ndxp_now_ns();
		set_stage_timer(c);
	}
	if (s->many != NULL && many_sweep(s)) {
		c->idle = false;
		driver_set_timer(s, UINT64_MAX);
		driver_call(s);
		return false;
	}
	if (s->many != NULL && s->many->asks_done && d->finished < NDX_STAGE_DONE) {
		c->idle = false;
		begin_stage(c, NDX_STAGE_DONE);
		return true;
	}
	if (!driver_take_frame(s, &f, &more))
		return more;
	if (f.type == FRAME_DATA && f.stage == NDX_STAGE_DONE && d->finished < NDX_STAGE_DONE) {
		/* Keep the frame: it belongs to the stage. */
		c->idle = false;
		begin_stage(c, NDX_STAGE_DONE);
		return true;
	}
	if (driver_oob_handle(s, &f))
		return true;
	dialogue_receive(d, &f, ndxp_now_ns());
	driver_consume(s);
	return true;
}

static bool between(struct ndx_session *s)
{
	struct client *c = client_of(s);
	struct dialogue *d = &s->dialogue;

	pthread_mutex_lock(&s->lock);
	s->agreed = d->agreement_known;
	s->state = NDX_SESSION_CONNECTED;
	pthread_mutex_unlock(&s->lock);
	if (d->finished == NDX_STAGE_READY) {
		const enum driver_io io = driver_say_ready(s);

		if (io != IO_DONE)
			return io == IO_LOST && s->driver.role->lost(s);
	}
	if (c->staged < d->finished)
		return report_stage(c);
	if (d->finished >= NDX_STAGE_READY)
		return stay(c);
	begin_stage(c, (enum ndx_stage)(d->finished + 1));
	return true;
}

static bool on_returned(struct ndx_session *s)
{
	struct client *c = client_of(s);

	c->slow = false;
	if (c->cut)
		return client_fail(c, NDX_E_CONNECTION_ABORTED, client_cut);
	if (!s->driver.over)
		return !c->anew || client_begin_anew(c);
	return client_fail(c, c->stopped ? NDX_E_CANCELED : NDX_E_IO_TIMEOUT,
	                   c->stopped ? "the server ends" : "time ran out in the plugin");
}

static bool on_lost(struct ndx_session *s)
{
	client_lost(client_of(s));
	return false;
}

static void push(struct ndx_session *s)
{
	engine_push(s->driver.engine, &s->driver.task);
}

static bool on_bad(struct ndx_session *s, const char *why)
{
	return client_fail(client_of(s), NDX_E_REMOTE_ERROR, why);
}

static bool on_failed(struct ndx_session *s)
{
	return client_report_failure(client_of(s));
}

static void on_closed(struct ndx_session *s)
{
	client_finish(client_of(s));
}

/* ---- time-outs ---- */

/* Idle: whether both the session and the connection that shares its transport have ended. Without a
 * link, the transport belongs to the session alone. */
static bool is_finished(const struct ndx_session *s)
{
	if (driver_has_oob(s))
		return driver_oob_is_over(s);
	return s->dialogue.finished == NDX_STAGE_DONE;
}

/* End finished sessions to free their places, even if their clients stay connected. A client that
 * may still begin stage done has the time of a stage for that. */
static bool on_idle(struct client *c)
{
	const struct frame bye = {.type = FRAME_SESSION_END};
	struct ndx_session *s = &c->session;
	const bool done = s->dialogue.finished == NDX_STAGE_DONE;

	if (!is_finished(s) || !(done || c->leaving)) {
		c->leaving = is_finished(s);
		set_stage_timer(c);
		return false;
	}
	log_info("session %llu of %s: it is finished and its client stays; the server ends it",
	         (unsigned long long)s->id, c->address);
	frame_write_header(s->driver.last_words, &bye);
	s->driver.last_length = FRAME_HEADER;
	return client_end(c);
}

static void on_timer(struct ndx_session *s)
{
	struct client *c = client_of(s);
	const bool whole = c->talking && !c->done && ndxp_now_ns() >= s->deadline_ns;
	const char *text = whole ? "the session's time is over" : "the stage's time is over";
	char late[DRIVER_LATE];
	bool more = false;

	if (many_adds_now(s) &&
	    (s->driver.phase == DRIVER_ACTIVE || s->driver.phase == DRIVER_POOL)) {
		addition_late(s);
		return;
	}
	if (many_timer(s))
		return;
	switch (s->driver.phase) {
	case DRIVER_ROLE:
		if (s->driver.tls != NULL)
			tls_give_up(s->driver.tls);
		more = refuse(c, NDX_E_IO_TIMEOUT,
		              driver_tls_failed(s) ? tls_why(s->driver.tls) : "no hello in time");
		break;
	case DRIVER_ACTIVE:
	case DRIVER_ORPHAN:
		more = c->idle ? on_idle(c)
		               : client_fail(c, NDX_E_IO_TIMEOUT, driver_qp_late(s, text, late));
		break;
	case DRIVER_POOL: /* the peer need not wait for a plugin that does not return */
		s->driver.over = true;
		driver_detach(s);
		break;
	case DRIVER_QP:
		s->driver.over = true;
		many_cancel_attempts(s);
		break;
	case DRIVER_ENDING:
		client_finish(c);
		break;
	case DRIVER_CLOSING:
	default:
		break;
	}
	if (more)
		driver_go(s);
}

static const struct driver_role role = {
	.step = greet,
	.idle = between,
	.work = client_work,
	.prompt = client_is_prompt,
	.returned = on_returned,
	.lost = on_lost,
	.bad = on_bad,
	.failed = on_failed,
	.closed = on_closed,
	.drains = true,
	.ended = on_closed,
	.push = push,
	.timer = on_timer,
	.late = "the queue pair did not connect in time",
};

/* ---- a client comes ---- */

static struct client *client_new(struct ndx_negotiation_server *server,
                                 const struct sockaddr_storage *from)
{
	struct client *c = calloc(1, sizeof(*c));
	char text[NDXP_SOCKADDR_TEXT];

	if (c == NULL || history_init(&c->session.history, server->attr.max_history) != NDX_OK) {
		free(c);
		return NULL;
	}
	(void)pthread_mutex_init(&c->session.lock, NULL);
	driver_init(&c->session, &role, &server->engine);
	c->server = server;
	c->staged = -1;
	c->session.id = ++server->last_session;
	(void)snprintf(c->address, sizeof(c->address), "%s", ndxp_sockaddr_text(from, text));
	c->session.server = c->address;
	return c;
}

/* Before anything of the client is read: so much a refusal may cost. */
static bool comes_too_fast(struct ndx_negotiation_server *server,
                           const struct sockaddr_storage *from)
{
	char text[NDXP_SOCKADDR_TEXT];
	char why[BUDGET_TEXT];

	if (handshakes_take(&server->handshakes, &server->attr,
	                    budget_address(&server->budgets, from), ndxp_now_ns(), why))
		return false;
	server_count_too_fast(server);
	if (server_may_log(server))
		log_warn(0, "negotiation server: client %s is refused: %s",
		         ndxp_sockaddr_text(from, text), why);
	return true;
}

void client_accept(struct ndx_negotiation_server *server, int fd,
                   const struct sockaddr_storage *from)
{
	struct budget_share share = {.address = NULL};
	char text[NDXP_SOCKADDR_TEXT];
	char why[BUDGET_TEXT];
	struct client *c;

	if (comes_too_fast(server, from)) {
		ndxp_fd_close(fd);
		return;
	}
	if (server_is_full(server)) {
		if (server_may_log(server))
			log_warn(0,
			         "negotiation server: a client is refused: %u sessions are the "
			         "limit",
			         server->attr.max_sessions);
		ndxp_fd_close(fd);
		return;
	}
	if (!budget_wait(server, from, &share, why)) {
		if (server_may_log(server))
			log_warn(0, "negotiation server: client %s is refused: %s",
			         ndxp_sockaddr_text(from, text), why);
		ndxp_fd_close(fd);
		server_gone(server);
		return;
	}
	c = client_new(server, from);
	if (c == NULL) {
		log_error(0, "negotiation server: no memory for a client");
		budget_heard(server, &share);
		ndxp_fd_close(fd);
		server_gone(server);
		return;
	}
	c->share = share;
	describe_near(fd, &c->near);
	ndxp_list_add(&server->clients, &c->node);
	server->listed++;
	if (!driver_attach(&c->session, fd) || !driver_secure(&c->session, server->tls, NULL)) {
		client_finish(c);
		return;
	}
	driver_set_timer(&c->session, ndxp_deadline(server->attr.hello_timeout_ms));
	driver_go(&c->session);
}
