/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A register bus with an FPGA behind it, and a clock of its own: time passes only while a
 * caller waits. The FPGA takes a request at a rising edge of the send bit, keeps one PD, two MRs
 * and one queue pair, and says no to what is not legal. One thread.
 */
#ifndef FAKE_SURF_FPGA_H
#define FAKE_SURF_FPGA_H

#include "bus.h"

#define SURF_FPGA_MRS 2u
/* The client of its UDP engine. */
#define SURF_FPGA_UDP 0x20000u
#define SURF_FPGA_FRAME 4096u /* bytes of its longest one */
#define SURF_FPGA_REQUESTS 64u
#define SURF_FPGA_TRACE 64u

/* What goes wrong with a request. */
enum surf_fault {
	SURF_FAULT_NONE,
	SURF_FAULT_REFUSE,     /* not carried out, answered with no */
	SURF_FAULT_LIE,        /* carried out, answered with ok and another state */
	SURF_FAULT_OTHER_TYPE, /* carried out, answered with another type */
	SURF_FAULT_MUTE,       /* neither carried out nor answered; the next one is taken */
	SURF_FAULT_WEDGE,      /* the same, and no other one is taken until a soft reset */
};

/* What moves data, if anything does. */
struct surf_fpga_engine {
	void *state;
	/* False: there is no room for another queue pair. */
	bool (*create)(void *state, uint32_t *qpn);
	/* To RTS. `ip` is the host's, as the UDP engine was told. */
	bool (*connect)(void *state, const struct surf_attributes *attributes, uint32_t ip);
	void (*dispatch)(void *state, bool on, uint32_t wrap);
	/* Nothing is sent or taken behind this. */
	void (*error)(void *state);
	void (*destroy)(void *state);
	/* Something goes wrong with that request, as was asked for. May be NULL. */
	void (*struck)(void *state, unsigned request);
};

struct surf_fpga_mr {
	bool used;
	uint32_t lkey;
	uint32_t rkey;
	struct surf_region region;
};

struct surf_fpga {
	/* To be set: */
	enum surf_fault faults[SURF_FPGA_REQUESTS]; /* by the request's number, from 0 */
	uint32_t delay_ms;                          /* from the edge to the answer */
	uint32_t access_ms;                         /* that each access takes */
	unsigned fail_access;                       /* the n-th access from 1 fails, with `error` */
	unsigned fail_write;                        /* the n-th write from 1 fails, with... */
	enum ndx_status error;                      /* ...this */
	unsigned cancel_wait;                       /* the n-th wait from 1 is cancelled */
	uint32_t base;
	const struct surf_fpga_engine *engine; /* or NULL: numbers are all there is */

	/* To be looked at: */
	unsigned requests; /* edges that were taken; atomic */
	unsigned lost;     /* edges that came while it was busy */
	unsigned resets;
	unsigned accesses;
	unsigned waits;
	struct surf_request asked[SURF_FPGA_REQUESTS];
	struct {
		uint32_t address;
		uint32_t value;
	} trace[SURF_FPGA_TRACE]; /* writes, the first ones */
	unsigned writes;
	uint64_t now;
	struct {
		bool used;
		uint32_t handler;
	} pd;
	struct surf_fpga_mr mr[SURF_FPGA_MRS];
	struct {
		bool used;
		uint32_t pd_handler;
		uint32_t qpn;
		struct surf_attributes attributes;
	} qp;

	struct {
		uint32_t lkey;
		uint32_t qpn;
		uint32_t wrap;
		bool on;
		unsigned refused; /* times it was to go on with another key or queue pair */
		unsigned cleared; /* times, while it was off */
		bool clearing;
		unsigned cut; /* times it was on when the queue pair ended */
	} stream;
	struct {
		uint32_t port; /* both as written: big-endian */
		uint32_t ip;
	} udp;

	/* Its own: */
	uint32_t request[SURF_REQUEST_WORDS];
	uint32_t response[SURF_RESPONSE_WORDS];
	bool send;
	bool ready;
	bool busy;
	bool wedged;
	bool in_reset;
	uint64_t due;
	uint32_t next_qpn;
};

extern const struct surf_bus_ops surf_fpga_ops;

#endif
