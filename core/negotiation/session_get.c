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
	if (s == NULL)
		return 0;
	return s->many != NULL ? s->many->count : 1;
}

/* `x`: the session's, or that of one of its queue pairs. */
static enum ndx_status copy_agreement(const struct ndx_session *s, const struct dialogue *x,
                                      struct ndx_peer_description *own,
                                      struct ndx_peer_description *peer,
                                      struct ndx_agreement *agreed)
{
	bool known;

	/* The agreement is written once, before `agreed` is set. */
	pthread_mutex_lock(lock_of(s));
	known = s->agreed;
	pthread_mutex_unlock(lock_of(s));
	if (!known) {
		/* No log record, because a program may ask in this way. */
		ndxp_fail_hold(true);
		(void)fail(NDX_E_INVALID_DEVICE_STATE, 0,
		           "ndx_session_get_agreement: the two ends have not agreed yet");
		ndxp_fail_hold(false);
		return NDX_E_INVALID_DEVICE_STATE;
	}
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
	if (s == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_session_get_agreement: session is NULL");
	return copy_agreement(s, &s->dialogue, own, peer, agreed);
}

enum ndx_status ndx_session_get_queue_pair_agreement(const struct ndx_session *s, uint32_t index,
                                                     struct ndx_peer_description *own,
                                                     struct ndx_peer_description *peer,
                                                     struct ndx_agreement *agreed)
{
	if (s == NULL || index >= ndx_session_get_queue_pair_count(s))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_session_get_queue_pair_agreement: there is no queue pair %u",
		            index);
	return copy_agreement(s, s->many != NULL ? &s->many->lanes[index].s.dialogue : &s->dialogue,
	                      own, peer, agreed);
}

enum ndx_status ndx_session_get_error(const struct ndx_session *s, struct ndx_session_error *error)
{
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_session_error, NDX_SESSION_ERROR_SIZE_0_1,
	                    "set `size` to sizeof(*error)");
	struct ndx_session_error now;

	if (s == NULL || error == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_get_error: NULL argument");
	pthread_mutex_lock(lock_of(s));
	now = s->error;
	pthread_mutex_unlock(lock_of(s));
	return base_struct_out(&layout, "ndx_session_get_error", error, error->size, &now);
}

enum ndx_status ndx_session_get_history(const struct ndx_session *s, struct ndx_history_entry *list,
                                        size_t *count, uint64_t *total)
{
	if (s == NULL || count == NULL || (list == NULL && *count > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_get_history: NULL argument");
	history_copy(&((struct ndx_session *)(uintptr_t)s)->history, list, count, total);
	return NDX_OK;
}
