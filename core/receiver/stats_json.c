/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver as JSON. docs/receiver.md describes the members. */
#include "base_json.h"
#include <ndx/spi/log.h>
#include "receiver.h"

static json_t *consumers(struct base_json *j, const struct ndx_receiver *r,
                         const struct ndx_receiver_stats *s)
{
	json_t *to = json_array();

	for (int i = 0; i < NDX_RECEIVER_CONSUMERS && r->attr.consumers[i].fn != NULL; i++) {
		json_t *one = json_object();

		base_json_put(j, one, "channel", json_integer(r->attr.consumers[i].channel));
		base_json_number(j, one, "errors", s->consumer_errors[i]);
		base_json_append(j, to, one);
	}
	return to;
}

static json_t *cause_of(struct base_json *j, struct ndx_receiver *r)
{
	struct ndx_receiver_cause cause;
	json_t *to = json_object();

	ndx_receiver_get_cause(r, &cause);
	base_json_text(j, to, "end", ndx_receiver_end_name(cause.end));
	base_json_text(j, to, "status", ndx_status_name(cause.status));
	base_json_put(j, to, "native", json_integer(cause.native));
	base_json_text(j, to, "text", cause.text);
	return to;
}

static json_t *slots_of(struct base_json *j, const struct ndx_receiver_stats *s)
{
	json_t *to = json_object();

	base_json_number(j, to, "count", s->slots);
	base_json_number(j, to, "posted", s->posted);
	base_json_number(j, to, "held", s->held);
	base_json_number(j, to, "low_water", s->low_water);
	base_json_number(j, to, "out_of_slots", s->out_of_slots);
	base_json_number(j, to, "out_of_slots_ns", s->out_of_slots_ns);
	base_json_number(j, to, "repost_failed", s->repost_failed);
	base_json_number(j, to, "queued", s->queued);
	return to;
}

static json_t *frames_of(struct base_json *j, const struct ndx_receiver_stats *s)
{
	json_t *to = json_object();

	base_json_number(j, to, "delivered", s->frames);
	base_json_number(j, to, "bytes", s->bytes);
	base_json_number(j, to, "copied", s->copied);
	base_json_number(j, to, "copies_missed", s->copies_missed);
	base_json_number(j, to, "empty", s->empty);
	base_json_number(j, to, "no_immediate", s->no_immediate);
	base_json_number(j, to, "lost", s->lost);
	base_json_number(j, to, "repeated", s->repeated);
	base_json_number(j, to, "overwritten", s->overwritten);
	base_json_number(j, to, "misplaced", s->misplaced);
	base_json_number(j, to, "oversize", s->oversize);
	base_json_buckets(j, to, "log2_bytes", s->sizes);
	base_json_buckets(j, to, "gaps_log2_us", s->gaps);
	return to;
}

enum ndx_status ndx_receiver_snapshot(struct ndx_receiver *r, char **json)
{
	struct ndx_receiver_stats s = {.size = sizeof(s)};
	struct base_json j = {.failed = false};
	char *text;
	json_t *to;

	if (r == NULL || json == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_snapshot: NULL argument");
	(void)ndx_receiver_get_stats(r, &s);
	to = json_object();
	base_json_number(&j, to, "time_ns", s.time_ns);
	base_json_text(&j, to, "state", ndx_receiver_state_name(receiver_state(r)));
	base_json_put(&j, to, "cause", cause_of(&j, r));
	base_json_number(&j, to, "connections", s.connections);
	base_json_put(&j, to, "frames", frames_of(&j, &s));
	base_json_put(&j, to, "slots", slots_of(&j, &s));
	base_json_statuses(&j, to, "errors", s.errors);
	base_json_put(&j, to, "consumers", consumers(&j, r, &s));
	base_json_number(&j, to, "sleeps", s.sleeps);
	base_json_number(&j, to, "wakeups", s.wakeups);
	text = base_json_finish(&j, to);
	if (text == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_receiver_snapshot: out of memory");
	*json = text;
	return NDX_OK;
}
