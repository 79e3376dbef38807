/* SPDX-License-Identifier: BSD-2-Clause */
/* Switch the FPGA's dispatcher on and off. */
#include "stream.h"

#include <stdio.h>

#define ROCE_PORT 4791u
#define QUIET_MS 100u

struct value {
	uint32_t address;
	uint32_t value;
};

static enum ndx_status put_all(const struct surf_bus *bus, const char *step,
                               const struct value *values, size_t count, char *why, size_t room)
{
	enum ndx_status st = NDX_OK;
	char text[160];

	for (size_t i = 0; st == NDX_OK && i < count; i++)
		st = surf_bus_put(bus, values[i].address, values[i].value, text, sizeof(text));
	if (st != NDX_OK)
		(void)snprintf(why, room, "%s: %s", step, text);
	return st;
}

#define PUT_ALL(bus, step, values, why, room) \
	put_all(bus, step, values, sizeof(values) / sizeof((values)[0]), why, room)

enum ndx_status surf_stream_aim(const struct surf_bus *bus, uint32_t client, uint32_t ip, char *why,
                                size_t room)
{
	/* Both values are big-endian in a little-endian register. */
	const struct value values[] = {{SURF_UDP_PORT, __builtin_bswap16(ROCE_PORT)},
	                               {SURF_UDP_IP, __builtin_bswap32(ip)}};
	struct surf_bus at = *bus;

	at.base = client;
	return PUT_ALL(&at, "UDP engine", values, why, room);
}

enum ndx_status surf_stream_start(const struct surf_bus *bus, const struct surf_stream *stream,
                                  char *why, size_t room)
{
	const struct value values[] = {
		{SURF_REG_LKEY, stream->lkey}, {SURF_REG_SQPN, stream->qpn},
		{SURF_REG_WRAP, stream->wrap}, {SURF_REG_CLEAR, 1},
		{SURF_REG_CLEAR, 0},           {SURF_REG_DISPATCH, 1},
	};

	return PUT_ALL(bus, "dispatch on", values, why, room);
}

enum ndx_status surf_stream_stop(const struct surf_bus *bus, char *why, size_t room)
{
	const struct value values[] = {{SURF_REG_DISPATCH, 0}};
	enum ndx_status st = PUT_ALL(bus, "dispatch off", values, why, room);

	return st == NDX_OK ? surf_bus_wait(bus, QUIET_MS, why, room) : st;
}
