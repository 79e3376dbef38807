/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dispatcher, which sends the FPGA's data over its queue pair: set its queue pair, switch it on
 * and off. Its registers, relative to the base address of the engine:
 *
 *   0x2000  bit 0: dispatch        0x2020  number of frames after which the sequence restarts
 *   0x200c  lkey                   0x2108  bit 0: a pulse clears the counters
 *   0x2010  queue pair number
 */
#ifndef SURF_STREAM_H
#define SURF_STREAM_H

#include "bus.h"

#define SURF_REG_DISPATCH 0x2000u
#define SURF_REG_LKEY 0x200cu
#define SURF_REG_SQPN 0x2010u
#define SURF_REG_WRAP 0x2020u
#define SURF_REG_CLEAR 0x2108u
/* Registers of a client of the UDP engine, relative to the base address of the client. */
#define SURF_UDP_PORT 0x0u
#define SURF_UDP_IP 0x4u

struct surf_stream {
	uint32_t lkey;
	uint32_t qpn;
	uint32_t wrap;
};

/*
 * Set the destination of the FPGA's packets, because the metadata bus has no addresses. `client` is
 * the base address of the client's two registers, `ip` 0x0a090001 for 10.9.0.1.
 */
enum ndx_status surf_stream_aim(const struct surf_bus *bus, uint32_t client, uint32_t ip, char *why,
                                size_t room);
enum ndx_status surf_stream_start(const struct surf_bus *bus, const struct surf_stream *stream,
                                  char *why, size_t room);
/* Switch off, and wait 100 ms for frames in flight. */
enum ndx_status surf_stream_stop(const struct surf_bus *bus, char *why, size_t room);

#endif
