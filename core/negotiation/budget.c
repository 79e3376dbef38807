/* SPDX-License-Identifier: BSD-2-Clause */
/* What each address and each principal has of a server. */
#include "budget.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include "server.h"

void budgets_begin(struct ndx_negotiation_server *server)
{
	/* Without random bytes the table works, too. */
	(void)ndxp_random(&server->budgets.seed, sizeof(server->budgets.seed));
}

/* ---- the table ---- */

/* FNV-1a, with a seed so that peers cannot choose a bucket. */
static uint64_t hash_key(const struct budgets *b, const uint8_t key[BUDGET_KEY])
{
	uint64_t hash = UINT64_C(14695981039346656037) ^ b->seed;

	for (size_t i = 0; i < BUDGET_KEY; i++)
		hash = (hash ^ key[i]) * UINT64_C(1099511628211);
	return hash;
}

static struct budget **bucket(struct budgets *b, const uint8_t key[BUDGET_KEY])
{
	return &b->buckets[(hash_key(b, key) >> 32) % BUDGET_BUCKETS];
}

/* The entry, new if there is none. NULL: no memory. */
static struct budget *find(struct budgets *b, const uint8_t key[BUDGET_KEY])
{
	struct budget **head = bucket(b, key);
	struct budget *e = *head;

	while (e != NULL && memcmp(e->key, key, BUDGET_KEY) != 0)
		e = e->next;
	if (e != NULL)
		return e;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return NULL;
	memcpy(e->key, key, BUDGET_KEY);
	e->next = *head;
	*head = e;
	return e;
}

/* Free the entry if it has nothing. */
static void drop(struct budgets *b, struct budget *e)
{
	struct budget **at = bucket(b, e->key);

	if (e->waiting > 0 || e->sessions > 0)
		return;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	free(e);
}

/* ---- addresses ---- */

/* A host of IPv6 has all addresses of its /64, except on the link. IPv4 in IPv6 is IPv4. */
static void address_key(const struct sockaddr_storage *from, uint8_t key[BUDGET_KEY])
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	memset(key, 0, BUDGET_KEY);
	if (from->ss_family == AF_INET) {
		memcpy(&v4, from, sizeof(v4));
		key[0] = 4;
		memcpy(key + 1, &v4.sin_addr, 4);
		return;
	}
	if (from->ss_family != AF_INET6)
		return;
	memcpy(&v6, from, sizeof(v6));
	if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
		key[0] = 4;
		memcpy(key + 1, v6.sin6_addr.s6_addr + 12, 4);
		return;
	}
	key[0] = 6;
	memcpy(key + 1, &v6.sin6_addr, IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr) ? 16 : 8);
}

uint64_t budget_address(const struct budgets *b, const struct sockaddr_storage *from)
{
	uint8_t key[BUDGET_KEY];

	address_key(from, key);
	return hash_key(b, key);
}

bool budget_wait(struct ndx_negotiation_server *server, const struct sockaddr_storage *from,
                 struct budget_share *share, char why[BUDGET_TEXT])
{
	const uint32_t most = server->attr.max_waiting_per_address;
	uint8_t key[BUDGET_KEY];
	struct budget *e;
	bool fits;

	address_key(from, key);
	pthread_mutex_lock(&server->lock);
	e = find(&server->budgets, key);
	fits = e != NULL && (most == 0 || e->waiting < most);
	if (fits) {
		e->waiting++;
		share->address = e;
	} else {
		server->stats.refused++;
		server->stats.refused_addresses++;
		(void)snprintf(why, BUDGET_TEXT,
		               e == NULL ? "no memory for it"
		                         : "%u connections of its address wait for their hello, "
		                           "the limit (max_waiting_per_address)",
		               most);
	}
	pthread_mutex_unlock(&server->lock);
	return fits;
}

static void heard(struct ndx_negotiation_server *server, struct budget_share *share)
{
	struct budget *e = share->address;

	if (e == NULL)
		return;
	share->address = NULL;
	e->waiting--;
	drop(&server->budgets, e);
}

