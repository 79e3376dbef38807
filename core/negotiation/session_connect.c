/* SPDX-License-Identifier: BSD-2-Clause */
/* A session connects to a server: attempts, pauses, fail-over, hello. Loop thread. */
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "plaintext.h"
#include "session.h"

#define FAREWELL_MS 100u

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static const char *server_of(const struct ndx_session *s)
{
	return s->servers[s->reach.index];
}

/* ---- the end ---- */

static void drop_lookup(struct ndx_session *s)
{
	struct reach *r = &s->reach;

	if (r->lookup != NULL)
		resolver_leave(&s->link.plugin->negotiation->resolver, r->lookup);
	if (r->numbers != NULL)
		freeaddrinfo(r->numbers);
	r->lookup = NULL;
	r->numbers = NULL;
	r->next = NULL;
}

static bool end_reach(struct ndx_session *s, enum ndx_error_layer layer, enum ndx_status st)
{
	struct reach *r = &s->reach;

	drop_lookup(s);
	driver_detach(s);
	r->layer = layer;
	r->status = st;
	r->at = REACH_FAILED;
	return true;
}

/* A plugin's transport is closed before. */
static bool end_cancelled(struct ndx_session *s)
{
	struct reach *r = &s->reach;

	(void)snprintf(r->why, sizeof(r->why), "cancelled while connecting");
	(void)end_reach(s, NDX_LAYER_TRANSPORT, NDX_E_CANCELED);
	r->at = REACH_CLOSE;
	r->then = REACH_FAILED;
	return true;
}

static bool give_up(struct ndx_session *s)
{
	struct reach *r = &s->reach;
	char latest[161];

	if (ndxp_now_ns() < s->deadline_ns)
		return end_reach(s, r->layer, r->status);
	(void)snprintf(latest, sizeof(latest), "%.160s", r->why);
	(void)snprintf(r->why, sizeof(r->why),
	               "the session's time, %u ms, is over while connecting: %s",
	               s->attr.session_timeout_ms, latest);
	return end_reach(s, NDX_LAYER_FRAMEWORK, NDX_E_IO_TIMEOUT);
}

/* Whether a further attempt is useless: the server has no such variant, or is no NDX server, or one
 * end does not admit the other. */
static bool is_lasting(const struct ndx_session *s, enum ndx_status st, enum ndx_error_layer layer)
{
	return layer == NDX_LAYER_FRAMEWORK &&
	       (st != NDX_E_CONNECTION_REFUSED || driver_tls_failed(s));
}

bool session_reach_cancel(struct ndx_session *s)
{
	struct reach *r = &s->reach;

	switch (r->at) {
	case REACH_CLOSE:
		r->then = REACH_FAILED; /* go on to close */
		(void)snprintf(r->why, sizeof(r->why), "cancelled while connecting");
		r->layer = NDX_LAYER_TRANSPORT;
		r->status = NDX_E_CANCELED;
		return true;
	case REACH_PAUSE:
		session_record_pause(s, NDX_E_CANCELED);
		break;
	case REACH_NAME:
	case REACH_ADDRESS:
	case REACH_TCP:
	case REACH_STREAM:
	case REACH_RELAY:
	case REACH_HELLO:
	case REACH_WELCOME:
		session_record_attempt(s, NDX_E_CANCELED);
		break;
	case REACH_NOT:
	case REACH_DONE:
	case REACH_FAILED:
		return true;
	case REACH_ROUND:
	case REACH_SERVER:
	default:
		break;
	}
	/* The result of the stream's latest operation is of no use; the stream is to be closed. */
	s->driver.io_back = false;
	if (s->link.stream != NULL)
		s->driver.stream = &s->link;
	return end_cancelled(s);
}

