/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs leave a session of several: their memory is given back while the others live. */
#include <stdlib.h>
#include <string.h>

#include "many_add.h"

/* ---- the connection ---- */

/* Its own overlapped object: nothing waits for it. */
static void on_hung_up(struct ndx_overlapped *ov)
{
	free(ov);
}

void lane_hang_up(struct lane *lane)
{
	struct ndx_connector *connector = lane->s.attr.connector;
	struct ndx_overlapped *ov;

	if (lane->hung_up || connector == NULL)
		return;
	lane->hung_up = true;
	ov = calloc(1, sizeof(*ov));
	if (ov == NULL)
		return; /* the program closes it, as it does all of them */
	ov->callback = on_hung_up;
	if (ndx_connector_disconnect(connector, ov) != NDX_PENDING)
		free(ov);
}

/* ---- the memory ---- */

/* Nothing posts a job of the lane any more, so that the jobs of the lane end before `last` runs. */
static void take_out(struct ndx_session *s, struct lane *lane)
{
	struct many *m = s->many;

	driver_set_timer(&lane->s, UINT64_MAX);
	lane->s.driver.phase = DRIVER_CLOSING;
	driver_oob_close(&lane->s);
	while (lane->first != NULL)
		lane_consume(&lane->s);
	lane->next_due = m->removed;
	m->removed = lane;
}

const char *many_remove(struct ndx_session *s, uint32_t first, uint32_t count)
{
	struct many *m = s->many;
	uint32_t at = 0;

	for (uint32_t i = 0; i < count; i++)
		if (many_find(m, first + i) == NULL)
			return "queue pairs that the session does not have are removed";
	while (lane_index(m->lanes[at]) != first)
		at++;
	for (uint32_t i = count; i-- > 0;)
		take_out(s, m->lanes[at + i]);
	pthread_mutex_lock(&s->lock);
	m->count -= count;
	memmove(m->lanes + at, m->lanes + at + count, (m->count - at) * sizeof(void *));
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void on_last(void *arg)
{
	lane_free(arg);
}

bool many_sweep(struct ndx_session *s)
{
	struct many *m = s->many;
	struct lane **at = &m->removed;

	while (*at != NULL) {
		struct lane *lane = *at;

		if (!lane->ended) {
			at = &lane->next_due;
			continue;
		}
		*at = lane->next_due;
		lane->s.driver.last = (struct ndxp_job){.fn = on_last, .arg = lane};
		ndxp_loop_post(s->driver.engine->loop, &lane->s.driver.last);
	}
	return m->removed != NULL;
}

void many_free_removed(struct many *m)
{
	while (m->removed != NULL) {
		struct lane *lane = m->removed;

		m->removed = lane->next_due;
		lane_free(lane);
	}
}
