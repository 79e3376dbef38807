/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * field.*: situations in which other stacks lost connections when sessions made them anew: ydb,
 * Mooncake.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include "cases.h"
#include "house.h"
#include "same_plugin.h"
#include "traffic.h"

enum { CLIENTS = 16, ROUNDS = 8, MESSAGE = 200, BACKOFF_MS = 800, PATIENCE_MS = 20000 };

/* ---- sessions with a server ---- */

struct call {
	struct ndx_session *session;
	pthread_t thread;
	enum ndx_status status;
	bool runs;
};

static void *run_session(void *arg)
{
	struct call *call = arg;

	call->status = ndx_session_run(call->session);
	return NULL;
}

static bool call_start(struct call *call, const struct house *h, const char *address,
                       struct side *side)
{
	struct ndx_session_attr attr;

	ndx_session_attr_init(&attr);
	attr.variant = h->variant;
	attr.servers = &address;
	attr.server_count = 1;
	attr.connector = side->conn;
	attr.qp = side->qp;
	attr.attempts = 100;
	attr.backoff_ms = BACKOFF_MS;
	attr.backoff_most_ms = 2 * BACKOFF_MS;
	if (!check_status(h->c, ndx_session_create(&attr, &call->session), NDX_OK, "a session"))
		return false;
	call->runs = check_that(h->c, pthread_create(&call->thread, NULL, run_session, call) == 0,
	                        "no thread");
	return call->runs;
}

static void call_join(struct call *call)
{
	if (call->runs)
		(void)pthread_join(call->thread, NULL);
	call->runs = false;
}

static void call_close(struct call *call)
{
	call_join(call);
	ndx_session_close(call->session);
	call->session = NULL;
}

static bool call_succeeds(struct call *call, struct check *c)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	call_join(call);
	return check_status(c, ndx_session_get_error(call->session, &e), NDX_OK, "its error") &&
	       check_that(c, call->status == NDX_OK, "session: %s: %s",
	                  ndx_status_name(call->status), e.text);
}

/* ---- ydb #44297, #44707: a session that is resumed takes the numbers of its former life ---- */

/* What the server's plugin says in its first life, and again in the next. */
static pthread_mutex_t former_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ndx_peer_description former;
static bool former_known;

static void forget(void)
{
	pthread_mutex_lock(&former_lock);
	former_known = false;
	pthread_mutex_unlock(&former_lock);
}

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	const enum ndx_status st = same_info(session, x, peer, length, reply);

	if (x->role == NDX_ROLE_CLIENT || x->round > 0 || st != NDX_OK)
		return st;
	pthread_mutex_lock(&former_lock);
	if (former_known)
		memcpy(reply->data, &former, sizeof(former));
	else
		former = *x->own;
	former_known = true;
	pthread_mutex_unlock(&former_lock);
	return NDX_OK;
}

static const struct ndx_variant_ops ops = {.info = info, .ready = same_ready, .reset = same_reset};
static const struct ndx_plugin_variant variant = {.name = "as-it-is", .help = "test", .ops = &ops};
static const struct ndx_plugin forgetful = {.abi = NDX_PLUGIN_ABI,
                                            .size = sizeof(struct ndx_plugin),
                                            .name = "forgetful",
                                            .version = "1",
                                            .vendor = "test",
                                            .list = &variant,
                                            .count = 1};

/* Between the client and its servers. The first connection is cut when the server's description
 * is through; those behind it go to the second server, as soon as the first is no more.
 * docs/negotiation-protocol.md has the lengths. */
enum { HEADER = 20, CUT_AFTER = HEADER + 12 + HEADER + (int)sizeof(struct ndx_peer_description) };

struct relay {
	int fd;
	int here; /* a byte comes out at the cut, and one goes in when the first server is gone */
	int there;
	char address[32];
	const char *servers[2];
	pthread_t thread;
};

