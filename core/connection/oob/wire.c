/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects a connector with its out-of-band carrier. */
#include "wire.h"

#include <pthread.h>
#include <stdlib.h>

#include "connection.h"

struct wire {
	pthread_mutex_t lock;
	const struct wire_carrier *carrier; /* NULL: has left */
	void *arg;
	struct ndx_connector *connector; /* NULL: not yet tied, or parted */
	bool said;                       /* the own goodbye was sent */
	bool heard;                      /* the peer's goodbye arrived */
};

struct wire *wire_create(const struct wire_carrier *carrier, void *arg)
{
	struct wire *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	(void)pthread_mutex_init(&w->lock, NULL);
	w->carrier = carrier;
	w->arg = arg;
	return w;
}

/* Unlock; free if both sides have left. */
static void leave(struct wire *w)
{
	const bool last = w->carrier == NULL && w->connector == NULL;

	pthread_mutex_unlock(&w->lock);
	if (!last)
		return;
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Lock held. */
static void tell(struct wire *w, enum wire_news news)
{
	/* After both goodbyes, the end of the stream is expected. */
	if (w->connector == NULL || (news == WIRE_LOST && w->said && w->heard))
		return;
	w->heard = w->heard || news == WIRE_GOODBYE;
	conn_direct_heard(w->connector, news);
}

void wire_heard(struct wire *w, enum wire_news news)
{
	pthread_mutex_lock(&w->lock);
	tell(w, news);
	pthread_mutex_unlock(&w->lock);
}

void wire_said(struct wire *w)
{
	pthread_mutex_lock(&w->lock);
	w->said = true;
	if (w->connector != NULL)
		host_report(w->connector->native, NDX_REPORT_DISC_ACKED, 0, NULL);
	pthread_mutex_unlock(&w->lock);
}

void wire_leave(struct wire *w)
{
	pthread_mutex_lock(&w->lock);
	w->carrier = NULL;
	tell(w, WIRE_LOST);
	leave(w);
}

bool wire_tie(struct wire *w, struct ndx_connector *c)
{
	bool there;

	pthread_mutex_lock(&w->lock);
	there = w->carrier != NULL;
	if (there)
		w->connector = c;
	pthread_mutex_unlock(&w->lock);
	return there;
}

void wire_say(struct wire *w, enum ndx_spi_oob_message message)
{
	pthread_mutex_lock(&w->lock);
	if (w->carrier != NULL)
		w->carrier->say(w->arg, message);
	pthread_mutex_unlock(&w->lock);
}

void wire_part(struct wire *w)
{
	pthread_mutex_lock(&w->lock);
	w->connector = NULL;
	if (w->carrier != NULL)
		w->carrier->over(w->arg);
	leave(w);
}
