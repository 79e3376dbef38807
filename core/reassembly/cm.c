/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <ndx/spi/byteorder.h>

#define MAD_HEADER 24
#define MAD_SIZE 256
#define CLASS_CM 0x07
#define METHOD_SEND 0x03

bool cm_parse(const uint8_t *bytes, uint32_t length, struct cm_message *out)
{
	const uint8_t *data;
	uint32_t code;

	if (length < MAD_SIZE || bytes[0] != 1 || bytes[1] != CLASS_CM || bytes[2] != 2 ||
	    bytes[3] != METHOD_SEND)
		return false;
	*out = (struct cm_message){.kind = ndxp_get_be16(bytes + 16)};
	data = bytes + MAD_HEADER;
	out->local_id = ndxp_get_be32(data);
	if (out->kind != CM_REQUEST)
		out->remote_id = ndxp_get_be32(data + 4);
	switch (out->kind) {
	case CM_REQUEST:
		out->qpn = ndxp_get_be32(data + 32) >> 8;
		out->psn = ndxp_get_be32(data + 44) >> 8;
		code = data[50] >> 4;
		out->mtu = code >= 1 && code <= 5 ? UINT32_C(128) << code : 0;
		break;
	case CM_REPLY:
		out->qpn = ndxp_get_be32(data + 12) >> 8;
		out->psn = ndxp_get_be32(data + 20) >> 8;
		break;
	case CM_DISCONNECT_REQUEST:
		out->qpn = ndxp_get_be32(data + 8) >> 8;
		break;
	default:
		break;
	}
	return true;
}
