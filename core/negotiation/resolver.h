/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names, looked up on a thread for each: the system's resolver knows neither a time limit of ours
 * nor a cancel. A caller whose time is over leaves; the resolver keeps the lookup until the system
 * has an answer, and a later caller with the same name waits for that answer.
 */
#ifndef NEGOTIATION_RESOLVER_H
#define NEGOTIATION_RESOLVER_H

#include <netdb.h>
#include <pthread.h>

#include <ndx/status.h>

#include "base_list.h"

struct lookup;

struct resolver {
	pthread_mutex_t lock;
	struct base_list lookups;
};

void resolver_init(struct resolver *r);
/* Waits for the answers that the system still owes to lookups which were left. */
void resolver_fini(struct resolver *r);

/* Any thread. NDX_E_NO_MEMORY, NDX_E_INSUFFICIENT_RESOURCES: no descriptor or thread. */
enum ndx_status resolver_begin(struct resolver *r, const char *host, const char *port,
                               struct lookup **out);
/* Any thread; the lookup is not the caller's any more, nor is its answer. */
void resolver_leave(struct resolver *r, struct lookup *l);

/* Readable when there is an answer. */
int lookup_fd(const struct lookup *l);
/* The answer, once it is there: 0 and a list, or an EAI_... */
int lookup_answer(const struct lookup *l, const struct addrinfo **found);

#endif
