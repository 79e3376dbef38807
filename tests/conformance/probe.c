/* SPDX-License-Identifier: BSD-2-Clause */
/* Learning of completions by waiting, by callback, by port and by sink. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "probe.h"

static void called(struct ndx_overlapped *ov)
{
	struct probe *p = ov->context;

	(void)pthread_mutex_lock(&p->lock);
	p->seen = ov->status;
	p->thread = pthread_self();
	(void)pthread_mutex_unlock(&p->lock);
	if (p->then)
		p->then(p);
	(void)pthread_mutex_lock(&p->lock);
	p->calls++;
	(void)pthread_cond_broadcast(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
}

static void init(struct probe *p, struct check *c, enum way way)
{
	pthread_condattr_t attr;

	memset(p, 0, sizeof(*p));
	p->c = c;
	p->way = way;
	p->ov.context = p;
	if (way == WAY_CALLBACK)
		p->ov.callback = called;
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&p->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
}

bool probe_begin(struct probe *p, struct check *c, enum way way)
{
	enum ndx_status st;

	init(p, c, way);
	if (way != WAY_PORT && way != WAY_SINK)
		return !check_over(c);
	st = way == WAY_PORT ? ndx_port_create(&p->port) : ndx_port_create_sink(called, &p->port);
	if (!check_status(c, st, NDX_OK, "port_create"))
		return false;
	p->own_port = true;
	p->ov.port = p->port;
	return true;
}

bool probe_begin_on(struct probe *p, struct check *c, struct ndx_port *port)
{
	init(p, c, WAY_PORT);
	p->port = port;
	p->ov.port = port;
	return !check_over(c);
}

bool probe_begin_then(struct probe *p, struct check *c, void (*then)(struct probe *probe),
                      void *arg)
{
	init(p, c, WAY_CALLBACK);
	p->then = then;
	p->arg = arg;
	return !check_over(c);
}

void probe_end(struct probe *p)
{
	if (!p->c)
		return;
	if (p->own_port)
		ndx_port_close(p->port);
	(void)pthread_cond_destroy(&p->changed);
	(void)pthread_mutex_destroy(&p->lock);
	p->c = NULL;
}

unsigned probe_calls(struct probe *p)
{
	unsigned calls;

	(void)pthread_mutex_lock(&p->lock);
	calls = p->calls;
	(void)pthread_mutex_unlock(&p->lock);
	return calls;
}

/* Until the callback has returned so often; false when that takes longer than `ms`. */
static bool await_calls(struct probe *p, unsigned calls, unsigned ms)
{
	struct timespec until;
	bool there;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	(void)pthread_mutex_lock(&p->lock);
	while (p->calls < calls &&
	       pthread_cond_timedwait(&p->changed, &p->lock, &until) != ETIMEDOUT)
		continue;
	there = p->calls >= calls;
	(void)pthread_mutex_unlock(&p->lock);
	return there;
}

bool probe_called(struct probe *p, unsigned calls, const char *what)
{
	if (check_over(p->c))
		return false;
	return check_that(p->c, await_calls(p, calls, WAIT_MS),
	                  "%s: waited %d ms for %u callbacks, there were %u", what, WAIT_MS, calls,
	                  probe_calls(p));
}

/* Learn of one completion within `ms`; false if there is none. */
static bool learn(struct probe *p, unsigned ms)
{
	struct ndx_overlapped *ov = NULL;

	switch (p->way) {
	case WAY_WAIT:
		return ndx_overlapped_wait(&p->ov, ms) != NDX_PENDING;
	case WAY_CALLBACK:
	case WAY_SINK:
		if (!await_calls(p, p->awaited + 1, ms))
			return false;
		p->awaited++;
		return true;
	case WAY_PORT:
		if (ndx_port_get(p->port, &ov, 1, ms) == 0)
			return false;
		check_that(p->c, ov == &p->ov, "another object came out of the port");
		return true;
	}
	return false;
}

static bool ended_as(struct probe *p, enum ndx_status want, const char *what)
{
	enum ndx_status got = ndx_overlapped_status(&p->ov);

	if (p->way == WAY_CALLBACK || p->way == WAY_SINK)
		check_that(p->c, p->seen == want, "%s: the callback saw %s, not %s", what,
		           ndx_status_name(p->seen), ndx_status_name(want));
	check_that(p->c, got == want, "%s: completed %s (native %d), not %s", what,
	           ndx_status_name(got), (int)p->ov.native, ndx_status_name(want));
	return check_that(p->c, p->ov.status == want, "%s: status says %s", what,
	                  ndx_status_name(p->ov.status));
}

bool probe_ends(struct probe *p, enum ndx_status want, const char *what)
{
	if (check_over(p->c))
		return false;
	return check_that(p->c, learn(p, WAIT_MS), "%s: waited %d ms for %s", what, WAIT_MS,
	                  ndx_status_name(want)) &&
	       ended_as(p, want, what);
}

bool probe_async(struct probe *p, enum ndx_status got, enum ndx_status want, const char *what)
{
	return check_status(p->c, got, NDX_PENDING, what) && probe_ends(p, want, what);
}

bool probe_has_ended(struct probe *p, enum ndx_status want, const char *what)
{
	if (check_over(p->c))
		return false;
	return check_that(p->c, learn(p, 0), "%s: not complete yet", what) &&
	       ended_as(p, want, what);
}

enum ndx_status probe_result(struct probe *p)
{
	return learn(p, 0) ? ndx_overlapped_status(&p->ov) : NDX_PENDING;
}

bool probe_pending(struct probe *p, const char *what)
{
	if (check_over(p->c))
		return false;
	if (check_that(p->c, !learn(p, QUIET_MS), "%s: should be pending, completed %s", what,
	               ndx_status_name(ndx_overlapped_status(&p->ov))))
		return check_that(p->c, ndx_overlapped_status(&p->ov) == NDX_PENDING,
		                  "%s: should be pending, the status is %s", what,
		                  ndx_status_name(ndx_overlapped_status(&p->ov)));
	return false;
}

bool probe_silent(struct probe *p, const char *what)
{
	struct ndx_overlapped *ov = NULL;

	if (check_over(p->c))
		return false;
	if (p->way == WAY_PORT)
		check_that(p->c, ndx_port_get(p->port, &ov, 1, 0) == 0,
		           "%s: completes twice into its port", what);
	return check_that(p->c, probe_calls(p) == p->awaited, "%s: %u callbacks, %u completions",
	                  what, probe_calls(p), p->awaited);
}
