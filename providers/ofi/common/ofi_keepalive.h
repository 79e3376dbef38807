/* SPDX-License-Identifier: BSD-2-Clause */
/* Signs that a peer lives (ofi_liveness.c), and the timer that checks them (ofi_keepalive.c). */
#ifndef OFI_OFI_KEEPALIVE_H
#define OFI_OFI_KEEPALIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base_diag.h"
#include "ofi_peer.h"

/* How long the other end, not its consumer, may take to answer while a connection is made. The
 * connection manager of InfiniBand says what was lost again every 4 s. */
#define OFI_ANSWER_MS 30000u

struct ofi_link;

struct ofi_life {
	uint32_t heard; /* link->heard, and ... */
	uint64_t bytes; /* ... what moved on the wire, also in the middle of a request */
};

/* What an answer to SYNC can stand behind, as far as it had moved when we last looked. */
struct ofi_flow {
	struct base_traffic bytes;
	uint32_t words; /* link->words_in */
	uint32_t heard; /* link->heard */
	uint64_t moved_ns;
};

/* Control thread: what the kernel says of our end of the connection. */
enum ofi_peer_found ofi_life_own_end(const struct ofi_link *link, struct base_diag_end *end);
/* Control thread: what moved on its connection; false: nobody knows. */
bool ofi_life_traffic(const struct ofi_link *link, struct base_traffic *bytes);

/* Control thread, the ncq's lock held: */
/* Has the peer given a sign of life since this was noted? If so that is noted. */
bool ofi_life_goes_on(struct ofi_link *link, struct ofi_life *since);
/* For how long has it been silent, from this time on? */
uint64_t ofi_life_silence_ns(struct ofi_link *link, uint64_t from_ns);

/* SYNC is on its way: for how long has nothing moved that its answer can stand behind, from this
 * time on? */
uint64_t ofi_life_stall_ns(struct ofi_link *link, uint64_t from_ns);

/* The link has come up: from now on an idle peer is asked now and then, if that is wanted. */
void ofi_life_keepalive(struct ofi_link *link);
/* Control thread: its queue pair has left it, and it waits for the peer's goodbye. */
void ofi_life_await_goodbye(struct ofi_link *link);
/* The link's timer has run out: look, ask, or break it. Returns when to look again in ms, 0: not.
 */
uint32_t ofi_life_check(struct ofi_link *link);

#endif
