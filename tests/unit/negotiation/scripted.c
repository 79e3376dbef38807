/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that a test scripts. */
#include "scripted.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/spi/system.h>

/* ---- the plugin: two rounds in each stage ---- */

unsigned resets;
int stuck;
static bool can_reset;

struct ndx_peer_description rendezvous;

static enum ndx_status talk(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)peer_length;
	if (x->role == NDX_ROLE_CLIENT)
		stay_if_wanted(&stuck);
	if (x->round == 1 && memcmp(peer, "hallo", 5) != 0)
		return NDX_E_REMOTE_ERROR;
	*x->peer = rendezvous;
	if (rendezvous.kind != NDX_DESCRIPTION_NONE)
		x->peer->cookie[0] = (uint8_t)(x->role + 1);
	memcpy(reply->data, "hallo", 5);
	reply->length = 5;
	reply->completed = x->round == 1;
	return NDX_OK;
}

static enum ndx_status reset(void *session, enum ndx_stage stage)
{
	(void)session;
	(void)stage;
	(void)__atomic_add_fetch(&resets, 1, __ATOMIC_RELAXED);
	return NDX_OK;
}

static struct ndx_variant_ops ops;
static const struct ndx_plugin_variant list[] = {
	{.name = "two", .help = "", .ops = &ops},
	{.name = "bus", .help = "", .ops = &ops, .transport = "bus"},
};

static bool write_all(int fd, const uint8_t *bytes, size_t length);

/* ---- a transport of the plugin's: it understands "bus PORT" ---- */

struct ndx_plugin_stream {
	int fd;
	int cancelled; /* a flag */
};

struct bus bus;

static void linger(int operation)
{
	if (__atomic_load_n(&bus.hold, __ATOMIC_SEQ_CST) != operation)
		return;
	__atomic_store_n(&bus.held, 1, __ATOMIC_SEQ_CST);
	stay_while(&bus.hold);
}

