/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is a silent peer alive? Completions and the peer's control messages prove it. But a large request
 * may take longer than the time-out for a dead peer, control messages wait behind that request, and
 * libfabric reports nothing about what a peer writes into memory of this side. So the kernel is
 * asked for the bytes that have moved on the connection. The kernel acknowledges for a stopped
 * process, too, but only until the socket buffer is full.
 *
 * Control thread, the ncq's lock held.
 */
#include <ndx/spi/system.h>
#include "ofi.h"

/* Fewer bytes are no sign of life: the kernel of a stopped process acknowledges a PING, too. */
#define SIGN_BYTES 1024u
#define WORD_BYTES 96u /* at most: a control message with record and acknowledgement */
#define LOOK_MS 500u   /* period of the checks of a peer that does not answer */
#define QUIET_PART 4u  /* of keepalive_ms: a peer that is silent for this part gets a PING */

enum ofi_peer_found ofi_liveness_own_end(const struct ofi_link *link, struct ndxp_diag_end *end)
{
	struct sockaddr_storage local = {0};
	struct sockaddr_storage peer = {0};
	size_t local_len = sizeof(local);
	size_t peer_len = sizeof(peer);

	if (fi_getname(&link->ep->fid, &local, &local_len) != 0 ||
	    fi_getpeer(link->ep, &peer, &peer_len) != 0)
		return OFI_PEER_UNKNOWN;
	return ofi_peer_own_end(link->adapter, &local, &peer, end);
}

bool ofi_liveness_traffic(const struct ofi_link *link, struct ndxp_traffic *bytes)
{
	struct ndxp_diag_end end;

	if (ofi_liveness_own_end(link, &end) != OFI_PEER_FOUND)
		return false;
	*bytes = end.bytes;
	return true;
}

bool ofi_liveness_goes_on(struct ofi_link *link, struct ofi_liveness *since)
{
	const bool heard = link->signs_of_life != since->signs_of_life;
	struct ndxp_traffic now;

	since->signs_of_life = link->signs_of_life;
	if (!ofi_liveness_traffic(link, &now))
		return heard;
	/* also when heard: what moved before must not count at the next check */
	if (!heard && now.in + now.out < since->bytes + SIGN_BYTES)
		return false;
	since->bytes = now.in + now.out;
	return true;
}

uint64_t ofi_liveness_silence_ns(struct ofi_link *link, uint64_t from_ns)
{
	const uint64_t now = ndxp_now_ns();

	if (ofi_liveness_goes_on(link, &link->liveness))
		link->liveness_ns = now;
	if (from_ns < link->liveness_ns)
		from_ns = link->liveness_ns;
	return now - from_ns;
}

/*
 * Has anything moved that the answer to SYNC can stand behind? Until SYNC is delivered, own
 * requests count as well as the peer's; afterwards only what comes in counts. Control messages
 * never count: a peer that keeps sending PING does not come closer to the answer.
 */
static bool has_moved(struct ofi_link *link)
{
	struct ofi_flow *since = &link->flow;
	const uint64_t count = link->ctrl_in - since->ctrl_in;
	const bool heard = link->signs_of_life != since->signs_of_life;
	struct ndxp_traffic now;
	uint64_t bytes;
	uint64_t beside;

	since->signs_of_life = link->signs_of_life;
	/* where the kernel does not count bytes, any sign of life counts */
	if (!ofi_liveness_traffic(link, &now))
		return heard;
	bytes = now.in - since->bytes.in;
	beside = count * WORD_BYTES;
	if (!link->sync_acked) {
		bytes += now.out - since->bytes.out;
		beside *= 2;
	}
	if (bytes < beside + SIGN_BYTES)
		return false;
	since->bytes = now;
	since->ctrl_in = link->ctrl_in;
	return true;
}

uint64_t ofi_liveness_stall_ns(struct ofi_link *link, uint64_t from_ns)
{
	const uint64_t now = ndxp_now_ns();

	if (has_moved(link))
		link->flow.moved_ns = now;
	return now - (from_ns < link->flow.moved_ns ? link->flow.moved_ns : from_ns);
}

/* ---- setting the timer ---- */

uint32_t ofi_liveness_period(const struct ofi_link *link)
{
	return link->keepalive_ms < QUIET_PART ? 1 : link->keepalive_ms / QUIET_PART;
}

void ofi_liveness_keepalive(struct ofi_link *link)
{
	if (link->keepalive_ms > 0)
		ndxp_timer_set(link->adapter->spi.loop, &link->timer, ofi_liveness_period(link));
}

void ofi_liveness_await_goodbye(struct ofi_link *link)
{
	ndxp_timer_set(link->adapter->spi.loop, &link->timer, LOOK_MS);
}
