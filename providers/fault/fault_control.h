/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures that a test arms at run time. The test has to be linked with the library's objects. */
#ifndef FAULT_CONTROL_H
#define FAULT_CONTROL_H

#include <stdint.h>

#include <ndx/event.h>

/* Begin to count anew: of the calls from now on, number `nth` and the `times - 1` behind it fail
 * (nth 0: none, times UINT64_MAX: all). No-op for the adapter of another provider. */
void fault_arm(const struct ndx_adapter *adapter, uint64_t nth, uint64_t times);

struct fault_tally {
	uint64_t calls;     /* since fault_arm() */
	uint64_t failed;    /* how many of them failed by this provider */
	const char *latest; /* name of the latest failed call, "" if there is none */
	enum ndx_status status;
};

/* All zero for another provider's adapter. */
struct fault_tally fault_get_tally(const struct ndx_adapter *adapter);

/* The device has an event, as a provider reports it. No-op for another provider's adapter. */
void fault_report_event(struct ndx_adapter *adapter, enum ndx_adapter_event_type type,
                        uint32_t port, int32_t native, const char *text);

#endif
