/* SPDX-License-Identifier: BSD-2-Clause */
#include "resolver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_thread.h"
#include "link.h"

struct lookup {
	struct ndxp_list node;
	struct resolver *resolver;
	pthread_t thread;
	char host[LINK_HOST_MAX];
	char port[LINK_PORT_MAX];
	unsigned users; /* under the resolver's lock, like the next */
	bool over;      /* its thread does not touch it any more */
	int fd;         /* an eventfd, set when the answer has come */
	int error;
	struct addrinfo *found;
};

static void *run(void *arg)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
	                         .ai_socktype = SOCK_STREAM,
	                         .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
	struct lookup *l = arg;
	struct resolver *r = l->resolver;

	l->error = getaddrinfo(l->host, l->port, &hints, &l->found);
	if (l->error == EAI_ADDRFAMILY || l->error == EAI_NONAME) {
		/* For loopback and link-local names on a host without other addresses. */
		hints.ai_flags = AI_NUMERICSERV;
		l->error = getaddrinfo(l->host, l->port, &hints, &l->found);
	}
	pthread_mutex_lock(&r->lock);
	ndxp_eventfd_set(l->fd);
	l->over = true;
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

/* The lookup is in no list and has no users. Its thread has ended, or is about to. */
static void lookup_free(struct lookup *l)
{
	(void)pthread_join(l->thread, NULL);
	if (l->error == 0)
		freeaddrinfo(l->found);
	ndxp_fd_close(l->fd);
	free(l);
}

/* Lock held. */
static enum ndx_status lookup_start(struct resolver *r, const char *host, const char *port,
                                    struct lookup **out)
{
	struct lookup *l = calloc(1, sizeof(*l));
	int error;

	if (l == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "%.128s: no memory to look it up", host);
	l->resolver = r;
	l->users = 1;
	(void)snprintf(l->host, sizeof(l->host), "%s", host);
	(void)snprintf(l->port, sizeof(l->port), "%s", port);
	l->fd = ndxp_eventfd_create();
	error = l->fd < 0 ? errno : base_thread_start(&l->thread, "ndx-neg-name", run, l);
	if (error == 0) {
		ndxp_list_add(&r->lookups, &l->node);
		*out = l;
		return NDX_OK;
	}
	ndxp_fd_close(l->fd);
	free(l);
	return fail(NDX_E_INSUFFICIENT_RESOURCES, error,
	            "%.128s: no descriptor, or no thread, to look it up", host);
}

void resolver_init(struct resolver *r)
{
	(void)pthread_mutex_init(&r->lock, NULL);
	ndxp_list_init(&r->lookups);
}

void resolver_fini(struct resolver *r)
{
	struct ndxp_list *next;

	for (struct ndxp_list *n = r->lookups.next; n != &r->lookups; n = next) {
		next = n->next;
		lookup_free(container_of(n, struct lookup, node));
	}
	(void)pthread_mutex_destroy(&r->lock);
}

/* Lock held: free lookups that have their answer and no users. */
static void free_left(struct resolver *r)
{
	struct ndxp_list *next;

	for (struct ndxp_list *n = r->lookups.next; n != &r->lookups; n = next) {
		struct lookup *l = container_of(n, struct lookup, node);

		next = n->next;
		if (l->users > 0 || !l->over)
			continue;
		ndxp_list_remove(&l->node);
		lookup_free(l);
	}
}

/* Lock held: a lookup of the same name that has no answer yet. */
static struct lookup *find(struct resolver *r, const char *host, const char *port)
{
	for (struct ndxp_list *n = r->lookups.next; n != &r->lookups; n = n->next) {
		struct lookup *l = container_of(n, struct lookup, node);

		if (!l->over && strcmp(l->host, host) == 0 && strcmp(l->port, port) == 0)
			return l;
	}
	return NULL;
}

enum ndx_status resolver_begin(struct resolver *r, const char *host, const char *port,
                               struct lookup **out)
{
	enum ndx_status st = NDX_OK;
	struct lookup *l;

	pthread_mutex_lock(&r->lock);
	l = find(r, host, port);
	if (l != NULL) {
		l->users++;
		*out = l;
	} else {
		st = lookup_start(r, host, port, out);
	}
	free_left(r);
	pthread_mutex_unlock(&r->lock);
	return st;
}

void resolver_leave(struct resolver *r, struct lookup *l)
{
	bool last;

	pthread_mutex_lock(&r->lock);
	l->users--;
	last = l->users == 0 && l->over;
	if (last)
		ndxp_list_remove(&l->node);
	pthread_mutex_unlock(&r->lock);
	if (last)
		lookup_free(l);
}

int lookup_fd(const struct lookup *l)
{
	return l->fd;
}

int lookup_answer(const struct lookup *l, const struct addrinfo **found)
{
	int error;

	pthread_mutex_lock(&l->resolver->lock);
	*found = l->found;
	error = l->error;
	pthread_mutex_unlock(&l->resolver->lock);
	return error;
}
