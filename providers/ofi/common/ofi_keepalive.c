/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timer of a link: time limits while it connects, keepalive, and the wait for the peer's
 * goodbye. Control thread, the lock of the native queue is held.
 */
#include <errno.h>

#include <ndx/spi/system.h>
#include "ofi.h"

#define LOOK_MS 500u /* period of the checks of a peer that does not answer */

/* Has the peer been silent from one check to the next, `quiet_ms` apart, and then left a PING
 * unanswered for `answer_ms` in which no byte moved? Behind a large request an answer may take
 * longer, so the checks become more frequent. Returns the time to the next check in ms. */
static uint32_t ping_if_silent(struct ofi_link *link, uint32_t quiet_ms, uint32_t answer_ms,
                               const char *cause)
{
	int err;

	if (link->signs_of_life != link->seen) {
		link->seen = link->signs_of_life;
		return quiet_ms;
	}
	if (link->pinged) {
		if (ofi_liveness_silence_ns(link, link->pinged_ns) >= answer_ms * NDXP_NS_PER_MS)
			ofi_link_break(link, ETIMEDOUT, cause);
		return quiet_ms < LOOK_MS ? quiet_ms : LOOK_MS;
	}
	err = ofi_link_send_ctrl(link, OFI_CTRL_PING, 0, &link->adapter->silent);
	link->pinged = err == 0;
	link->pinged_ns = ndxp_now_ns();
	/* what moved before does not count */
	(void)ofi_liveness_silence_ns(link, link->pinged_ns);
	if (err != 0)
		ofi_link_break(link, err, "a PING could not be sent: the link was lost");
	return quiet_ms;
}

/*
 * The queue pair is closed and the peer's goodbye has not come. A message that was on its way finds
 * no receive, and libfabric reads nothing behind it: neither the goodbye nor the end of the link.
 * The kernel knows whether the link has ended. What came before is read first: without such a
 * message it may be the goodbye. Returns the time to the next check in ms.
 */
static uint32_t look_for_close(struct ofi_link *link)
{
	struct ndxp_diag_end end;

	if (link->peer_disc || ofi_liveness_own_end(link, &end) != OFI_PEER_FOUND)
		return 0;
	if (end.established)
		return LOOK_MS;
	ofi_ncq_catch_up_locked(link->ncq);
	if (!link->peer_disc)
		ofi_link_break(link, ECONNRESET,
		               "the peer closed the link, and no goodbye could be read behind a "
		               "message that came when the queue pair was closed");
	return 0;
}

/* Here the peer has to answer at once, and gets no PING. */
static uint32_t break_unanswered(struct ofi_link *link, const char *cause)
{
	ofi_link_break(link, ETIMEDOUT, cause);
	return 0;
}

uint32_t ofi_keepalive_check(struct ofi_link *link)
{
	const uint32_t answer_ms = link->adapter->answer_ms;

	switch (link->stage) {
	case OFI_LINK_UP:
		if (link->qp == NULL && link->adapter->backend->over_tcp)
			return look_for_close(link);
		if (link->keepalive_ms > 0)
			return ping_if_silent(link, ofi_liveness_period(link), link->keepalive_ms,
			                      "keepalive: the peer does not answer");
		break;
	case OFI_LINK_ACCEPTING:
		if (!link->open)
			return break_unanswered(
				link, "the peer has not confirmed the accept: it has given up, "
				      "or is gone");
		if (link->adapter->backend->asks_late)
			return answer_ms;
		return ping_if_silent(link, answer_ms, answer_ms,
		                      "the peer does not answer, and has not sent READY yet");
	case OFI_LINK_COMPLETING:
		return break_unanswered(link, "the peer does not acknowledge READY");
	case OFI_LINK_CONNECTING:
	case OFI_LINK_ANSWERED:
	case OFI_LINK_OVER:
		break;
	}
	return 0;
}
