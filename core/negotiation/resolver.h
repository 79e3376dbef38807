/* SPDX-License-Identifier: BSD-2-Clause */
/* Resolves names, each on its own thread: the system's resolver supports neither deadlines nor
 * cancel. A caller leaves after its deadline; the lookup continues until the system answers, and a
 * later caller with the same name gets that answer. */
#ifndef NEGOTIATION_RESOLVER_H
#define NEGOTIATION_RESOLVER_H

#include <netdb.h>
#include <pthread.h>

#include <ndx/status.h>

#include <ndx/spi/list.h>

struct lookup;

struct resolver {
	pthread_mutex_t lock;
	struct ndxp_list lookups;
};

void resolver_init(struct resolver *r);
/* Waits until the system has answered the lookups that callers have left. */
void resolver_fini(struct resolver *r);

/* Any thread. NDX_E_NO_MEMORY, NDX_E_INSUFFICIENT_RESOURCES: no descriptor or thread. */
enum ndx_status resolver_begin(struct resolver *r, const char *host, const char *port,
                               struct lookup **out);
/* Any thread; afterwards the caller must not use the lookup or its answer. */
void resolver_leave(struct resolver *r, struct lookup *l);

/* The descriptor is readable when the answer has come. */
int lookup_fd(const struct lookup *l);
/* The answer, after the descriptor is readable: 0 and a list, or an EAI_... */
int lookup_answer(const struct lookup *l, const struct addrinfo **found);

#endif
