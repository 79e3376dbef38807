/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a session, and what its end takes on any thread. */
#include "many.h"
#include "session.h"

#include <stdlib.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>

void session_set_state(struct ndx_session *s, enum ndx_session_state state)
{
	pthread_mutex_lock(&s->lock);
	s->state = state;
	pthread_mutex_unlock(&s->lock);
}

bool session_failed_idle(struct ndx_session *s)
{
	bool failed;

	pthread_mutex_lock(&s->lock);
	failed = s->failed_idle;
	pthread_mutex_unlock(&s->lock);
	return failed;
}

enum ndx_status session_say_failure(struct ndx_session *s)
{
	struct ndx_session_error e;

	pthread_mutex_lock(&s->lock);
	e = s->call.adds ? s->add_error : s->error;
	pthread_mutex_unlock(&s->lock);
	return fail(e.status, 0, "session %llu, stage %s, round %u: %s", (unsigned long long)s->id,
	            frame_stage_name(e.stage), e.round, e.text);
}

void session_end_plugin(struct ndx_session *s, uint32_t bye_ms)
{
	const struct frame bye = {.type = FRAME_SESSION_END};
	struct ndx_variant *variant = s->attr.variant;
	uint8_t bytes[FRAME_HEADER];

	variant_get(variant); /* the stream is the plugin's */
	if (s->state == NDX_SESSION_CONNECTED && s->link.stream != NULL) {
		frame_write_header(bytes, &bye);
		(void)link_send(&s->link, bytes, sizeof(bytes), ndxp_deadline(bye_ms));
	}
	dialogue_fini(&s->dialogue);
	many_end_plugin(s);
	link_fini(&s->link);
	variant_put(variant);
}

/* Describing a queue pair may wait for its adapter. */
bool session_is_prompt(struct ndx_session *s)
{
	return s->many == NULL && !s->driver.restart &&
	       (s->described || (s->attr.qp == NULL && s->attr.connector == NULL)) &&
	       plugin_is_prompt(s->attr.variant->plugin);
}

void session_free(void *arg)
{
	struct ndx_session *s = arg;
	struct engine *engine = s->driver.engine;

	for (size_t i = 0; s->servers != NULL && i < s->attr.server_count; i++)
		free(s->servers[i]);
	free(s->servers);
	free(s->given_up);
	relay_group_put(s->relays);
	tls_context_put(s->tls);
	driver_fini(s);
	many_free(s->many);
	history_fini(&s->history);
	(void)pthread_cond_destroy(&s->call.turn);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
	engine_put(engine);
}
