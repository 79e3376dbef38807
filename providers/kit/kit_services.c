/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider kit's functions that act on what the process has once: each calls the service of the
 * core that has loaded the provider. In libndx itself the functions of core/base and core/async
 * take this file's place.
 */
#include <stdarg.h>

#include <ndx/spi/log.h>
#include <ndx/spi/loop.h>
#include <ndx/spi/overlapped.h>
#include <ndx/spi/provider.h>

struct ndx_spi_binding ndxp_binding;

/* ---- log ---- */

bool ndxp_log_enabled(enum ndx_log_level level)
{
	return ndxp_binding.services->log_enabled(level);
}

void ndxp_log(enum ndx_log_level level, const char *where, int native, const char *fmt, ...)
{
	va_list arguments;

	va_start(arguments, fmt);
	ndxp_binding.services->log(level, where, native, fmt, arguments);
	va_end(arguments);
}

enum ndx_status ndxp_fail(enum ndx_status status, const char *where, int native, const char *fmt,
                          ...)
{
	va_list arguments;

	va_start(arguments, fmt);
	ndxp_binding.services->record_failure(status, where, native, fmt, arguments);
	va_end(arguments);
	return status;
}

void ndxp_fail_hold(bool hold)
{
	ndxp_binding.services->fail_hold(hold);
}

void ndxp_set_last_error(const char *fmt, ...)
{
	va_list arguments;

	va_start(arguments, fmt);
	ndxp_binding.services->set_last_error(fmt, arguments);
	va_end(arguments);
}

const char *ndx_last_error(void)
{
	return ndxp_binding.services->last_error();
}

/* ---- loop ---- */

bool ndxp_loop_on_any(void)
{
	return ndxp_binding.services->loop_on_any();
}

bool ndxp_loop_is_hurried(void)
{
	return ndxp_binding.services->loop_is_hurried();
}

void ndxp_loop_post(struct ndx_loop *loop, struct ndxp_job *job)
{
	ndxp_binding.services->loop_post(loop, job);
}

void ndxp_loop_call(struct ndx_loop *loop, ndxp_loop_fn *fn, void *arg)
{
	ndxp_binding.services->loop_call(loop, fn, arg);
}

void ndxp_timer_set(struct ndx_loop *loop, struct ndxp_timer *timer, uint32_t ms)
{
	ndxp_binding.services->timer_set(loop, timer, ms);
}

void ndxp_timer_cancel(struct ndx_loop *loop, struct ndxp_timer *timer)
{
	ndxp_binding.services->timer_cancel(loop, timer);
}

enum ndx_status ndxp_watch_add(struct ndx_loop *loop, struct ndxp_watch *watch, uint32_t events,
                               bool once)
{
	return ndxp_binding.services->watch_add(loop, watch, events, once);
}

void ndxp_watch_rearm(struct ndx_loop *loop, struct ndxp_watch *watch, uint32_t events)
{
	ndxp_binding.services->watch_rearm(loop, watch, events);
}

void ndxp_watch_remove(struct ndx_loop *loop, struct ndxp_watch *watch)
{
	ndxp_binding.services->watch_remove(loop, watch);
}

/* ---- overlapped operations ---- */

void ndxp_ov_complete_all(struct ndxp_ov_list *list, enum ndx_status status)
{
	for (struct ndx_overlapped *ov = ndxp_ov_pop(list); ov != NULL; ov = ndxp_ov_pop(list))
		ndxp_binding.services->complete(ov, status, 0, 0);
}
