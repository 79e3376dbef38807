/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections without a connection manager to peers that have no out-of-band stream. */
#ifndef OOB_MUTE_H
#define OOB_MUTE_H

#include "wire.h"

struct ndx_adapter;

/* A link that answers goodbyes itself; the connection's end frees it. */
enum ndx_status mute_create(struct ndx_adapter *adapter, struct wire **out);
/* Free a link that was not used. */
void mute_drop(struct wire *wire);

#endif