static int reach(const char *address)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_port = htons((uint16_t)strtoul(strchr(address, ':') + 1, NULL, 10));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* Both ways, until one end is gone or the client has got `most` bytes. */
static void forward(int client, int server, size_t most)
{
	struct pollfd set[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
	uint8_t bytes[4096];

	while (most > 0 && poll(set, 2, -1) > 0) {
		const int from = set[1].revents != 0;
		size_t room = sizeof(bytes);
		ssize_t n;

		if (from == 1 && most < room)
			room = most;
		n = recv(set[from].fd, bytes, room, 0);
		if (n <= 0 || send(set[1 - from].fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
			return;
		most -= from == 1 ? (size_t)n : 0;
	}
}

static void *relay_main(void *arg)
{
	struct relay *r = arg;
	char byte = 'c';
	bool first = true;
	int client;

	while ((client = accept(r->fd, NULL, NULL)) >= 0) {
		const int server = reach(r->servers[first ? 0 : 1]);

		if (server >= 0)
			forward(client, server, first ? (size_t)CUT_AFTER : SIZE_MAX);
		(void)close(client);
		if (server >= 0)
			(void)close(server);
		if (first && (send(r->there, &byte, 1, MSG_NOSIGNAL) != 1 ||
		              recv(r->there, &byte, 1, 0) != 1))
			break;
		first = false;
	}
	return NULL;
}

static bool relay_open(struct relay *r, struct check *c, const char *first, const char *second)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	const struct timeval limit = {.tv_sec = PATIENCE_MS / 1000};
	socklen_t length = sizeof(at);
	int pair[2];

	r->servers[0] = first;
	r->servers[1] = second;
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!check_that(c,
	                r->fd >= 0 && bind(r->fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	                        listen(r->fd, 16) == 0 &&
	                        getsockname(r->fd, (struct sockaddr *)&at, &length) == 0,
	                "no socket for the relay"))
		return false;
	(void)snprintf(r->address, sizeof(r->address), "127.0.0.1:%u", ntohs(at.sin_port));
	if (!check_that(c, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0,
	                "socketpair"))
		return false;
	r->here = pair[0];
	r->there = pair[1];
	(void)setsockopt(r->here, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return check_that(c, pthread_create(&r->thread, NULL, relay_main, r) == 0, "no thread");
}

static bool relay_has_cut(struct relay *r, struct check *c)
{
	char byte;

	return check_that(c, recv(r->here, &byte, 1, 0) == 1, "the relay has not cut");
}

static bool relay_go_on(struct relay *r, struct check *c)
{
	return check_that(c, send(r->here, "g", 1, MSG_NOSIGNAL) == 1, "the relay is gone");
}

static void relay_close(struct relay *r)
{
	if (r->here > 0) {
		(void)shutdown(r->here, SHUT_RDWR);
		(void)shutdown(r->fd, SHUT_RDWR);
		(void)pthread_join(r->thread, NULL);
		(void)close(r->here);
		(void)close(r->there);
	}
	if (r->fd > 0)
		(void)close(r->fd);
}

static bool is_refusal(enum ndx_status st)
{
	return st == NDX_E_CONNECTION_REFUSED || st == NDX_E_CONNECTION_ABORTED ||
	       st == NDX_E_INVALID_CONFIG || st == NDX_E_REMOTE_ERROR;
}

struct lives {
	struct check *c;
	struct house first;
	struct house second;
	struct relay relay;
	struct call call;
	struct pair *p; /* the client, and the server's first life */
	struct pair *q; /* the server's second life */
	struct pair *r; /* the client that connects when all is well again */
};

static void resume_with_old_numbers(struct lives *l)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};

	if (!call_start(&l->call, &l->first, l->relay.address, &l->p->a) ||
	    !relay_has_cut(&l->relay, l->c))
		return;
	house_stop(&l->first);
	side_close_connector(&l->p->b);
	side_close_qp(&l->p->b);
	if (!relay_go_on(&l->relay, l->c))
		return;
	call_join(&l->call);
	check_that(l->c, is_refusal(l->call.status), "the old numbers were taken: %s",
	           ndx_status_name(l->call.status));
	check_status(l->c, ndx_negotiation_server_get_stats(l->second.server, &stats), NDX_OK,
	             "counters of the server");
	check_that(l->c, stats.accepted >= 1 && stats.completed == 0,
	           "%u sessions of the second life were completed", (unsigned)stats.completed);
	call_close(&l->call);
	/* A peer that sends a true description is connected. */
	forget();
	if (call_start(&l->call, &l->second, l->second.address, &l->r->a) &&
	    call_succeeds(&l->call, l->c) && message_passes(&l->r->a, &l->r->b, MESSAGE) &&
	    message_passes(&l->r->b, &l->r->a, MESSAGE))
		(void)pair_disconnect(l->r);
}

void case_field_ydb_44297_numbers_of_a_former_life(struct check *c)
{
	struct lives l = {.c = c};

	forget();
	l.p = pair_open(c, NULL, NULL);
	l.q = l.p ? pair_open_on(l.p, NULL, NULL) : NULL;
	l.r = l.q ? pair_open_on(l.p, NULL, NULL) : NULL;
	if (!l.r)
		return;
	if (house_open(&l.first, c, &forgetful) && house_open(&l.second, c, &forgetful) &&
	    house_serve(&l.first, "127.0.0.1:0") && house_serve(&l.second, "127.0.0.1:0") &&
	    relay_open(&l.relay, c, l.first.address, l.second.address)) {
		l.first.sides[l.first.count++] = &l.p->b;
		l.second.sides[l.second.count++] = &l.q->b;
		l.second.sides[l.second.count++] = &l.r->b;
		resume_with_old_numbers(&l);
	}
	relay_close(&l.relay);
	call_close(&l.call);
	house_close(&l.second);
	house_close(&l.first);
	pair_close_all(c);
}

/* ---- Mooncake #1733: both sides connect to each other at once ---- */

static void connect_at_once(struct check *c, struct house *at_a, struct house *at_b)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct pair *q = p ? pair_open_on(p, NULL, NULL) : NULL;
	struct call from_a = {0};
	struct call from_b = {0};

	if (!q)
		return;
	/* Two servers; of each pair one end is the server's, the other the client's. */
	at_a->sides[0] = &q->a;
	at_b->sides[0] = &p->b;
	at_a->given = at_b->given = 0;
	at_a->count = at_b->count = 1;
	if (house_serve(at_a, "127.0.0.1:0") && house_serve(at_b, "127.0.0.1:0") &&
	    call_start(&from_a, at_a, at_b->address, &p->a) &&
	    call_start(&from_b, at_b, at_a->address, &q->b) && call_succeeds(&from_a, c) &&
	    call_succeeds(&from_b, c) && message_passes(&p->a, &p->b, MESSAGE) &&
	    message_passes(&q->a, &q->b, MESSAGE) && message_passes(&q->b, &q->a, MESSAGE))
		(void)(pair_disconnect(p) && pair_disconnect(q));
	call_close(&from_a);
	call_close(&from_b);
	house_stop(at_a);
	house_stop(at_b);
	pair_close_all(c);
}