static enum ndx_status bus_connect(void *state, const char *address, uint32_t timeout_ms,
                                   struct ndx_plugin_stream **stream, char *why, size_t room)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	struct ndx_plugin_stream *c = calloc(1, sizeof(*c));

	(void)state;
	assert_non_null(c);
	assert_true(timeout_ms > 0);
	if (strncmp(address, "bus ", 4) != 0) {
		(void)snprintf(why, room, "there is no such bus");
		free(c);
		return NDX_E_HOST_UNREACHABLE;
	}
	at.sin_port = htons((uint16_t)strtoul(address + 4, NULL, 10));
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	c->cancelled = ndxp_eventfd_create();
	assert_true(c->fd >= 0 && c->cancelled >= 0);
	assert_int_equal(connect(c->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	bus.opened++;
	linger(1);
	*stream = c;
	return NDX_OK;
}

/* What a call was told to return, once. */
static enum ndx_status take_status(enum ndx_status *next)
{
	const enum ndx_status st = *next;

	*next = NDX_OK;
	return st;
}

static enum ndx_status bus_send(struct ndx_plugin_stream *c, const void *data, size_t length,
                                uint32_t timeout_ms)
{
	const enum ndx_status st = take_status(&bus.send);

	(void)timeout_ms;
	bus.sends++;
	linger(2 * (int)bus.sends);
	if (st != NDX_OK)
		return st;
	return write_all(c->fd, data, length) ? NDX_OK : NDX_E_CONNECTION_ABORTED;
}

static enum ndx_status bus_receive(struct ndx_plugin_stream *c, void *data, size_t room,
                                   size_t *length, uint32_t timeout_ms)
{
	struct pollfd set[2] = {{.fd = c->cancelled, .events = POLLIN},
	                        {.fd = c->fd, .events = POLLIN}};
	const enum ndx_status st = take_status(&bus.receive);
	ssize_t n;

	linger(2 * (int)bus.sends + 1);
	if (st != NDX_OK)
		return st;
	if (poll(set, 2, (int)timeout_ms) == 0)
		return NDX_E_IO_TIMEOUT;
	if (set[0].revents != 0)
		return NDX_E_CANCELED;
	n = recv(c->fd, data, bus.lies ? 1 : room, 0);
	if (n <= 0)
		return NDX_E_CONNECTION_ABORTED;
	*length = bus.lies ? room + 1 : (size_t)n;
	return NDX_OK;
}

static void bus_cancel(struct ndx_plugin_stream *c)
{
	ndxp_eventfd_set(c->cancelled);
}

static void bus_close(struct ndx_plugin_stream *c)
{
	bus.opened--;
	(void)close(c->fd);
	(void)close(c->cancelled);
	free(c);
}

static const struct ndx_plugin_transport transports[] = {
	{"bus", bus_connect, bus_send, bus_receive, bus_cancel, bus_close},
	{.name = NULL},
};

static struct ndx_plugin plugin;

/* ---- the server ---- */

/* A whole frame, or false at the end of the connection. */
static bool read_frame(int fd, uint8_t *bytes, struct frame *f)
{
	size_t have = 0;
	size_t used = FRAME_HEADER;
	const char *why;

	for (;;) {
		const enum frame_verdict v = frame_parse(bytes, have, MESSAGE, f, &used, &why);
		ssize_t n;

		if (v == FRAME_WHOLE)
			return true;
		if (v == FRAME_BAD)
			return false;
		n = recv(fd, bytes + have, used - have, 0);
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
}

static bool write_all(int fd, const uint8_t *bytes, size_t length)
{
	return send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool welcome(int fd)
{
	const struct frame_welcome w = {MESSAGE, 1000, 1000};
	struct frame f = {.type = FRAME_WELCOME, .length = FRAME_WELCOME_SIZE};
	uint8_t bytes[FRAME_HEADER + FRAME_WELCOME_SIZE];

	(void)frame_write_welcome(bytes + FRAME_HEADER, &w);
	frame_write_header(bytes, &f);
	return write_all(fd, bytes, sizeof(bytes));
}

static void refuse(int fd)
{
	struct frame_error e = {.layer = NDX_LAYER_FRAMEWORK, .status = NDX_E_NOT_FOUND};
	struct frame f = {.type = FRAME_ERROR};
	uint8_t bytes[FRAME_HEADER + FRAME_ERROR_SIZE_MAX];

	(void)snprintf(e.text, sizeof(e.text), "no plugin \"test\" here; there are: roce");
	f.length = frame_write_error(bytes + FRAME_HEADER, &e);
	frame_write_header(bytes, &f);
	(void)write_all(fd, bytes, FRAME_HEADER + f.length);
}

/* Stages as they come, until the client ends it. */
static void serve_stages(struct server *s, int fd)
{
	const struct dialogue_limits limits = {MESSAGE, 16};
	uint8_t bytes[FRAME_HEADER + MESSAGE];
	struct history history;
	struct dialogue d;
	struct frame f;
	bool on = true;

	assert_int_equal(history_init(&history, 16), NDX_OK);
	dialogue_init(&d, s->variant, NDX_ROLE_SERVER, 1, &limits, &history);
	d.own = rendezvous;
	while (on) {
		switch (d.next) {
		case DIALOGUE_IDLE:
			/* the client's first frame opens the stage */
			if (d.finished >= NDX_STAGE_DONE)
				on = false;
			else
				(void)dialogue_start(&d, (enum ndx_stage)(d.finished + 1));
			break;
		case DIALOGUE_CALL:
			dialogue_call(&d);
			break;
		case DIALOGUE_CONNECT:
			dialogue_connected(&d, NDX_OK, "");
			break;
		case DIALOGUE_SEND:
			on = !(s->conduct == DROPPING_LATE && d.view.stage == NDX_STAGE_VALIDATE) &&
			     write_all(fd, d.out, d.out_length);
			if (on)
				dialogue_sent(&d);
			if (s->conduct == DROPPING_EACH ||
			    (s->conduct == DROPPING && s->served == 1))
				on = false;
			break;
		case DIALOGUE_RECEIVE:
			on = read_frame(fd, bytes, &f);
			if (on)
				dialogue_receive(&d, &f, ndxp_now_ns());
			break;
		case DIALOGUE_PROVE:
		case DIALOGUE_FAILED:
		case DIALOGUE_CLOSED:
		default:
			on = false;
		}
	}
	dialogue_fini(&d);
	history_fini(&history);
}

/* Says nothing, and hears what the client says of that. */
static void stay_silent(struct server *s, int fd)
{
	uint8_t bytes[FRAME_HEADER + MESSAGE];
	struct frame_error e;
	const char *why;
	struct frame f;

	while (read_frame(fd, bytes, &f)) {
		if (f.type == FRAME_ERROR && frame_parse_error(&f, &e, &why) &&
		    e.layer == NDX_LAYER_FRAMEWORK)
			s->told = (enum ndx_status)e.status;
	}
}

static const char rubbish[] = "HTTP/1.1 400 Bad Request\r\n";

static bool babble(int fd)
{
	return write_all(fd, (const uint8_t *)rubbish, sizeof(rubbish) - 1);
}

static void wait_for_end(int fd)
{
	uint8_t byte;

	while (recv(fd, &byte, 1, 0) > 0)
		;
}

static void flood(int fd)
{
	enum { FRAMES = 1024 };
	const struct frame alive = {.type = FRAME_ALIVE};
	uint8_t many[FRAMES * FRAME_HEADER];

	for (size_t i = 0; i < FRAMES; i++)
		frame_write_header(many + i * FRAME_HEADER, &alive);
	while (write_all(fd, many, sizeof(many)))
		;
}

static void serve(struct server *s, int fd)
{
	uint8_t bytes[FRAME_HEADER + MESSAGE];
	struct frame f;

	(void)__atomic_add_fetch(&s->served, 1, __ATOMIC_RELAXED);
	if (s->conduct == SILENT) {
		wait_for_end(fd);
		return;
	}
	if (!read_frame(fd, bytes, &f) || f.type != FRAME_HELLO)
		return;
	s->resumed = (f.flags & FRAME_RESUMED) != 0;
	if (s->conduct == REFUSING) {
		refuse(fd);
		return;
	}
	if (s->conduct == MAD) {
		(void)babble(fd);
		wait_for_end(fd);
		return;
	}
	if (!welcome(fd) || (s->conduct == BABBLING && !babble(fd)))
		return;
	if (s->conduct == SLOW_TO_SPEAK || s->conduct == BABBLING)
		stay_silent(s, fd);
	else if (s->conduct == FLOODING)
		flood(fd);
	else
		serve_stages(s, fd);
}

static void *server_main(void *arg)
{
	struct server *s = arg;

	for (;;) {
		struct pollfd set[2] = {{.fd = s->fd, .events = POLLIN},
		                        {.fd = s->stop, .events = POLLIN}};
		int fd;

		(void)poll(set, 2, -1);
		if (set[1].revents != 0)
			return NULL;
		fd = accept(s->fd, NULL, NULL);
		if (fd < 0)
			continue;
		serve(s, fd);
		(void)close(fd);
	}
}

void server_start(struct server *s, enum conduct conduct, struct ndx_variant *variant)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);

	memset(s, 0, sizeof(*s));
	s->conduct = conduct;
	s->variant = variant;
	s->stop = ndxp_eventfd_create();
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(s->fd >= 0 && s->stop >= 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->fd, 16), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&s->thread, NULL, server_main, s), 0);
}

