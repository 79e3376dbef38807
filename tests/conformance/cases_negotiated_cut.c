/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.cut_*, negotiated.device_*: a transport that breaks in a stage, or before a stage that
 * a replacement still serves, is replaced, and the session goes on; later the session fails, and
 * says why; and a peer that is a device is asked for nothing. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

#include "cases.h"
#include "house.h"
#include "same_plugin.h"
#include "traffic.h"

/* ---- a proxy that cuts once ---- */

/* Of docs/negotiation-protocol.md. */
enum { HEADER = 20, AT_TYPE = 5, AT_STAGE = 6, AT_LENGTH = 16, WELCOME = 2 };

struct proxy {
	pthread_t thread;
	struct sockaddr_in to;
	char address[32];
	int fd;
	int stage;      /* cut at the client's first frame of this stage (-1: none) ... */
	uint32_t cut;   /* ... once: whether that was; atomic */
	uint32_t drop;  /* atomic: cut the connection now */
	uint32_t ended; /* atomic */
};

struct stream {
	uint8_t bytes[70000];
	size_t used;
};

static size_t frame_length(const uint8_t *b)
{
	return HEADER + ((size_t)b[AT_LENGTH] << 24 | (size_t)b[AT_LENGTH + 1] << 16 |
	                 (size_t)b[AT_LENGTH + 2] << 8 | b[AT_LENGTH + 3]);
}

/* Pass on the whole frames that have come. False: the end, or the cut. */
static bool forward(struct proxy *p, struct stream *s, int from, int to, bool client)
{
	const ssize_t n = recv(from, s->bytes + s->used, sizeof(s->bytes) - s->used, 0);
	size_t length;

	if (n <= 0)
		return false;
	s->used += (size_t)n;
	while (s->used >= HEADER && (length = frame_length(s->bytes)) <= s->used) {
		if (client && s->bytes[AT_TYPE] > WELCOME && s->bytes[AT_STAGE] == p->stage &&
		    __atomic_exchange_n(&p->cut, 1, __ATOMIC_SEQ_CST) == 0)
			return false;
		if (send(to, s->bytes, length, MSG_NOSIGNAL) != (ssize_t)length)
			return false;
		s->used -= length;
		memmove(s->bytes, s->bytes + length, s->used);
	}
	return true;
}

static void serve(struct proxy *p, int client)
{
	static struct stream streams[2];
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd set[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
	bool on =
		server >= 0 && connect(server, (const struct sockaddr *)&p->to, sizeof(p->to)) == 0;

	streams[0].used = streams[1].used = 0;
	while (on && __atomic_load_n(&p->ended, __ATOMIC_SEQ_CST) == 0 &&
	       __atomic_exchange_n(&p->drop, 0, __ATOMIC_SEQ_CST) == 0) {
		(void)poll(set, 2, 20);
		for (int i = 0; on && i < 2; i++)
			if (set[i].revents != 0)
				on = forward(p, &streams[i], set[i].fd, set[1 - i].fd, i == 0);
	}
	if (server >= 0)
		(void)close(server);
	(void)close(client);
}

static void *proxy_main(void *arg)
{
	struct proxy *p = arg;
	int client;

	while ((client = accept(p->fd, NULL, NULL)) >= 0)
		serve(p, client);
	return NULL;
}

static bool proxy_begin(struct proxy *p, const struct house *h, int stage)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(p->to);

	memset(p, 0, sizeof(*p));
	p->stage = stage;
	(void)ndx_negotiation_server_get_address(h->server, (struct sockaddr *)&p->to, &length);
	length = sizeof(at);
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!check_that(h->c,
	                p->fd >= 0 && bind(p->fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	                        listen(p->fd, 8) == 0 &&
	                        getsockname(p->fd, (struct sockaddr *)&at, &length) == 0,
	                "no socket for the proxy"))
		return false;
	(void)snprintf(p->address, sizeof(p->address), "127.0.0.1:%u", ntohs(at.sin_port));
	return check_that(h->c, pthread_create(&p->thread, NULL, proxy_main, p) == 0, "no thread");
}

