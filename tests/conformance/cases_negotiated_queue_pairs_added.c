/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.queue_pairs_added_*: queue pairs that a session gets later. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "session_stage.h"

/* The paths of these were proved, if the stack proves any. */
static bool are_proved(const struct stage *s, uint32_t first)
{
	struct ndx_history_entry e[512];
	size_t count = 512;
	uint64_t seen = 0;

	(void)ndx_session_get_history(s->session, e, &count, NULL);
	for (size_t i = 0; i < count; i++)
		if (e[i].kind == NDX_HISTORY_PROOF &&
		    strstr(e[i].text, ": written 2 of 2, seen 2 of 2"))
			seen |= UINT64_C(1)
			        << strtoul(e[i].text + strlen("queue pair "), NULL, 10) %
			                   STAGE_MOST;
	return check_that(s->c,
	                  seen == 0 || seen >> first == (UINT64_C(1) << (s->count - first)) - 1,
	                  "proofs of the queue pairs %#llx", (unsigned long long)seen);
}

/* Some are added while the others live, and those whose connections have ended are removed. */
void case_negotiated_queue_pairs_added_and_removed(struct check *c)
{
	enum { ALL = 8, FIRST = 4 };
	struct ndx_session_queue_pair list[STAGE_MOST];
	uint32_t first = 0;
	struct stage s;

	if (!stage_open_some(&s, c, ALL, FIRST, ALL) ||
	    !check_status(c, ndx_session_run(s.session), NDX_OK, "run"))
		goto down;
	stage_list(&s, FIRST, ALL - FIRST, list);
	if (!check_status(c, ndx_session_add_queue_pairs(s.session, list, ALL - FIRST, &first),
	                  NDX_OK, "add_queue_pairs") ||
	    !check_that(c, first == FIRST, "the first index is %u", first) ||
	    !are_proved(&s, FIRST) || !stage_agreements_differ(&s) || !stage_all_pass(&s, ALL))
		goto down;
	for (uint32_t i = 1; i < ALL; i += FIRST) {
		if (!pair_disconnect(s.p[i]))
			goto down;
		s.p[i] = s.p[0];
		check_status(c, ndx_session_remove_queue_pairs(s.session, i, 1), NDX_OK,
		             "remove_queue_pairs");
	}
	check_that(c, ndx_session_get_queue_pair_count(s.session) == ALL - 2,
	           "the session has %u queue pairs", ndx_session_get_queue_pair_count(s.session));
	memset(list, 0, sizeof(list)); /* of the plugin's own */
	check_status(c, ndx_session_add_queue_pairs(s.session, list, 3, NULL), NDX_E_REMOTE_ERROR,
	             "add_queue_pairs beyond the limit");
	if (stage_all_pass(&s, ALL))
		check_status(c, ndx_session_execute(s.session, NDX_STAGE_DONE), NDX_OK, "done");
down:
	stage_down(&s);
}

/* The proof fails for one of those that are added; so none of them is. */
void case_negotiated_queue_pairs_added_with_a_wrong_key(struct check *c)
{
	enum { ALL = 4, FIRST = 2 };
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_session_queue_pair list[STAGE_MOST];
	struct ndx_peer_description peer;
	struct stage s;

	if (!stage_open_some(&s, c, ALL, FIRST, ALL) ||
	    !check_status(c, ndx_session_run(s.session), NDX_OK, "run") ||
	    ndx_session_get_agreement(s.session, NULL, &peer, NULL) != NDX_OK)
		goto down;
	stage_list(&s, FIRST, ALL - FIRST, list);
	stage_lies_from = FIRST + 1;
	if (peer.kind != NDX_DESCRIPTION_VERBS_RC || peer.mailbox_rkey == 0)
		check_skip(c, "ends of this stack have no key for the proof");
	else if (check_status(c, ndx_session_add_queue_pairs(s.session, list, ALL - FIRST, NULL),
	                      NDX_E_ACCESS_VIOLATION, "add_queue_pairs")) {
		(void)ndx_session_get_add_error(s.session, &e);
		check_that(c, e.stage == NDX_STAGE_VALIDATE && e.queue_pair == FIRST + 1,
		           "stage %s, queue pair %u", ndx_stage_name(e.stage), e.queue_pair);
		check_that(c, strstr(e.text, "client to server") && strstr(e.text, "key"),
		           "the error is \"%s\"", e.text);
		s.count = FIRST;
		(void)stage_all_pass(&s, ALL);
	}
	stage_lies_from = UINT32_MAX;
down:
	stage_down(&s);
}

