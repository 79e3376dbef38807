/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.limits_*: how much of a server one peer may take: the one too many is refused with a
 * text, and after an end the next is served. */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

#include <ndx/tls.h>

#include "cases.h"
#include "house.h"
#include "same_plugin.h"
#include "traffic.h"

enum { WAITING_MOST = 2, CONNECTIONS = 60 };

/* ---- addresses ---- */

/* A connection that says nothing, from 127.0.0.LAST; -1: none. */
static int join(const struct house *h, uint32_t last)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
	                           .sin_addr = {.s_addr = htonl(0x7f000000u + last)}};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in to;
	socklen_t length = sizeof(to);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&from, sizeof(from)) == 0 &&
	    ndx_negotiation_server_get_address(h->server, (struct sockaddr *)&to, &length) ==
	            NDX_OK &&
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	(void)check_that(h->c, false, "the server cannot be reached from 127.0.0.%u", last);
	return -1;
}

static struct ndx_negotiation_server_stats stats_of(const struct house *h)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};

	(void)ndx_negotiation_server_get_stats(h->server, &stats);
	return stats;
}

/* A session of A at B, which ends again. */
static bool is_served(const struct house *h, struct pair *p)
{
	struct ndx_session *s = NULL;

	if (house_session(h, &p->a, &s) && check_status(h->c, ndx_session_run(s), NDX_OK, "run") &&
	    message_passes(&p->a, &p->b, 100))
		(void)pair_disconnect(p);
	pair_close_all(h->c);
	ndx_session_close(s);
	return !check_over(h->c);
}

static void few_wait(struct ndx_negotiation_server_attr *attr)
{
	attr->max_waiting_per_address = WAITING_MOST;
}

