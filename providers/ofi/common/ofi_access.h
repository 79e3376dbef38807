/* SPDX-License-Identifier: BSD-2-Clause */
/* What a peer's tokens open, as far as it has been asked. */
#ifndef OFI_OFI_ACCESS_H
#define OFI_OFI_ACCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "ofi_wire.h"

struct ofi_qp;

#define OFI_GRANT_SETS 64u
#define OFI_GRANT_WAYS 4u

/* What the peer has said of its tokens (ofi_access.c). */
struct ofi_grants {
	const struct ofi_grant *latest; /* the one used last; never NULL */
	uint32_t asked;                 /* token in question; 0: none */
	uint32_t turn;                  /* which one goes when a set is full */
	uint8_t question[4];
	struct ofi_grant known[OFI_GRANT_SETS][OFI_GRANT_WAYS]; /* token 0: free */
};

/* All below: the queue pair's lock is held. */

/*
 * Say a control word whose delivery nobody waits for, with a record for the peer's control region;
 * `record` stays until the peer has reacted. 0, or an errno of libfabric's.
 */
int ofi_qp_say(struct ofi_qp *qp, uint8_t type, uint16_t count, enum ofi_area_offset offset,
               const struct iovec *record);
/* A new connection: nothing is known. */
void ofi_grants_init(struct ofi_grants *grants);
/* Ask the peer, unless that is under way or its answer is there: then that is returned. */
const struct ofi_grant *ofi_grants_get(struct ofi_qp *qp, uint32_t token);
/* NULL, or what is wrong with the answer. */
const char *ofi_grants_take(struct ofi_qp *qp, const struct ofi_grant *grant);
/* Forget one token, or (0) all. */
void ofi_grants_forget(struct ofi_qp *qp, uint32_t token);

#endif
