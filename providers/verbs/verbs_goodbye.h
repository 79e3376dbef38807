/* SPDX-License-Identifier: BSD-2-Clause */
/* Goodbyes, whatever the peer's protocol is. Used by the control thread only. */
#ifndef VERBS_GOODBYE_H
#define VERBS_GOODBYE_H

#include "verbs_conn.h"

/* Longer than the peer waits for the answer to its probe, if nothing is ahead of the probe. */
#define VERBS_PROBED_MS 1300

/* Disconnect: this end's goodbye, or the answer to the peer's. `bare`: without a goodbye in the
 * peer's mailbox. */
void verbs_goodbye_send(struct verbs_conn *conn, bool bare);
/* The peer has said goodbye. That is also the answer to this end's goodbye, if that was first, or
 * crossed. */
void verbs_goodbye_received(struct verbs_conn *conn);
/* Let the data path know that the peer has disconnected, or has said goodbye. */
void verbs_goodbye_set_peer_state(struct verbs_conn *conn, enum verbs_peer_state how);

#endif
