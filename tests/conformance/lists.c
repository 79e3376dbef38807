/* SPDX-License-Identifier: BSD-2-Clause */
#include "lists.h"

#include <string.h>

#include "traffic.h"

void list_sends(struct list *list, struct side *s, size_t number, size_t count, size_t length,
                uint32_t flags)
{
	memset(list->requests, 0, sizeof(list->requests));
	for (size_t i = 0; i < count; i++) {
		list->sges[i] = sge(s, i * length, length);
		list->requests[i] = (struct ndx_request){.type = NDX_POST_SEND,
		                                         .context = tag(s, number + i),
		                                         .sge = &list->sges[i],
		                                         .sge_count = 1,
		                                         .flags = flags};
	}
}

void list_receives(struct list *list, struct side *s, size_t number, size_t count, size_t length)
{
	for (size_t i = 0; i < count; i++) {
		list->sges[i] = sge(s, i * length, length);
		list->receives[i] = (struct ndx_receive){
			.context = tag(s, number + i), .sge = &list->sges[i], .sge_count = 1};
	}
}

/* A call has returned `got`, with `done` of `count` entries posted. */
static bool is_answer(struct check *c, enum ndx_status got, enum ndx_status want, size_t done,
                      size_t posted, size_t count)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "entry %zu of %zu was refused", posted, count);
	return check_status(c, got, want, "posting a list") &&
	       check_that(c, done == posted, "%zu of %zu entries posted, not %zu", done, count,
	                  posted) &&
	       (want == NDX_OK || check_that(c, strstr(ndx_last_error(), text) != NULL,
	                                     "no \"%s\" in: %s", text, ndx_last_error()));
}

bool posts(struct side *s, const struct ndx_request *list, size_t count, enum ndx_status want,
           size_t posted)
{
	size_t done = SIZE_MAX;
	enum ndx_status got;

	if (check_over(s->c))
		return false;
	got = ndx_qp_post_list(s->qp, list, count, &done);
	return is_answer(s->c, got, want, done, posted, count);
}

bool receives(struct side *s, const struct ndx_receive *list, size_t count, enum ndx_status want,
              size_t posted)
{
	size_t done = SIZE_MAX;
	enum ndx_status got;

	if (check_over(s->c))
		return false;
	got = ndx_qp_receive_list(s->qp, list, count, &done);
	return is_answer(s->c, got, want, done, posted, count);
}

bool shared_receives(struct check *c, struct ndx_srq *srq, const struct ndx_receive *list,
                     size_t count, enum ndx_status want, size_t posted)
{
	size_t done = SIZE_MAX;
	enum ndx_status got;

	if (check_over(c))
		return false;
	got = ndx_srq_receive_list(srq, list, count, &done);
	return is_answer(c, got, want, done, posted, count);
}
