/* SPDX-License-Identifier: BSD-2-Clause */
/* How many connections a second a server takes, of one address and of all: before TLS begins, which
 * costs a server more than a client. Loop thread. */
#ifndef NEGOTIATION_HANDSHAKES_H
#define NEGOTIATION_HANDSHAKES_H

#include <stdbool.h>
#include <stdint.h>

#include "budget.h"

struct ndx_negotiation_server_attr;

#define HANDSHAKES_SETS 256u
#define HANDSHAKES_WAYS 4u
/* A rate may be exceeded for a moment by what it allows in this time. */
#define HANDSHAKES_AT_ONCE_S 10u

/* A token bucket: the time when it is full again says how many tokens it has. */
struct handshake_bucket {
	uint64_t key; /* of the address */
	uint64_t full_ns;
};

/* Of fixed size, so that addresses cannot fill the memory. */
struct handshakes {
	struct handshake_bucket all;
	struct handshake_bucket of[HANDSHAKES_SETS][HANDSHAKES_WAYS];
};

/* Replace the defaults by numbers. */
void handshakes_begin(struct ndx_negotiation_server_attr *attr);
/* Whether one more may begin at `now_ns`, from the address whose hash is `key`; else `why` says
 * which limit it exceeds. */
bool handshakes_take(struct handshakes *h, const struct ndx_negotiation_server_attr *attr,
                     uint64_t key, uint64_t now_ns, char why[BUDGET_TEXT]);

#endif
