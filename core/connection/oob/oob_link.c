/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects a connector with its out-of-band carrier. */
#include "oob_link.h"

#include <pthread.h>
#include <stdlib.h>

#include "connection.h"

struct oob_link {
	pthread_mutex_t lock;
	const struct oob_carrier *carrier; /* NULL: has left */
	void *arg;
	struct ndx_connector *connector; /* NULL: not yet attached, or detached */
	bool goodbye_sent;               /* the own goodbye was sent */
	bool goodbye_received;           /* the peer's goodbye arrived */
};

struct oob_link *oob_link_create(const struct oob_carrier *carrier, void *arg)
{
	struct oob_link *link = calloc(1, sizeof(*link));

	if (link == NULL)
		return NULL;
	(void)pthread_mutex_init(&link->lock, NULL);
	link->carrier = carrier;
	link->arg = arg;
	return link;
}

/* Unlock; free if both sides have left. */
static void unlock_or_free(struct oob_link *link)
{
	const bool last = link->carrier == NULL && link->connector == NULL;

	pthread_mutex_unlock(&link->lock);
	if (!last)
		return;
	(void)pthread_mutex_destroy(&link->lock);
	free(link);
}

/* Lock held. */
static void pass_on(struct oob_link *link, enum oob_event event)
{
	/* After both goodbyes, the end of the stream is expected. */
	if (link->connector == NULL ||
	    (event == OOB_LOST && link->goodbye_sent && link->goodbye_received))
		return;
	link->goodbye_received = link->goodbye_received || event == OOB_GOODBYE;
	conn_oob_received(link->connector, event);
}

void oob_link_received(struct oob_link *link, enum oob_event event)
{
	pthread_mutex_lock(&link->lock);
	pass_on(link, event);
	pthread_mutex_unlock(&link->lock);
}

void oob_link_sent(struct oob_link *link)
{
	pthread_mutex_lock(&link->lock);
	link->goodbye_sent = true;
	if (link->connector != NULL)
		host_report(link->connector->native, NDX_REPORT_DISC_ACKED, 0, NULL);
	pthread_mutex_unlock(&link->lock);
}

void oob_link_leave(struct oob_link *link)
{
	pthread_mutex_lock(&link->lock);
	link->carrier = NULL;
	pass_on(link, OOB_LOST);
	unlock_or_free(link);
}

bool oob_link_attach(struct oob_link *link, struct ndx_connector *c)
{
	bool there;

	pthread_mutex_lock(&link->lock);
	there = link->carrier != NULL;
	if (there)
		link->connector = c;
	pthread_mutex_unlock(&link->lock);
	return there;
}

void oob_link_send(struct oob_link *link, enum ndx_spi_oob_message message)
{
	pthread_mutex_lock(&link->lock);
	if (link->carrier != NULL)
		link->carrier->send(link->arg, message);
	pthread_mutex_unlock(&link->lock);
}

void oob_link_detach(struct oob_link *link)
{
	pthread_mutex_lock(&link->lock);
	link->connector = NULL;
	if (link->carrier != NULL)
		link->carrier->end(link->arg);
	unlock_or_free(link);
}
