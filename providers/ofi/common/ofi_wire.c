/* SPDX-License-Identifier: BSD-2-Clause */
#include "ofi_wire.h"

#include <ndx/spi/byteorder.h>

void ofi_grant_encode(const struct ofi_grant *grant, uint8_t out[OFI_GRANT_SIZE])
{
	ndxp_put_be32(out, grant->token);
	ndxp_put_be32(out + 4, grant->rights);
	ndxp_put_be64(out + 8, grant->start);
	ndxp_put_be64(out + 16, grant->length);
}

const char *ofi_grant_decode(const uint8_t data[OFI_GRANT_SIZE], struct ofi_grant *grant)
{
	const uint32_t rights = ndxp_get_be32(data + 4);

	if (rights & ~(uint32_t)(OFI_GRANT_READ | OFI_GRANT_WRITE))
		return "an answer with unknown rights";
	grant->token = ndxp_get_be32(data);
	grant->rights = rights;
	grant->start = ndxp_get_be64(data + 8);
	grant->length = ndxp_get_be64(data + 16);
	return NULL;
}

const char *ofi_ctrl_check_data(const struct ofi_ctrl *ctrl)
{
	if (ctrl->type != OFI_CTRL_DATA)
		return "a message without its control data";
	if ((ctrl->flags & OFI_CTRL_IS_WRITE) && !(ctrl->flags & OFI_CTRL_IMMEDIATE))
		return "a report of a write without immediate data";
	if (!(ctrl->flags & OFI_CTRL_IMMEDIATE) && ctrl->value != 0)
		return "a message with immediate data and without the flag for it";
	return NULL;
}

const char *ofi_ctrl_check_alone(const struct ofi_ctrl *ctrl)
{
	if (ctrl->flags != 0 && ctrl->type != OFI_CTRL_CREDIT)
		return "a control message with unknown flags";
	if (ctrl->type == OFI_CTRL_SIZE || ctrl->type == OFI_CTRL_TOO_LONG)
		return NULL;
	if (ctrl->type != OFI_CTRL_CREDIT && ctrl->arrived != 0)
		return "an acknowledgement in a control message that has none";
	switch (ctrl->type) {
	case OFI_CTRL_CREDIT: /* ofi_ctrl.c: it has to say something new */
		return NULL;
	case OFI_CTRL_REJECT:
		return ctrl->count <= OFI_CM_PRIVATE ? NULL : "a refusal that is too long";
	case OFI_CTRL_WRITTEN:
	case OFI_CTRL_WRITTEN_HIGH:
		return NULL;
	case OFI_CTRL_SYNC:
		return ctrl->count <= OFI_TOKENS_MAX || ctrl->count == OFI_TOKENS_ALL
		               ? NULL
		               : "more tokens than the control region holds";
	case OFI_CTRL_WANT:
		return ctrl->count > 0 ? NULL : "WANT for no message";
	case OFI_CTRL_READY:
	case OFI_CTRL_DISC:
	case OFI_CTRL_PING:
	case OFI_CTRL_PONG:
	case OFI_CTRL_SYNCED:
	case OFI_CTRL_ASK:
	case OFI_CTRL_ANSWER:
		return ctrl->count == 0 ? NULL : "a control message with a count that has to be 0";
	default:
		return "a control message of unknown type";
	}
}
