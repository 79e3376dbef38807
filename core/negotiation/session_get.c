/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that read a session. Any thread. */
#include <ndx/spi/log.h>
#include "base_struct.h"
#include "many.h"
#include "session.h"

uint64_t ndx_session_get_id(const struct ndx_session *s)
{
	return s != NULL ? s->id : 0;
}

/* Locking does not change what a caller sees as constant. */
static pthread_mutex_t *lock_of(const struct ndx_session *s)
{
	return &((struct ndx_session *)(uintptr_t)s)->lock;
}

enum ndx_session_state ndx_session_get_state(const struct ndx_session *s)
{
	enum ndx_session_state state;

	if (s == NULL)
		return NDX_SESSION_FAILED;
	pthread_mutex_lock(lock_of(s));
	state = s->state;
	pthread_mutex_unlock(lock_of(s));
	return state;
}

const char *ndx_session_get_server(const struct ndx_session *s)
{
	const char *server;

	if (s == NULL)
		return NULL;
	pthread_mutex_lock(lock_of(s));
	server = s->server;
	pthread_mutex_unlock(lock_of(s));
	return server;
}

uint32_t ndx_session_get_queue_pair_count(const struct ndx_session *s)
{
	uint32_t count = 0;

	if (s == NULL)
		return 0;
	if (s->many == NULL)
		return 1;
	pthread_mutex_lock(lock_of(s));
	for (uint32_t i = 0; i < s->many->count; i++)
		count += s->many->lanes[i]->addition == NULL;
	pthread_mutex_unlock(lock_of(s));
	return count;
}

/* No log record, because a program may ask in this way. */
static enum ndx_status not_agreed(void)
{
	ndxp_fail_hold(true);
	(void)fail(NDX_E_INVALID_DEVICE_STATE, 0,
	           "ndx_session_get_agreement: the two ends have not agreed yet");
	ndxp_fail_hold(false);
	return NDX_E_INVALID_DEVICE_STATE;
}

/* Lock held: the queue pair's dialogue; NULL: there is none, or it is still being added. */
static const struct dialogue *find_dialogue(const struct ndx_session *s, uint32_t index)
{
	const struct lane *lane = s->many != NULL ? many_find(s->many, index) : NULL;

	if (s->many == NULL)
		return index == 0 ? &s->dialogue : NULL;
	return lane != NULL && lane->addition == NULL ? &lane->s.dialogue : NULL;
}

/* The agreement is written once, before `agreed` is set; but a queue pair may be removed. */
static enum ndx_status copy_agreement(const struct ndx_session *s, const struct dialogue *x,
                                      struct ndx_peer_description *own,
                                      struct ndx_peer_description *peer,
                                      struct ndx_agreement *agreed)
{
	if (!s->agreed)
		return NDX_E_INVALID_DEVICE_STATE;
	if (own != NULL)
		*own = x->own;
	if (peer != NULL)
		*peer = x->peer;
	if (agreed != NULL)
		*agreed = x->agreed;
	return NDX_OK;
}

enum ndx_status ndx_session_get_agreement(const struct ndx_session *s,
                                          struct ndx_peer_description *own,
                                          struct ndx_peer_description *peer,
                                          struct ndx_agreement *agreed)
{
	enum ndx_status st;

	if (s == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_session_get_agreement: session is NULL");
	pthread_mutex_lock(lock_of(s));
	st = copy_agreement(s, &s->dialogue, own, peer, agreed);
	pthread_mutex_unlock(lock_of(s));
	return st == NDX_OK ? NDX_OK : not_agreed();
}

enum ndx_status ndx_session_get_queue_pair_agreement(const struct ndx_session *s, uint32_t index,
                                                     struct ndx_peer_description *own,
                                                     struct ndx_peer_description *peer,
                                                     struct ndx_agreement *agreed)
{
	const struct dialogue *x = NULL;
	enum ndx_status st = NDX_E_INVALID_PARAMETER;

	if (s != NULL) {
		pthread_mutex_lock(lock_of(s));
		x = find_dialogue(s, index);
		st = x != NULL ? copy_agreement(s, x, own, peer, agreed) : st;
		pthread_mutex_unlock(lock_of(s));
	}
	if (st == NDX_E_INVALID_PARAMETER)
		return fail(st, 0,
		            "ndx_session_get_queue_pair_agreement: there is no queue pair %u",
		            index);
	return st == NDX_OK ? NDX_OK : not_agreed();
}

static const struct base_struct error_layout = BASE_STRUCT(
	struct ndx_session_error, NDX_SESSION_ERROR_SIZE_0_1, "set `size` to sizeof(*error)");

enum ndx_status ndx_session_get_error(const struct ndx_session *s, struct ndx_session_error *error)
{
	struct ndx_session_error now;

	if (s == NULL || error == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_get_error: NULL argument");
	pthread_mutex_lock(lock_of(s));
	now = s->error;
	pthread_mutex_unlock(lock_of(s));
	return base_struct_out(&error_layout, "ndx_session_get_error", error, error->size, &now);
}

enum ndx_status ndx_session_get_add_error(const struct ndx_session *s,
                                          struct ndx_session_error *error)
{
	struct ndx_session_error now;

	if (s == NULL || error == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_get_add_error: NULL argument");
	pthread_mutex_lock(lock_of(s));
	now = s->add_error;
	pthread_mutex_unlock(lock_of(s));
	return base_struct_out(&error_layout, "ndx_session_get_add_error", error, error->size,
	                       &now);
}

enum ndx_status ndx_session_get_history(const struct ndx_session *s, struct ndx_history_entry *list,
                                        size_t *count, uint64_t *total)
{
	if (s == NULL || count == NULL || (list == NULL && *count > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_get_history: NULL argument");
	history_copy(&((struct ndx_session *)(uintptr_t)s)->history, list, count, total);
	return NDX_OK;
}