void server_stop(struct server *s)
{
	ndxp_eventfd_set(s->stop);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	(void)close(s->fd);
	(void)close(s->stop);
}

/* ---- the rig ---- */

int rig_begin(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	ops = (struct ndx_variant_ops){
		.info = talk, .ready = talk, .done = talk, .reset = can_reset ? reset : NULL};
	plugin = (struct ndx_plugin){.abi = NDX_PLUGIN_ABI,
	                             .size = sizeof(plugin),
	                             .name = "test",
	                             .version = "1",
	                             .vendor = "us",
	                             .list = list,
	                             .count = 2,
	                             .flags = NDX_PLUGIN_DEVICE,
	                             .transports = transports};
	bus = (struct bus){0};
	assert_int_equal(ndx_negotiation_create(&r->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(r->negotiation, &plugin), NDX_OK);
	assert_int_equal(
		ndx_negotiation_get_variant(r->negotiation, "test", "two", NULL, 0, &r->variant),
		NDX_OK);
	resets = 0;
	memset(&rendezvous, 0, sizeof(rendezvous));
	*state = r;
	return 0;
}

/* Whether a thread of clients' sessions runs. */
static bool sessions_run(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	char path[300];
	char name[32];
	bool any = false;

	assert_non_null(tasks);
	while (!any && (task = readdir(tasks)) != NULL) {
		FILE *comm;

		(void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		comm = fopen(path, "re");
		if (comm == NULL)
			continue;
		any = fgets(name, sizeof(name), comm) != NULL && strcmp(name, "ndx-neg\n") == 0;
		(void)fclose(comm);
	}
	(void)closedir(tasks);
	return any;
}

/* A session that is closed is freed by its thread, with what it has of TLS. The process must not
 * end in the middle of that: the leak checker would find the half. */
static void await_frees(void)
{
	for (int ms = 0; ms < WAIT_MS && sessions_run(); ms++)
		(void)poll(NULL, 0, 1);
}

int rig_end(void **state)
{
	struct rig *r = *state;

	ndx_variant_close(r->variant);
	assert_int_equal(ndx_negotiation_close(r->negotiation), NDX_OK);
	await_frees();
	free(r);
	can_reset = false;
	return 0;
}

int rig_begin_with_end(void **state)
{
	const int rc = rig_begin(state);

	ops.begin = begin_session;
	ops.end = end_session;
	return rc;
}

int rig_begin_with_reset(void **state)
{
	can_reset = true;
	return rig_begin(state);
}

struct ndx_session *rig_session(struct rig *r, const char *const *servers, size_t count,
                                uint32_t connect_ms, uint32_t stage_ms)
{
	struct ndx_session_attr attr;
	struct ndx_session *s;

	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = servers;
	attr.server_count = count;
	attr.connect_timeout_ms = connect_ms;
	attr.stage_timeout_ms = stage_ms;
	attr.backoff_ms = 8;
	attr.max_message = MESSAGE;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	return s;
}
