/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sample_listen.h"
#include "sample_options.h"

#define SLICE_MS 200

void sample_sessions_add(struct sample_sessions *sessions, struct sample_session *entry,
                         const struct ndx_session *session)
{
	entry->id = ndx_session_get_id(session);
	pthread_mutex_lock(&sessions->lock);
	entry->next = sessions->first;
	sessions->first = entry;
	pthread_mutex_unlock(&sessions->lock);
}

struct sample_session *sample_sessions_find(struct sample_sessions *sessions,
                                            const struct ndx_session *session)
{
	struct sample_session *entry;

	pthread_mutex_lock(&sessions->lock);
	entry = sessions->first;
	while (entry != NULL && entry->id != ndx_session_get_id(session))
		entry = entry->next;
	pthread_mutex_unlock(&sessions->lock);
	return entry;
}

void sample_sessions_remove(struct sample_sessions *sessions, struct sample_session *entry,
                            bool well)
{
	struct sample_session **at = &sessions->first;

	pthread_mutex_lock(&sessions->lock);
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	sessions->ended++;
	sessions->bad += !well;
	(void)pthread_cond_signal(&sessions->changed);
	pthread_mutex_unlock(&sessions->lock);
}

void sample_sessions_wait(struct sample_sessions *sessions, uint32_t count, const atomic_bool *stop)
{
	pthread_mutex_lock(&sessions->lock);
	while (!*stop && (count == 0 || sessions->ended < count)) {
		struct timespec until;

		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += SLICE_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		(void)pthread_cond_timedwait(&sessions->changed, &sessions->lock, &until);
	}
	pthread_mutex_unlock(&sessions->lock);
}

const char *sample_sessions_default(struct ndx_adapter *adapter, char text[SAMPLE_ADDRESS_TEXT])
{
	struct sockaddr_storage *list = NULL;
	struct sample_address address;
	size_t count = 0;

	if (sample_addresses_of(adapter, &list, &count) != NDX_OK) {
		snprintf(text, SAMPLE_ADDRESS_TEXT, "[::]:0");
		return text;
	}
	address = sample_address_from(&list[0]);
	free(list);
	sample_address_set_port(&address, 0);
	return sample_address_format(&address, text, SAMPLE_ADDRESS_TEXT);
}

int sample_sessions_address(struct ndx_negotiation_server *server, const char *port_file,
                            struct sample_address *out)
{
	out->length = sizeof(out->storage);
	(void)ndx_negotiation_server_get_address(server, (struct sockaddr *)&out->storage,
	                                         &out->length);
	return port_file != NULL ? sample_write_port(port_file, out) : SAMPLE_EXIT_OK;
}
