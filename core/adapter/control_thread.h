/* SPDX-License-Identifier: BSD-2-Clause */
/* The control thread of an adapter: its name and its processors, as the options say. */
#ifndef ADAPTER_CONTROL_THREAD_H
#define ADAPTER_CONTROL_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#include <ndx/spi/provider.h>
#include <ndx/status.h>

/* Keys of every adapter, for registry_check_key(); ends with a NULL name. */
extern const struct ndx_spi_key control_thread_keys[];

/* Whether it is one of these keys: the core's, which no provider gets. */
bool control_thread_has_key(const char *key);

/**
 * Start the control thread.
 *
 * @param options  those of control_thread_keys; others are ignored
 * @param[out] out the loop; untouched on failure
 *
 * @retval NDX_E_INVALID_CONFIG         the name is too long, or a processor is none of this
 * process's
 * @retval NDX_E_NO_MEMORY              out of memory
 * @retval NDX_E_INSUFFICIENT_RESOURCES no thread or descriptor left
 */
enum ndx_status control_thread_start(const struct ndx_spi_option *options, size_t count,
                                     struct ndx_loop **out);

#endif
