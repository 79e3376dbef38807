/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's last log records, kept so that a failure can be read with them. */
#ifndef LOGRING_H
#define LOGRING_H

#include <stdbool.h>
#include <stddef.h>

/* Becomes the sink of the library's log; `aloud` also prints every record, debug ones included. */
void logring_begin(bool aloud);
/* Forget what was kept: another run begins. */
void logring_clear(void);
/* What was kept, oldest first, one record per line. */
void logring_read(char *text, size_t size);

#endif
