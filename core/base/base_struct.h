/* SPDX-License-Identifier: BSD-2-Clause */
/* Public structures with a `size`, which grow at their end (<ndx/decls.h>). The program's structure
 * may be older or newer than the library's: it is shorter or longer.
 *
 * To append a member: it must begin at or behind sizeof() of the structure as released, because
 * the padding at the end of a released structure has any value. Keep the constant of every
 * released size. */
#ifndef BASE_STRUCT_H
#define BASE_STRUCT_H

#include <stddef.h>

#include <ndx/status.h>

#include "base_private.h"

struct base_struct {
	const char *name;   /* "struct ndx_qp_attr", for error texts */
	const char *remedy; /* how a program sets the right size, for error texts */
	size_t first;       /* the first released size, NDX_..._SIZE_0_1 */
	size_t known;       /* sizeof() in this library */
};

/* Describes `type`. `remedy`: "call ndx_qp_attr_init()". */
#define BASE_STRUCT(type, first_size, how)                                                   \
	{                                                                                    \
		.name = #type, .remedy = (how), .first = (first_size), .known = sizeof(type) \
	}

/* Refuse a size below the first released one, with a text. */
enum ndx_status base_struct_check_size(const struct base_struct *layout, const char *call,
                                       size_t size);

/* Give the program's structure of `size` bytes its size and the defaults; zero what this library
 * does not know. `theirs` may be NULL. */
void base_struct_init(const struct base_struct *layout, void *theirs, size_t size,
                      const void *defaults) NDX_PRIVATE(base_struct_init);

/* Read the program's structure of `size` bytes into `mine`, which holds the defaults. Refuses a
 * size that is too small, and a member that this library does not know and that is not 0. `mine`
 * has the program's `size` afterwards. */
enum ndx_status base_struct_in(const struct base_struct *layout, const char *call, void *mine,
                               const void *theirs, size_t size) NDX_PRIVATE(base_struct_in);

/* Copy `mine` to the program's structure of `size` bytes, as much as both have, and set its `size`
 * to that. Refuses a size that is too small. */
enum ndx_status base_struct_out(const struct base_struct *layout, const char *call, void *theirs,
                                size_t size, const void *mine) NDX_PRIVATE(base_struct_out);

#endif
