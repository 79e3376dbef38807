/* SPDX-License-Identifier: BSD-2-Clause */
/* What a fuzz target is: libFuzzer's interface, which replay.c speaks as well. */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0; ends the process at a finding. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A promise of the code under test; the fuzzer wants a crash if it does not hold. */
#define FUZZ_HOLDS(condition)             \
	do {                              \
		if (!(condition))         \
			__builtin_trap(); \
	} while (0)

#endif
