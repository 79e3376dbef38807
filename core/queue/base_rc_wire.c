/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/rc_wire.h>

#include <string.h>

#include <ndx/spi/byteorder.h>

#define VERSION 4u

/* Offsets in the data of connection management. */
enum {
	AT_MAGIC = 0,   /* 'N', 'v' */
	AT_KIND = 2,    /* version << 4 | kind */
	AT_LEN = 3,     /* of the private data */
	AT_INBOUND = 4, /* read limits */
	AT_OUTBOUND = 5,
	AT_FLAGS = 6,
	AT_PRIVATE = NDXP_RC_CM_HEADER,
};

static uint8_t limit_of(uint32_t limit)
{
	return limit > UINT8_MAX ? UINT8_MAX : (uint8_t)limit;
}

size_t ndxp_rc_cm_encode(const struct ndxp_rc_cm *cm, uint8_t out[NDXP_RC_CM_REJECT])
{
	out[AT_MAGIC] = 'N';
	out[AT_MAGIC + 1] = 'v';
	out[AT_KIND] = (uint8_t)(VERSION << 4 | (unsigned)cm->kind);
	out[AT_LEN] = (uint8_t)cm->private_len;
	out[AT_INBOUND] = limit_of(cm->inbound_read_limit);
	out[AT_OUTBOUND] = limit_of(cm->outbound_read_limit);
	out[AT_FLAGS] = cm->flags;
	memcpy(out + AT_PRIVATE, cm->private_data, cm->private_len);
	return NDXP_RC_CM_HEADER + cm->private_len;
}

const char *ndxp_rc_cm_decode(const uint8_t *data, size_t len, enum ndxp_rc_kind kind,
                              struct ndxp_rc_cm *cm)
{
	if (len < NDXP_RC_CM_HEADER || data[AT_MAGIC] != 'N' || data[AT_MAGIC + 1] != 'v')
		return "speaks another protocol: neither ofi:verbs nor verbs";
	if (data[AT_KIND] >> 4 != VERSION)
		return "speaks another version of the protocol: both ends need the same NDX";
	if ((data[AT_KIND] & 0xf) != kind)
		return "has sent an unexpected kind of message";
	if (data[AT_LEN] > len - NDXP_RC_CM_HEADER || data[AT_LEN] > NDXP_RC_CALLEE_DATA)
		return "has announced more private data than it has sent";
	memset(cm, 0, sizeof(*cm));
	cm->kind = kind;
	cm->inbound_read_limit = data[AT_INBOUND];
	cm->outbound_read_limit = data[AT_OUTBOUND];
	cm->flags = data[AT_FLAGS];
	cm->private_len = data[AT_LEN];
	memcpy(cm->private_data, data + AT_PRIVATE, cm->private_len);
	return NULL;
}

/* Offsets in a first message; all fields are big-endian. */
enum {
	AT_TYPE = 0,
	AT_DATA_LEN = 1,
	AT_DEPTH = 2,
	AT_KEY = 4,
	AT_ADDRESS = 8,
	AT_CREDITS = 16,
	AT_DATA = NDXP_RC_RECORD_HEADER,
};

/* A queue that holds nothing and offers receives is a shared one, and the offer is what a
 * connection may hold of the queue. A version without shared queues refuses that. */
static bool is_shared(const struct ndxp_rc_record *record)
{
	return record->depth == 0 && record->credits > 0 && record->credits <= UINT16_MAX;
}

size_t ndxp_rc_record_encode(const struct ndxp_rc_record *record, uint8_t out[NDXP_RC_RECORD_SIZE])
{
	out[AT_TYPE] = record->type;
	out[AT_DATA_LEN] = (uint8_t)record->private_len;
	ndxp_put_be16(out + AT_DEPTH, record->shared ? 0 : record->depth);
	ndxp_put_be32(out + AT_KEY, record->key);
	ndxp_put_be64(out + AT_ADDRESS, record->address);
	ndxp_put_be32(out + AT_CREDITS, record->shared ? record->depth : record->credits);
	memcpy(out + AT_DATA, record->private_data, record->private_len);
	return NDXP_RC_RECORD_HEADER + record->private_len;
}

const char *ndxp_rc_record_decode(const uint8_t *data, size_t len, struct ndxp_rc_record *record)
{
	if (len < NDXP_RC_RECORD_HEADER || len > NDXP_RC_RECORD_SIZE ||
	    data[AT_DATA_LEN] != len - NDXP_RC_RECORD_HEADER)
		return "a first message of the wrong length";
	record->type = data[AT_TYPE];
	record->depth = ndxp_get_be16(data + AT_DEPTH);
	record->key = ndxp_get_be32(data + AT_KEY);
	record->address = ndxp_get_be64(data + AT_ADDRESS);
	record->credits = ndxp_get_be32(data + AT_CREDITS);
	record->private_len = len - NDXP_RC_RECORD_HEADER;
	memcpy(record->private_data, data + AT_DATA, record->private_len);
	record->shared = is_shared(record);
	if (record->shared) {
		record->depth = (uint16_t)record->credits;
		record->credits = 0;
	}
	if (record->credits > record->depth)
		return "a first message that offers more receives than its queue holds";
	return NULL;
}
