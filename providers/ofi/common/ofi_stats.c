/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of this provider, to find out why a connection stands still. */
#include "ofi.h"

void ofi_qp_get_stats(struct ndx_spi_qp *spi, struct ndx_qp_stats *stats)
{
	struct ofi_qp *qp = ofi_qp_of(spi);

	ndxp_lock_acquire(&qp->base.lock);
	ndxp_qp_get_stats(&qp->base, stats);
	if (qp->taker.srq != NULL)
		ndxp_queue_get_stats(&qp->taker.counts, &stats->receive);
	ndxp_lock_release(&qp->base.lock);
}

static uint64_t load_count(const uint64_t *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

static void adapter_counters(const struct ofi_adapter *adapter, ndx_spi_counter_fn *each, void *arg)
{
	const struct ofi_counts *counts = &adapter->counts;

	each(arg, "links", __atomic_load_n(&adapter->link_count, __ATOMIC_RELAXED));
	each(arg, "control_messages_sent", load_count(&counts->ctrl_sent));
	each(arg, "control_messages_received", load_count(&counts->ctrl_received));
	each(arg, "native_wakeups", load_count(&counts->wakeups));
	each(arg, "empty_reads", load_count(&counts->vain));
	each(arg, "rest_waits", load_count(&counts->rest_waits));
	each(arg, "ticks", load_count(&counts->ticks));
}

static void qp_counters(struct ofi_qp *qp, ndx_spi_counter_fn *each, void *arg)
{
	ndxp_lock_acquire(&qp->base.lock);
	each(arg, "connected", qp->open);
	each(arg, "credits", qp->credits);
	each(arg, "peer_depth", qp->peer_depth);
	each(arg, "sends_native", qp->tx_native);
	each(arg, "sends_unacknowledged", qp->acks.waiting);
	each(arg, "acknowledgements_owed", ofi_acks_owed(qp));
	each(arg, "reads_native", qp->reads);
	each(arg, "receives_native", qp->rx_native);
	each(arg, "receives_credited", qp->rx_credited);
	each(arg, "receives_wanted", qp->taker.wanted);
	each(arg, "credit_messages_sent", qp->credit_ctrl_sent);
	each(arg, "credit_messages_received", qp->credit_ctrl_received);
	ndxp_lock_release(&qp->base.lock);
}

void ofi_get_counters(struct ndx_spi_adapter *spi, struct ndx_spi_qp *qp, ndx_spi_counter_fn *each,
                      void *arg)
{
	if (qp == NULL)
		adapter_counters(ofi_adapter_of(spi), each, arg);
	else
		qp_counters(ofi_qp_of(qp), each, arg);
}
