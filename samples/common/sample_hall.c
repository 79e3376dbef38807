/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_hall.h"

#include <time.h>

#include "sample_listen.h"
#include "sample_options.h"

#define SLICE_MS 200

void sample_hall_enter(struct sample_hall *hall, struct sample_visit *visit,
                       const struct ndx_session *session)
{
	visit->session = ndx_session_get_id(session);
	pthread_mutex_lock(&hall->lock);
	visit->next = hall->visits;
	hall->visits = visit;
	pthread_mutex_unlock(&hall->lock);
}

struct sample_visit *sample_hall_find(struct sample_hall *hall, const struct ndx_session *session)
{
	struct sample_visit *v;

	pthread_mutex_lock(&hall->lock);
	v = hall->visits;
	while (v != NULL && v->session != ndx_session_get_id(session))
		v = v->next;
	pthread_mutex_unlock(&hall->lock);
	return v;
}

void sample_hall_leave(struct sample_hall *hall, struct sample_visit *visit, bool well)
{
	struct sample_visit **at = &hall->visits;

	pthread_mutex_lock(&hall->lock);
	while (*at != visit)
		at = &(*at)->next;
	*at = visit->next;
	hall->ended++;
	hall->bad += !well;
	(void)pthread_cond_signal(&hall->changed);
	pthread_mutex_unlock(&hall->lock);
}

void sample_hall_wait(struct sample_hall *hall, uint32_t count, const atomic_bool *stop)
{
	pthread_mutex_lock(&hall->lock);
	while (!*stop && (count == 0 || hall->ended < count)) {
		struct timespec until;

		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += SLICE_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		(void)pthread_cond_timedwait(&hall->changed, &hall->lock, &until);
	}
	pthread_mutex_unlock(&hall->lock);
}

int sample_hall_address(struct ndx_negotiation_server *server, const char *port_file,
                        struct sample_address *out)
{
	out->length = sizeof(out->storage);
	(void)ndx_negotiation_server_get_address(server, (struct sockaddr *)&out->storage,
	                                         &out->length);
	return port_file != NULL ? sample_write_port(port_file, out) : SAMPLE_EXIT_OK;
}
