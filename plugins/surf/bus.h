/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registers of the metadata bus, and one transaction over them. Only one thread at a time may
 * run a transaction: the FPGA has one request in flight, and its response has no tag.
 *
 *   0xf00         bit 0: send, on a rising edge; bit 1: ready, read only
 *   0xf04-0xf28   request, 10 words
 *   0xf2c-0xf4c   response, 9 words
 *   0xf50         bit 0: soft reset
 */
#ifndef SURF_BUS_H
#define SURF_BUS_H

#include "codec.h"

#define SURF_REG_CONTROL 0xf00u
#define SURF_REG_REQUEST 0xf04u
#define SURF_REG_RESPONSE 0xf2cu
#define SURF_REG_RESET 0xf50u
#define SURF_CONTROL_SEND 0x1u
#define SURF_CONTROL_READY 0x2u
#define SURF_RESET_ON 0x1u

/*
 * Access to the registers. Any failure ends the transaction, and the transaction returns it
 * unchanged. NDX_E_CANCELED and NDX_E_IO_TIMEOUT of an access may also mean that the access was not
 * started.
 */
struct surf_bus_ops {
	enum ndx_status (*write32)(void *state, uint32_t address, uint32_t value);
	enum ndx_status (*read32)(void *state, uint32_t address, uint32_t *value);
	/*
	 * Wait, in milliseconds. NDX_E_CANCELED and NDX_E_IO_TIMEOUT (no time is left for the
	 * transaction) end the transaction.
	 */
	enum ndx_status (*wait)(void *state, uint32_t milliseconds);
	/* Milliseconds since an arbitrary origin; never decreases. */
	uint64_t (*now)(void *state);
	/* Why the last access failed, readable; "" if unknown. May be NULL. */
	const char *(*cause)(void *state);
};

struct surf_bus {
	const struct surf_bus_ops *ops;
	void *state;
	uint32_t base;  /* added to each address */
	uint64_t until; /* by now(): no access starts later; 0: no limit */
};

/*
 * Send a request and wait for its response, at most timeout_ms after it was sent.
 *
 * NDX_E_INVALID_PARAMETER  a value is too wide: nothing was written
 * NDX_E_IO_TIMEOUT         no response in time; the FPGA may hang until surf_bus_reset()
 * NDX_E_REMOTE_ERROR       the response has another type than the request
 * others                   from the bus
 *
 * A failure leaves *response untouched, and *why has the cause. A response in which the FPGA
 * refuses the request is no failure here.
 */
enum ndx_status surf_bus_ask(const struct surf_bus *bus, const struct surf_request *request,
                             uint32_t timeout_ms, struct surf_response *response, char *why,
                             size_t room);

/* Write one register; on failure *why has its address. */
enum ndx_status surf_bus_put(const struct surf_bus *bus, uint32_t address, uint32_t value,
                             char *why, size_t room);
enum ndx_status surf_bus_wait(const struct surf_bus *bus, uint64_t milliseconds, char *why,
                              size_t room);

/* Reset the FPGA's RoCE engine: all its objects are gone. Takes 150 ms. */
enum ndx_status surf_bus_reset(const struct surf_bus *bus, char *why, size_t room);

#endif
