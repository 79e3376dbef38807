/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a connection whose peer is on ofi:verbs. Such a peer disconnects only when both ends
 * have said goodbye. Used by the control thread only. */
#ifndef VERBS_OFI_END_H
#define VERBS_OFI_END_H

#include "verbs_conn.h"

/* The connection is up: look for the peer's goodbye from now on. */
void verbs_ofi_end_look(struct verbs_conn *conn);
/* Act on the peer's goodbye, if there is one. */
void verbs_ofi_end_check(struct verbs_conn *conn);
/* For a conn with a queue pair: say goodbye; or disconnect without a goodbye if a request that
 * waits for the peer's receive is in front of it, or if the peer has closed. */
void verbs_ofi_end_say_goodbye(struct verbs_conn *conn);
/* The peer has this end's goodbye. */
void verbs_ofi_end_goodbye_done(struct verbs_conn *conn);
/* For a conn with a queue pair: the peer has disconnected. */
void verbs_ofi_end_closed(struct verbs_conn *conn);

#endif
