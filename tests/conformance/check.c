/* SPDX-License-Identifier: BSD-2-Clause */
/* Recording what a case found. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check.h"

void check_begin(struct check *c, struct world *world, uint64_t seed)
{
	memset(c, 0, sizeof(*c));
	c->world = world;
	c->seed = seed;
	c->random = seed;
	(void)pthread_mutex_init(&c->lock, NULL);
}

void check_end(struct check *c)
{
	(void)pthread_mutex_destroy(&c->lock);
}

bool check_over(struct check *c)
{
	bool over;

	(void)pthread_mutex_lock(&c->lock);
	over = c->outcome != OUTCOME_PASSED;
	(void)pthread_mutex_unlock(&c->lock);
	return over;
}

__attribute__((format(printf, 3, 0))) static void decide(struct check *c, enum outcome outcome,
                                                         const char *fmt, va_list args)
{
	(void)pthread_mutex_lock(&c->lock);
	if (c->outcome == OUTCOME_PASSED) {
		c->outcome = outcome;
		(void)vsnprintf(c->reason, sizeof(c->reason), fmt, args);
	}
	(void)pthread_mutex_unlock(&c->lock);
}

void check_fail(struct check *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	decide(c, OUTCOME_FAILED, fmt, args);
	va_end(args);
}

void check_skip(struct check *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	decide(c, OUTCOME_SKIPPED, fmt, args);
	va_end(args);
}

void check_note(struct check *c, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)pthread_mutex_lock(&c->lock);
	if (c->outcome == OUTCOME_PASSED)
		(void)vsnprintf(c->notes, sizeof(c->notes), fmt, args);
	(void)pthread_mutex_unlock(&c->lock);
	va_end(args);
}

bool check_that(struct check *c, bool truth, const char *fmt, ...)
{
	va_list args;

	if (!truth) {
		va_start(args, fmt);
		decide(c, OUTCOME_FAILED, fmt, args);
		va_end(args);
	}
	return !check_over(c);
}

bool check_status(struct check *c, enum ndx_status got, enum ndx_status want, const char *what)
{
	return check_that(c, got == want, "%s: returned %s, not %s (%s)", what,
	                  ndx_status_name(got), ndx_status_name(want),
	                  got < 0 ? ndx_last_error() : "");
}

void check_no_room(struct check *c, const char *what, size_t needed, size_t room)
{
	char there[32];
	char given[32];

	(void)snprintf(there, sizeof(there), "there are %zu ", needed);
	(void)snprintf(given, sizeof(given), "room for %zu", room);
	check_that(c, strstr(ndx_last_error(), there) && strstr(ndx_last_error(), given),
	           "%s: the text \"%s\" does not say that %zu are needed and %zu given", what,
	           ndx_last_error(), needed, room);
}

bool check_either(struct check *c, enum ndx_status got, enum ndx_status one, enum ndx_status other,
                  const char *what)
{
	return check_that(c, got == one || got == other, "%s: %s, not %s or %s (%s)", what,
	                  ndx_status_name(got), ndx_status_name(one), ndx_status_name(other),
	                  got < 0 ? ndx_last_error() : "");
}

bool check_ends(struct check *c, struct ndx_overlapped *ov, enum ndx_status want, const char *what)
{
	enum ndx_status got;

	if (check_over(c))
		return false;
	got = ndx_overlapped_wait(ov, WAIT_MS);
	if (got == NDX_PENDING && want != NDX_PENDING)
		return check_that(c, false, "%s: waited %d ms for %s, still pending", what, WAIT_MS,
		                  ndx_status_name(want));
	return check_that(c, got == want, "%s: completed %s (native %d), not %s", what,
	                  ndx_status_name(got), (int)ov->native, ndx_status_name(want));
}

bool check_pending(struct check *c, struct ndx_overlapped *ov, const char *what)
{
	enum ndx_status got;

	if (check_over(c))
		return false;
	got = ndx_overlapped_wait(ov, QUIET_MS);
	return check_that(c, got == NDX_PENDING, "%s: should still be pending, completed %s", what,
	                  ndx_status_name(got));
}

enum ndx_status check_result_of(struct check *c, enum ndx_status got, struct ndx_overlapped *ov)
{
	if (check_over(c) || got != NDX_PENDING)
		return got;
	return ndx_overlapped_wait(ov, WAIT_MS);
}

bool check_outcome(struct check *c, enum ndx_status got, struct ndx_overlapped *ov,
                   enum ndx_status want, const char *what)
{
	if (got == NDX_PENDING)
		return check_ends(c, ov, want, what);
	return check_status(c, got, want, what);
}

bool check_async(struct check *c, enum ndx_status got, struct ndx_overlapped *ov,
                 enum ndx_status want, const char *what)
{
	return check_status(c, got, NDX_PENDING, what) && check_ends(c, ov, want, what);
}

uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* splitmix64 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t check_random(struct check *c)
{
	return random_next(&c->random);
}

uint32_t check_below(struct check *c, uint32_t limit)
{
	return (uint32_t)(random_next(&c->random) % limit);
}

bool check_chance(struct check *c, uint32_t percent)
{
	return check_below(c, 100) < percent;
}

uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
