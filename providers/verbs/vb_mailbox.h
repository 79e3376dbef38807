/* SPDX-License-Identifier: BSD-2-Clause */
/* Mailboxes: words that the peer writes when a connection ends. The control thread's. */
#ifndef VB_MAILBOX_H
#define VB_MAILBOX_H

#include "vb.h"

/* Words of the mailbox. */
enum vb_word {
	VB_WORD_GOODBYE,
	VB_WORD_PROBED,
	VB_WORD_ABORTED,
	VB_WORD_OWN, /* what we write from */
	VB_WORDS
};

/* For a conn that has its queue pair. */
enum ndx_status vb_mailbox_open(struct vb_conn *conn);
/* When the peer cannot write to it any more; harmless on one that has none. */
void vb_mailbox_close(struct vb_conn *conn);
void vb_mailbox_close_all(struct vb_adapter *adapter);
/* While the conn has its queue pair: did the peer write that word? */
bool vb_mailbox_has(const struct vb_conn *conn, enum vb_word which);
/* For vb_post_control(): have that word of the peer's written. */
struct vb_note vb_mailbox_note(const struct vb_conn *conn, enum vb_word which);
/* Likewise, of a byte that changes nothing; of no length if the peer has no mailbox. */
struct vb_note vb_mailbox_touch(const struct vb_conn *conn);

#endif
