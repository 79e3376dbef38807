/* SPDX-License-Identifier: BSD-2-Clause */
/* Mailboxes: fields that the peer writes when a connection ends. Used by the control thread
 * only. */
#ifndef VERBS_MAILBOX_H
#define VERBS_MAILBOX_H

#include "verbs_conn.h"

/* Fields of the mailbox. */
enum verbs_field {
	VERBS_FIELD_GOODBYE,
	VERBS_FIELD_PROBED,
	VERBS_FIELD_ABORTED,
	VERBS_FIELD_OWN, /* the source of this end's writes */
	VERBS_FIELDS,
	/* Of a connection without rdma_cm, whose goodbyes do not use the mailbox: */
	VERBS_FIELD_SMALL = VERBS_FIELD_GOODBYE, /* a few bytes have arrived, ... */
	VERBS_FIELD_WHOLE = VERBS_FIELD_ABORTED, /* ... and a packet of the path MTU */
};

/* For a conn with a queue pair. */
enum ndx_status verbs_mailbox_open(struct verbs_conn *conn);
/* After the peer has lost its access; a no-op without a mailbox. */
void verbs_mailbox_close(struct verbs_conn *conn);
void verbs_mailbox_close_all(struct verbs_adapter *adapter);
/* For a conn with a queue pair: has the peer written this field? */
bool verbs_mailbox_has(const struct verbs_conn *conn, enum verbs_field which);
/* For verbs_wr_post_control(): a write of this field into the peer's mailbox. */
struct verbs_ctrl_write verbs_mailbox_write(const struct verbs_conn *conn, enum verbs_field which);
/* The same for a byte that changes nothing; its length is 0 if the peer has no mailbox. */
struct verbs_ctrl_write verbs_mailbox_noop(const struct verbs_conn *conn);

/* The same for a field of the proof: VERBS_FIELD_SMALL, VERBS_FIELD_WHOLE. */
struct verbs_ctrl_write verbs_mailbox_proof(const struct verbs_conn *conn, enum verbs_field which,
                                            uint64_t value);
/* Has the peer written this value into a field of the proof? */
bool verbs_mailbox_proves(const struct verbs_conn *conn, enum verbs_field which, uint64_t value);
/* The same for `length` zeros into memory that the peer keeps for packets of any peer. */
struct verbs_ctrl_write verbs_mailbox_packet(const struct verbs_conn *conn, uint32_t length);

#endif
