/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * May a request use the peer's memory? libfabric would break the connection and not say why. So
 * this end asks the peer's provider for the rights of a token before the first request that uses
 * the token. The request waits for the answer, and all later requests wait behind it. Answers are
 * cached until the peer names the token in a SYNC, or another token needs the entry.
 *
 * The queue pair's lock is held.
 */
#include <string.h>

#include <ndx/spi/byteorder.h>
#include "ofi.h"

int ofi_qp_send_ctrl(struct ofi_qp *qp, uint8_t type, uint16_t count, enum ofi_area_offset offset,
                     const struct iovec *record)
{
	const bool credit = type == OFI_CTRL_CREDIT;
	const struct fi_rma_iov remote = {
		.addr = qp->peer_address + offset,
		.len = record->iov_len,
		.key = qp->peer_key,
	};
	const struct fi_msg_rma msg = {
		.msg_iov = record,
		.iov_count = record->iov_len > 0,
		.rma_iov = &remote,
		.rma_iov_count = 1,
		.context = &qp->adapter->silent,
		.data = ofi_ctrl_encode(type, count, credit ? qp->acks.arrived : 0, qp->peer_id) |
	                (credit && qp->acks.ask ? OFI_CTRL_ASKS : 0),
	};

	/* without FI_COMPLETION: no code waits for the completion */
	return -(int)fi_writemsg(qp->ep, &msg, FI_REMOTE_CQ_DATA);
}

void ofi_grants_init(struct ofi_grants *grants)
{
	memset(grants, 0, sizeof(*grants));
	grants->latest = &grants->known[0][0];
}

/* NULL: the set does not have the token. */
static struct ofi_grant *find_grant(struct ofi_grant set[OFI_GRANT_WAYS], uint32_t token)
{
	for (size_t i = 0; i < OFI_GRANT_WAYS; i++) {
		if (set[i].token == token)
			return &set[i];
	}
	return NULL;
}

static struct ofi_grant *set_of(struct ofi_grants *grants, uint32_t token)
{
	return grants->known[token % OFI_GRANT_SETS];
}

static void ask_peer(struct ofi_qp *qp, uint32_t token)
{
	struct ofi_grants *grants = &qp->grants;
	const struct iovec record = {grants->question, sizeof(grants->question)};

	ndxp_put_be32(grants->question, token);
	if (ofi_qp_send_ctrl(qp, OFI_CTRL_ASK, 0, OFI_AREA_QUESTION, &record) == 0)
		grants->asked = token;
	else
		ofi_submit_later(qp);
}

const struct ofi_grant *ofi_grants_get(struct ofi_qp *qp, uint32_t token)
{
	static const struct ofi_grant nothing = {0};
	struct ofi_grant *grant;

	if (token == 0) /* no region has this token */
		return &nothing;
	grant = find_grant(set_of(&qp->grants, token), token);
	if (grant != NULL)
		qp->grants.latest = grant;
	else if (qp->grants.asked == 0)
		ask_peer(qp, token);
	return grant;
}

const char *ofi_grants_store(struct ofi_qp *qp, const struct ofi_grant *grant)
{
	struct ofi_grants *grants = &qp->grants;
	struct ofi_grant *set = set_of(grants, grant->token);
	struct ofi_grant *place = find_grant(set, grant->token);

	if (grants->asked == 0 || grants->asked != grant->token)
		return "an answer to what was not asked";
	grants->asked = 0;
	if (place == NULL)
		place = find_grant(set, 0);
	if (place == NULL)
		place = &set[grants->turn++ % OFI_GRANT_WAYS];
	*place = *grant;
	return NULL;
}

void ofi_grants_forget(struct ofi_qp *qp, uint32_t token)
{
	struct ofi_grant *grant = find_grant(set_of(&qp->grants, token), token);

	if (token == 0)
		memset(qp->grants.known, 0, sizeof(qp->grants.known));
	else if (grant != NULL)
		*grant = (struct ofi_grant){0};
}
