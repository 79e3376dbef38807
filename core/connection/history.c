/* SPDX-License-Identifier: BSD-2-Clause */
/* The history of a connector, for the log, ndx_connector_get_history() and the counters. Every
 * transition passes through conn_enter() or conn_note(). */
#include <ndx/stats.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include "base_log.h"
#include <ndx/spi/sockaddr.h>
#include "connection.h"

#define NS_PER_MS 1e6

const struct conn_result conn_fine = {.status = NDX_OK};
const struct conn_result conn_canceled = {.status = NDX_E_CANCELED};

const char *conn_state_name(const struct ndx_connector *c)
{
	switch (c->phase) {
	case CONN_NEW:
		return "NEW";
	case CONN_DESCRIBED:
		return "DESCRIBED";
	case CONN_AWAIT_REQUEST:
		return "AWAIT_REQUEST";
	case CONN_CONNECTING:
		return "CONNECTING";
	case CONN_CONNECT_RESPONSE:
		return "CONNECT_RESPONSE";
	case CONN_COMPLETING:
		return "COMPLETING";
	case CONN_HAVE_REQUEST:
		return "HAVE_REQUEST";
	case CONN_ACCEPTING:
		return "ACCEPTING";
	case CONN_UP:
		return disconnect_state_name(disconnect_get_state(&c->machine));
	case CONN_PEER_GAVE_UP:
		return "PEER_GAVE_UP";
	case CONN_FAILED:
		return "FAILED";
	}
	return "?";
}

const char *conn_text(const struct ndx_connector *c, char text[CONN_TEXT])
{
	char qp[16] = "";
	char local[NDXP_SOCKADDR_TEXT];
	char peer[NDXP_SOCKADDR_TEXT];
	const struct sockaddr_storage *to =
		c->native->peer.ss_family != AF_UNSPEC ? &c->native->peer : &c->destination;

	if (c->qp_id != 0)
		(void)snprintf(qp, sizeof(qp), " qp#%u", c->qp_id);
	(void)ndxp_sockaddr_text(to, peer);
	/* Some providers do not know the own address before the peer has answered. */
	if (c->local.ss_family == AF_UNSPEC && to->ss_family != AF_UNSPEC)
		(void)snprintf(text, CONN_TEXT, "connector#%u%s to %s", c->id, qp, peer);
	else
		(void)snprintf(text, CONN_TEXT, "connector#%u%s %s -> %s", c->id, qp,
		               ndxp_sockaddr_text(&c->local, local), peer);
	return text;
}

/* ": NDX_E_...: cause", or the parts of it that there are. */
#define RESULT_TEXT (CONN_CAUSE + 64)
static const char *result_text(enum ndx_status status, const char *cause, char text[RESULT_TEXT])
{
	const bool failed = status != NDX_OK;
	const bool why = cause != NULL && cause[0] != '\0';

	(void)snprintf(text, RESULT_TEXT, "%s%s%s%s", failed ? ": " : "",
	               failed ? ndx_status_name(status) : "", why ? ": " : "", why ? cause : "");
	return text;
}

void conn_note(struct ndx_connector *c, const char *from, const char *event,
               const struct conn_result *result)
{
	struct conn_change *t = &c->history.last[c->history.total++ % NDX_HISTORY_MAX];
	const char *cause = result->cause;
	char text[CONN_TEXT];
	char more[RESULT_TEXT];
	char kept[CONN_CAUSE];

	free(t->cause);
	t->cause = NULL;
	if (cause != NULL && cause[0] != '\0') {
		base_text_copy(kept, sizeof(kept), cause);
		t->cause = strdup(kept);
	}
	t->time_ns = ndxp_now_ns();
	t->from = from;
	t->event = event;
	t->to = conn_state_name(c);
	t->status = result->status;
	t->native = result->native;
	if (ndxp_log_enabled(NDX_LOG_DEBUG))
		ndxp_log(NDX_LOG_DEBUG, __func__, t->native, "%s: %s + %s -> %s%s",
		         conn_text(c, text), from, event, t->to,
		         result_text(t->status, cause, more));
}

void conn_forget(struct ndx_connector *c)
{
	for (size_t i = 0; i < NDX_HISTORY_MAX; i++)
		free(c->history.last[i].cause);
	free(c->failure);
}

void conn_enter(struct ndx_connector *c, enum conn_phase next, const char *event,
                const struct conn_result *result)
{
	const char *from = conn_state_name(c);

	c->phase = next;
	conn_note(c, from, event, result);
}

/* Transition number n, which is still in the ring. */
static const struct conn_change *at(const struct conn_changes *h, uint64_t n)
{
	return &h->last[n % NDX_HISTORY_MAX];
}