void case_negotiated_limits_of_an_address(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	int fds[WAITING_MOST + 1] = {-1, -1, -1};
	struct house h;
	char byte;

	if (!house_open(&h, c, &same_plugin) || !p)
		goto close;
	h.tune = few_wait;
	if (!house_serve(&h, "127.0.0.1:0"))
		goto close;
	house_give(&h, &p->b);
	for (uint32_t i = 0; i < WAITING_MOST; i++)
		fds[i] = join(&h, 1);
	if (!house_await(&h, WAITING_MOST))
		goto close;
	fds[WAITING_MOST] = join(&h, 1);
	check_that(c, recv(fds[WAITING_MOST], &byte, 1, 0) <= 0, "one too many waits");
	check_that(c, stats_of(&h).refused_addresses == 1, "it is not counted");
	(void)close(fds[0]);
	fds[0] = -1;
	if (house_await(&h, WAITING_MOST - 1))
		(void)is_served(&h, p);
close:
	for (int i = 0; i <= WAITING_MOST; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	pair_close_all(c);
	house_close(&h);
}

static void few_in_a_second(struct ndx_negotiation_server_attr *attr)
{
	attr->max_handshakes_per_address = 1;
}

/* Ten of them at once, which is ten seconds of them; those of another address are not counted. */
void case_negotiated_limits_of_connections_in_a_second(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_negotiation_server_stats stats = {.size = 0};
	struct house h;

	if (!house_open(&h, c, &same_plugin) || !p)
		goto close;
	h.tune = few_in_a_second;
	if (!house_serve(&h, "127.0.0.1:0"))
		goto close;
	house_give(&h, &p->b);
	for (uint32_t i = 0; i < CONNECTIONS && stats.refused_handshakes == 0; i++) {
		const int fd = join(&h, 2);

		if (fd < 0)
			goto close;
		for (int ms = 0; ms < WAIT_MS && stats.accepted <= i; ms++) {
			stats = stats_of(&h);
			(void)poll(NULL, 0, 1);
		}
		(void)close(fd);
		check_that(c, i >= 10 || stats.refused == 0, "connection %u is refused", i);
	}
	if (check_that(c, stats.refused_handshakes > 0, "none of %d is refused", CONNECTIONS))
		(void)is_served(&h, p);
close:
	pair_close_all(c);
	house_close(&h);
}

/* ---- principals ---- */

enum { SIDES = 5 };

struct town {
	struct house h;
	struct pair *p[SIDES];
	struct ndx_tls_attr tls;
	char keys[3][HOUSE_PATH]; /* of the server, of alice, of bob */
};

static void town_close(struct town *t)
{
	pair_close_all(t->h.c);
	house_close(&t->h);
	for (int i = 0; i < 3; i++)
		if (t->keys[i][0] != '\0')
			(void)unlink(t->keys[i]);
}

static bool town_open(struct town *t, struct check *c,
                      void (*tune)(struct ndx_negotiation_server_attr *attr))
{
	static const char alice[] = "alice:000102030405060708090a0b0c0d0e0f\n";
	static const char bob[] = "bob:101112131415161718191a1b1c1d1e1f\n";
	char both[sizeof(alice) + sizeof(bob)];

	memset(t, 0, sizeof(*t));
	memcpy(both, alice, sizeof(alice) - 1);
	memcpy(both + sizeof(alice) - 1, bob, sizeof(bob));
	ndx_tls_attr_init(&t->tls);
	t->tls.psk_file = t->keys[0];
	if (!house_open(&t->h, c, &same_plugin) || !pairs_open(c, t->p, SIDES, NULL, NULL) ||
	    !check_that(c,
	                house_key_file(t->keys[0], both) && house_key_file(t->keys[1], alice) &&
	                        house_key_file(t->keys[2], bob),
	                "the files of the keys cannot be written"))
		return false;
	t->h.tls = &t->tls;
	t->h.tune = tune;
	if (!house_serve(&t->h, "127.0.0.1:0"))
		return false;
	for (int i = 0; i < SIDES; i++)
		house_give(&t->h, &t->p[i]->b);
	return true;
}

/* A session of the pair, of alice (1) or bob (2), runs, or fails and says why. */
static bool runs(struct town *t, int side, int who, enum ndx_status want, const char *why,
                 struct ndx_session **out)
{
	const char *const address = t->h.address;
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_session_attr attr;
	struct ndx_tls_attr tls;

	ndx_tls_attr_init(&tls);
	tls.psk_file = t->keys[who];
	house_session_attr(&t->h, &t->p[side]->a, &address, &attr);
	attr.tls = &tls;
	if (!check_status(t->h.c, ndx_session_create(&attr, out), NDX_OK, "a session") ||
	    !check_status(t->h.c, ndx_session_run(*out), want, "run"))
		return false;
	if (want == NDX_OK)
		return message_passes(&t->p[side]->a, &t->p[side]->b, 100);
	(void)ndx_session_get_error(*out, &e);
	return check_that(t->h.c, strstr(e.text, why) != NULL, "the error is \"%s\"", e.text);
}

/* Alice has one, and not a second, until the first has ended; bob has one all the time. `opens`:
 * the server's program has given a queue pair to the one that is refused. */
static void one_each(struct check *c, void (*tune)(struct ndx_negotiation_server_attr *attr),
                     enum ndx_status refused, const char *why, bool opens)
{
	struct ndx_session *s[SIDES] = {NULL};
	const int bobs = opens ? 2 : 1;
	struct town t;

	if (town_open(&t, c, tune) && runs(&t, 0, 1, NDX_OK, "", &s[0]) &&
	    runs(&t, SIDES - 1, 1, refused, why, &s[3]) &&
	    check_that(c, stats_of(&t.h).refused_principals == 1, "it is not counted") &&
	    runs(&t, bobs, 2, NDX_OK, "", &s[1]) && pair_disconnect(t.p[0])) {
		ndx_session_close(s[0]);
		ndx_session_close(s[3]);
		s[0] = s[3] = NULL;
		/* bob's is left */
		if (house_await(&t.h, 1))
			(void)runs(&t, bobs + 1, 1, NDX_OK, "", &s[2]);
	}
	pair_close_all(c);
	for (int i = 0; i < SIDES; i++)
		ndx_session_close(s[i]);
	town_close(&t);
}

static void one_session(struct ndx_negotiation_server_attr *attr)
{
	attr->max_sessions_per_principal = 1;
}

void case_negotiated_limits_of_a_principals_sessions(struct check *c)
{
	one_each(c, one_session, NDX_E_CONNECTION_REFUSED,
	         "\"alice\" would have more than 1 sessions, the limit", false);
}

static void one_queue_pair(struct ndx_negotiation_server_attr *attr)
{
	attr->max_queue_pairs_per_principal = 1;
}

void case_negotiated_limits_of_a_principals_queue_pairs(struct check *c)
{
	one_each(c, one_queue_pair, NDX_E_REMOTE_ERROR,
	         "\"alice\" would have more than 1 queue pairs, the limit", true);
}

static void to_alice(struct ndx_negotiation_server_attr *attr)
{
	static const struct ndx_variant_grant grants[] = {
		{.plugin = "same", .psk_identity = "alice"},
		{.plugin = "other", .psk_identity = "bob"},
	};

	attr->grants = grants;
	attr->grant_count = 2;
}

void case_negotiated_limits_by_grants(struct check *c)
{
	struct ndx_session *s[2] = {NULL};
	struct town t;

	if (town_open(&t, c, to_alice) &&
	    runs(&t, 1, 2, NDX_E_NOT_SUPPORTED, "\"bob\" has no grant for variant same/as-it-is",
	         &s[1]) &&
	    check_that(c, stats_of(&t.h).refused_variants == 1, "it is not counted"))
		(void)runs(&t, 0, 1, NDX_OK, "", &s[0]);
	pair_close_all(c);
	ndx_session_close(s[0]);
	ndx_session_close(s[1]);
	town_close(&t);
}