/* The attempt has failed, with ndx_last_error() or `why`: go on with the next server. */
static bool attempt_failed(struct ndx_session *s, enum ndx_error_layer layer, enum ndx_status st,
                           const char *why)
{
	struct reach *r = &s->reach;
	const bool lasts = is_lasting(s, st, layer);

	session_record_attempt(s, st);
	(void)snprintf(r->why, sizeof(r->why), "%.255s", why);
	r->status = st;
	r->layer = layer;
	drop_lookup(s);
	driver_detach(s);
	if (st == NDX_E_CANCELED)
		return end_cancelled(s);
	log_warn(0, "session %llu: %s: %s", (unsigned long long)s->id, server_of(s), r->why);
	if (lasts) {
		s->given_up[r->index] = true;
		r->left--;
	}
	r->index++;
	r->at = REACH_CLOSE;
	r->then = REACH_SERVER;
	return true;
}

static enum ndx_status fail_silent(struct ndx_session *s)
{
	if (s->driver.relay != NULL && !relay_is_connected(s->driver.relay))
		return fail(NDX_E_IO_TIMEOUT, 0,
		            "plugin \"%s\", transport \"%s\", %.128s: its connect has not "
		            "returned within %u ms",
		            s->link.plugin->name, s->link.table->name, server_of(s),
		            s->attr.connect_timeout_ms);
	if (s->driver.tls != NULL && !s->driver.secured)
		return fail(NDX_E_IO_TIMEOUT, 0,
		            "server %.128s: the TLS handshake does not end within %u ms",
		            server_of(s), s->attr.connect_timeout_ms);
	return fail(NDX_E_IO_TIMEOUT, 0, "server %.128s does not answer within %u ms", server_of(s),
	            s->attr.connect_timeout_ms);
}

static bool attempt_lost(struct ndx_session *s)
{
	const bool silent = s->driver.io_status == NDX_E_IO_TIMEOUT &&
	                    s->reach.at != REACH_STREAM && s->driver.relay == NULL;

	if (silent)
		return attempt_failed(s, NDX_LAYER_TRANSPORT, fail_silent(s), ndx_last_error());
	if (driver_tls_failed(s) && s->driver.io_status != NDX_E_CONNECTION_ABORTED)
		return attempt_failed(s, NDX_LAYER_FRAMEWORK, s->driver.io_status,
		                      driver_io_text(s));
	return attempt_failed(s, NDX_LAYER_TRANSPORT, s->driver.io_status, driver_io_text(s));
}

/* ---- which server, and when ---- */

/* Before a round: pause. The pause doubles each time and is shortened at random, so that clients do
 * not synchronise. */
static bool begin_round(struct ndx_session *s)
{
	struct reach *r = &s->reach;
	uint64_t ms = s->attr.backoff_ms;
	uint32_t random = 0;

	if (r->round >= s->attr.attempts || r->left == 0)
		return give_up(s);
	r->index = 0;
	r->at = REACH_SERVER;
	/* A server that welcomes and then closes at once must not be tried without a pause. */
	r->failures += r->round > 0 || r->again;
	if (r->failures == 0)
		return true;
	for (uint32_t i = 1; i < r->failures && ms < s->attr.backoff_most_ms; i++)
		ms *= 2;
	if (ms > s->attr.backoff_most_ms)
		ms = s->attr.backoff_most_ms;
	(void)ndxp_random(&random, sizeof(random));
	ms -= ms / 2 * (random % 1024) / 1024;
	r->at = REACH_PAUSE;
	r->since_ns = ndxp_now_ns();
	driver_set_timer(s, earlier(s->deadline_ns, r->since_ns + ms * 1000000));
	return false;
}

static bool end_pause(struct ndx_session *s)
{
	session_record_pause(s, NDX_OK);
	s->reach.at = REACH_SERVER;
	return ndxp_now_ns() < s->deadline_ns || give_up(s);
}

