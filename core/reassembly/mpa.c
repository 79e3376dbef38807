/* SPDX-License-Identifier: BSD-2-Clause */
#include "mpa.h"

#include <string.h>

#include <ndx/reassembly.h>

#include <ndx/spi/byteorder.h>

#define KEY_SIZE 16
#define FLAG_MARKERS 0x80
#define FLAG_CRC 0x40
#define FLAG_REJECTED 0x20
#define FLAG_ENHANCED 0x10
#define PRIVATE_MAX 512
#define DDP_TAGGED 0x80
#define DDP_LAST 0x40
#define DDP_VERSION_MASK 0x03
#define READ_LIMIT_MASK 0x3fff

enum mpa_verdict mpa_setup_parse(const uint8_t *bytes, uint32_t length, struct mpa_setup *out)
{
	static const char request[KEY_SIZE + 1] = "MPA ID Req Frame";
	static const char reply[KEY_SIZE + 1] = "MPA ID Rep Frame";
	uint32_t have = length < KEY_SIZE ? length : KEY_SIZE;
	bool is_reply = memcmp(bytes, reply, have) == 0;

	if (!is_reply && memcmp(bytes, request, have) != 0)
		return MPA_NO;
	if (length < MPA_SETUP_SIZE)
		return MPA_MORE;
	*out = (struct mpa_setup){.reply = is_reply};
	out->markers = (bytes[16] & FLAG_MARKERS) != 0;
	out->crc = (bytes[16] & FLAG_CRC) != 0;
	out->rejected = (bytes[16] & FLAG_REJECTED) != 0;
	out->revision = bytes[17];
	out->private_length = ndxp_get_be16(bytes + 18);
	if (out->revision > 2 || out->private_length > PRIVATE_MAX)
		return MPA_NO;
	if (length < MPA_SETUP_SIZE + (uint32_t)out->private_length)
		return MPA_MORE;
	if (out->revision == 2 && (bytes[16] & FLAG_ENHANCED) != 0 && out->private_length >= 4) {
		out->enhanced = true;
		out->inbound_reads = ndxp_get_be16(bytes + 20) & READ_LIMIT_MASK;
		out->outbound_reads = ndxp_get_be16(bytes + 22) & READ_LIMIT_MASK;
	}
	return MPA_YES;
}

bool ddp_plausible(const uint8_t *bytes, uint32_t length)
{
	unsigned opcode = bytes[1] & 15;
	bool tagged = (bytes[0] & DDP_TAGGED) != 0;

	if ((bytes[0] & 0x3c) != 0 || (bytes[0] & DDP_VERSION_MASK) != 1)
		return false;
	/* RDMAP version 0 (of the consortium) or 1; two reserved bits */
	if (bytes[1] >> 6 > 1 || (bytes[1] & 0x30) != 0 || opcode > RDMAP_TERMINATE)
		return false;
	if (tagged != (opcode == RDMAP_WRITE || opcode == RDMAP_READ_RESPONSE))
		return false;
	return length >= (tagged ? DDP_TAGGED_SIZE : DDP_UNTAGGED_SIZE);
}

bool ddp_parse(const uint8_t *bytes, uint32_t captured, uint32_t length, struct ddp *out)
{
	uint32_t header;

	if (captured < 2 || length < captured || !ddp_plausible(bytes, length))
		return false;
	*out = (struct ddp){
		.tagged = (bytes[0] & DDP_TAGGED) != 0,
		.last = (bytes[0] & DDP_LAST) != 0,
		.opcode = bytes[1] & 15,
	};
	header = out->tagged ? DDP_TAGGED_SIZE : DDP_UNTAGGED_SIZE;
	if (captured < header)
		return false;
	if (out->tagged) {
		out->stag = ndxp_get_be32(bytes + 2);
		out->offset = ndxp_get_be64(bytes + 6);
	} else {
		out->invalidate = ndxp_get_be32(bytes + 2);
		out->has_invalidate = out->opcode == RDMAP_SEND_INVALIDATE ||
		                      out->opcode == RDMAP_SEND_SOLICITED_INVALIDATE;
		out->queue = ndxp_get_be32(bytes + 6);
		out->message = ndxp_get_be32(bytes + 10);
		out->message_offset = ndxp_get_be32(bytes + 14);
	}
	out->data = bytes + header;
	out->length = length - header;
	out->captured = captured - header;
	if (out->opcode == RDMAP_READ_REQUEST) {
		if (out->captured < RDMAP_READ_REQUEST_SIZE)
			return false;
		out->read.sink_stag = ndxp_get_be32(out->data);
		out->read.sink_offset = ndxp_get_be64(out->data + 4);
		out->read.size = ndxp_get_be32(out->data + 12);
		out->read.source_stag = ndxp_get_be32(out->data + 16);
		out->read.source_offset = ndxp_get_be64(out->data + 20);
	}
	return true;
}

const char *ndx_rdmap_opcode_name(uint8_t opcode)
{
	static const char *const names[] = {"Write",
	                                    "Read Request",
	                                    "Read Response",
	                                    "Send",
	                                    "Send Invalidate",
	                                    "Send Solicited",
	                                    "Send Solicited Invalidate",
	                                    "Terminate"};

	return opcode < sizeof(names) / sizeof(names[0]) ? names[opcode] : "?";
}
