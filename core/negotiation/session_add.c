/* SPDX-License-Identifier: BSD-2-Clause */
/* What the role of the client adds when it adds queue pairs to its session. Loop thread. */
#include <stdio.h>

#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "many_add.h"

static void set_timer(struct ndx_session *s)
{
	driver_set_timer(s, ndxp_deadline(s->attr.stage_timeout_ms));
}

static bool over(struct ndx_session *s, const struct ndx_session_error *outcome, uint32_t first)
{
	pthread_mutex_lock(&s->lock);
	s->add_error = *outcome;
	s->call.information = first;
	pthread_mutex_unlock(&s->lock);
	s->driver.phase = DRIVER_ROLE;
	session_complete(s, outcome->status);
	return true; /* the connections' goodbyes */
}

/* The call that adds logs its failure. */
static bool may_log(struct ndx_session *s)
{
	(void)s;
	return false;
}

const struct addition_role addition_client = {
	.timer = set_timer, .over = over, .may_log = may_log, .broken = session_fail_idle};

bool session_add_begin(struct ndx_session *s)
{
	struct addition *a = s->call.addition;

	s->call.addition = NULL;
	if (a == NULL)
		return false;
	addition_begin(s, a);
	return true;
}

bool session_add_withdraw(struct ndx_session *s)
{
	struct addition *a = s->call.addition;
	struct ndx_session_error outcome = {.layer = NDX_LAYER_TRANSPORT, .status = NDX_E_CANCELED};

	s->call.addition = NULL;
	if (a == NULL)
		return false;
	(void)snprintf(outcome.text, sizeof(outcome.text), "cancelled");
	addition_free(a);
	(void)over(s, &outcome, 0);
	return true;
}

bool session_add_timer(struct ndx_session *s)
{
	struct addition *a = s->many != NULL ? s->many->adding : NULL;

	if (a == NULL || (s->driver.phase != DRIVER_ACTIVE && s->driver.phase != DRIVER_POOL))
		return false;
	if (s->driver.phase == DRIVER_POOL && !session_withdraw(s))
		a->late = true; /* when the task returns */
	else
		addition_late(s);
	return true;
}
