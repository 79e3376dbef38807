/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of the server, from its connection to its last frame. Loop thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "server.h"

#define FIRST_MESSAGE 512u
#define READS_AT_ONCE 32u

static void set_stage_timer(struct client *c)
{
	struct ndx_session *s = &c->session;
	uint64_t deadline = ndxp_deadline(c->server->attr.stage_timeout_ms);

	if (!c->done && s->deadline_ns < deadline)
		deadline = s->deadline_ns;
	client_set_timer(c, deadline);
}

/* On the adapter's control thread. */
static void on_qp_callback(struct ndx_overlapped *ov)
{
	struct client *c = ov->context;

	ndxp_loop_post(c->server->loop, &c->qp_done);
}

static void connect_qp(struct client *c)
{
	enum ndx_status st = client_oob_open(c);

	if (st == NDX_OK && c->resources.connector != NULL) {
		c->ov = (struct ndx_overlapped){.callback = on_qp_callback, .context = c};
		st = ndx_connector_connect_peer(c->resources.connector, &c->session.dialogue.peer,
		                                &c->ov);
	}
	if (st == NDX_PENDING)
		c->state = CLIENT_QP;
	else
		dialogue_connected(&c->session.dialogue, st, ndx_last_error());
}

/* The next frame, not consumed; false: none now, and *more says whether to continue. */
static bool take_frame(struct client *c, struct frame *f, bool *more)
{
	const char *why = NULL;

	*more = false;
	switch (client_read_frame(c, c->session.dialogue.limits.max_message, f, &why)) {
	case IO_DONE:
		return true;
	case IO_LOST:
		client_lost(c);
		return false;
	case IO_BAD:
		*more = client_fail(c, NDX_E_REMOTE_ERROR, why);
		return false;
	case IO_WAIT:
	default:
		return false;
	}
}

/* Between two stages. True: continue. */
static bool between(struct client *c)
{
	struct dialogue *d = &c->session.dialogue;
	struct frame f;
	bool more;

	pthread_mutex_lock(&c->session.lock);
	c->session.agreed = d->agreement_known;
	c->session.state = NDX_SESSION_CONNECTED;
	pthread_mutex_unlock(&c->session.lock);
	if (c->staged < d->finished) {
		if (d->finished == NDX_STAGE_READY) {
			c->done = true;
			server_count(c->server, &c->server->stats.completed);
		}
		if (c->done)
			ndxp_timer_cancel(c->server->loop, &c->timer);
		client_call(c);
		return false;
	}
	if (d->finished < NDX_STAGE_READY) {
		(void)dialogue_start(d, (enum ndx_stage)(d->finished + 1));
		set_stage_timer(c);
		return true;
	}
	if (!c->idle) {
		c->idle = true;
		set_stage_timer(c);
	}
	if (!take_frame(c, &f, &more))
		return more;
	if (f.type == FRAME_DATA && f.stage == NDX_STAGE_DONE && d->finished < NDX_STAGE_DONE) {
		/* Keep the frame: it belongs to the stage. */
		c->idle = false;
		(void)dialogue_start(d, NDX_STAGE_DONE);
		set_stage_timer(c);
		return true;
	}
	if (client_oob_handle(c, &f))
		return true;
	dialogue_receive(d, &f, ndxp_now_ns());
	client_consume(c);
	return true;
}

static bool receive(struct client *c)
{
	const uint64_t since = ndxp_now_ns();
	struct frame f;
	bool more;

	if (!take_frame(c, &f, &more))
		return more;
	if (client_oob_handle(c, &f))
		return true;
	dialogue_receive(&c->session.dialogue, &f, since);
	client_consume(c);
	return true;
}

static bool send_out(struct client *c)
{
	struct dialogue *d = &c->session.dialogue;

	switch (client_send(c, d->out, d->out_length)) {
	case IO_DONE:
		dialogue_sent(d);
		return true;
	case IO_LOST:
		client_lost(c);
		return false;
	case IO_WAIT:
	case IO_BAD:
	default:
		return false;
	}
}

static bool active(struct client *c)
{
	switch (c->session.dialogue.next) {
	case DIALOGUE_IDLE:
		return between(c);
	case DIALOGUE_CALL:
		client_call(c);
		return false;
	case DIALOGUE_CONNECT:
		connect_qp(c);
		return true;
	case DIALOGUE_SEND:
		return send_out(c);
	case DIALOGUE_RECEIVE:
		return receive(c);
	case DIALOGUE_FAILED:
		return client_report_failure(c);
	case DIALOGUE_CLOSED:
	default:
		client_finish(c);
		return false;
	}
}

static bool greet(struct client *c, struct client **broken)
{
	const char *why = NULL;
	struct frame f;

	switch (client_read_frame(c, FIRST_MESSAGE, &f, &why)) {
	case IO_WAIT:
		return false;
	case IO_LOST:
		client_lost(c);
		return false;
	case IO_BAD:
		server_count(c->server, &c->server->stats.without_hello);
		return client_fail(c, NDX_E_REMOTE_ERROR, why);
	case IO_DONE:
	default:
		return client_hello(c, &f, broken);
	}
}

/* Send the last frame; then wait for the client to close, until the time-out. */
static bool ending(struct client *c)
{
	if (c->last_length > 0) {
		const enum client_io io = client_send(c, c->last_words, c->last_length);

		if (io == IO_WAIT)
			return false;
		c->last_length = 0;
		if (io == IO_DONE)
			(void)shutdown(c->fd, SHUT_WR);
	}
	if (client_drain(c) == IO_DONE)
		client_finish(c);
	return false;
}

