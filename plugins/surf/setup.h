/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Create a queue pair in the FPGA that is connected to one of this host, and destroy it.
 *
 * Blocks for as long as the FPGA takes. One thread at a time per bus.
 */
#ifndef SURF_SETUP_H
#define SURF_SETUP_H

#include <ndx/log.h>

#include "bus.h"

/*
 * Log lines: one for each failed step of a clean-up and for each object that was created. NULL: no
 * log.
 */
struct surf_log {
	void (*line)(void *to, enum ndx_log_level level, const char *text);
	void *to;
};

/* Values for the FPGA. Each is as wide as the caller's value, and is checked. */
struct surf_setup {
	uint64_t host_qpn; /* 1 to 2^24 - 1 */
	/*
	 * PSNs of the FPGA's queue pair: what it expects first from the host, and what it sends
	 * first. The host uses the same two, crossed.
	 */
	uint64_t rq_psn;     /* less than 2^24 */
	uint64_t sq_psn;     /* less than 2^24 */
	uint64_t mr_address; /* the host's slab */
	uint64_t mr_length;  /* 1 to 2^32 - 1 bytes */
	uint64_t pmtu;       /* a code: 1 is 256 bytes, 5 is 4096 */
	/* set by surf_setup_init(): */
	uint64_t min_rnr_timer; /* a code, 0 to 31 */
	uint64_t timeout;       /* a code, 0 to 31 */
	uint64_t retry_count;   /* 0 to 7 */
	uint64_t rnr_retry;     /* 0 to 7 */
	uint64_t pd_key;        /* random, 32 bits */
	uint64_t lkey_part;     /* random, 31 bits */
	uint64_t rkey_part;     /* random, 31 bits */
	uint32_t step_ms;       /* limit for each response */
};

/* Objects that the FPGA holds for this host; all zeros: none. */
struct surf_connection {
	bool has_pd;
	bool has_mr;
	bool has_qp;
	uint32_t pd_handler;
	uint32_t lkey;
	uint32_t rkey;
	uint32_t qpn;
	uint32_t step_ms; /* limit for each response of the clean-up; 0: only its own limits */
};

/* NDX_E_INVALID_PARAMETER: a value is out of range; *why names it. */
enum ndx_status surf_setup_check(const struct surf_setup *setup, char *why, size_t room);

/*
 * Set defaults and random keys; the rest is 0. NDX_E_INTERNAL_ERROR: the system has no random
 * bytes.
 */
enum ndx_status surf_setup_init(struct surf_setup *setup);

/*
 * Soft reset; then create PD, MR and QP; then move the QP to INIT, RTR and RTS. A failure destroys
 * what was created, in reverse order; a failure of that is logged and does not change the error.
 *
 * NDX_E_INVALID_PARAMETER       a value is out of range: no register was accessed
 * NDX_E_IO_TIMEOUT              a step got no response
 * NDX_E_INSUFFICIENT_RESOURCES  the FPGA refuses to allocate
 * NDX_E_REMOTE_ERROR            the FPGA refuses a state, is in another state, or responds with
 * nonsense others                        from the bus
 *
 * A failure leaves *out untouched; *why names the step and the cause.
 */
enum ndx_status surf_bring_up(const struct surf_bus *bus, const struct surf_log *log,
                              const struct surf_setup *setup, struct surf_connection *out,
                              char *why, size_t room);

/*
 * Move the QP to ERR, destroy it, free MR and PD: each one that exists, whether or not an earlier
 * step failed; a failure is logged. If any step failed, a soft reset clears the rest. *connection
 * is empty afterwards. Returns the number of failed steps. Takes at most the limits of the
 * responses, 5 s for the accesses, one more access, and the reset.
 */
unsigned surf_tear_down(const struct surf_bus *bus, const struct surf_log *log,
                        struct surf_connection *connection);

#endif
