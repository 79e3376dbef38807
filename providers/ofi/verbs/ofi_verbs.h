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
 * - Some networks drop requests without bytes, so there are none: the probe of a peer writes the
 *   number of receives once more.
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
	uint8_t type;     /* OFI_CTRL_READY, OFI_CTRL_REJECT or OFI_CTRL_HELLO */
	uint16_t depth;   /* depth of the sender's receive queue */
	uint32_t key;     /* key of the sender's control region, ... */
	uint64_t address; /* ... and its address */
	uint32_t credits; /* receives that are posted already */
	size_t private_len;
	uint8_t private_data[OFI_VERBS_CM_PRIVATE];
};

size_t ofi_record_encode(const struct ofi_record *record, uint8_t out[OFI_RECORD_SIZE]);
/* NULL: *record is filled; otherwise a text that says what is wrong. */
const char *ofi_record_decode(const uint8_t *data, size_t len, struct ofi_record *record);

/* ---- the control region ---- */

/* Immediate data of the bell; whether it is one depends on the goodbye. */
#define OFI_BELL UINT32_C(0x4e445864)
/* Flags of the goodbye: it was written; its sender closes its queue pair, and waits for the peer's
 * goodbye. */
#define OFI_SAID (UINT64_C(1) << 63)
#define OFI_LEAVING (UINT64_C(1) << 62)

/* Offsets in struct ofi_link.area. The first 72 bytes hold the private data of a REJECT. */
enum ofi_verbs_area {
	OFI_VERBS_OUT = 72,   /* this end's first message, ... */
	OFI_VERBS_IN = 144,   /* ... and the peer's */
	OFI_VERBS_MAIL = 216, /* two fields that the peer writes, ... */
	OFI_VERBS_CREDITS = OFI_VERBS_MAIL,
	OFI_VERBS_GOODBYE = OFI_VERBS_MAIL + 8,
	OFI_VERBS_NOTES =
		OFI_VERBS_MAIL + 16, /* ... and those that this end writes into the peer's */
	OFI_VERBS_END = OFI_VERBS_NOTES + 16,
};

_Static_assert(OFI_VERBS_OUT + OFI_RECORD_SIZE <= OFI_VERBS_IN, "records do not overlap");
_Static_assert(OFI_VERBS_IN + OFI_RECORD_SIZE <= OFI_VERBS_MAIL, "nor does the mail");
_Static_assert(OFI_VERBS_MAIL % 8 == 0, "a field is written in one piece");
_Static_assert((size_t)OFI_VERBS_END <= (size_t)OFI_AREA_SIZE, "all of it is in the region");

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

int ofi_verbs_submit(struct ofi_qp *qp, struct ofi_tx *tx);
void ofi_verbs_refresh(struct ofi_qp *qp);
int ofi_verbs_send_credits(struct ofi_qp *qp, uint32_t fresh);
/* Write this end's field with that offset (OFI_VERBS_CREDITS, OFI_VERBS_GOODBYE) into the
 * peer's. */
int ofi_verbs_mail(struct ofi_qp *qp, size_t word, uint64_t flags, void *context);
void ofi_verbs_received(struct ofi_qp *qp, struct ofi_rx *rx, const struct fi_cq_data_entry *e);
int ofi_verbs_error_of(const struct fi_cq_err_entry *e);

#endif
