/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptor of a completion queue. A wake-up by way of the control thread would be paid twice:
 * so while a consumer sleeps on its descriptor, the native queues are lent to it, i.e. their
 * descriptors are part of its own. It is woken by what comes and reads it itself; the control
 * thread keeps out of the way as long as the consumer does so.
 */
#include <errno.h>
#include <poll.h>

#include "base_linux.h"
#include "base_log.h"
#include "ofi.h"

#define LEND_MAX 4u /* native queues: arming looks at each of them */
#define NAPS 8u     /* ticks without anything, and the control thread sleeps, too */
#define ROUNDS 64   /* of reading until empty */

static struct ofi_cq *cq_of(struct ndx_spi_cq *cq)
{
	return (struct ofi_cq *)(void *)cq;
}

enum ndx_status ofi_cq_get_fd(struct ndx_spi_cq *spi, int *fd)
{
	struct ofi_cq *cq = cq_of(spi);
	int flag;
	int err = 0;
	enum ndx_status st = base_cq_get_fd(spi, &flag);

	if (st != NDX_OK)
		return st;
	base_lock_acquire(&cq->poll_lock);
	if (cq->fd < 0) {
		cq->fd = base_poll_create();
		err = errno;
		if (cq->fd >= 0 && base_poll_add(cq->fd, flag, POLLIN, false, NULL) != 0) {
			err = errno;
			base_fd_close(cq->fd);
			cq->fd = -1;
		}
	}
	if (cq->fd >= 0)
		*fd = cq->fd;
	else
		st = NDX_E_INSUFFICIENT_RESOURCES;
	base_lock_release(&cq->poll_lock);
	return st == NDX_OK ? st
	                    : fail(st, err, "no descriptor for a completion queue; see ulimit -n");
}

static struct ofi_ncq *ncq_at(struct base_list *of_cq)
{
	return container_of(of_cq, struct ofi_tie, of_cq)->ncq;
}

/* poll_lock held. */
static void take_back(struct ofi_cq *cq)
{
	if (!cq->lent)
		return;
	for (struct base_list *n = cq->ties.next; n != &cq->ties; n = n->next)
		base_poll_remove(cq->fd, ncq_at(n)->watch.fd);
	__atomic_store_n(&cq->lent, 0, __ATOMIC_SEQ_CST);
}

/* poll_lock held: the native descriptors become part of the consumer's. */
static bool give(struct ofi_cq *cq)
{
	unsigned count = 0;

	if (cq->lent)
		return true;
	for (struct base_list *n = cq->ties.next; n != &cq->ties; n = n->next)
		count++;
	if (cq->fd < 0 || count == 0 || count > LEND_MAX)
		return false;
	__atomic_store_n(&cq->lent, 1, __ATOMIC_SEQ_CST);
	for (struct base_list *n = cq->ties.next; n != &cq->ties; n = n->next) {
		if (base_poll_add(cq->fd, ncq_at(n)->watch.fd, POLLIN, false, NULL) == 0)
			continue;
		take_back(cq);
		return false;
	}
	return true;
}

/* Is it armed by its descriptor, for any result, and nobody waits in another way? */
static bool sleeps(struct ofi_cq *cq)
{
	bool is;

	base_lock_acquire(&cq->base.lock);
	is = cq->base.fd_armed && cq->base.fd_type == NDX_CQ_NOTIFY_ANY &&
	     cq->base.notifies.head == NULL;
	base_lock_release(&cq->base.lock);
	return is;
}

/* Nothing is left in it, and its descriptor will tell of what comes; or the consumer has been
 * told. */
static bool make_quiet(struct ofi_cq *cq, struct ofi_ncq *ncq)
{
	struct fid *fids[1] = {&ncq->cq->fid};
	bool quiet = false;

	base_lock_acquire(&ncq->lock);
	ofi_tell_all_credits(ncq);
	for (int i = 0; !quiet && i < ROUNDS; i++) {
		quiet = fi_trywait(ncq->adapter->fabric, fids, 1) == 0;
		if (!quiet)
			(void)ofi_ncq_progress(ncq);
		quiet = quiet || !sleeps(cq);
	}
	base_lock_release(&ncq->lock);
	return quiet;
}

bool ofi_cq_lend(struct ofi_cq *cq)
{
	if (!sleeps(cq)) {
		take_back(cq);
		return false;
	}
	if (!give(cq))
		return false;
	for (struct base_list *n = cq->ties.next; n != &cq->ties; n = n->next) {
		struct ofi_ncq *ncq = ncq_at(n);

		if (!make_quiet(cq, ncq))
			ofi_ncq_kick(ncq);
	}
	return true;
}

void ofi_cq_clear_fd(struct ofi_cq *cq)
{
	if (__atomic_load_n(&cq->lent, __ATOMIC_RELAXED) == 0 || cq->adapter->flavour->tells_always)
		return;
	base_lock_acquire(&cq->poll_lock);
	for (struct base_list *n = cq->ties.next; n != &cq->ties && cq->lent && sleeps(cq);
	     n = n->next) {
		struct ofi_ncq *ncq = ncq_at(n);

		if (!make_quiet(cq, ncq))
			ofi_ncq_kick(ncq);
	}
	base_lock_release(&cq->poll_lock);
}

void ofi_cq_unlend(struct ofi_cq *cq)
{
	take_back(cq);
}

bool ofi_cq_sleeps_lent(struct ofi_cq *cq)
{
	return __atomic_load_n(&cq->lent, __ATOMIC_SEQ_CST) != 0 && sleeps(cq);
}

bool ofi_cq_needs_thread(struct ofi_cq *cq)
{
	bool armed;

	base_lock_acquire(&cq->base.lock);
	armed = cq->base.armed;
	base_lock_release(&cq->base.lock);
	if (!armed)
		return false;
	return __atomic_load_n(&cq->lent, __ATOMIC_SEQ_CST) == 0 || !sleeps(cq);
}

/* A descriptor that is not armed tells of nothing: a consumer that is busy elsewhere need not be
 * woken. */
static void take_back_unarmed(struct ofi_cq *cq)
{
	if (__atomic_load_n(&cq->lent, __ATOMIC_RELAXED) == 0)
		return;
	base_lock_acquire(&cq->poll_lock);
	if (!sleeps(cq))
		take_back(cq);
	base_lock_release(&cq->poll_lock);
}

bool ofi_ncq_is_lent(struct ofi_ncq *ncq)
{
	struct pollfd native = {.fd = ncq->watch.fd, .events = POLLIN};
	bool lent = false;

	/* The ties change on this thread alone. */
	for (struct base_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		struct ofi_cq *cq = container_of(n, struct ofi_tie, of_ncq)->cq;

		if (ofi_cq_needs_thread(cq))
			return false;
		take_back_unarmed(cq);
		lent = lent || __atomic_load_n(&cq->lent, __ATOMIC_RELAXED) != 0;
	}
	return lent && ncq->naps++ < NAPS && __atomic_load_n(&ncq->owing, __ATOMIC_ACQUIRE) == 0 &&
	       poll(&native, 1, 0) == 0;
}

void ofi_cq_wake(struct ndx_spi_cq *spi, bool up)
{
	struct ofi_cq *cq = cq_of(spi);

	if (up)
		base_eventfd_set(cq->base.fd);
	else
		base_eventfd_clear(cq->base.fd);
}
