/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings that two descriptions have in common. Pure: both sides compute the same result. */
#ifndef NEGOTIATION_AGREE_H
#define NEGOTIATION_AGREE_H

#include <stddef.h>

#include <ndx/description.h>
#include <ndx/status.h>

#include "base_private.h"

/* Check that a description can be connected to. NDX_E_INVALID_CONFIG: `why` names the fault. */
enum ndx_status agree_check(const struct ndx_peer_description *d, char *why, size_t room)
	NDX_PRIVATE(agree_check);

/* Compute the common settings. `own` is the side of `role`; both descriptions were checked. Kind
 * NONE on both sides is valid: then the plugin has its own. NDX_E_INVALID_CONFIG: `why` names the
 * difference. */
enum ndx_status agree_compute(enum ndx_role role, const struct ndx_peer_description *own,
                              const struct ndx_peer_description *peer, struct ndx_agreement *out,
                              char *why, size_t room) NDX_PRIVATE(agree_compute);

/* 16 bytes that identify this end. */
void agree_identity(const struct ndx_peer_description *d, uint8_t out[16])
	NDX_PRIVATE(agree_identity);

/* NULL if equal; else the name of the first field that differs. */
const char *agree_difference(const struct ndx_agreement *a, const struct ndx_agreement *b)
	NDX_PRIVATE(agree_difference);

#endif