static void proxy_end(struct proxy *p)
{
	__atomic_store_n(&p->ended, 1, __ATOMIC_SEQ_CST);
	(void)shutdown(p->fd, SHUT_RDWR);
	(void)pthread_join(p->thread, NULL);
	(void)close(p->fd);
}

/* ---- sessions through the proxy ---- */

/* It can begin a stage anew, which a session needs to outlive its transport. */
static const struct ndx_variant_ops again_ops = {
	.info = same_info, .ready = same_ready, .reset = same_reset};
static const struct ndx_plugin_variant again_variant = {
	.name = "as-it-is", .help = "test", .ops = &again_ops};
static const struct ndx_plugin again = {.abi = NDX_PLUGIN_ABI,
                                        .size = sizeof(struct ndx_plugin),
                                        .name = "again",
                                        .version = "1",
                                        .vendor = "test",
                                        .list = &again_variant,
                                        .count = 1};

static void run_through(struct house *h, struct pair *p, const char *address, uint32_t *cut)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	struct ndx_session *s = NULL;
	struct ndx_session_attr attr;

	house_session_attr(h, &p->a, &address, &attr);
	attr.attempts = 5;
	if (check_status(h->c, ndx_session_create(&attr, &s), NDX_OK, "a session") &&
	    check_status(h->c, ndx_session_run(s), NDX_OK, "run") &&
	    check_that(h->c, __atomic_load_n(cut, __ATOMIC_SEQ_CST) == 1, "nothing was cut") &&
	    check_status(h->c, ndx_negotiation_server_get_stats(h->server, &stats), NDX_OK,
	                 "get_stats") &&
	    check_that(h->c, stats.resumed == 1, "the session was resumed %llu times",
	               (unsigned long long)stats.resumed) &&
	    message_passes(&p->a, &p->b, 1000) && message_passes(&p->b, &p->a, 1))
		(void)pair_disconnect(p);
	house_stop(h); /* a session of the server has its side until it is over */
	pair_close_all(h->c);
	ndx_session_close(s);
}

static void cut_in(struct check *c, enum ndx_stage stage)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct proxy proxy;
	struct house h;

	if (house_open(&h, c, &again) && p && house_serve(&h, "127.0.0.1:0")) {
		house_give(&h, &p->b);
		if (proxy_begin(&proxy, &h, (int)stage)) {
			run_through(&h, p, proxy.address, &proxy.cut);
			proxy_end(&proxy);
		}
	}
	pair_close_all(c);
	house_close(&h);
}

void case_negotiated_cut_in_stage_info(struct check *c)
{
	cut_in(c, NDX_STAGE_INFO);
}

void case_negotiated_cut_in_stage_validate(struct check *c)
{
	cut_in(c, NDX_STAGE_VALIDATE);
}

/* ---- between two calls ---- */

/* The loss is in the session's history: no call is needed for that. */
static bool await_loss(struct house *h, const struct ndx_session *s)
{
	struct ndx_history_entry e[64];

	for (int ms = 0; ms < WAIT_MS; ms++) {
		size_t count = sizeof(e) / sizeof(e[0]);

		if (!check_status(h->c, ndx_session_get_history(s, e, &count, NULL), NDX_OK,
		                  "get_history"))
			return false;
		for (size_t i = 0; i < count; i++)
			if (e[i].kind == NDX_HISTORY_LOST)
				return check_status(h->c, e[i].status, NDX_E_CONNECTION_ABORTED,
				                    "the loss in the history");
		(void)poll(NULL, 0, 1);
	}
	return check_that(h->c, false, "the lost transport is not noticed");
}

