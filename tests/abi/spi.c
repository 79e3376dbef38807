/* SPDX-License-Identifier: BSD-2-Clause */
/* The types of the public headers that no exported function has: those of providers. The ABI gate
 * compares what the compiler makes of this file. */
#include <ndx/ndx.h>
#include <ndx/spi/plugin.h>
#include <ndx/spi/provider.h>

#define REACHED(type) __attribute__((visibility("default"))) struct type *abi_##type

REACHED(ndx_provider);
