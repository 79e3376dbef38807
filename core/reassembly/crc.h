/* SPDX-License-Identifier: BSD-2-Clause */
/* The checksums at the end of packets: CRC32 of InfiniBand, CRC32c of MPA. */
#ifndef REASSEMBLY_CRC_H
#define REASSEMBLY_CRC_H

#include <stdbool.h>
#include <stdint.h>

#include "link.h"

struct crc_tables {
	uint32_t ieee[8][256];
	uint32_t castagnoli[8][256];
};

void crc_tables_init(struct crc_tables *tables);

/* Continue `crc` over more bytes; start with 0xffffffff, invert at the end. */
uint32_t crc_update(const uint32_t table[8][256], uint32_t crc, const uint8_t *bytes,
                    uint32_t length);

/* Whether the packet's invariant CRC is correct. True also if there is none to check. */
bool crc_icrc_good(const struct crc_tables *tables, const struct frame *frame);

#endif
