/* SPDX-License-Identifier: BSD-2-Clause */
/* Signs of life of a peer (ofi_liveness.c), and the timer that checks them (ofi_keepalive.c). */
#ifndef OFI_OFI_KEEPALIVE_H
#define OFI_OFI_KEEPALIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/tcp_diag.h>
#include "ofi_peer.h"

/* How long the peer's provider, not its consumer, may take to answer while a connection is made.
 * The InfiniBand connection manager repeats a lost message every 4 s. */
#define OFI_ANSWER_MS 30000u

struct ofi_link;

struct ofi_liveness {
	uint32_t signs_of_life; /* link->signs_of_life at the last check */
	uint64_t bytes;         /* bytes that had moved on the connection, also within a request */
};

/* What had moved, at the last check, that an answer to SYNC can stand behind. */
struct ofi_flow {
	struct ndxp_traffic bytes;
	uint32_t ctrl_in;       /* link->ctrl_in */
	uint32_t signs_of_life; /* link->signs_of_life */
	uint64_t moved_ns;
};

/* Control thread: the kernel's data about this end of the connection. */
enum ofi_peer_found ofi_liveness_own_end(const struct ofi_link *link, struct ndxp_diag_end *end);
/* Control thread: bytes that have moved on the connection; false: not known. */
bool ofi_liveness_traffic(const struct ofi_link *link, struct ndxp_traffic *bytes);

/* Control thread, the ncq's lock held: */
/* Has the peer given a sign of life since `since`, which is then updated? */
bool ofi_liveness_goes_on(struct ofi_link *link, struct ofi_liveness *since);
/* For how long has the peer been silent, counted from `from_ns` at the earliest? */
uint64_t ofi_liveness_silence_ns(struct ofi_link *link, uint64_t from_ns);

/* A SYNC is in flight: for how long has nothing moved that its answer can stand behind, counted
 * from `from_ns` at the earliest? */
uint64_t ofi_liveness_stall_ns(struct ofi_link *link, uint64_t from_ns);

/* How often the peer of an established connection is checked, in ms; keepalive_ms is not 0. */
uint32_t ofi_liveness_period(const struct ofi_link *link);
/* The connection is established: start keepalive, if the queue pair has it. */
void ofi_liveness_keepalive(struct ofi_link *link);
/* Control thread: the queue pair is detached, and the link waits for the peer's goodbye. */
void ofi_liveness_await_goodbye(struct ofi_link *link);
/* The link's timer has expired: check, send a PING, or break the link. Returns the time to the next
 * check in ms, 0: none. */
uint32_t ofi_keepalive_check(struct ofi_link *link);

#endif
