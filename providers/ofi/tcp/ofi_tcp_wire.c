/* SPDX-License-Identifier: BSD-2-Clause */
/* The data of connection management over libfabric's tcp provider. */
#include <string.h>

#include <ndx/spi/byteorder.h>
#include "ofi_wire.h"

static const uint8_t magic[4] = {'N', 'D', 'X', 'o'};

/* Offsets; all fields are big-endian. */
enum {
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_KIND = 5,
	AT_PRIVATE_LEN = 6,
	AT_ID = 8,
	AT_KEY = 12,
	AT_ADDRESS = 16,
	AT_CREDITS = 24,
	AT_DEPTH = 26,
	AT_INBOUND = 28,
	AT_OUTBOUND = 32,
	AT_INITIATOR_DEPTH = 36,
	AT_RECEIVE_SIZE = 38,
	AT_PRIVATE = 42,
};

_Static_assert(AT_PRIVATE == OFI_CM_HEADER, "the header ends where private data begins");

size_t ofi_cm_encode(const struct ofi_cm *cm, uint8_t out[OFI_CM_SIZE])
{
	memcpy(out + AT_MAGIC, magic, sizeof(magic));
	out[AT_VERSION] = OFI_CM_VERSION;
	out[AT_KIND] = (uint8_t)cm->kind;
	ndxp_put_be16(out + AT_PRIVATE_LEN, (uint16_t)cm->private_len);
	ndxp_put_be32(out + AT_ID, cm->id);
	ndxp_put_be32(out + AT_KEY, cm->key);
	ndxp_put_be64(out + AT_ADDRESS, cm->address);
	ndxp_put_be16(out + AT_CREDITS, cm->credits);
	ndxp_put_be16(out + AT_DEPTH,
	              (uint16_t)(cm->shared ? cm->depth | OFI_CM_SHARED : cm->depth));
	ndxp_put_be32(out + AT_INBOUND, cm->inbound_read_limit);
	ndxp_put_be32(out + AT_OUTBOUND, cm->outbound_read_limit);
	ndxp_put_be16(out + AT_INITIATOR_DEPTH, cm->initiator_depth);
	ndxp_put_be32(out + AT_RECEIVE_SIZE, cm->receive_size);
	memcpy(out + AT_PRIVATE, cm->private_data, cm->private_len);
	return OFI_CM_HEADER + cm->private_len;
}

#define SPEAKS(version) "speaks version " version " of the protocol, and this end version 5"
_Static_assert(OFI_CM_VERSION == 5, "the texts name the own version");

static const char *name_version(uint8_t version)
{
	static const char *const texts[] = {SPEAKS("0"), SPEAKS("1"), SPEAKS("2"), SPEAKS("3"),
	                                    SPEAKS("4"), SPEAKS("5"), SPEAKS("6"), SPEAKS("7"),
	                                    SPEAKS("8"), SPEAKS("9")};

	return version < sizeof(texts) / sizeof(texts[0]) ? texts[version] : SPEAKS("10 or later");
}

static const char *check_head(const uint8_t *data, size_t len, enum ofi_cm_kind kind)
{
	if (len < OFI_CM_HEADER || memcmp(data + AT_MAGIC, magic, sizeof(magic)) != 0)
		return "speaks another protocol";
	if (data[AT_VERSION] != OFI_CM_VERSION)
		return name_version(data[AT_VERSION]);
	if (data[AT_KIND] != kind)
		return "has sent an unexpected kind of message";
	if (ndxp_get_be16(data + AT_PRIVATE_LEN) > len - OFI_CM_HEADER ||
	    ndxp_get_be16(data + AT_PRIVATE_LEN) > OFI_CM_PRIVATE)
		return "has announced more private data than it has sent";
	return NULL;
}

const char *ofi_cm_decode(const uint8_t *data, size_t len, enum ofi_cm_kind kind, struct ofi_cm *cm)
{
	const char *wrong = check_head(data, len, kind);
	uint16_t depth;

	if (wrong != NULL)
		return wrong;
	depth = ndxp_get_be16(data + AT_DEPTH) & (uint16_t)~OFI_CM_SHARED;
	if (ndxp_get_be16(data + AT_CREDITS) > depth)
		return "offers more receives than its queue holds";
	if (ndxp_get_be16(data + AT_DEPTH) > depth && ndxp_get_be16(data + AT_CREDITS) > 0)
		return "offers receives of a shared queue before it is asked";
	if (depth > OFI_CM_DEPTH_MAX)
		return "announces a receive queue of more than 4096, which no adapter has";
	cm->kind = kind;
	cm->id = ndxp_get_be32(data + AT_ID);
	cm->key = ndxp_get_be32(data + AT_KEY);
	cm->address = ndxp_get_be64(data + AT_ADDRESS);
	cm->credits = ndxp_get_be16(data + AT_CREDITS);
	cm->depth = depth;
	cm->shared = (ndxp_get_be16(data + AT_DEPTH) & OFI_CM_SHARED) != 0;
	cm->inbound_read_limit = ndxp_get_be32(data + AT_INBOUND);
	cm->outbound_read_limit = ndxp_get_be32(data + AT_OUTBOUND);
	cm->initiator_depth = ndxp_get_be16(data + AT_INITIATOR_DEPTH);
	cm->receive_size = ndxp_get_be32(data + AT_RECEIVE_SIZE);
	cm->private_len = ndxp_get_be16(data + AT_PRIVATE_LEN);
	memcpy(cm->private_data, data + AT_PRIVATE, cm->private_len);
	return NULL;
}
