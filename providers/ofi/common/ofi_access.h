/* SPDX-License-Identifier: BSD-2-Clause */
/* A cache of the rights behind a peer's tokens. */
#ifndef OFI_OFI_ACCESS_H
#define OFI_OFI_ACCESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "ofi_wire.h"

struct ofi_qp;

#define OFI_GRANT_SETS 64u
#define OFI_GRANT_WAYS 4u

/* The peer's answers (ofi_access.c). */
struct ofi_grants {
	const struct ofi_grant *latest; /* the entry that was used last; never NULL */
	uint32_t asked;                 /* the token of the question in flight; 0: none */
	uint32_t turn;                  /* which entry is replaced when a set is full */
	uint8_t question[4];
	struct ofi_grant known[OFI_GRANT_SETS][OFI_GRANT_WAYS]; /* token 0: free */
};

/* All below: the queue pair's lock is held. */

/*
 * Send a control message whose delivery is not confirmed, with a record for the peer's control
 * region; `record` must not change until the peer has acted on it. 0, or an errno of libfabric's.
 */
int ofi_qp_send_ctrl(struct ofi_qp *qp, uint8_t type, uint16_t count, enum ofi_area_offset offset,
                     const struct iovec *record);
/* Empty the cache for a new connection. */
void ofi_grants_init(struct ofi_grants *grants);
/* The cached answer; NULL: ask the peer, unless a question is in flight. */
const struct ofi_grant *ofi_grants_get(struct ofi_qp *qp, uint32_t token);
/* Cache an answer. NULL, or what is wrong with it. */
const char *ofi_grants_store(struct ofi_qp *qp, const struct ofi_grant *grant);
/* Remove one token from the cache, or (0) all. */
void ofi_grants_forget(struct ofi_qp *qp, uint32_t token);

#endif
