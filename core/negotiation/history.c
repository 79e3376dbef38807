/* SPDX-License-Identifier: BSD-2-Clause */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>

#include <ndx/spi/system.h>

enum ndx_status history_init(struct history *h, uint32_t room)
{
	h->ring = calloc(room, sizeof(*h->ring));
	if (h->ring == NULL)
		return NDX_E_NO_MEMORY;
	(void)pthread_mutex_init(&h->lock, NULL);
	h->room = room;
	h->written = 0;
	h->totals = (struct history_totals){0};
	h->began_ns = ndxp_now_ns();
	return NDX_OK;
}

void history_fini(struct history *h)
{
	(void)pthread_mutex_destroy(&h->lock);
	free(h->ring);
}

/* Lock held. */
static void count(struct history_totals *t, const struct ndx_history_entry *e)
{
	switch (e->kind) {
	case NDX_HISTORY_CALL:
		t->calls++;
		break;
	case NDX_HISTORY_SENT:
		t->sent++;
		t->sent_bytes += e->bytes;
		break;
	case NDX_HISTORY_RECEIVED:
		t->received++;
		t->received_bytes += e->bytes_in;
		break;
	case NDX_HISTORY_CONNECT:
	case NDX_HISTORY_BACKOFF:
	case NDX_HISTORY_STAGE:
	case NDX_HISTORY_PROOF:
	case NDX_HISTORY_VERDICT:
	case NDX_HISTORY_HELLO:
	case NDX_HISTORY_TLS:
	case NDX_HISTORY_ADD:
	case NDX_HISTORY_LOST:
	default:
		break;
	}
}

void history_add(struct history *h, const struct ndx_history_entry *entry, uint64_t since_ns,
                 const char *text)
{
	const uint64_t now = ndxp_now_ns();
	struct ndx_history_entry *e;

	pthread_mutex_lock(&h->lock);
	e = &h->ring[h->written % h->room];
	*e = *entry;
	e->at_us = (since_ns - h->began_ns) / 1000;
	e->duration_us = (now - since_ns) / 1000;
	(void)snprintf(e->text, sizeof(e->text), "%s", text != NULL ? text : "");
	h->written++;
	count(&h->totals, entry);
	pthread_mutex_unlock(&h->lock);
}

void history_add_hello(struct history *h, enum ndx_stage stage, uint32_t out, uint32_t in,
                       uint64_t since_ns)
{
	const struct ndx_history_entry entry = {
		.kind = NDX_HISTORY_HELLO, .stage = stage, .bytes = out, .bytes_in = in};

	history_add(h, &entry, since_ns, NULL);
}

void history_copy(struct history *h, struct ndx_history_entry *list, size_t *count, uint64_t *total)
{
	uint64_t first;
	size_t kept;

	pthread_mutex_lock(&h->lock);
	kept = h->written < h->room ? (size_t)h->written : h->room;
	if (kept < *count)
		*count = kept;
	first = h->written - *count;
	for (size_t i = 0; i < *count; i++)
		list[i] = h->ring[(first + i) % h->room];
	if (total != NULL)
		*total = h->written;
	pthread_mutex_unlock(&h->lock);
}

void history_sum(struct history *h, struct history_totals *totals)
{
	pthread_mutex_lock(&h->lock);
	*totals = h->totals;
	pthread_mutex_unlock(&h->lock);
}
