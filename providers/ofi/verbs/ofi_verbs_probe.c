/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a peer on verbs. verbs cannot take back a request that waits for this end's receive.
 * So verbs may disconnect without a goodbye, and keeps its queue pair until this end has written
 * PROBED. The first write changes nothing: the queue pair of a process that is being killed may
 * answer it, too, but not for long.
 */
#include <endian.h>

#include <ndx/spi/system.h>
#include "ofi_verbs.h"

#define PROBE_MS 1000u /* for the answer of verbs to a probe, ... */
#define MOMENT_MS 100u /* ... and between the two, for a process that is being killed */

bool ofi_verbs_has_aborted(struct ofi_link *link)
{
	return __atomic_load_n(ofi_verbs_word(link->area, OFI_VERBS_MAIL + NDXP_RC_ABORTED),
	                       __ATOMIC_ACQUIRE) != 0;
}

static void post_probe(struct ofi_link *link, enum ndxp_rc_field which)
{
	struct ofi_qp *qp = link->qp;
	int err;

	ndxp_lock_acquire(&qp->base.lock);
	*ofi_verbs_word(link->area, OFI_VERBS_NOTES + NDXP_RC_PROBED) = htobe64(1);
	err = ofi_verbs_mail(qp, which, 0, &link->verbs.ping_op);
	ndxp_lock_release(&qp->base.lock);
	link->pinged = true;
	link->ctrl_out += err == 0;
	link->verbs.probe_ns = ndxp_deadline(err == 0 ? PROBE_MS : 0);
}

bool ofi_verbs_has_answered(struct ofi_link *link)
{
	switch (link->verbs.probe) {
	case OFI_VERBS_NOT_PROBED:
		post_probe(link, NDXP_RC_CREDITS);
		link->verbs.probe = OFI_VERBS_TOUCHED;
		return false;
	case OFI_VERBS_TOUCHED:
		if (link->pinged)
			return false;
		link->verbs.probe = OFI_VERBS_PAUSED;
		link->verbs.probe_ns = ndxp_deadline(MOMENT_MS);
		return false;
	case OFI_VERBS_PAUSED:
		if (ndxp_now_ns() < link->verbs.probe_ns)
			return false;
		post_probe(link, NDXP_RC_PROBED);
		link->verbs.probe = OFI_VERBS_PROBED;
		return false;
	case OFI_VERBS_PROBED:
		break;
	}
	return !link->pinged;
}

bool ofi_verbs_may_answer(struct ofi_link *link)
{
	if (!link->peer.is_verbs || !link->verbs.introduced || ofi_verbs_has_aborted(link))
		return false;
	return link->verbs.probe == OFI_VERBS_NOT_PROBED || link->verbs.probe == OFI_VERBS_PAUSED ||
	       ndxp_now_ns() < link->verbs.probe_ns;
}