static bool find_addresses(struct ndx_session *s)
{
	const struct addrinfo numbers = {.ai_family = AF_UNSPEC,
	                                 .ai_socktype = SOCK_STREAM,
	                                 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct reach *r = &s->reach;
	char host[LINK_HOST_MAX];
	char port[LINK_PORT_MAX];
	enum ndx_status st;
	int fd;

	if (!link_address_split(server_of(s), host, port)) {
		st = fail(NDX_E_INVALID_ADDRESS, 0, "\"%.128s\" is not HOST:PORT", server_of(s));
		return attempt_failed(s, NDX_LAYER_TRANSPORT, st, ndx_last_error());
	}
	if (getaddrinfo(host, port, &numbers, &r->numbers) == 0) {
		r->next = r->numbers;
		r->at = REACH_ADDRESS;
		return true;
	}
	r->numbers = NULL;
	st = resolver_begin(&s->link.plugin->negotiation->resolver, host, port, &r->lookup);
	if (st != NDX_OK)
		return attempt_failed(s, NDX_LAYER_TRANSPORT, st, ndx_last_error());
	/* Sessions that wait for the same name share the lookup. */
	fd = fcntl(lookup_fd(r->lookup), F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || !driver_attach(s, fd)) {
		st = fail(NDX_E_INSUFFICIENT_RESOURCES, 0, "%.128s: no descriptor to look it up",
		          host);
		return attempt_failed(s, NDX_LAYER_TRANSPORT, st, ndx_last_error());
	}
	r->at = REACH_NAME;
	return true;
}

/* Begin an attempt at the next server that was not given up. */
static bool begin_attempt(struct ndx_session *s)
{
	struct reach *r = &s->reach;

	while (r->index < s->attr.server_count && s->given_up[r->index])
		r->index++;
	if (r->index == s->attr.server_count || ndxp_now_ns() >= s->deadline_ns) {
		r->round++;
		r->at = REACH_ROUND;
		return true;
	}
	r->since_ns = ndxp_now_ns();
	driver_set_timer(s, earlier(s->deadline_ns, ndxp_deadline(session_attempt_ms(s))));
	if (s->link.table == NULL)
		return find_addresses(s);
	r->at = session_has_relay(s) ? REACH_RELAY : REACH_STREAM;
	return true;
}

/* ---- the transport ---- */

static bool has_come(const struct ndx_session *s, uint32_t events)
{
	return (s->driver.seen & (events | EPOLLERR | EPOLLHUP)) != 0;
}

static bool take_answer(struct ndx_session *s)
{
	struct reach *r = &s->reach;
	enum ndx_status st;
	int error;

	if (!has_come(s, EPOLLIN)) {
		(void)driver_wait(s, EPOLLIN);
		return false;
	}
	driver_detach(s);
	error = lookup_answer(r->lookup, &r->next);
	r->at = REACH_ADDRESS;
	if (error == 0)
		return true;
	st = fail(NDX_E_HOST_UNREACHABLE, 0, "server %.128s: %s", server_of(s),
	          gai_strerror(error));
	return attempt_failed(s, NDX_LAYER_TRANSPORT, st, ndx_last_error());
}

/* The socket at the next address; the first address that accepts is taken. `st`: the failure of the
 * address before; NDX_OK: there was none. */
static bool try_address(struct ndx_session *s, enum ndx_status st)
{
	struct sockaddr_storage barred = {.ss_family = AF_UNSPEC};
	struct reach *r = &s->reach;
	int fd;

	while (r->next != NULL) {
		const struct addrinfo *at = r->next;

		r->next = at->ai_next;
		if (!plaintext_may_connect(s, at, &barred))
			continue;
		st = link_socket(at, server_of(s), &fd);
		if (st != NDX_OK)
			continue;
		r->at = REACH_TCP;
		if (driver_attach(s, fd))
			return true;
		driver_detach(s);
		st = fail(NDX_E_INSUFFICIENT_RESOURCES, 0,
		          "server %.128s: the socket cannot be watched", server_of(s));
	}
	/* The failure of an address that may be tried counts more: it may end. */
	if (st == NDX_OK && barred.ss_family != AF_UNSPEC)
		return attempt_failed(s, NDX_LAYER_FRAMEWORK, plaintext_bar(s, &barred),
		                      ndx_last_error());
	st = st != NDX_OK ? st : NDX_E_HOST_UNREACHABLE;
	return attempt_failed(s, NDX_LAYER_TRANSPORT, st, ndx_last_error());
}

static void begin_hello(struct ndx_session *s)
{
	drop_lookup(s);
	session_write_hello(s);
	s->reach.hello_ns = ndxp_now_ns();
	s->reach.at = REACH_HELLO;
}

static bool end_connect(struct ndx_session *s)
{
	enum ndx_status st = NDX_OK;

	if (!has_come(s, EPOLLOUT)) {
		(void)driver_wait(s, EPOLLOUT);
		return false;
	}
	if (has_come(s, 0))
		st = link_socket_result(s->driver.fd, server_of(s));
	if (st == NDX_OK && !driver_secure(s, s->tls, server_of(s)))
		st = fail(NDX_E_NO_MEMORY, 0, "server %.128s: no memory for TLS", server_of(s));
	if (st == NDX_OK) {
		begin_hello(s);
		return true;
	}
	driver_detach(s);
	return try_address(s, st);
}

static enum ndx_status connect_slowly(struct ndx_session *s)
{
	return link_connect(&s->link, server_of(s), s->driver.deadline_ns);
}

static enum ndx_status close_slowly(struct ndx_session *s)
{
	link_close(&s->link);
	return NDX_OK;
}

static bool connect_stream(struct ndx_session *s)
{
	switch (driver_block(s, connect_slowly)) {
	case IO_DONE:
		s->driver.stream = &s->link;
		frame_reader_consume(&s->driver.in);
		begin_hello(s);
		return true;
	case IO_LOST:
		return attempt_lost(s);
	case IO_WAIT:
	case IO_BAD:
	default:
		return false;
	}
}

/* The socket of the relay takes hello at once; whether the transport connects shows afterwards. */
static bool begin_relay(struct ndx_session *s)
{
	const struct relay_attr attr = {.variant = s->attr.variant,
	                                .engine = s->driver.engine,
	                                .group = s->relays,
	                                .session = s->id,
	                                .address = server_of(s),
	                                .connect_ms = s->attr.connect_timeout_ms,
	                                .send_ms = s->attr.stage_timeout_ms,
	                                .farewell_ms = FAREWELL_MS};
	enum ndx_status st;
	int fd = -1;

	st = relay_create(&attr, &s->driver.relay, &fd);
	if (st == NDX_OK && !driver_attach(s, fd))
		st = fail(NDX_E_INSUFFICIENT_RESOURCES, 0,
		          "server %.128s: the transport's socket cannot be watched", server_of(s));
	if (st != NDX_OK)
		return attempt_failed(s, NDX_LAYER_TRANSPORT, st, ndx_last_error());
	begin_hello(s);
	return true;
}

static bool close_stream(struct ndx_session *s)
{
	if (s->driver.stream != NULL) {
		driver_set_timer(s, s->deadline_ns);
		if (driver_block(s, close_slowly) == IO_WAIT)
			return false;
	}
	s->driver.stream = NULL;
	s->reach.at = s->reach.then;
	return true;
}

/* ---- hello ---- */

static bool send_hello(struct ndx_session *s)
{
	switch (driver_send(s, s->reach.hello, s->reach.hello_length)) {
	case IO_DONE:
		s->greeted = true;
		s->reach.at = REACH_WELCOME;
		return true;
	case IO_LOST:
		return attempt_lost(s);
	case IO_WAIT:
	case IO_BAD:
	default:
		return false;
	}
}

static bool reached(struct ndx_session *s)
{
	history_add_hello(&s->history, s->dialogue.view.stage,
	                  (uint32_t)(s->reach.hello_length - FRAME_HEADER), FRAME_WELCOME_SIZE,
	                  s->reach.hello_ns);
	session_record_attempt(s, NDX_OK);
	s->reach.at = REACH_DONE;
	pthread_mutex_lock(&s->lock);
	s->server = server_of(s);
	pthread_mutex_unlock(&s->lock);
	log_info("session %llu: connected to %s", (unsigned long long)s->id, server_of(s));
	return true;
}

static bool receive_welcome(struct ndx_session *s)
{
	enum ndx_status st;
	const char *why;
	struct frame f;

	switch (driver_read_frame(s, s->dialogue.limits.max_message, &f, &why)) {
	case IO_DONE:
		st = session_take_welcome(s, &f);
		driver_consume(s);
		if (st == NDX_OK)
			return reached(s);
		return attempt_failed(s, NDX_LAYER_FRAMEWORK, st, ndx_last_error());
	case IO_LOST:
		return attempt_lost(s);
	case IO_BAD:
		st = fail(NDX_E_REMOTE_ERROR, 0, "from the server came %s", why);
		return attempt_failed(s, NDX_LAYER_FRAMEWORK, st, ndx_last_error());
	case IO_WAIT:
	default:
		return false;
	}
}

/* ---- steps ---- */

bool session_reach_step(struct ndx_session *s)
{
	switch (s->reach.at) {
	case REACH_CLOSE:
		return close_stream(s);
	case REACH_ROUND:
		return begin_round(s);
	case REACH_SERVER:
		return begin_attempt(s);
	case REACH_NAME:
		return take_answer(s);
	case REACH_ADDRESS:
		return try_address(s, NDX_OK);
	case REACH_TCP:
		return end_connect(s);
	case REACH_STREAM:
		return connect_stream(s);
	case REACH_RELAY:
		return begin_relay(s);
	case REACH_HELLO:
		return send_hello(s);
	case REACH_WELCOME:
		return receive_welcome(s);
	case REACH_NOT:
	case REACH_DONE:
	case REACH_FAILED:
	case REACH_PAUSE:
	default:
		return false;
	}
}

bool session_reach_timer(struct ndx_session *s)
{
	enum ndx_status st;

	switch (s->reach.at) {
	case REACH_PAUSE:
		return end_pause(s);
	case REACH_NAME:
		st = fail(NDX_E_IO_TIMEOUT, 0,
		          "server %.128s: the system's resolver has no answer in time; look at "
		          "/etc/resolv.conf, or give the address in numbers",
		          server_of(s));
		break;
	case REACH_TCP:
		st = fail(NDX_E_IO_TIMEOUT, 0, "server %.128s does not take the connection in time",
		          server_of(s));
		break;
	case REACH_HELLO:
	case REACH_WELCOME:
		st = fail_silent(s);
		break;
	case REACH_NOT:
	case REACH_DONE:
	case REACH_FAILED:
	case REACH_CLOSE:
	case REACH_ROUND:
	case REACH_SERVER:
	case REACH_ADDRESS:
	case REACH_STREAM:
	case REACH_RELAY:
	default:
		return false;
	}
	return attempt_failed(s, NDX_LAYER_TRANSPORT, st, ndx_last_error());
}

/* The stream could not be closed in time: the session's close does that. */
static bool leave_stream(struct ndx_session *s, const char *why)
{
	struct reach *r = &s->reach;

	s->driver.stream = NULL;
	if (r->why[0] == '\0')
		(void)snprintf(r->why, sizeof(r->why), "%.255s", why);
	if (r->then != REACH_FAILED)
		return give_up(s);
	r->at = REACH_FAILED;
	return true;
}

bool session_reach_queued(struct ndx_session *s, const char *why)
{
	if (s->reach.at == REACH_CLOSE)
		return leave_stream(s, why);
	return attempt_failed(s, NDX_LAYER_TRANSPORT, NDX_E_IO_TIMEOUT, why);
}

void session_reach(struct ndx_session *s, bool again)
{
	struct reach *r = &s->reach;

	session_set_state(s, NDX_SESSION_CONNECTING);
	if (again && s->driver.replay.on)
		replay_hold(&s->driver);
	driver_detach(s);
	memset(s->given_up, 0, s->attr.server_count * sizeof(*s->given_up));
	*r = (struct reach){.at = REACH_CLOSE,
	                    .then = REACH_ROUND,
	                    .again = again,
	                    .failures = s->resumptions,
	                    .left = s->attr.server_count,
	                    .status = NDX_E_IO_TIMEOUT,
	                    .layer = NDX_LAYER_TRANSPORT};
	s->resumptions += again;
	s->driver.phase = DRIVER_ROLE;
}
