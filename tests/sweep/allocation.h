/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocations of the program's own objects, the library's among them, by way of the linker. */
#ifndef TESTS_SWEEP_ALLOCATION_H
#define TESTS_SWEEP_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

/* Counting begins again; number `nth` from now on fails, of any thread; 0: none. */
void allocation_arm(uint64_t nth);
bool allocation_failed(void);
uint64_t allocation_counted(void);

#endif
