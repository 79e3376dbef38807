/* SPDX-License-Identifier: BSD-2-Clause */
#include "handshakes.h"

#include <stdio.h>

#include <ndx/negotiation_server.h>

/*
 * With TLS a connection costs the server some 440 us of processor time
 * (docs/design/negotiation-figures.md says how that was measured), nearly all of it in the
 * handshake, and the sender of a connection next to nothing. So one address gets a tenth of a
 * processor, and all of them half of the one that the server's thread has. Ten seconds of that at
 * once are 2,560 and 10,240 connections: when a server comes back, 1,000 clients of one address, or
 * of many, reach it in their first attempt, and those that try twice do, too. Without TLS a
 * connection costs what the refusal costs.
 */
#define DEFAULT_OF_ADDRESS 256u
#define DEFAULT_OF_ALL 1024u

#define NS_PER_S UINT64_C(1000000000)

void handshakes_begin(struct ndx_negotiation_server_attr *attr)
{
	const bool tls = attr->tls != NULL;

	if (attr->max_handshakes_per_address == 0)
		attr->max_handshakes_per_address =
			tls ? DEFAULT_OF_ADDRESS : NDX_NEGOTIATION_SERVER_NO_LIMIT;
	if (attr->max_handshakes == 0)
		attr->max_handshakes = tls ? DEFAULT_OF_ALL : NDX_NEGOTIATION_SERVER_NO_LIMIT;
}

/* When the bucket will be full again if a token is taken now; 0: it has none. */
static uint64_t without_token(const struct handshake_bucket *b, uint32_t rate, uint64_t now_ns)
{
	const uint64_t from = b->full_ns > now_ns ? b->full_ns : now_ns;
	const uint64_t to = from + NS_PER_S / rate;

	return to - now_ns <= HANDSHAKES_AT_ONCE_S * NS_PER_S ? to : 0;
}

/* The bucket of the address, else the fullest one of its set: that address waits least for it. Then
 * the address has a full one. */
static struct handshake_bucket *find(struct handshakes *h, uint64_t key)
{
	struct handshake_bucket *set = h->of[(key >> 32) % HANDSHAKES_SETS];
	struct handshake_bucket *fullest = set;

	for (unsigned i = 0; i < HANDSHAKES_WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
		if (set[i].full_ns < fullest->full_ns)
			fullest = &set[i];
	}
	*fullest = (struct handshake_bucket){.key = key};
	return fullest;
}

static bool refuse(char why[BUDGET_TEXT], uint32_t rate, const char *whose, const char *limit)
{
	(void)snprintf(why, BUDGET_TEXT,
	               "%u connections a second, and those of %u s at once, are the limit of %s "
	               "(%s)",
	               rate, HANDSHAKES_AT_ONCE_S, whose, limit);
	return false;
}

bool handshakes_take(struct handshakes *h, const struct ndx_negotiation_server_attr *attr,
                     uint64_t key, uint64_t now_ns, char why[BUDGET_TEXT])
{
	const uint32_t most_of_one = attr->max_handshakes_per_address;
	const uint32_t most_of_all = attr->max_handshakes;
	struct handshake_bucket *one = NULL;
	uint64_t one_ns = 0;
	uint64_t all_ns = 0;

	if (most_of_one != NDX_NEGOTIATION_SERVER_NO_LIMIT) {
		one = find(h, key);
		one_ns = without_token(one, most_of_one, now_ns);
		if (one_ns == 0)
			return refuse(why, most_of_one, "one address",
			              "max_handshakes_per_address");
	}
	if (most_of_all != NDX_NEGOTIATION_SERVER_NO_LIMIT) {
		all_ns = without_token(&h->all, most_of_all, now_ns);
		if (all_ns == 0)
			return refuse(why, most_of_all, "all addresses", "max_handshakes");
		h->all.full_ns = all_ns;
	}
	/* an address that all others together keep out loses nothing of its own */
	if (one != NULL)
		one->full_ns = one_ns;
	return true;
}
