/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver as JSON. docs/receiver.md describes the members. */
#include <jansson.h>

#include "base_log.h"
#include "receiver.h"

/* Records any failure; checked once, at the end. */
struct maker {
	bool failed;
};

static void put(struct maker *m, json_t *to, const char *key, json_t *value)
{
	if (json_object_set_new(to, key, value) != 0)
		m->failed = true;
}

static void number(struct maker *m, json_t *to, const char *key, uint64_t value)
{
	put(m, to, key, json_integer((json_int_t)value));
}

/* Buckets up to the last one that is not empty. */
static json_t *histogram(struct maker *m, const uint64_t *buckets)
{
	json_t *to = json_array();
	int end = NDX_STATS_BUCKETS;

	while (end > 0 && buckets[end - 1] == 0)
		end--;
	for (int i = 0; i < end; i++) {
		if (json_array_append_new(to, json_integer((json_int_t)buckets[i])) != 0)
			m->failed = true;
	}
	return to;
}

static json_t *statuses(struct maker *m, const uint64_t *counts)
{
	json_t *to = json_object();

	for (int i = 1; i < NDX_STATS_STATUSES; i++) {
		if (counts[i] > 0)
			number(m, to, ndx_status_name((enum ndx_status) - i), counts[i]);
	}
	return to;
}

static json_t *consumers(struct maker *m, const struct ndx_receiver *r,
                         const struct ndx_receiver_stats *s)
{
	json_t *to = json_array();

	for (int i = 0; i < NDX_RECEIVER_CONSUMERS && r->attr.consumers[i].fn != NULL; i++) {
		json_t *one = json_object();

		put(m, one, "channel", json_integer(r->attr.consumers[i].channel));
		number(m, one, "errors", s->consumer_errors[i]);
		if (json_array_append_new(to, one) != 0)
			m->failed = true;
	}
	return to;
}

static json_t *cause_of(struct maker *m, struct ndx_receiver *r)
{
	struct ndx_receiver_cause cause;
	json_t *to = json_object();

	ndx_receiver_get_cause(r, &cause);
	put(m, to, "end", json_string(ndx_receiver_end_name(cause.end)));
	put(m, to, "status", json_string(ndx_status_name(cause.status)));
	put(m, to, "native", json_integer(cause.native));
	put(m, to, "text", json_string(cause.text));
	return to;
}

static json_t *slots_of(struct maker *m, const struct ndx_receiver_stats *s)
{
	json_t *to = json_object();

	number(m, to, "count", s->slots);
	number(m, to, "posted", s->posted);
	number(m, to, "held", s->held);
	number(m, to, "low_water", s->low_water);
	number(m, to, "out_of_slots", s->out_of_slots);
	number(m, to, "out_of_slots_ns", s->out_of_slots_ns);
	number(m, to, "repost_failed", s->repost_failed);
	number(m, to, "queued", s->queued);
	return to;
}

static json_t *frames_of(struct maker *m, const struct ndx_receiver_stats *s)
{
	json_t *to = json_object();

	number(m, to, "delivered", s->frames);
	number(m, to, "bytes", s->bytes);
	number(m, to, "copied", s->copied);
	number(m, to, "copies_missed", s->copies_missed);
	number(m, to, "empty", s->empty);
	number(m, to, "no_immediate", s->no_immediate);
	number(m, to, "lost", s->lost);
	number(m, to, "repeated", s->repeated);
	number(m, to, "overwritten", s->overwritten);
	number(m, to, "misplaced", s->misplaced);
	number(m, to, "oversize", s->oversize);
	put(m, to, "log2_bytes", histogram(m, s->sizes));
	put(m, to, "gaps_log2_us", histogram(m, s->gaps));
	return to;
}

enum ndx_status ndx_receiver_snapshot(struct ndx_receiver *r, char **json)
{
	struct ndx_receiver_stats s = {.size = sizeof(s)};
	struct maker m = {false};
	char *text = NULL;
	json_t *to;

	if (r == NULL || json == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_snapshot: NULL argument");
	(void)ndx_receiver_get_stats(r, &s);
	to = json_object();
	number(&m, to, "time_ns", s.time_ns);
	put(&m, to, "state", json_string(ndx_receiver_state_name(receiver_state(r))));
	put(&m, to, "cause", cause_of(&m, r));
	number(&m, to, "connections", s.connections);
	put(&m, to, "frames", frames_of(&m, &s));
	put(&m, to, "slots", slots_of(&m, &s));
	put(&m, to, "errors", statuses(&m, s.errors));
	put(&m, to, "consumers", consumers(&m, r, &s));
	number(&m, to, "sleeps", s.sleeps);
	number(&m, to, "wakeups", s.wakeups);
	if (!m.failed)
		text = json_dumps(to, JSON_INDENT(2));
	json_decref(to);
	if (text == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_receiver_snapshot: out of memory");
	*json = text;
	return NDX_OK;
}
