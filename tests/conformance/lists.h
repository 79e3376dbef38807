/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of requests and receives, and what posting them answers. */
#ifndef LISTS_H
#define LISTS_H

#include "fixture.h"

enum { LIST_ROOM = 1000 };

struct list {
	struct ndx_request requests[LIST_ROOM];
	struct ndx_receive receives[LIST_ROOM];
	struct ndx_sge sges[LIST_ROOM];
};

/* Sends of `length` bytes, side by side from 0, numbered from `number`. */
void list_sends(struct list *list, struct side *s, size_t number, size_t count, size_t length,
                uint32_t flags);
/* Receives of the same kind. */
void list_receives(struct list *list, struct side *s, size_t number, size_t count, size_t length);

/* Post `count` entries: the call says `want`, and `posted` of them are posted; if not all are, the
 * text of the failure names the next one. */
bool posts(struct side *s, const struct ndx_request *list, size_t count, enum ndx_status want,
           size_t posted);
bool receives(struct side *s, const struct ndx_receive *list, size_t count, enum ndx_status want,
              size_t posted);
bool shared_receives(struct check *c, struct ndx_srq *srq, const struct ndx_receive *list,
                     size_t count, enum ndx_status want, size_t posted);

#endif
