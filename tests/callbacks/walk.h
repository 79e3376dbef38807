/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_CALLBACKS_WALK_H
#define TESTS_CALLBACKS_WALK_H

#include <stddef.h>

#include "scene.h"

/* One public call, and what it may return in a callback. */
struct row {
	const char *name;
	enum ndx_status (*call)(struct scene *s);
	enum ndx_status want;
	enum ndx_status other; /* the stack's choice; NDX_OK: none */
};

extern const struct row object_rows[];
extern const size_t object_row_count;
extern const struct row connection_rows[];
extern const size_t connection_row_count;
extern const struct row frame_rows[];
extern const size_t frame_row_count;
extern const struct row session_rows[];
extern const size_t session_row_count;
extern const struct row plain_rows[];
extern const size_t plain_row_count;

#endif