static bool is_in_state(struct house *h, const struct ndx_session *s, enum ndx_session_state state)
{
	const enum ndx_session_state now = ndx_session_get_state(s);

	return check_that(h->c, now == state, "the session is %s, not %s",
	                  ndx_session_state_name(now), ndx_session_state_name(state));
}

/* The state says so between the calls, the next call says why, and the one behind it that the
 * session is over. */
static void is_noticed_after_ready(struct house *h, struct pair *p, struct proxy *proxy,
                                   struct ndx_session *s)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	if (!check_status(h->c, ndx_session_run(s), NDX_OK, "run") ||
	    !message_passes(&p->a, &p->b, 100))
		return;
	__atomic_store_n(&proxy->drop, 1, __ATOMIC_SEQ_CST);
	for (int ms = 0; ms < WAIT_MS && ndx_session_get_state(s) == NDX_SESSION_CONNECTED; ms++)
		(void)poll(NULL, 0, 1);
	if (is_in_state(h, s, NDX_SESSION_FAILED) && await_loss(h, s) &&
	    check_status(h->c, ndx_session_get_error(s, &e), NDX_OK, "get_error") &&
	    check_status(h->c, e.status, NDX_E_CONNECTION_ABORTED, "the error") &&
	    check_that(h->c, e.layer == NDX_LAYER_TRANSPORT && e.text[0] != '\0',
	               "layer %s, text \"%s\"", ndx_error_layer_name(e.layer), e.text) &&
	    check_status(h->c, ndx_session_execute(s, NDX_STAGE_DONE), NDX_E_CONNECTION_ABORTED,
	                 "the next call") &&
	    check_that(h->c, strstr(ndx_last_error(), e.text) != NULL, "it says \"%s\"",
	               ndx_last_error()) &&
	    check_status(h->c, ndx_session_execute(s, NDX_STAGE_DONE), NDX_E_INVALID_DEVICE_STATE,
	                 "the one behind it"))
		(void)is_in_state(h, s, NDX_SESSION_FAILED);
}

/* Before stage ready, the next call goes on over another transport. */
static void is_noticed_before_validate(struct house *h, struct pair *p, struct proxy *proxy,
                                       struct ndx_session *s)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};

	if (!check_status(h->c, ndx_session_connect(s), NDX_OK, "connect") ||
	    !check_status(h->c, ndx_session_execute(s, NDX_STAGE_INFO), NDX_OK, "info"))
		return;
	__atomic_store_n(&proxy->drop, 1, __ATOMIC_SEQ_CST);
	if (await_loss(h, s) && is_in_state(h, s, NDX_SESSION_CONNECTED) &&
	    check_status(h->c, ndx_session_execute(s, NDX_STAGE_VALIDATE), NDX_OK, "validate") &&
	    check_status(h->c, ndx_session_execute(s, NDX_STAGE_READY), NDX_OK, "ready") &&
	    check_status(h->c, ndx_negotiation_server_get_stats(h->server, &stats), NDX_OK,
	                 "get_stats") &&
	    check_that(h->c, stats.resumed == 1, "the session was resumed %llu times",
	               (unsigned long long)stats.resumed) &&
	    message_passes(&p->a, &p->b, 1000) && message_passes(&p->b, &p->a, 1))
		(void)pair_disconnect(p);
}

static void cut_idle(struct check *c,
                     void (*is_noticed)(struct house *h, struct pair *p, struct proxy *proxy,
                                        struct ndx_session *s))
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_session *s = NULL;
	struct ndx_session_attr attr;
	struct proxy proxy;
	const char *address;
	struct house h;

	if (house_open(&h, c, &again) && p && house_serve(&h, "127.0.0.1:0")) {
		house_give(&h, &p->b);
		if (proxy_begin(&proxy, &h, -1)) {
			address = proxy.address;
			house_session_attr(&h, &p->a, &address, &attr);
			attr.attempts = 5;
			if (check_status(c, ndx_session_create(&attr, &s), NDX_OK, "a session"))
				is_noticed(&h, p, &proxy, s);
			house_stop(&h); /* as above */
			pair_close_all(c);
			ndx_session_close(s);
			proxy_end(&proxy);
		}
	}
	pair_close_all(c);
	house_close(&h);
}