/* Drive the client as far as possible. Returns another client that is to be driven, or NULL. */
static struct client *drive(struct client *c)
{
	struct client *broken = NULL;
	bool more = true;

	c->reads = READS_AT_ONCE;
	while (more && client_oob_send(c)) {
		switch (c->state) {
		case CLIENT_HELLO:
			more = greet(c, &broken);
			break;
		case CLIENT_ACTIVE:
			more = active(c);
			break;
		case CLIENT_ENDING:
			more = ending(c);
			break;
		case CLIENT_POOL:
			client_oob_receive(c);
			more = false;
			break;
		case CLIENT_QP:
		case CLIENT_ORPHAN:
		case CLIENT_CLOSING:
		default:
			more = false;
		}
	}
	return broken;
}

static void client_go(struct client *c)
{
	while (c != NULL)
		c = drive(c);
}

/* Idle: whether both the session and the connection that shares its transport have ended. Without a
 * link, the transport belongs to the session alone. */
static bool is_finished(const struct client *c)
{
	if (c->oob != NULL)
		return __atomic_load_n(&c->oob_ended, __ATOMIC_RELAXED) != 0;
	return c->session.dialogue.finished == NDX_STAGE_DONE;
}

/* End finished sessions to free their places, even if their clients stay connected. A client that
 * may still begin stage done has the time of a stage for that. */
static void on_idle(struct client *c)
{
	const struct frame bye = {.type = FRAME_SESSION_END};
	const bool done = c->session.dialogue.finished == NDX_STAGE_DONE;

	if (!is_finished(c) || !(done || c->leaving)) {
		c->leaving = is_finished(c);
		set_stage_timer(c);
		return;
	}
	log_info("session %llu of %s: it is finished and its client stays; the server ends it",
	         (unsigned long long)c->session.id, c->address);
	frame_write_header(c->last_words, &bye);
	c->last_length = FRAME_HEADER;
	if (client_end(c))
		client_go(c);
}

static void on_timer(void *arg)
{
	struct client *c = arg;
	const bool whole = c->talking && !c->done && ndxp_now_ns() >= c->session.deadline_ns;
	const char *text = whole ? "the session's time is over" : "the stage's time is over";

	switch (c->state) {
	case CLIENT_HELLO:
		server_count(c->server, &c->server->stats.without_hello);
		if (client_fail(c, NDX_E_IO_TIMEOUT, "no hello in time"))
			client_go(c);
		break;
	case CLIENT_ACTIVE:
	case CLIENT_ORPHAN:
		if (c->idle)
			on_idle(c);
		else if (client_fail(c, NDX_E_IO_TIMEOUT, text))
			client_go(c);
		break;
	case CLIENT_POOL: /* the peer need not wait for a plugin that does not return */
		c->over = true;
		client_detach(c);
		break;
	case CLIENT_QP:
		c->over = true;
		(void)ndx_connector_cancel(c->resources.connector);
		break;
	case CLIENT_ENDING:
		client_finish(c);
		break;
	case CLIENT_CLOSING:
	default:
		break;
	}
}

static void on_qp_done(void *arg)
{
	struct client *c = arg;
	const enum ndx_status st = c->over ? NDX_E_IO_TIMEOUT : c->ov.status;
	char text[DESCRIBE_CAUSE + 64];
	char cause[DESCRIBE_CAUSE];

	c->state = CLIENT_ACTIVE;
	if (st == NDX_E_IO_TIMEOUT)
		(void)snprintf(text, sizeof(text), "the queue pair did not connect in time");
	else
		(void)snprintf(text, sizeof(text), "the queue pair cannot be connected: %s",
		               describe_cause(c->resources.connector, cause));
	dialogue_connected(&c->session.dialogue, st, text);
	client_go(c);
}

static void on_event(void *arg, uint32_t events)
{
	(void)events;
	client_go(arg);
}

static void on_returned(void *arg)
{
	struct client *c = arg;

	c->state = CLIENT_ACTIVE;
	if (!c->over || client_fail(c, c->stopped ? NDX_E_CANCELED : NDX_E_IO_TIMEOUT,
	                            c->stopped ? "the server ends" : "time ran out in the plugin"))
		client_go(c);
}

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
	c->server = server;
	c->fd = -1;
	c->staged = -1;
	c->session.id = ++server->last_session;
	(void)snprintf(c->address, sizeof(c->address), "%s", ndxp_sockaddr_text(from, text));
	c->session.server = c->address;
	c->watch = (struct ndxp_watch){.fd = -1, .fn = on_event, .arg = c};
	c->timer = (struct ndxp_timer){.fn = on_timer, .arg = c};
	c->returned = (struct ndxp_job){.fn = on_returned, .arg = c};
	c->qp_done = (struct ndxp_job){.fn = on_qp_done, .arg = c};
	return c;
}

void client_accept(struct ndx_negotiation_server *server, int fd,
                   const struct sockaddr_storage *from)
{
	struct client *c;

	if (server_is_full(server)) {
		if (server_may_log(server))
			log_warn(0,
			         "negotiation server: a client is refused: %u sessions are the "
			         "limit",
			         server->attr.max_sessions);
		ndxp_fd_close(fd);
		return;
	}
	c = client_new(server, from);
	if (c == NULL) {
		log_error(0, "negotiation server: no memory for a client");
		ndxp_fd_close(fd);
		server_gone(server);
		return;
	}
	describe_near(fd, &c->near);
	ndxp_list_add(&server->clients, &c->node);
	if (!client_attach(c, fd)) {
		client_finish(c);
		return;
	}
	client_set_timer(c, ndxp_deadline(server->attr.hello_timeout_ms));
	client_go(c);
}
