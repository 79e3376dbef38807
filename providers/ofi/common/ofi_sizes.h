/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lengths of the receives that messages will find.
 *
 * A message that is longer than its receive makes libfabric's tcp provider shut the endpoint down
 * in the same call, and the sender would not learn why. So the receiver tells the lengths, and the
 * sender does not send such a message: a control message (TOO_LONG) says that it would not fit.
 *
 * The peer's control region has an entry for each place in the receive queue. The receiver writes
 * the entries before it gives the credits. It knows what the peer has, and writes only what
 * differs: nothing at all if all receives have one length, or if the lengths return with each round
 * of the queue. An entry may change only when the message for its former receive has come, so the
 * sender does not need it any more.
 */
#ifndef OFI_OFI_SIZES_H
#define OFI_OFI_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/ndx.h>

struct ofi_link;
struct ofi_qp;
struct ofi_rx;
struct ofi_tx;

/* Guarded by the queue pair's lock. */
struct ofi_sizes {
	/* own receives */
	uint8_t *entries; /* those of the peer's control region; NULL: lengths are not told */
	uint32_t depth;   /* number of entries */
	uint32_t place;   /* entry of the next receive that libfabric gets */
	uint32_t common;  /* length for which an entry is 0; OFI_SIZE_UNKNOWN: no receive yet */
	bool common_told;
	uint32_t changed;     /* the peer does not have entries from this one ... */
	uint32_t changed_end; /* ... up to this one yet */
	/* the peer's receives */
	const uint8_t *peers; /* entries in the own control region; NULL: the peer tells none */
	uint32_t peer_depth;
	uint32_t peer_place; /* entry of the receive that the next message finds */
	uint32_t peer_common;
	bool refused;          /* TOO_LONG was sent: no request follows */
	uint32_t refused_room; /* length of the receive that was too short */
};

/* All: the queue pair's lock is held. */

/* The queue pair gets a link. */
void ofi_sizes_begin(struct ofi_qp *qp, struct ofi_link *link);
/* How many of the first receives may be told of by the data of connection management, which have
 * only one length? */
uint32_t ofi_sizes_leading(const struct ofi_qp *qp);
/* The endpoint is connected, and the peer's parameters are known. */
void ofi_sizes_open(struct ofi_qp *qp, struct ofi_link *link);
/* The link ends: complete with their reason what libfabric did not bring back. */
void ofi_sizes_end(struct ofi_qp *qp);
/* libfabric gets this receive, for the first time or again. */
void ofi_sizes_place(struct ofi_qp *qp, struct ofi_rx *rx);
/* Write what the peer does not have; 0 or an errno of libfabric's. Credits follow. FI_EAGAIN before
 * the connection is established: ofi_link_go_up() tells. */
int ofi_sizes_tell(struct ofi_qp *qp);

/* NDX_OK, or the status of a send that its receive cannot take. */
enum ndx_status ofi_sizes_check(const struct ofi_qp *qp, const struct ofi_tx *tx);
/* A message has taken its receive. */
void ofi_sizes_sent(struct ofi_qp *qp);
/* Send TOO_LONG in place of the message; 0 or an errno of libfabric's. */
int ofi_sizes_refuse(struct ofi_qp *qp, struct ofi_tx *tx);

/* The peer sends its common length, or that a message does not fit. NULL, or the violation. */
const char *ofi_sizes_take(struct ofi_qp *qp, uint32_t common);
const char *ofi_sizes_too_long(struct ofi_qp *qp, uint32_t length);

#endif
