/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * What libndx does for providers in files of their own.
 */
#ifndef NDX_SPI_SERVICES_H
#define NDX_SPI_SERVICES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <ndx/log.h>
#include <ndx/overlapped.h>
#include <ndx/spi/lock.h>
#include <ndx/spi/loop.h>
#include <ndx/status.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

struct ndx_provider;

/**
 * What a process has once, however many providers it has loaded: the log with its sink, the text of
 * the last error of each thread, control loops, overlapped operations. The functions of the
 * provider kit of the same names call these (<ndx/spi/log.h>, <ndx/spi/loop.h>,
 * <ndx/spi/overlapped.h>); those headers say what each does. A provider calls them through the kit.
 */
struct ndx_spi_services {
	uint32_t abi;  /**< NDX_SPI_ABI of the core */
	uint32_t size; /**< of the core's structure: it has the members that begin before this */
	void (*log)(enum ndx_log_level level, const char *where, int native, const char *fmt,
	            va_list arguments);
	bool (*log_enabled)(enum ndx_log_level level);
	/** ndxp_fail() */
	void (*record_failure)(enum ndx_status status, const char *where, int native,
	                       const char *fmt, va_list arguments);
	void (*fail_hold)(bool hold);
	void (*set_last_error)(const char *fmt, va_list arguments);
	const char *(*last_error)(void);
	bool (*loop_on_any)(void);
	bool (*loop_is_hurried)(void);
	void (*loop_post)(struct ndx_loop *loop, struct ndxp_job *job);
	void (*loop_call)(struct ndx_loop *loop, ndxp_loop_fn *fn, void *arg);
	void (*timer_set)(struct ndx_loop *loop, struct ndxp_timer *timer, uint32_t ms);
	void (*timer_cancel)(struct ndx_loop *loop, struct ndxp_timer *timer);
	enum ndx_status (*watch_add)(struct ndx_loop *loop, struct ndxp_watch *watch,
	                             uint32_t events, bool once);
	void (*watch_rearm)(struct ndx_loop *loop, struct ndxp_watch *watch, uint32_t events);
	void (*watch_remove)(struct ndx_loop *loop, struct ndxp_watch *watch);
	/** As ndx_host.complete. */
	void (*complete)(struct ndx_overlapped *ov, enum ndx_status status, uint32_t information,
	                 int32_t native);
	/**
	 * For a provider that stands in front of another one: get that provider, which stays until
	 * provider_close(@p file). Errors as of opening an adapter of it; NDX_E_NOT_FOUND sets no
	 * text.
	 */
	enum ndx_status (*provider_open)(const char *name, const struct ndx_provider **provider,
	                                 void **file);
	void (*provider_close)(void *file);
};

/**
 * How a provider in a file of its own reaches libndx; for the kit and libndx. Starts zeroed. A file
 * is loaded once in a process, so it serves one copy of libndx at a time.
 */
struct ndx_spi_binding {
	const struct ndx_spi_services *services; /**< of the libndx that has loaded the provider */
	struct ndxp_lock lock;                   /**< for libndx, of binding and unbinding */
	uint32_t users; /**< for libndx: how often it has loaded the provider */
};

/** Of the kit. */
extern struct ndx_spi_binding ndxp_binding;

NDXP_DECLS_END

#endif
