/* SPDX-License-Identifier: BSD-2-Clause */
/* What two descriptions have in common. Pure: both sides compute the same from the same. */
#ifndef NEGOTIATION_SETTLE_H
#define NEGOTIATION_SETTLE_H

#include <stddef.h>

#include <ndx/description.h>
#include <ndx/status.h>

/* Is it one that could be connected to? If not, NDX_E_INVALID_CONFIG and why. */
enum ndx_status settle_check(const struct ndx_peer_description *d, char *why, size_t room);

/*
 * The common subset. `own` is the side of `role`; both descriptions were checked. Kind NONE on
 * both sides is fine: then the plugin knows its own. NDX_E_INVALID_CONFIG and what differs.
 */
enum ndx_status settle(enum ndx_role role, const struct ndx_peer_description *own,
                       const struct ndx_peer_description *peer, struct ndx_agreement *out,
                       char *why, size_t room);

/* 16 bytes that tell this end from any other. */
void settle_identity(const struct ndx_peer_description *d, uint8_t out[16]);

/* NULL if they are the same; else the name of the first field that differs. */
const char *settle_difference(const struct ndx_agreement *a, const struct ndx_agreement *b);

#endif
