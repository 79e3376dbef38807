/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_OWN_MEMORY_H
#define BENCH_OWN_MEMORY_H

/* KiB of the heap that the library's own objects hold now. */
double own_memory_kib(void);

#endif
