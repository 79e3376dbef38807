/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptor of a completion queue. A wake-up through the control thread would cost two. So
 * while a consumer sleeps on its descriptor, the native queues are lent to it: their descriptors
 * are in the consumer's epoll set. A completion wakes the consumer, which reads the queue itself,
 * and the control thread does not read as long as the consumer does.
 */
#include <errno.h>
#include <poll.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "ofi.h"

#define SHARED_FDS_MAX 4u /* native queues: arming has to check each */
#define IDLE_TICKS 8u     /* ticks without a completion before the control thread sleeps, too */
#define ROUNDS 64         /* of reading until empty */

static struct ofi_cq *cq_of(struct ndx_spi_cq *cq)
{
	return (struct ofi_cq *)(void *)cq;
}

enum ndx_status ofi_cq_get_fd(struct ndx_spi_cq *spi, int *fd)
{
	struct ofi_cq *cq = cq_of(spi);
	int flag;
	int err = 0;
	enum ndx_status st = ndxp_cq_get_fd(spi, &flag);

	if (st != NDX_OK)
		return st;
	ndxp_lock_acquire(&cq->poll_lock);
	if (cq->fd < 0) {
		cq->fd = ndxp_poll_create();
		err = errno;
		if (cq->fd >= 0 && ndxp_poll_add(cq->fd, flag, POLLIN, false, NULL) != 0) {
			err = errno;
			ndxp_fd_close(cq->fd);
			cq->fd = -1;
		}
	}
	if (cq->fd >= 0)
		*fd = cq->fd;
	else
		st = NDX_E_INSUFFICIENT_RESOURCES;
	ndxp_lock_release(&cq->poll_lock);
	return st == NDX_OK ? st
	                    : fail(st, err, "no descriptor for a completion queue; see ulimit -n");
}

static struct ofi_ncq *ncq_at(struct ndxp_list *of_cq)
{
	return container_of(of_cq, struct ofi_tie, of_cq)->ncq;
}

/* poll_lock held. */
static void unshare_fds(struct ofi_cq *cq)
{
	if (!cq->fds_shared)
		return;
	for (struct ndxp_list *n = cq->ties.next; n != &cq->ties; n = n->next)
		ndxp_poll_remove(cq->fd, ncq_at(n)->watch.fd);
	__atomic_store_n(&cq->fds_shared, 0, __ATOMIC_SEQ_CST);
}

/* poll_lock held: put the native descriptors into the consumer's epoll set. */
static bool share_fds(struct ofi_cq *cq)
{
	unsigned count = 0;

	if (cq->fds_shared)
		return true;
	for (struct ndxp_list *n = cq->ties.next; n != &cq->ties; n = n->next)
		count++;
	if (cq->fd < 0 || count == 0 || count > SHARED_FDS_MAX)
		return false;
	__atomic_store_n(&cq->fds_shared, 1, __ATOMIC_SEQ_CST);
	for (struct ndxp_list *n = cq->ties.next; n != &cq->ties; n = n->next) {
		if (ndxp_poll_add(cq->fd, ncq_at(n)->watch.fd, POLLIN, false, NULL) == 0)
			continue;
		unshare_fds(cq);
		return false;
	}
	return true;
}

/* Is the queue armed by its descriptor only, for any result? */
static bool sleeps(struct ofi_cq *cq)
{
	bool is;

	ndxp_lock_acquire(&cq->base.lock);
	is = ndxp_cq_fd_waits(&cq->base) && cq->base.fd_type == NDX_CQ_NOTIFY_ANY &&
	     cq->base.notifies.head == NULL;
	ndxp_lock_release(&cq->base.lock);
	return is;
}

/* Read until nothing is left and the descriptor will report new completions, or until the consumer
 * has been notified. */
