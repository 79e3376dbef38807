/* SPDX-License-Identifier: BSD-2-Clause */
/* How much of a server one peer may take: an address before its hello, a principal from then on. A
 * principal is the peer as TLS identifies it; in plaintext there is none. */
#ifndef NEGOTIATION_BUDGET_H
#define NEGOTIATION_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct client;
struct ndx_negotiation_server;

#define BUDGET_KEY 33u
#define BUDGET_BUCKETS 512u

/* What an address or a principal has now. */
struct budget {
	struct budget *next;
	uint8_t key[BUDGET_KEY];
	uint32_t waiting; /* connections without hello, of an address */
	uint32_t sessions;
	uint32_t queue_pairs;
	uint64_t memory;
};

/* Under the server's lock. */
struct budgets {
	struct budget *buckets[BUDGET_BUCKETS];
	uint64_t seed;
};

/* What one client counts for. */
struct budget_share {
	struct budget *address; /* NULL: not counted, or no more */
	struct budget *principal;
	uint32_t queue_pairs;
	uint64_t memory;
};

void budgets_begin(struct ndx_negotiation_server *server);

/* A number for the address of a host, that peers cannot choose. */
uint64_t budget_address(const struct budgets *b, const struct sockaddr_storage *from);

/* All of these: false, and why, in words that name the limit, if it is exceeded. */
#define BUDGET_TEXT 200u
/* A connection from there waits for its hello. */
bool budget_wait(struct ndx_negotiation_server *server, const struct sockaddr_storage *from,
                 struct budget_share *share, char why[BUDGET_TEXT]);
/* The connection waits no more. */
void budget_heard(struct ndx_negotiation_server *server, struct budget_share *share);
/* A session of the client's principal begins. */
bool budget_session(struct client *c, char why[BUDGET_TEXT]);
/* On the pool: the session gets queue pairs and memory. The caller counts a session that is
 * refused. */
bool budget_resources(struct client *c, uint32_t queue_pairs, uint64_t memory,
                      char why[BUDGET_TEXT]);
/* The session gives some of that back. Any thread. */
void budget_return(struct client *c, uint32_t queue_pairs, uint64_t memory);
/* The client is over. */
void budget_leave(struct client *c);

#endif