void case_negotiated_cut_after_ready_is_noticed(struct check *c)
{
	cut_idle(c, is_noticed_after_ready);
}

void case_negotiated_cut_between_calls_is_noticed(struct check *c)
{
	cut_idle(c, is_noticed_before_validate);
}

/* ---- a device ---- */

static uint32_t own_kind; /* atomic: of the description of the end that was asked last */

static enum ndx_status of_device(void *session, const struct ndx_exchange *x, const void *peer,
                                 size_t length, struct ndx_exchange_reply *reply)
{
	const enum ndx_status st = same_info(session, x, peer, length, reply);

	__atomic_store_n(&own_kind, x->own->kind, __ATOMIC_SEQ_CST);
	if (st == NDX_OK && reply->completed)
		x->peer->policy = NDX_PEER_DEVICE;
	return st;
}

static const struct ndx_variant_ops device_ops = {.info = of_device, .ready = same_ready};
static const struct ndx_plugin_variant device_variant = {
	.name = "as-it-is", .help = "test", .ops = &device_ops};
static const struct ndx_plugin device = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(struct ndx_plugin),
                                         .name = "device",
                                         .version = "1",
                                         .vendor = "test",
                                         .list = &device_variant,
                                         .count = 1};

enum { KEEPALIVE_MS = 100, SILENT_MS = 500, LENGTH = 256 };

static bool has_proof(const struct ndx_session *s)
{
	struct ndx_history_entry e[64];
	size_t count = sizeof(e) / sizeof(e[0]);
	bool found = false;

	if (ndx_session_get_history(s, e, &count, NULL) != NDX_OK)
		return true;
	for (size_t i = 0; i < count; i++)
		found = found || e[i].kind == NDX_HISTORY_PROOF;
	return found;
}

static void is_left_in_peace(struct house *h, struct pair *p, struct ndx_session *s)
{
	struct ndx_peer_description peer;
	const enum ndx_status st = ndx_session_run(s);

	if (__atomic_load_n(&own_kind, __ATOMIC_SEQ_CST) != NDX_DESCRIPTION_VERBS_RC) {
		(void)check_status(h->c, st, NDX_E_INVALID_CONFIG, "run with a policy");
		return;
	}
	if (!check_status(h->c, st, NDX_OK, "run") ||
	    !check_status(h->c, ndx_session_get_agreement(s, NULL, &peer, NULL), NDX_OK,
	                  "get_agreement") ||
	    !check_that(h->c, peer.policy == NDX_PEER_DEVICE, "its policy is %u", peer.policy))
		return;
	check_that(h->c, !has_proof(s), "its path was tried out");
	pattern_fill(p->b.buf, LENGTH, 7);
	(void)poll(NULL, 0, SILENT_MS);
	if (pattern_there(h->c, p->b.buf, LENGTH, 7, "what no one may write") &&
	    message_passes(&p->a, &p->b, LENGTH))
		(void)message_passes(&p->b, &p->a, LENGTH);
}

/* Nothing is written that the program does not post, and silence does not end the connection. A
 * queue pair that a connection manager connects is that of no device. */
void case_negotiated_device_is_left_in_peace(struct check *c)
{
	struct ndx_session *s = NULL;
	struct side_attr attr;
	struct house h;
	struct pair *p;

	side_attr_init(&attr);
	attr.keepalive_ms = KEEPALIVE_MS;
	p = pair_open(c, &attr, NULL);
	if (house_open(&h, c, &device) && p && house_serve(&h, "127.0.0.1:0")) {
		house_give(&h, &p->b);
		if (house_session(&h, &p->a, &s))
			is_left_in_peace(&h, p, s);
	}
	pair_close_all(c);
	ndx_session_close(s);
	house_close(&h);
}
