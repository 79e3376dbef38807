/* SPDX-License-Identifier: BSD-2-Clause */
/* What a backend is known not to keep. A promise that is missing here is kept. */
#include <fnmatch.h>
#include <string.h>

#include "registry.h"

enum { DEVIATIONS_MAX = 6 }; /* per backend */

/* The row with the NULL prefix ends the list. */
static const struct deviation deviations[] = {
	{"ofi:verbs", "disconnect.keepalive_notices_a_stopped_peer",
         "the device answers for a process that is stopped"},
	{"ofi:verbs", "error.sender_to_a_bad_receive_gets_the_reason",
         "NDX refuses the receive and ends the link, without a reason; the send is CANCELED"},
	{"ofi:verbs", "error.*too_[ls]*",
         "the sender of a message that is too long is told of an error of the peer's (rxe)"},
	{"ofi:verbs", "adapter.resolve_of_its_own_address_finds_it",
         "the guest of tests/vm sends what is for its own addresses over the wire"},
	{"loop", "connection.port_without_the_right_to_it",
         "its ports are its own, not those of the system: none needs a right"},
	{"null", "connection.port_without_the_right_to_it",
         "its ports are its own, not those of the system: none needs a right"},
	{"fault:loop", "connection.port_without_the_right_to_it",
         "its ports are its own, not those of the system: none needs a right"},
	{"fault:", "adapter.list_has_it", "for tests: nobody is to find it unasked"},
	{"verbs:", "disconnect.keepalive_notices_a_stopped_peer",
         "the device answers for a process that is stopped"},
	{"verbs:", "cq.results_say_that_they_were_solicited",
         "a native completion does not say it, only an event of the queue"},
	{"verbs:rxe", "error.*too_[ls]*",
         "the sender of a message that is too long is told of an error of the peer's (rxe)"},
	{"verbs:rxe", "mw.outside_of_it_is_refused",
         "the window's region is checked, not the window (rxe of 6.1 and 6.12)"},
	{"verbs:rxe", "mw.requests_complete_in_order",
         "a bind behind a send that waits for a receive keeps it from being tried again (rxe)"},
	{"verbs:rxe", "mw.closed_before_its_bind_begins",
         "a bind behind a send that waits for a receive keeps it from being tried again (rxe)"},
	{"verbs:rxe", "field.nbs_5708_buffer_reused_after_invalidate",
         "a write whose first packet came before the invalidate goes on: keys of later ones are "
         "not "
         "checked (rxe)"},
	{"verbs:rxe", "adapter.resolve_of_its_own_address_finds_it",
         "the guest of tests/vm sends what is for its own addresses over the wire"},
	{NULL, NULL, NULL},
};

const struct deviation *deviation_find(const char *uri, const char *name)
{
	for (const struct deviation *d = deviations; d->uri; d++) {
		if (strncmp(uri, d->uri, strlen(d->uri)) == 0 && fnmatch(d->cases, name, 0) == 0)
			return d;
	}
	return NULL;
}

static bool matches_something(const struct deviation *d)
{
	for (size_t i = 0; i < conf_case_count; i++) {
		if (fnmatch(d->cases, conf_cases[i].name, 0) == 0)
			return true;
	}
	return false;
}

bool deviations_valid(FILE *out)
{
	bool valid = true;

	for (const struct deviation *d = deviations; d->uri; d++) {
		unsigned same = 0;

		for (const struct deviation *e = deviations; e->uri; e++)
			same += strcmp(d->uri, e->uri) == 0;
		if (same > DEVIATIONS_MAX) {
			(void)fprintf(out, "# %s has %u deviations, at most %d are allowed\n",
			              d->uri, same, DEVIATIONS_MAX);
			valid = false;
		}
		if (!matches_something(d) || d->reason[0] == '\0') {
			(void)fprintf(out, "# deviation %s of %s: no such case, or no reason\n",
			              d->cases, d->uri);
			valid = false;
		}
	}
	return valid;
}