void budget_heard(struct ndx_negotiation_server *server, struct budget_share *share)
{
	pthread_mutex_lock(&server->lock);
	heard(server, share);
	pthread_mutex_unlock(&server->lock);
}

/* ---- principals ---- */

static bool exceeds(const struct client *c, const char *what, uint64_t most, const char *limit,
                    char why[BUDGET_TEXT])
{
	(void)snprintf(why, BUDGET_TEXT, "\"%.80s\" would have more than %llu %s, the limit (%s)",
	               c->identity.name, (unsigned long long)most, what, limit);
	return false;
}

bool budget_session(struct client *c, char why[BUDGET_TEXT])
{
	struct ndx_negotiation_server *server = c->server;
	const uint32_t most = server->attr.max_sessions_per_principal;
	uint8_t key[BUDGET_KEY] = {0xff};
	struct budget *e;
	bool fits = true;

	if (c->identity.kind == TLS_NOTHING)
		return true;
	memcpy(key + 1, c->identity.principal, TLS_DIGEST);
	pthread_mutex_lock(&server->lock);
	e = find(&server->budgets, key);
	if (e == NULL) {
		(void)snprintf(why, BUDGET_TEXT, "no memory for a session");
		fits = false;
	} else if (most > 0 && e->sessions >= most) {
		fits = exceeds(c, "sessions", most, "max_sessions_per_principal", why);
		server->stats.refused++;
		server->stats.refused_principals++;
	} else {
		e->sessions++;
		c->share.principal = e;
	}
	pthread_mutex_unlock(&server->lock);
	return fits;
}

bool budget_resources(struct client *c, uint32_t queue_pairs, uint64_t memory,
                      char why[BUDGET_TEXT])
{
	struct ndx_negotiation_server *server = c->server;
	const uint32_t most_pairs = server->attr.max_queue_pairs_per_principal;
	const uint64_t most_memory = server->attr.max_memory_per_principal;
	struct budget *e = c->share.principal;
	bool fits = true;

	if (e == NULL)
		return true;
	pthread_mutex_lock(&server->lock);
	if (most_pairs > 0 && queue_pairs > most_pairs - e->queue_pairs)
		fits = exceeds(c, "queue pairs", most_pairs, "max_queue_pairs_per_principal", why);
	else if (most_memory > 0 && memory > most_memory - e->memory)
		fits = exceeds(c, "bytes of memory", most_memory, "max_memory_per_principal", why);
	if (fits) {
		/* without limit the sum may be beyond what a number holds */
		memory = memory < UINT64_MAX - e->memory ? memory : UINT64_MAX - e->memory;
		e->queue_pairs += queue_pairs;
		e->memory += memory;
		c->share.queue_pairs += queue_pairs;
		c->share.memory += memory;
	}
	pthread_mutex_unlock(&server->lock);
	return fits;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void budget_return(struct client *c, uint32_t queue_pairs, uint64_t memory)
{
	struct ndx_negotiation_server *server = c->server;
	struct budget *e = c->share.principal;

	if (e == NULL)
		return;
	pthread_mutex_lock(&server->lock);
	/* of memory, a sum beyond what a number holds was counted as less */
	memory = least(memory, c->share.memory);
	e->queue_pairs -= queue_pairs;
	e->memory -= memory;
	c->share.queue_pairs -= queue_pairs;
	c->share.memory -= memory;
	pthread_mutex_unlock(&server->lock);
}

void budget_leave(struct client *c)
{
	struct ndx_negotiation_server *server = c->server;
	struct budget *e = c->share.principal;

	pthread_mutex_lock(&server->lock);
	heard(server, &c->share);
	if (e != NULL) {
		e->sessions--;
		e->queue_pairs -= c->share.queue_pairs;
		e->memory -= c->share.memory;
		drop(&server->budgets, e);
	}
	c->share = (struct budget_share){.address = NULL};
	pthread_mutex_unlock(&server->lock);
}
