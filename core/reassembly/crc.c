/* SPDX-License-Identifier: BSD-2-Clause */
#include "crc.h"

#include <string.h>

#define POLYNOMIAL_IEEE 0xedb88320u
#define POLYNOMIAL_CASTAGNOLI 0x82f63b78u
#define BTH 12
#define HEADERS_MAX 256

static void fill_table(uint32_t table[8][256], uint32_t polynomial)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) != 0 ? polynomial : 0);
		table[0][i] = crc;
	}
	for (int slice = 1; slice < 8; slice++) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t crc = table[slice - 1][i];

			table[slice][i] = crc >> 8 ^ table[0][crc & 255];
		}
	}
}

void crc_tables_init(struct crc_tables *tables)
{
	fill_table(tables->ieee, POLYNOMIAL_IEEE);
	fill_table(tables->castagnoli, POLYNOMIAL_CASTAGNOLI);
}

static uint32_t get_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t crc_update(const uint32_t table[8][256], uint32_t crc, const uint8_t *bytes,
                    uint32_t length)
{
	for (; length >= 8; length -= 8, bytes += 8) {
		uint32_t a = crc ^ get_le32(bytes), b = get_le32(bytes + 4);

		crc = table[7][a & 255] ^ table[6][a >> 8 & 255] ^ table[5][a >> 16 & 255] ^
		      table[4][a >> 24] ^ table[3][b & 255] ^ table[2][b >> 8 & 255] ^
		      table[1][b >> 16 & 255] ^ table[0][b >> 24];
	}
	for (; length > 0; length--, bytes++)
		crc = crc >> 8 ^ table[0][(crc ^ *bytes) & 255];
	return crc;
}

/* Fields that routers may change count as all ones. */
static void mask(const struct frame *f, uint8_t *h)
{
	switch (h[0] >> 4) {
	case 4:
		if (f->transport == NDX_RDMA_INFINIBAND)
			break;
		h[1] = 0xff;             /* type of service */
		h[8] = 0xff;             /* time to live */
		memset(h + 10, 0xff, 2); /* checksum */
		break;
	case 6:
		if (f->transport == NDX_RDMA_INFINIBAND)
			break;
		h[0] |= 0x0f; /* traffic class, flow label */
		memset(h + 1, 0xff, 3);
		h[7] = 0xff; /* hop limit */
		break;
	default:
		break;
	}
	if (f->transport == NDX_RDMA_ROCE_V2)
		memset(h + f->network_length - 2, 0xff, 2); /* UDP checksum */
	if (f->transport == NDX_RDMA_INFINIBAND) {
		h[0] |= 0xf0; /* virtual lane */
		if (f->network_length >= 48) {
			h[8] |= 0x0f;
			memset(h + 9, 0xff, 3);
			h[15] = 0xff;
		}
	}
	h[f->network_length + 4] = 0xff; /* congestion bits of the base transport header */
}

bool crc_icrc_good(const struct crc_tables *tables, const struct frame *frame)
{
	static const uint8_t ones[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t headers[HEADERS_MAX];
	uint32_t size, crc = 0xffffffffu;

	if (frame->network == NULL || frame->network_length + BTH > HEADERS_MAX)
		return true;
	size = frame->network_length + BTH;
	memcpy(headers, frame->network, size);
	mask(frame, headers);
	if (frame->transport != NDX_RDMA_INFINIBAND)
		crc = crc_update(tables->ieee, crc, ones, sizeof(ones));
	crc = crc_update(tables->ieee, crc, headers, size);
	crc = crc_update(tables->ieee, crc, frame->payload + BTH, frame->length - BTH);
	return ~crc == get_le32(frame->payload + frame->length);
}
