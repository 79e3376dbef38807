/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that the server's TLS refuses, each on its own thread: a wrong key, or a certificate of
 * another authority. They have a variant of their own, as those of another process would, so they
 * share nothing with the good ones' sessions. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <ndx/ndx.h>
#include <ndx/session.h>

#include "sessions.h"

struct intruder {
	pthread_t thread;
	struct intruders *all;
	unsigned tried;
};

struct intruders {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	char server[32];
	const struct ndx_tls_attr *tls;
	unsigned again_ms;
	atomic_bool stop;
	unsigned count;
	struct intruder *list;
};

static void *intrude(void *arg)
{
	struct intruder *in = arg;
	const struct intruders *all = in->all;

	while (!all->stop) {
		struct ndx_session *session = sessions_make(all->variant, all->server, all->tls);

		if (ndx_session_run(session) == NDX_OK)
			sessions_die("hostile client", "the server takes it");
		ndx_session_close(session);
		in->tried++;
		(void)poll(NULL, 0, (int)all->again_ms);
	}
	return NULL;
}

struct intruders *intruders_start(uint16_t port, const struct ndx_tls_attr *tls, unsigned count,
                                  unsigned again_ms)
{
	struct intruders *all = calloc(1, sizeof(*all));

	if (all == NULL)
		sessions_die("hostile clients", "no memory");
	sessions_variant(&all->negotiation, &all->variant);
	(void)snprintf(all->server, sizeof(all->server), "127.0.0.1:%u", port);
	all->tls = tls;
	all->again_ms = again_ms;
	all->count = count;
	all->list = calloc(count, sizeof(*all->list));
	if (all->list == NULL)
		sessions_die("hostile clients", "no memory");
	for (unsigned i = 0; i < count; i++) {
		all->list[i].all = all;
		if (pthread_create(&all->list[i].thread, NULL, intrude, &all->list[i]) != 0)
			sessions_die("hostile clients", "no thread");
	}
	return all;
}

uint64_t intruders_stop(struct intruders *all)
{
	uint64_t tried = 0;

	all->stop = true;
	for (unsigned i = 0; i < all->count; i++) {
		(void)pthread_join(all->list[i].thread, NULL);
		tried += all->list[i].tried;
	}
	ndx_variant_close(all->variant);
	(void)ndx_negotiation_close(all->negotiation);
	free(all->list);
	free(all);
	return tried;
}
