/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a session, and its failure. */
#include "session.h"

#include <ndx/spi/log.h>

void session_set_state(struct ndx_session *s, enum ndx_session_state state)
{
	pthread_mutex_lock(&s->lock);
	s->state = state;
	pthread_mutex_unlock(&s->lock);
}

enum ndx_status session_failed(struct ndx_session *s)
{
	const struct ndx_session_error *e = &s->dialogue.error;

	pthread_mutex_lock(&s->lock);
	s->state = NDX_SESSION_FAILED;
	s->error = *e;
	pthread_mutex_unlock(&s->lock);
	session_oob_break(s);
	if (e->status == NDX_E_CANCELED)
		log_info("session %llu: cancelled", (unsigned long long)s->id);
	return fail(e->status, 0, "session %llu, stage %s, round %u: %s", (unsigned long long)s->id,
	            frame_stage_name(e->stage), e->round, e->text);
}

enum ndx_status session_fail(struct ndx_session *s, enum ndx_error_layer layer,
                             enum ndx_status status, const char *text)
{
	dialogue_fail(&s->dialogue, layer, status, false, text);
	return session_failed(s);
}
