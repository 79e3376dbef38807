/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The FPGA's registers over a TCP connection that speaks SRPv3 (srp.h). One thread uses it; another
 * may cancel. Once the connection is broken, or out of step, no access is tried any more; an access
 * that the FPGA refuses fails alone.
 */
#ifndef SURF_REGISTERS_H
#define SURF_REGISTERS_H

#include "bus.h"

struct surf_registers;

/* HOST:PORT or [IPV6]:PORT. A name is looked up by the system, which takes its own time for that; a
 * numeric address takes none. */
enum ndx_status surf_registers_open(const char *address, uint32_t timeout_ms,
                                    struct surf_registers **out, char *why, size_t room);
void surf_registers_close(struct surf_registers *r);

/* From now on a wait fails that would go on for longer than this (NDX_E_IO_TIMEOUT) or is cancelled
 * (NDX_E_CANCELED), and so does an access that would begin behind that; one that has begun has a
 * limit of its own. What comes behind the first one that fails is the clean-up, which has the
 * limits of its steps alone. */
void surf_registers_limit(struct surf_registers *r, uint32_t timeout_ms);
/* No limit but that of each step, whatever was cancelled. */
void surf_registers_unlimited(struct surf_registers *r);
/* Any thread. */
void surf_registers_cancel(struct surf_registers *r);
bool surf_registers_cancelled(const struct surf_registers *r);

/* With a `struct surf_registers` as state. */
extern const struct surf_bus_ops surf_registers_ops;

#endif
