/* SPDX-License-Identifier: BSD-2-Clause */
/* Joins a connection with its out-of-band carrier. */
#include "oob_link.h"

#include <pthread.h>
#include <stdlib.h>

struct end {
	const struct oob_end_ops *ops; /* NULL: not attached, or has left */
	void *arg;
};

struct oob_link {
	pthread_mutex_t lock;
	struct end ends[2]; /* by enum oob_side */
	bool goodbye_sent;  /* the own goodbye was sent */
	bool goodbye_received;
};

struct oob_link *oob_link_create(const struct oob_end_ops *carrier, void *arg)
{
	struct oob_link *link = calloc(1, sizeof(*link));

	if (link == NULL)
		return NULL;
	(void)pthread_mutex_init(&link->lock, NULL);
	link->ends[OOB_CARRIER] = (struct end){carrier, arg};
	return link;
}

bool oob_link_attach(struct oob_link *link, const struct oob_end_ops *connection, void *arg)
{
	bool there;

	pthread_mutex_lock(&link->lock);
	there = link->ends[OOB_CARRIER].ops != NULL;
	if (there)
		link->ends[OOB_CONNECTION] = (struct end){connection, arg};
	pthread_mutex_unlock(&link->lock);
	return there;
}

/* Lock held. */
static void pass_on(struct oob_link *link, enum oob_side from, enum oob_event event)
{
	const struct end *to = &link->ends[from == OOB_CARRIER ? OOB_CONNECTION : OOB_CARRIER];

	if (to->ops == NULL)
		return;
	if (from == OOB_CARRIER) {
		link->goodbye_sent |= event == OOB_SENT;
		link->goodbye_received |= event == OOB_GOODBYE;
	}
	if (event != OOB_LOST)
		to->ops->event(to->arg, event);
	/* After both goodbyes, the connection expects the end of its carrier. */
	else if (from == OOB_CONNECTION || !link->goodbye_sent || !link->goodbye_received)
		to->ops->lost(to->arg);
}

void oob_link_tell(struct oob_link *link, enum oob_side from, enum oob_event event)
{
	pthread_mutex_lock(&link->lock);
	pass_on(link, from, event);
	pthread_mutex_unlock(&link->lock);
}

void oob_link_leave(struct oob_link *link, enum oob_side from)
{
	bool last;

	pthread_mutex_lock(&link->lock);
	link->ends[from].ops = NULL;
	pass_on(link, from, OOB_LOST);
	last = link->ends[OOB_CARRIER].ops == NULL && link->ends[OOB_CONNECTION].ops == NULL;
	pthread_mutex_unlock(&link->lock);
	if (!last)
		return;
	(void)pthread_mutex_destroy(&link->lock);
	free(link);
}
