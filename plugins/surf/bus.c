/* SPDX-License-Identifier: BSD-2-Clause */
/* One request over the registers, and its response. */
#include "bus.h"

#include <stdio.h>

/*
 * The FPGA is busy for microseconds only, so a poll may miss that ready falls. Wait for the fall no
 * longer than this.
 */
#define FALL_MS 20u
#define FALL_POLL_MS 1u
#define READY_POLL_MS 50u
#define RESET_MS 50u
#define SETTLE_MS 100u

static void say_access(const struct surf_bus *bus, uint32_t address, const char *verb,
                       enum ndx_status st, char *why, size_t room)
{
	const char *cause = bus->ops->cause != NULL ? bus->ops->cause(bus->state) : "";

	if (cause[0] == '\0' && st == NDX_E_IO_TIMEOUT)
		cause = "no time is left; give the stage more";
	else if (cause[0] == '\0' && st == NDX_E_CANCELED)
		cause = "cancelled";
	(void)snprintf(why, room, "register 0x%x cannot be %s%s%s", (unsigned)(bus->base + address),
	               verb, cause[0] != '\0' ? ": " : "", cause);
}

static bool is_late(const struct surf_bus *bus)
{
	return bus->until != 0 && bus->ops->now(bus->state) >= bus->until;
}

static enum ndx_status say_late(const struct surf_bus *bus, uint32_t address, char *why,
                                size_t room)
{
	(void)snprintf(why, room, "register 0x%x: the time for the clean-up is over",
	               (unsigned)(bus->base + address));
	return NDX_E_IO_TIMEOUT;
}

enum ndx_status surf_bus_put(const struct surf_bus *bus, uint32_t address, uint32_t value,
                             char *why, size_t room)
{
	enum ndx_status st;

	if (is_late(bus))
		return say_late(bus, address, why, room);
	st = bus->ops->write32(bus->state, bus->base + address, value);
	if (st != NDX_OK)
		say_access(bus, address, "written", st, why, room);
	return st;
}

static enum ndx_status get(const struct surf_bus *bus, uint32_t address, uint32_t *value, char *why,
                           size_t room)
{
	enum ndx_status st;

	if (is_late(bus))
		return say_late(bus, address, why, room);
	st = bus->ops->read32(bus->state, bus->base + address, value);
	if (st != NDX_OK)
		say_access(bus, address, "read", st, why, room);
	return st;
}

enum ndx_status surf_bus_wait(const struct surf_bus *bus, uint64_t milliseconds, char *why,
                              size_t room)
{
	enum ndx_status st = bus->ops->wait(bus->state, (uint32_t)milliseconds);

	if (st == NDX_E_IO_TIMEOUT)
		(void)snprintf(why, room,
		               "no time is left to wait for register 0x%x; give the stage more",
		               (unsigned)(bus->base + SURF_REG_CONTROL));
	else if (st != NDX_OK)
		(void)snprintf(why, room, "the wait was ended from outside");
	return st;
}

static enum ndx_status fire(const struct surf_bus *bus, const uint32_t words[SURF_REQUEST_WORDS],
                            char *why, size_t room)
{
	/* Write 0 first, so that the next write makes an edge in any case. */
	enum ndx_status st = surf_bus_put(bus, SURF_REG_CONTROL, 0, why, room);

	for (uint32_t i = 0; st == NDX_OK && i < SURF_REQUEST_WORDS; i++)
		st = surf_bus_put(bus, SURF_REG_REQUEST + 4 * i, words[i], why, room);
	if (st == NDX_OK)
		st = surf_bus_put(bus, SURF_REG_CONTROL, SURF_CONTROL_SEND, why, room);
	if (st == NDX_OK)
		st = surf_bus_put(bus, SURF_REG_CONTROL, 0, why, room);
	return st;
}

/* Poll until ready equals `wanted` or the time is up; *seen says which. Polls at least once. */
static enum ndx_status poll_ready(const struct surf_bus *bus, bool wanted, uint64_t until,
                                  uint32_t step, bool *seen, char *why, size_t room)
{
	for (;;) {
		uint32_t control;
		uint64_t now;
		enum ndx_status st = get(bus, SURF_REG_CONTROL, &control, why, room);

		if (st != NDX_OK)
			return st;
		*seen = ((control & SURF_CONTROL_READY) != 0) == wanted;
		now = bus->ops->now(bus->state);
		if (*seen || now >= until)
			return NDX_OK;
		st = surf_bus_wait(bus, until - now < step ? until - now : step, why, room);
		if (st != NDX_OK)
			return st;
	}
}

static enum ndx_status await(const struct surf_bus *bus, uint32_t timeout_ms, char *why,
                             size_t room)
{
	const uint64_t sent = bus->ops->now(bus->state);
	const uint32_t fall = timeout_ms < FALL_MS ? timeout_ms : FALL_MS;
	bool seen;
	enum ndx_status st = poll_ready(bus, false, sent + fall, FALL_POLL_MS, &seen, why, room);

	if (st == NDX_OK)
		st = poll_ready(bus, true, sent + timeout_ms, READY_POLL_MS, &seen, why, room);
	if (st != NDX_OK || seen)
		return st;
	(void)snprintf(why, room,
	               "the FPGA has not answered within %u ms (register 0x%x, bit 1 stays 0); a "
	               "soft reset may help",
	               (unsigned)timeout_ms, (unsigned)(bus->base + SURF_REG_CONTROL));
	return NDX_E_IO_TIMEOUT;
}

enum ndx_status surf_bus_ask(const struct surf_bus *bus, const struct surf_request *request,
                             uint32_t timeout_ms, struct surf_response *response, char *why,
                             size_t room)
{
	uint32_t asked[SURF_REQUEST_WORDS];
	uint32_t answered[SURF_RESPONSE_WORDS];
	struct surf_response answer;
	enum ndx_status st = surf_request_encode(request, asked, why, room);

	if (st == NDX_OK)
		st = fire(bus, asked, why, room);
	if (st == NDX_OK)
		st = await(bus, timeout_ms, why, room);
	for (uint32_t i = 0; st == NDX_OK && i < SURF_RESPONSE_WORDS; i++)
		st = get(bus, SURF_REG_RESPONSE + 4 * i, &answered[i], why, room);
	if (st == NDX_OK)
		st = surf_response_decode(answered, &answer, why, room);
	if (st != NDX_OK)
		return st;
	if (answer.type != request->type) {
		(void)snprintf(why, room,
		               "the FPGA has answered a %s request as if it were for a %s",
		               surf_type_name(request->type), surf_type_name(answer.type));
		return NDX_E_REMOTE_ERROR;
	}
	*response = answer;
	return NDX_OK;
}

enum ndx_status surf_bus_reset(const struct surf_bus *bus, char *why, size_t room)
{
	enum ndx_status st = surf_bus_put(bus, SURF_REG_RESET, SURF_RESET_ON, why, room);

	if (st == NDX_OK) {
		st = surf_bus_put(bus, SURF_REG_RESET, 0, why, room);
		/* A limit that ends the wait must not leave the FPGA in reset. */
		if (st != NDX_OK)
			(void)surf_bus_put(bus, SURF_REG_RESET, 0, why, room);
	}
	if (st == NDX_OK)
		st = surf_bus_wait(bus, RESET_MS, why, room);
	if (st == NDX_OK)
		st = surf_bus_put(bus, SURF_REG_CONTROL, 0, why, room);
	if (st == NDX_OK)
		st = surf_bus_wait(bus, SETTLE_MS, why, room);
	return st;
}