enum { BATCH = 2 };

static bool batch_is_added(struct stage *s, uint32_t at, uint32_t index)
{
	struct ndx_session_queue_pair list[STAGE_MOST];
	uint32_t first = 0;

	stage_list(s, at, BATCH, list);
	return check_status(s->c, ndx_session_add_queue_pairs(s->session, list, BATCH, &first),
	                    NDX_OK, "add_queue_pairs") &&
	       check_that(s->c, first == index, "the first index is %u, not %u", first, index);
}

/* The addition has ended: a cancel comes too late for it, and is not kept for what follows. */
void case_negotiated_queue_pairs_added_before_a_cancel(struct check *c)
{
	enum { ALL = 8, FIRST = 2 };
	struct ndx_session_queue_pair list[STAGE_MOST];
	struct ndx_overlapped ov = {.reserved = {0}};
	struct stage s;

	if (!stage_open_some(&s, c, ALL, FIRST, ALL) ||
	    !check_status(c, ndx_session_run(s.session), NDX_OK, "run") ||
	    !batch_is_added(&s, FIRST, FIRST))
		goto down;
	ndx_session_cancel(s.session);
	stage_list(&s, FIRST + BATCH, BATCH, list);
	if (!check_async(c, ndx_session_add_queue_pairs_overlapped(s.session, list, BATCH, &ov),
	                 &ov, NDX_OK, "add_queue_pairs_overlapped"))
		goto down;
	ndx_session_cancel(s.session);
	if (!batch_is_added(&s, FIRST + 2 * BATCH, FIRST + 2 * BATCH) ||
	    !stage_agreements_differ(&s))
		goto down;
	ndx_session_cancel(s.session);
	if (stage_all_pass(&s, ALL))
		check_status(c, ndx_session_execute(s.session, NDX_STAGE_DONE), NDX_OK, "done");
down:
	stage_down(&s);
}

/* The cancel is of the addition alone: the session and what it had go on, and may have others. */
void case_negotiated_queue_pairs_added_and_cancelled(struct check *c)
{
	enum { ALL = 6, FIRST = 2 };
	struct ndx_session_error e = {.size = sizeof(e)};
	struct ndx_session_queue_pair list[STAGE_MOST];
	struct stage s;

	if (!stage_open_some(&s, c, ALL, FIRST, ALL) ||
	    !check_status(c, ndx_session_run(s.session), NDX_OK, "run"))
		goto down;
	stage_list(&s, FIRST, BATCH, list);
	s.cancels = true;
	check_status(c, ndx_session_add_queue_pairs(s.session, list, BATCH, NULL), NDX_E_CANCELED,
	             "add_queue_pairs, cancelled");
	check_status(c, ndx_session_get_add_error(s.session, &e), NDX_OK, "get_add_error");
	check_status(c, e.status, NDX_E_CANCELED, "the error of the addition");
	check_that(c, ndx_session_get_state(s.session) == NDX_SESSION_CONNECTED,
	           "the session is %s", ndx_session_state_name(ndx_session_get_state(s.session)));
	check_that(c, ndx_session_get_queue_pair_count(s.session) == FIRST,
	           "the session has %u queue pairs", ndx_session_get_queue_pair_count(s.session));
	s.cancels = false;
	s.p[FIRST] = s.p[0];
	s.p[FIRST + 1] = s.p[1];
	if (batch_is_added(&s, FIRST + BATCH, FIRST + BATCH))
		(void)stage_all_pass(&s, ALL);
down:
	stage_down(&s);
}
