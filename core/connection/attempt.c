/* SPDX-License-Identifier: BSD-2-Clause */
/* Connectors: the end of an attempt to connect. */
#include <stdio.h>

#include "connection.h"

void conn_give_up(struct ndx_connector *c, enum conn_phase next, const char *event,
                  const struct conn_result *result)
{
	struct ndx_overlapped **ov = &c->ov;

	conn_count_attempt(c, result->status);
	ndxp_timer_cancel(c->adapter->loop, &c->connect_timer);
	c->adapter->ops->conn_abandon(c->native);
	conn_note_local(c);
	/* Reports of the provider for this attempt must not be taken for reports of the next. */
	conn_inbox_clear(c);
	conn_release_qp(c);
	conn_rendezvous_end(c);
	conn_oob_end(c);
	c->commands = 0;
	conn_enter(c, next, event, result);
	/* A caller that completes with another status has taken the object out of c->ov. */
	conn_complete_ov(c, ov, NDX_E_CANCELED, 0, 0);
}

/* The room for a refusal's cause: what the provider says, and the peer's words. */
enum { CAUSE_TEXT = 320, WORDS_TEXT = 160 };

/* Has the peer's refusal private data? */
static bool has_data(const struct ndx_connector *c)
{
	return !c->passive && c->phase == CONN_CONNECTING && c->peer_known &&
	       c->peer.private_data_len > 0;
}

/* The private data of the peer's refusal, if they are words: printable ASCII, because a peer must
 * not write control characters into a log or to a terminal. */
static bool get_words(const struct ndx_connector *c, char words[WORDS_TEXT])
{
	const size_t length = c->peer.private_data_len;

	if (length >= WORDS_TEXT)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (c->peer.private_data[i] < ' ' || c->peer.private_data[i] > '~')
			return false;
		words[i] = (char)c->peer.private_data[i];
	}
	words[length] = '\0';
	return true;
}

void conn_end_attempt(struct ndx_connector *c, enum conn_phase next,
                      const struct conn_result *result)
{
	struct ndx_overlapped *ov = c->ov;
	struct conn_result known = *result;
	char words[WORDS_TEXT], cause[CAUSE_TEXT];

	if (result->status == NDX_E_CONNECTION_REFUSED && has_data(c)) {
		const char *why = result->cause != NULL ? result->cause : "the peer refused";

		if (get_words(c, words))
			(void)snprintf(cause, sizeof(cause), "%s; the peer says: %s", why, words);
		else
			(void)snprintf(cause, sizeof(cause),
			               "%s; it sent %zu bytes of private data", why,
			               c->peer.private_data_len);
		known.cause = cause;
	}
	c->ov = NULL;
	conn_give_up(c, next, "FAILURE", &known);
	conn_log_failure(c, c->passive ? "accepting failed" : "connecting failed", &known);
	conn_complete_ov(c, &ov, result->status, 0, result->native);
}
