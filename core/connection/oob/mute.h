/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections without a connection manager to peers that cannot speak on a channel. */
#ifndef OOB_MUTE_H
#define OOB_MUTE_H

#include "wire.h"

struct ndx_adapter;

/* A wire that answers goodbyes itself; it goes with the connection. */
enum ndx_status mute_create(struct ndx_adapter *adapter, struct wire **out);
/* It was not needed. */
void mute_drop(struct wire *wire);

#endif
