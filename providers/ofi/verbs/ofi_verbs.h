/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a connection over libfabric's verbs provider has beside what all have. A device cannot give
 * back single requests and tells nobody why a link ends, so both ends keep to what they agree on:
 *
 *  - Each side's first message goes into a receive of the provider's own and says where its control
 *    region is: READY or REJECT from the active side, HELLO from the passive one.
 *  - In the control region the peer writes how many receives it has posted, ever: a request that
 *    would have to wait for one waits here. Nobody is told of such a write; who waits looks.
 *  - A goodbye is written there, too, with the number of messages that went before it. When it is
 *    written once more, with immediate data, that is the bell: it says so if there is a receive for
 *    it, which is given back: no message comes behind it. Who has no receive posted looks for the
 *    goodbye.
 *  - Who closes its queue pair says so in the goodbye, and closes when the peer's has come. The
 *    peer looks for that, too, and does not wait for receives any more.
 *  - Some networks drop requests without bytes, so there are none: a peer is asked whether it
 *    answers by a write of the number of its receives once more.
 */
#ifndef OFI_OFI_VERBS_H
#define OFI_OFI_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ndx/spi/provider.h>

#include "ofi.h"

/* ---- connection management ---- */

#define OFI_VERBS_CM_HEADER 7u
#define OFI_VERBS_CM_SIZE 55u
#define OFI_VERBS_CM_PRIVATE (OFI_VERBS_CM_SIZE - OFI_VERBS_CM_HEADER)

size_t ofi_verbs_cm_encode(const struct ofi_cm *cm, uint8_t *out);
const char *ofi_verbs_cm_decode(const uint8_t *data, size_t len, enum ofi_cm_kind kind,
                                struct ofi_cm *cm);

/* ---- first messages ---- */

#define OFI_RECORD_HEADER 20u
#define OFI_RECORD_SIZE (OFI_RECORD_HEADER + OFI_VERBS_CM_PRIVATE)

struct ofi_record {
	uint8_t type;     /* OFI_WORD_READY, OFI_WORD_REJECT or OFI_WORD_HELLO */
	uint16_t depth;   /* of the sender's receive queue */
	uint32_t key;     /* of its control region, ... */
	uint64_t address; /* ... and where it begins */
	uint32_t credits; /* receives that are posted already */
	size_t private_len;
	uint8_t private_data[OFI_VERBS_CM_PRIVATE];
};

size_t ofi_record_encode(const struct ofi_record *record, uint8_t out[OFI_RECORD_SIZE]);
/* NULL: *record is filled; otherwise what is wrong, for people. */
const char *ofi_record_decode(const uint8_t *data, size_t len, struct ofi_record *record);

/* ---- the control region ---- */

/* Immediate data of the bell; the goodbye decides whether it is one. */
#define OFI_BELL UINT32_C(0x4e445864)
/* In the goodbye: it was said; its sender closes its queue pair, and waits for ours. */
#define OFI_SAID (UINT64_C(1) << 63)
#define OFI_LEAVING (UINT64_C(1) << 62)

/* Offsets in struct ofi_link.area. The first 72 bytes hold the data of a REJECT. */
enum ofi_verbs_area {
	OFI_VERBS_OUT = 72,   /* the own first message, ... */
	OFI_VERBS_IN = 144,   /* ... and the peer's */
	OFI_VERBS_MAIL = 216, /* two words that the peer writes: ... */
	OFI_VERBS_CREDITS = OFI_VERBS_MAIL,
	OFI_VERBS_GOODBYE = OFI_VERBS_MAIL + 8,
	OFI_VERBS_NOTES = OFI_VERBS_MAIL + 16, /* ... and the same two of ours, to be written */
	OFI_VERBS_END = OFI_VERBS_NOTES + 16,
};

_Static_assert(OFI_VERBS_OUT + OFI_RECORD_SIZE <= OFI_VERBS_IN, "records do not overlap");
_Static_assert(OFI_VERBS_IN + OFI_RECORD_SIZE <= OFI_VERBS_MAIL, "nor does the mail");
_Static_assert(OFI_VERBS_MAIL % 8 == 0, "words are written in one piece");
_Static_assert((size_t)OFI_VERBS_END <= (size_t)OFI_AREA_SIZE, "all of it is in the region");

void ofi_verbs_attached(struct ofi_link *link);
int ofi_verbs_say_ready(struct ofi_link *link);
int ofi_verbs_say_reject(struct ofi_link *link, const void *data, size_t len);
int ofi_verbs_say(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op);
void ofi_verbs_opened(struct ofi_link *link);
void ofi_verbs_up(struct ofi_link *link);
void ofi_verbs_shut(struct ofi_link *link);
void ofi_verbs_first(struct ofi_link *link, const struct fi_cq_data_entry *e);
enum ndx_status ofi_verbs_detach(struct ofi_link *link);
/* The ncq's lock held: has the peer said goodbye, and has all come that it had sent? */
bool ofi_verbs_heard_goodbye(struct ofi_link *link);
/* The same: take what the peer has said by its goodbye, if it has. */
void ofi_verbs_hear(struct ofi_link *link);
/* The same: requests had their time, a little more is left to those that the stack has. */
void ofi_verbs_hurry(struct ofi_link *link);
/* The same: look soon, the own receives have run out. */
void ofi_verbs_look_soon(struct ofi_link *link);

int ofi_verbs_hand_over(struct ofi_qp *qp, struct ofi_tx *tx);
void ofi_verbs_refresh(struct ofi_qp *qp);
int ofi_verbs_tell(struct ofi_qp *qp, uint32_t fresh);
/* Write the own word of that offset (OFI_VERBS_CREDITS, OFI_VERBS_GOODBYE) into the peer's mail. */
int ofi_verbs_mail(struct ofi_qp *qp, size_t word, uint64_t flags, void *context);
void ofi_verbs_received(struct ofi_qp *qp, struct ofi_rx *rx, const struct fi_cq_data_entry *e);
int ofi_verbs_error_of(const struct fi_cq_err_entry *e);

#endif