static bool make_quiet(struct ofi_cq *cq, struct ofi_ncq *ncq)
{
	struct fid *fids[1] = {&ncq->cq->fid};
	bool quiet = false;

	ndxp_lock_acquire(&ncq->lock);
	ofi_send_pending_credits(ncq);
	ofi_ack_armed(ncq);
	for (int i = 0; !quiet && i < ROUNDS; i++) {
		quiet = fi_trywait(ncq->adapter->fabric, fids, 1) == 0;
		if (!quiet)
			(void)ofi_ncq_progress(ncq);
		quiet = quiet || !sleeps(cq);
	}
	/* nothing else may look after what was read here */
	if (ofi_ncq_owes(ncq))
		ofi_ack_look(ncq);
	ndxp_lock_release(&ncq->lock);
	return quiet;
}

bool ofi_cq_share_fds(struct ofi_cq *cq)
{
	if (!sleeps(cq)) {
		unshare_fds(cq);
		return false;
	}
	if (!share_fds(cq))
		return false;
	for (struct ndxp_list *n = cq->ties.next; n != &cq->ties; n = n->next) {
		struct ofi_ncq *ncq = ncq_at(n);

		if (!make_quiet(cq, ncq))
			ofi_ncq_kick(ncq);
	}
	return true;
}

void ofi_cq_clear_fd(struct ofi_cq *cq)
{
	if (__atomic_load_n(&cq->fds_shared, __ATOMIC_RELAXED) == 0 ||
	    cq->adapter->backend->tells_always)
		return;
	ndxp_lock_acquire(&cq->poll_lock);
	for (struct ndxp_list *n = cq->ties.next; n != &cq->ties && cq->fds_shared && sleeps(cq);
	     n = n->next) {
		struct ofi_ncq *ncq = ncq_at(n);

		if (!make_quiet(cq, ncq))
			ofi_ncq_kick(ncq);
	}
	ndxp_lock_release(&cq->poll_lock);
}

void ofi_cq_unshare_fds(struct ofi_cq *cq)
{
	unshare_fds(cq);
}

bool ofi_cq_sleeps_on_native(struct ofi_cq *cq)
{
	return __atomic_load_n(&cq->fds_shared, __ATOMIC_SEQ_CST) != 0 && sleeps(cq);
}

bool ofi_cq_needs_thread(struct ofi_cq *cq)
{
	if (!ndxp_cq_is_armed(&cq->base))
		return false;
	return __atomic_load_n(&cq->fds_shared, __ATOMIC_SEQ_CST) == 0 || !sleeps(cq);
}

/* Only an armed descriptor has to report: a consumer that is busy elsewhere need not be woken. */
static void unshare_unarmed(struct ofi_cq *cq)
{
	if (__atomic_load_n(&cq->fds_shared, __ATOMIC_RELAXED) == 0)
		return;
	ndxp_lock_acquire(&cq->poll_lock);
	if (!sleeps(cq))
		unshare_fds(cq);
	ndxp_lock_release(&cq->poll_lock);
}

bool ofi_ncq_is_left_alone(struct ofi_ncq *ncq)
{
	struct pollfd native = {.fd = ncq->watch.fd, .events = POLLIN};
	bool lent = false;

	/* only this thread changes the ties */
	for (struct ndxp_list *n = ncq->ties.next; n != &ncq->ties; n = n->next) {
		struct ofi_cq *cq = container_of(n, struct ofi_tie, of_ncq)->cq;

		if (ofi_cq_needs_thread(cq))
			return false;
		unshare_unarmed(cq);
		lent = lent || __atomic_load_n(&cq->fds_shared, __ATOMIC_RELAXED) != 0;
	}
	return lent && ncq->idle_ticks++ < IDLE_TICKS &&
	       __atomic_load_n(&ncq->has_credit_pending, __ATOMIC_ACQUIRE) == 0 &&
	       !ofi_ncq_owes(ncq) && poll(&native, 1, 0) == 0;
}

void ofi_cq_wake(struct ndx_spi_cq *spi, bool up)
{
	ndxp_cq_wake(&cq_of(spi)->base, up);
}
