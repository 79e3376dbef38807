/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows of side B of a pair, and side A that uses them. */
#ifndef WINDOW_H
#define WINDOW_H

#include "fixture.h"

enum { WINDOW_BOTH = NDX_OP_ALLOW_READ | NDX_OP_ALLOW_WRITE };

/* B's buffer is registered with these rights. */
struct pair *pair_with_region(struct check *c, uint32_t access);

/* NULL when the check is over. The caller closes it. */
struct ndx_mw *window_open(struct side *s);

/* Post a bind to the side's own region, whatever the answer. */
enum ndx_status bind_raw(struct side *s, size_t number, struct ndx_mw *mw, size_t at, size_t length,
                         uint32_t flags);
/* It is bound, and its result taken; its queue has nothing else in it. */
bool binds(struct side *s, struct ndx_mw *mw, size_t at, size_t length, uint32_t flags);
bool invalidates(struct side *s, struct ndx_mw *mw);

/* A writes the first bytes of its buffer to B's memory at `at`, or reads into them, by a token. */
bool reaches(struct pair *p, bool write, size_t at, size_t length, uint32_t token,
             enum ndx_status want);

#endif
