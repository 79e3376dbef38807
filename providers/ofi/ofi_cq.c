/* SPDX-License-Identifier: BSD-2-Clause */
/* The consumer's completion queues: a poll moves the native queues that are tied to it. */
#include <errno.h>
#include <stdlib.h>

#include "base_linux.h"
#include "base_log.h"
#include "ofi.h"

static struct ofi_cq *cq_of(struct ndx_spi_cq *cq)
{
	return (struct ofi_cq *)(void *)cq;
}

/* Somebody else who is at it already does it for us, too. */
static size_t get_results(struct ndx_cq *handle, struct ndx_result *results, size_t count)
{
	struct ofi_cq *cq = (struct ofi_cq *)(void *)handle;

	if (base_lock_try(&cq->poll_lock)) {
		for (struct base_list *n = cq->ties.next; n != &cq->ties; n = n->next) {
			struct ofi_ncq *ncq = container_of(n, struct ofi_tie, of_cq)->ncq;

			if (base_lock_try(&ncq->lock)) {
				ofi_ncq_poll(ncq, &cq->base, count);
				base_lock_release(&ncq->lock);
			}
		}
		base_lock_release(&cq->poll_lock);
	}
	return base_cq_take(&cq->base, results, count);
}

static const struct ndx_cq_ops cq_ops = {.get_results = get_results};

enum ndx_status ofi_cq_create(struct ndx_spi_adapter *adapter, uint32_t depth, uint64_t affinity,
                              struct ndx_spi_cq **out)
{
	struct ofi_cq *cq = calloc(1, sizeof(*cq));
	enum ndx_status st;

	(void)affinity; /* advice; the provider has no use for it */
	if (cq == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a completion queue");
	st = base_cq_init(&cq->base, &cq_ops, depth);
	if (st != NDX_OK) {
		free(cq);
		return st;
	}
	cq->adapter = ofi_adapter_of(adapter);
	cq->fd = -1;
	base_list_init(&cq->ties);
	*out = &cq->base.spi;
	return NDX_OK;
}

void ofi_cq_destroy(struct ndx_spi_cq *spi)
{
	struct ofi_cq *cq = cq_of(spi);

	base_fd_close(cq->fd);
	base_cq_fini(&cq->base);
	free(cq);
}

enum ndx_status ofi_cq_notify(struct ndx_spi_cq *spi, enum ndx_cq_notify_type type,
                              struct ndx_overlapped *ov)
{
	struct ofi_cq *cq = cq_of(spi);
	enum ndx_status st = base_cq_notify(spi, type, ov);

	if (st < 0)
		return st;
	/* The consumer has stopped polling: from now on the control thread is responsible, whatever
	 * the count of polls says; or the consumer is, woken by the native queues themselves. */
	base_lock_acquire(&cq->poll_lock);
	if (ov == NULL && ofi_cq_lend(cq)) {
		base_lock_release(&cq->poll_lock);
		return st;
	}
	for (struct base_list *n = cq->ties.next; n != &cq->ties; n = n->next) {
		struct ofi_ncq *ncq = container_of(n, struct ofi_tie, of_cq)->ncq;

		if (__atomic_load_n(&ncq->mode, __ATOMIC_SEQ_CST) == OFI_NCQ_AWAY)
			ofi_ncq_kick(ncq);
	}
	base_lock_release(&cq->poll_lock);
	return st;
}
