/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections without a connection manager to peers that have no out-of-band stream. */
#ifndef OOB_NULL_H
#define OOB_NULL_H

#include "oob_link.h"

struct ndx_adapter;

/* A link that answers goodbyes itself; the connection's end frees it. */
enum ndx_status oob_null_create(struct ndx_adapter *adapter, struct oob_link **out);
/* Free a link that was not used. */
void oob_null_drop(struct oob_link *link);

#endif
