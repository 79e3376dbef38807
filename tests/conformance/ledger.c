/* SPDX-License-Identifier: BSD-2-Clause */
/* One result for each request. */
#include "ledger.h"
#include "traffic.h"

enum { BATCH = 64 };

bool ledger_enter(struct ledger *l, struct side *s, const struct ndx_result *r)
{
	const char *context = r->request_context;
	size_t number;

	if (!check_that(s->c,
	                r->queue_pair_context == s && context >= s->tags &&
	                        context < s->tags + SIDE_TAGS,
	                "%s: a %s with %s that is not of this side", s->name,
	                request_name(r->request_type), ndx_status_name(r->status)))
		return false;
	number = (size_t)(context - s->tags);
	l->count++;
	if (r->status == NDX_OK)
		l->ok++;
	else if (r->status == NDX_E_CANCELED)
		l->cancelled++;
	else
		l->failed++;
	return check_that(s->c, l->seen[number]++ == 0, "%s: %s %zu completed twice", s->name,
	                  request_name(r->request_type), number);
}

static size_t enter_all(struct ledger *l, struct side *s, const struct ndx_result *results,
                        size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)ledger_enter(l, s, &results[i]);
	return count;
}

size_t ledger_take(struct ledger *l, struct side *s)
{
	struct ndx_result results[BATCH];
	size_t count = 0;
	size_t got;

	while ((got = ndx_cq_get_results(s->cq, results, BATCH)) > 0)
		count += enter_all(l, s, results, got);
	while (s->rcq != s->cq && (got = ndx_cq_get_results(s->rcq, results, BATCH)) > 0)
		count += enter_all(l, s, results, got);
	return count;
}

bool ledger_await(struct ledger *l, struct side *s, size_t count)
{
	struct ndx_result results[BATCH];
	enum ndx_status status;
	size_t got = 0;

	while (l->count < count) {
		status = ndx_cq_wait_results(s->cq, results, BATCH, WAIT_MS, &got);
		if (!check_that(s->c, status == NDX_OK && got > 0,
		                "%s: waited %d ms (%s) for results: %zu of %zu are missing",
		                s->name, WAIT_MS, ndx_status_name(status), count - l->count, count))
			return false;
		(void)enter_all(l, s, results, got);
	}
	return !check_over(s->c);
}

bool ledger_complete(struct ledger *l, struct side *s, size_t count)
{
	if (check_over(s->c))
		return false;
	(void)ledger_take(l, s);
	return check_that(s->c, l->count == count, "%s: %zu requests, %zu results", s->name, count,
	                  l->count) &&
	       expect_silence(s);
}
