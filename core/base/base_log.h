/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stddef.h>

#include <ndx/spi/log.h>

#include "base_private.h"

/* For situations that must not happen: log the call stack, a record for each frame, at error
 * level. */
void base_log_backtrace(const char *what) NDX_PRIVATE(base_log_backtrace);

/* Copy a text for people; if truncated, it ends after a whole word and "...". `size` is more than
 * 4. */
void base_text_copy(char *out, size_t size, const char *text) NDX_PRIVATE(base_text_copy);

#endif
