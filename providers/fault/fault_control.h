/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests that are linked with the objects of the library: failures at a moment of their own. */
#ifndef FAULT_CONTROL_H
#define FAULT_CONTROL_H

#include <stdint.h>

#include <ndx/adapter.h>

/* Counting begins again: of the calls from now on, number `nth` and the `times - 1` behind it fail
 * (nth 0: none, times UINT64_MAX: all). Of another provider's adapter: nothing happens. */
void fault_arm(const struct ndx_adapter *adapter, uint64_t nth, uint64_t times);

struct fault_tally {
	uint64_t calls;     /* counted since */
	uint64_t failed;    /* of them were made to fail */
	const char *latest; /* name of the last of these, "" if none */
	enum ndx_status status;
};

/* All zero for another provider's adapter. */
struct fault_tally fault_get_tally(const struct ndx_adapter *adapter);

#endif
