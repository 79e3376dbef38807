/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a connection over libfabric's verbs provider has beside what all back ends have. A device
 * cannot return single requests, and reports no reason when a link ends. So both ends follow this
 * protocol:
 *
 * - Each side's first message goes into a receive of the provider's own, and has the address of the
 *   sender's control region: READY or REJECT from the active side, HELLO from the passive side.
 * - Into the control region the peer writes how many receives it has posted in all. A request that
 *   would have to wait for a receive waits here. No event reports such a write; a side that waits
 *   polls.
 * - A goodbye is written there, too, with the number of messages sent before it. It is written a
 *   second time with immediate data, which is called the bell, if there is a receive for that. The
 *   receive is given back, because no message follows. A side without a posted receive polls for
 *   the goodbye.
 * - A side that closes its queue pair sets a flag in its goodbye, and closes when the peer's
 *   goodbye has come. The peer polls for the flag, too, and does not wait for receives any more.
 * - A side whose receive queue is shared gives receives to a connection when the peer asks for
 *   them (WANT): the peer writes the number of its receives once more, with the number of messages
 *   that wait as immediate data. Behind the receives that the peer has asked for there is always
 *   one of the provider's for that. The peer asks when it has used all, so messages and requests
 *   for receives find the receives that are meant for them. The bell may use that receive, too.
 * - Some networks drop requests without bytes, so there are none: the probe of a peer writes the
 *   number of receives once more.
 */
#ifndef OFI_OFI_VERBS_H
#define OFI_OFI_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/spi/provider.h>

#include <ndx/spi/rc_wire.h>
#include "ofi.h"

/* ---- connection management ---- */

size_t ofi_verbs_cm_encode(const struct ofi_cm *cm, uint8_t *out);
const char *ofi_verbs_cm_decode(const uint8_t *data, size_t len, enum ofi_cm_kind kind,
                                struct ofi_cm *cm);

/* ---- the control region ---- */

/* Offsets in struct ofi_link.area. The first 72 bytes hold the private data of a REJECT. */
enum ofi_verbs_area {
	OFI_VERBS_OUT = 72,   /* this end's first message, ... */
	OFI_VERBS_IN = 144,   /* ... and the peer's */
	OFI_VERBS_MAIL = 216, /* the fields that the peer writes, ... */
	OFI_VERBS_NOTES = OFI_VERBS_MAIL + NDXP_RC_FIELDS, /* ... and the sources of this end's */
	OFI_VERBS_END = OFI_VERBS_NOTES + NDXP_RC_FIELDS,
};

_Static_assert(OFI_VERBS_OUT + NDXP_RC_RECORD_SIZE <= OFI_VERBS_IN, "records do not overlap");
_Static_assert(OFI_VERBS_IN + NDXP_RC_RECORD_SIZE <= OFI_VERBS_MAIL, "nor does the mail");
_Static_assert(OFI_VERBS_MAIL % 8 == 0, "a field is written in one piece");
_Static_assert((size_t)OFI_VERBS_END <= (size_t)OFI_AREA_SIZE, "all of it is in the region");

static inline uint64_t *ofi_verbs_word(uint8_t *area, size_t offset)
{
	return (uint64_t *)(void *)(area + offset);
}

void ofi_verbs_attached(struct ofi_link *link);
int ofi_verbs_send_ready(struct ofi_link *link);
int ofi_verbs_send_reject(struct ofi_link *link, const void *data, size_t len);
int ofi_verbs_send_ctrl(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op);
void ofi_verbs_opened(struct ofi_link *link);
void ofi_verbs_up(struct ofi_link *link);
void ofi_verbs_shut(struct ofi_link *link);
/* The timer of a link. Control thread, lock not held. */
void ofi_verbs_on_watch(void *arg);
void ofi_verbs_first(struct ofi_link *link, const struct fi_cq_data_entry *e);
enum ndx_status ofi_verbs_detach(struct ofi_link *link);
/* The ncq's lock held: has the peer said goodbye, and has all come that it has sent before? */
bool ofi_verbs_heard_goodbye(struct ofi_link *link);
/* The ncq's lock held: act on the peer's goodbye, if there is one. */
void ofi_verbs_check_goodbye(struct ofi_link *link);
/* The ncq's lock held: requests did not end in time; give those that libfabric has a little
 * more. */
void ofi_verbs_limit_requests(struct ofi_link *link);
/* The ncq's lock held: poll soon, because no receive is posted. */
void ofi_verbs_poll_soon(struct ofi_link *link);

/* The ncq's lock held, the peer is verbs and has disconnected: has the peer aborted? */
bool ofi_verbs_has_aborted(struct ofi_link *link);
/* Probe the peer, step by step; true: the peer is alive, so its disconnect was a goodbye. */
bool ofi_verbs_has_answered(struct ofi_link *link);
/* May the peer be alive, and answer? */
bool ofi_verbs_may_answer(struct ofi_link *link);

int ofi_verbs_submit(struct ofi_qp *qp, struct ofi_tx *tx);
void ofi_verbs_refresh(struct ofi_qp *qp);
void ofi_verbs_peeked(struct ofi_qp *qp);
int ofi_verbs_send_credits(struct ofi_qp *qp, uint32_t fresh);
/* Post the receive for the peer's next WANT, if it is time: 0 or an errno. */
int ofi_verbs_await_want(struct ofi_qp *qp);
/* Has the device a receive, so that the peer can ring? */
bool ofi_verbs_has_receive(const struct ofi_qp *qp);
int ofi_verbs_send_want(struct ofi_qp *qp, uint16_t count);
uint16_t ofi_verbs_count_sent(const struct ofi_qp *qp);
/* Write this end's field into the peer's. */
int ofi_verbs_mail(struct ofi_qp *qp, enum ndxp_rc_field which, uint64_t flags, void *context);
void ofi_verbs_received(struct ofi_qp *qp, struct ofi_rx *rx, const struct fi_cq_data_entry *e);
void ofi_verbs_wanted(struct ofi_qp *qp, const struct fi_cq_data_entry *e);
void ofi_verbs_want_failed(struct ofi_qp *qp, int err);
int ofi_verbs_error_of(const struct fi_cq_err_entry *e);

/* Turn libfabric's cache of regions off, in this process. Works if nothing has opened a domain of
 * libfabric before. */
void ofi_verbs_turn_off_cache(void);

#endif
