/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a peer live that has not said anything for a while? A completion or a word of the peer's
 * shows it. But one large request may take longer than anybody wants to wait for a dead peer, the
 * words behind it wait as long, and of what a peer writes to our memory the stack tells nothing at
 * all. So the kernel is asked what has moved on the connection. It answers for a peer's kernel, not
 * for the peer; but what that takes for a process that stands still soon comes to an end.
 *
 * Control thread, the ncq's lock held.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base_linux.h"
#include "ofi.h"

/* Fewer are no sign: a question of ours is acknowledged by the kernel of a process that stands
 * still, too. */
#define SIGN_BYTES 1024u
#define WORD_BYTES 96u /* a control word with its record and the proof of its delivery: at most */
#define LOOK_MS 500u   /* how often a peer is looked at that does not answer */
#define NS_PER_MS UINT64_C(1000000)

/* What the kernel says of our end of the connection. */
static enum ofi_peer_found find_own_end(const struct ofi_link *link, struct base_diag_end *end)
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

bool ofi_life_traffic(const struct ofi_link *link, struct base_traffic *bytes)
{
	struct base_diag_end end;

	if (find_own_end(link, &end) != OFI_PEER_FOUND)
		return false;
	*bytes = end.bytes;
	return true;
}

bool ofi_life_goes_on(struct ofi_link *link, struct ofi_life *since)
{
	const bool heard = link->heard != since->heard;
	struct base_traffic now;

	since->heard = link->heard;
	if (heard)
		return true;
	if (!ofi_life_traffic(link, &now) || now.in + now.out < since->bytes + SIGN_BYTES)
		return false;
	since->bytes = now.in + now.out;
	return true;
}

uint64_t ofi_life_silence_ns(struct ofi_link *link, uint64_t from_ns)
{
	const uint64_t now = base_now_ns();

	if (ofi_life_goes_on(link, &link->life))
		link->life_ns = now;
	if (from_ns < link->life_ns)
		from_ns = link->life_ns;
	return now - from_ns;
}

/*
 * Has anything moved that the answer to SYNC can stand behind? Until SYNC is delivered that may be
 * our own requests as well as the peer's; afterwards only what comes in counts. Control words never
 * count: a peer that says PING all the time brings the answer no nearer.
 */
static bool has_moved(struct ofi_link *link)
{
	struct ofi_flow *since = &link->flow;
	const uint64_t words = link->words_in - since->words;
	const bool heard = link->heard != since->heard;
	struct base_traffic now;
	uint64_t bytes;
	uint64_t beside;

	since->heard = link->heard;
	/* Where the kernel does not tell, any sign has to do. */
	if (!ofi_life_traffic(link, &now))
		return heard;
	bytes = now.in - since->bytes.in;
	beside = words * WORD_BYTES;
	if (!link->sync_acked) {
		bytes += now.out - since->bytes.out;
		beside *= 2;
	}
	if (bytes < beside + SIGN_BYTES)
		return false;
	since->bytes = now;
	since->words = link->words_in;
	return true;
}

uint64_t ofi_life_stall_ns(struct ofi_link *link, uint64_t from_ns)
{
	const uint64_t now = base_now_ns();

	if (has_moved(link))
		link->flow.moved_ns = now;
	return now - (from_ns < link->flow.moved_ns ? link->flow.moved_ns : from_ns);
}

/* ---- asking ---- */

void ofi_life_keepalive(struct ofi_link *link)
{
	if (link->keepalive_ms > 0)
		base_timer_set(link->adapter->spi.loop, &link->timer, link->keepalive_ms);
}

/* Has the peer been silent for a whole period, and the question unanswered for another one, in
 * which nothing moved? Behind a large request it may be unanswered for longer; then we look more
 * often. Returns when to look again, in ms. */
static uint32_t ask(struct ofi_link *link, uint32_t period, const char *cause)
{
	int err;

	if (link->heard != link->seen) {
		link->seen = link->heard;
		return period;
	}
	if (link->pinged) {
		if (ofi_life_silence_ns(link, link->pinged_ns) >= period * NS_PER_MS)
			ofi_link_break(link, ETIMEDOUT, cause);
		return period < LOOK_MS ? period : LOOK_MS;
	}
	err = ofi_link_say(link, OFI_WORD_PING, 0, &link->adapter->silent);
	link->pinged = err == 0;
	link->pinged_ns = base_now_ns();
	/* What moved before does not count. */
	(void)ofi_life_silence_ns(link, link->pinged_ns);
	if (err != 0)
		ofi_link_break(link, err,
		               "a sign of life could not be asked for: the link was lost");
	return period;
}

void ofi_life_await_goodbye(struct ofi_link *link)
{
	base_timer_set(link->adapter->spi.loop, &link->timer, LOOK_MS);
}

/*
 * The queue pair is closed and the peer's goodbye owed. A message that was on its way finds no
 * receive, and libfabric reads nothing behind it: neither the goodbye nor that the peer has closed
 * the link. The kernel knows of the latter. What came before it is taken first: it may be the
 * goodbye, if there was no such message. Returns when to look again, in ms.
 */
static uint32_t look_for_close(struct ofi_link *link)
{
	struct base_diag_end end;

	if (link->parted || find_own_end(link, &end) != OFI_PEER_FOUND)
		return 0;
	if (end.established)
		return LOOK_MS;
	ofi_ncq_catch_up_locked(link->ncq);
	if (!link->parted)
		ofi_link_break(link, ECONNRESET,
		               "the peer closed the link without a goodbye that could be read: its "
		               "message came when the queue pair was closed");
	return 0;
}

/* The peer has to answer at once here, and is not asked. */
static uint32_t end(struct ofi_link *link, const char *cause)
{
	ofi_link_break(link, ETIMEDOUT, cause);
	return 0;
}

uint32_t ofi_life_check(struct ofi_link *link)
{
	const uint32_t answer_ms = link->adapter->answer_ms;

	switch (link->stage) {
	case OFI_LINK_UP:
		if (link->qp == NULL && link->adapter->flavour->over_tcp)
			return look_for_close(link);
		if (link->keepalive_ms > 0)
			return ask(link, link->keepalive_ms, "keepalive: the peer does not answer");
		break;
	case OFI_LINK_ACCEPTING:
		if (!link->open)
			return end(link, "the peer's end has not confirmed our accept: it has "
			                 "given up or gone away");
		if (link->adapter->flavour->asks_late)
			return answer_ms;
		return ask(link, answer_ms,
		           "the peer's end does not answer while its word is awaited that the "
		           "connection is complete");
	case OFI_LINK_COMPLETING:
		return end(link, "the peer's end does not take our word that the connection is "
		                 "complete");
	case OFI_LINK_CONNECTING:
	case OFI_LINK_ANSWERED:
	case OFI_LINK_OVER:
		break;
	}
	return 0;
}
