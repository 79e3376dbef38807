/* SPDX-License-Identifier: BSD-2-Clause */
/* What the proofs of both ends say about the path between two queue pairs. Pure. */
#ifndef NEGOTIATION_PROOF_H
#define NEGOTIATION_PROOF_H

#include <ndx/description.h>

#include "frame.h"

#define PROOF_TEXT 200u

/* NDX_OK: both directions pass packets of the path MTU. Else `why` names the directions that do
 * not, what passes, and the likely causes, the most likely first. Both ends get the same verdict.
 */
enum ndx_status proof_judge(enum ndx_role role, const struct frame_proof *own,
                            const struct frame_proof *peer, const struct ndx_agreement *agreed,
                            char why[PROOF_TEXT]);

/* What an end has found alone, as a part of a sentence. */
void proof_describe(const struct frame_proof *own, char text[PROOF_TEXT]);

#endif
