/* SPDX-License-Identifier: BSD-2-Clause */
/* Fixed-width big-endian fields at any alignment. */
#ifndef NDX_SPI_BYTEORDER_H
#define NDX_SPI_BYTEORDER_H

#include <stdint.h>

static inline void ndxp_put_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void ndxp_put_be32(uint8_t *p, uint32_t v)
{
	ndxp_put_be16(p, (uint16_t)(v >> 16));
	ndxp_put_be16(p + 2, (uint16_t)v);
}

static inline void ndxp_put_be64(uint8_t *p, uint64_t v)
{
	ndxp_put_be32(p, (uint32_t)(v >> 32));
	ndxp_put_be32(p + 4, (uint32_t)v);
}

static inline uint16_t ndxp_get_be16(const uint8_t *p)
{
	return (uint16_t)((p[0] << 8) | p[1]);
}

static inline uint32_t ndxp_get_be32(const uint8_t *p)
{
	return ((uint32_t)ndxp_get_be16(p) << 16) | ndxp_get_be16(p + 2);
}

static inline uint64_t ndxp_get_be64(const uint8_t *p)
{
	return ((uint64_t)ndxp_get_be32(p) << 32) | ndxp_get_be32(p + 4);
}

#endif
