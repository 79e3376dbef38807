/* SPDX-License-Identifier: BSD-2-Clause */
/* Mailboxes: words that the peer writes when a connection ends. The control thread's. */
#ifndef VERBS_MAILBOX_H
#define VERBS_MAILBOX_H

#include "verbs_conn.h"

/* Words of the mailbox. */
enum verbs_word {
	VERBS_WORD_GOODBYE,
	VERBS_WORD_PROBED,
	VERBS_WORD_ABORTED,
	VERBS_WORD_OWN, /* what we write from */
	VERBS_WORDS
};

/* For a conn that has its queue pair. */
enum ndx_status verbs_mailbox_open(struct verbs_conn *conn);
/* When the peer cannot write to it any more; harmless on one that has none. */
void verbs_mailbox_close(struct verbs_conn *conn);
void verbs_mailbox_close_all(struct verbs_adapter *adapter);
/* While the conn has its queue pair: did the peer write that word? */
bool verbs_mailbox_has(const struct verbs_conn *conn, enum verbs_word which);
/* For verbs_wr_post_control(): have that word of the peer's written. */
struct verbs_ctrl_write verbs_mailbox_write(const struct verbs_conn *conn, enum verbs_word which);
/* Likewise, of a byte that changes nothing; of no length if the peer has no mailbox. */
struct verbs_ctrl_write verbs_mailbox_touch(const struct verbs_conn *conn);

#endif