void case_field_mooncake_1733_both_connect_at_once(struct check *c)
{
	struct house at_a;
	struct house at_b;
	const bool open_a = house_open(&at_a, c, &same_plugin);
	const bool open_b = house_open(&at_b, c, &same_plugin);

	for (int i = 0; i < ROUNDS && open_a && open_b && !check_over(c); i++)
		connect_at_once(c, &at_a, &at_b);
	house_close(&at_a);
	house_close(&at_b);
}

/* ---- Mooncake #3299, #3387: all clients come back at once when the server has restarted ---- */

/* Attempts and pauses of one; the shortest of first pauses so far. */
static void look_at_pauses(const struct call *call, unsigned *attempts, uint64_t *shortest)
{
	struct ndx_history_entry e[128];
	size_t n = sizeof(e) / sizeof(e[0]);
	bool first = true;

	(void)ndx_session_get_history(call->session, e, &n, NULL);
	for (size_t i = 0; i < n; i++) {
		*attempts += e[i].kind == NDX_HISTORY_CONNECT;
		if (e[i].kind == NDX_HISTORY_BACKOFF && first && e[i].duration_us < *shortest)
			*shortest = e[i].duration_us;
		first = first && e[i].kind != NDX_HISTORY_BACKOFF;
	}
}

static bool all_have_tried(const struct call *calls)
{
	for (int i = 0; i < CLIENTS; i++) {
		size_t none = 0;
		uint64_t total = 0;

		(void)ndx_session_get_history(calls[i].session, NULL, &none, &total);
		if (total == 0)
			return false;
	}
	return true;
}

/* All clients are there before the server; or it is there before them. */
static void storm(struct check *c, struct house *h, const char *address, bool restarted)
{
	struct call calls[CLIENTS];
	struct pair *pairs[CLIENTS];
	uint64_t shortest = UINT64_MAX;
	unsigned attempts = 0;
	int count = 0;

	memset(calls, 0, sizeof(calls));
	if (!pairs_open(c, pairs, CLIENTS, NULL, NULL))
		return;
	for (int i = 0; i < CLIENTS; i++)
		h->sides[h->count++] = &pairs[i]->b;
	if (!restarted && !house_serve(h, address))
		return;
	while (count < CLIENTS && call_start(&calls[count], h, address, &pairs[count]->a))
		count++;
	while (restarted && count == CLIENTS && !all_have_tried(calls))
		(void)poll(NULL, 0, 1);
	if (restarted && count == CLIENTS && !house_serve(h, address))
		count = 0;
	for (int i = 0; i < count; i++) {
		if (call_succeeds(&calls[i], c))
			look_at_pauses(&calls[i], &attempts, &shortest);
	}
	/* Which of the server's ends each has got is not known: their order is the server's. */
	check_note(c, "%u attempts of %d clients, shortest first pause %u us", attempts, CLIENTS,
	           restarted ? (unsigned)shortest : 0);
	if (restarted && !check_over(c))
		check_that(c, shortest < (uint64_t)BACKOFF_MS * 1000,
		           "all clients have waited for the same time");
	for (int i = 0; i < CLIENTS; i++)
		call_close(&calls[i]);
	house_stop(h);
	pair_close_all(c);
}

void case_field_mooncake_3299_all_come_back_at_once(struct check *c)
{
	char address[32];
	const int fd = house_reserve(address);
	struct house h;

	if (!check_that(c, fd >= 0, "no port"))
		return;
	if (house_open(&h, c, &same_plugin)) {
		storm(c, &h, address, false);
		if (!check_over(c))
			storm(c, &h, address, true);
	}
	house_close(&h);
	(void)close(fd);
}
