/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FPGA's registers over a TCP connection with SRPv3 (srp.h). One thread uses it; another one
 * may cancel. After the connection broke or lost its synchronization, every access fails at once.
 * If the FPGA refuses an access, only that access fails.
 */
#ifndef SURF_REGISTERS_H
#define SURF_REGISTERS_H

#include "bus.h"

struct surf_registers;

/*
 * HOST:PORT or [IPV6]:PORT. The system resolves a name, without a time limit of ours; a numeric
 * address takes no time.
 */
enum ndx_status surf_registers_open(const char *address, uint32_t timeout_ms,
                                    struct surf_registers **out, char *why, size_t room);
void surf_registers_close(struct surf_registers *r);

/*
 * Set a limit. From now on a wait fails that would last longer (NDX_E_IO_TIMEOUT) or is cancelled
 * (NDX_E_CANCELED), and so does an access that would start after the limit; an access that has
 * started has a limit of its own. What follows the first such failure is the clean-up, which has
 * only the limits of its steps.
 */
void surf_registers_limit(struct surf_registers *r, uint32_t timeout_ms);
/* Remove the limit and ignore a cancel; only the limit of each step remains. */
void surf_registers_unlimited(struct surf_registers *r);
/* Any thread. */
void surf_registers_cancel(struct surf_registers *r);
bool surf_registers_cancelled(const struct surf_registers *r);

/* Its state is a `struct surf_registers`. */
extern const struct surf_bus_ops surf_registers_ops;

#endif
