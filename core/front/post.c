/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points for lists of requests and receives. The other posts are inline calls. */
#include <ndx/qp.h>
#include <ndx/srq.h>

#include <stdalign.h>

#include <ndx/spi/log.h>
#include "ops.h"

/* Entries of a list: their name, size in the first version and in this one, and alignment. */
struct entry {
	const char *name;
	size_t first;
	size_t known;
	size_t align;
};

/* The parameters of a call, without the queue. */
struct list {
	const char *call;
	const void *entries;
	size_t size;
	size_t count;
};

static const struct entry request_entry = {"struct ndx_request", NDX_REQUEST_SIZE_0_1,
                                           sizeof(struct ndx_request), alignof(struct ndx_request)};
static const struct entry receive_entry = {"struct ndx_receive", NDX_RECEIVE_SIZE_0_1,
                                           sizeof(struct ndx_receive), alignof(struct ndx_receive)};

/* The program's entries are longer than this library's: what the library does not know must be
 * 0. */
static enum ndx_status check_tails(const struct entry *entry, const struct list *list)
{
	const unsigned char *bytes = list->entries;

	for (size_t i = 0; i < list->count; i++, bytes += list->size) {
		for (size_t at = entry->known; at < list->size; at++) {
			if (bytes[at] == 0)
				continue;
			ndxp_set_last_error("%s: entry %zu: %s has size %zu, this library knows "
			                    "%zu bytes, and byte %zu is not 0: the program sets a "
			                    "member that came later; leave that member 0, or run "
			                    "with a library as new as the program's headers",
			                    list->call, i, entry->name, list->size, entry->known,
			                    at);
			return NDX_E_INVALID_PARAMETER;
		}
	}
	return NDX_OK;
}

static enum ndx_status check(const struct entry *entry, const struct list *list, const void *queue,
                             size_t *posted)
{
	if (posted != NULL)
		*posted = 0;
	if (queue == NULL || posted == NULL || (list->entries == NULL && list->count > 0)) {
		ndxp_set_last_error("%s: NULL argument", list->call);
		return NDX_E_INVALID_PARAMETER;
	}
	if (list->size < entry->first || list->size % entry->align != 0) {
		ndxp_set_last_error("%s: %s has size %zu, must be at least %zu and a multiple of "
		                    "%zu; pass sizeof()",
		                    list->call, entry->name, list->size, entry->first,
		                    entry->align);
		return NDX_E_INVALID_PARAMETER;
	}
	return list->size > entry->known ? check_tails(entry, list) : NDX_OK;
}

/* No log record: a full queue is an ordinary answer. */
static enum ndx_status outcome(const struct list *list, enum ndx_status status, size_t posted)
{
	if (status != NDX_OK)
		ndxp_set_last_error("%s: entry %zu of %zu was refused: %s; the entries before it "
		                    "are posted",
		                    list->call, posted, list->count, ndx_status_text(status));
	return status;
}

enum ndx_status ndx_qp_post_list_sized(struct ndx_qp *qp, const struct ndx_request *list,
                                       size_t size, size_t count, size_t *posted)
{
	const struct list own = {"ndx_qp_post_list", list, size, count};
	enum ndx_status st = check(&request_entry, &own, qp, posted);

	if (st != NDX_OK || count == 0)
		return st;
	st = qp->ops->post_list(qp, list, size, count, posted);
	return outcome(&own, st, *posted);
}

enum ndx_status ndx_qp_receive_list_sized(struct ndx_qp *qp, const struct ndx_receive *list,
                                          size_t size, size_t count, size_t *posted)
{
	const struct list own = {"ndx_qp_receive_list", list, size, count};
	enum ndx_status st = check(&receive_entry, &own, qp, posted);

	if (st != NDX_OK || count == 0)
		return st;
	st = qp->ops->receive_list(qp, list, size, count, posted);
	return outcome(&own, st, *posted);
}

enum ndx_status ndx_srq_receive_list_sized(struct ndx_srq *srq, const struct ndx_receive *list,
                                           size_t size, size_t count, size_t *posted)
{
	const struct list own = {"ndx_srq_receive_list", list, size, count};
	enum ndx_status st = check(&receive_entry, &own, srq, posted);

	if (st != NDX_OK || count == 0)
		return st;
	st = srq->ops->receive_list(srq, list, size, count, posted);
	return outcome(&own, st, *posted);
}