static uint64_t oldest(const struct conn_changes *h)
{
	return h->total > NDX_HISTORY_MAX ? h->total - NDX_HISTORY_MAX : 0;
}

/* Write the history at INFO after a failure; at DEBUG every transition was logged already. */
static void dump(const struct ndx_connector *c)
{
	const struct conn_changes *h = &c->history;
	char more[RESULT_TEXT];

	if (h->total == 0 || !ndxp_log_enabled(NDX_LOG_INFO))
		return;
	for (uint64_t n = oldest(h); n < h->total; n++) {
		const struct conn_change *t = at(h, n);

		ndxp_log(NDX_LOG_INFO, __func__, t->native,
		         "connector#%u history %llu/%llu: %.3f ms: %s + %s -> %s%s", c->id,
		         (unsigned long long)n + 1, (unsigned long long)h->total,
		         0.0 - (double)(at(h, h->total - 1)->time_ns - t->time_ns) / NS_PER_MS,
		         t->from, t->event, t->to, result_text(t->status, t->cause, more));
	}
}

void conn_failure_text(const struct ndx_connector *c, const char *what,
                       const struct conn_result *result, char *out)
{
	const bool why = result->cause != NULL && result->cause[0] != '\0';
	char text[CONN_TEXT];

	base_text_failure(out, result->native, "%s: %s: %s%s%s", conn_text(c, text), what,
	                  ndx_status_name(result->status), why ? ": " : "",
	                  why ? result->cause : "");
}

void conn_log_failure(struct ndx_connector *c, const char *what, const struct conn_result *result)
{
	char whole[BASE_FAILURE_TEXT];

	conn_failure_text(c, what, result, whole);
	free(c->failure);
	c->failure = strdup(whole); /* without memory the history has to do */
	base_log_failure(result->status, __func__, result->native, whole);
	dump(c);
}

void conn_count_end(struct ndx_connector *c)
{
	enum ndx_disconnect_outcome outcome =
		disconnect_get_state(&c->machine) == DISCONNECT_STATE_CLOSED_OK
			? NDX_OUTCOME_GRACEFUL
			: c->outcome;

	stats_add_duration(&c->adapter->stats.disconnects[outcome],
	                   ndxp_now_ns() - c->ending_since);
}

/* Whether any recorded event was a failure. */
static bool has_failed(const struct conn_changes *h)
{
	for (uint64_t n = oldest(h); n < h->total; n++) {
		enum ndx_status status = at(h, n)->status;

		if (status != NDX_OK && status != NDX_E_CANCELED)
			return true;
	}
	return false;
}

/* Convert a transition to its public form. */
static void export_change(const struct conn_change *t, struct ndx_transition *out)
{
	*out = (struct ndx_transition){.time_ns = t->time_ns,
	                               .from = t->from,
	                               .event = t->event,
	                               .to = t->to,
	                               .status = t->status,
	                               .native = t->native};
	if (t->cause != NULL)
		(void)snprintf(out->cause, sizeof(out->cause), "%s", t->cause);
}

void conn_describe(const struct ndx_connector *c, struct conn_postmortem *out)
{
	const struct conn_changes *h = &c->history;

	*out = (struct conn_postmortem){
		.id = c->id,
		.qp_id = c->qp_id,
		.passive = c->passive,
		.local = c->local,
		.peer = c->native->peer.ss_family != AF_UNSPEC ? c->native->peer : c->destination,
		.history = {.total = h->total},
	};
	for (uint64_t n = oldest(h); n < h->total; n++)
		export_change(at(h, n), &out->history.last[n % NDX_HISTORY_MAX]);
}

void conn_keep_postmortem(struct ndx_connector *c)
{
	struct ndx_adapter *adapter = c->adapter;

	if (!has_failed(&c->history))
		return;
	if (adapter->postmortems == NULL)
		adapter->postmortems = calloc(CORE_POSTMORTEMS, sizeof(*adapter->postmortems));
	if (adapter->postmortems == NULL)
		return;
	conn_describe(c, &adapter->postmortems[adapter->postmortem_total++ % CORE_POSTMORTEMS]);
}

void conn_get_history(const struct ndx_connector *c, struct ndx_transition *list, size_t *count,
                      uint64_t *total)
{
	uint64_t first = oldest(&c->history);

	if (c->history.total - first > *count)
		first = c->history.total - *count;
	*count = (size_t)(c->history.total - first);
	for (size_t i = 0; i < *count; i++)
		export_change(at(&c->history, first + i), &list[i]);
	if (total != NULL)
		*total = c->history.total;
}
