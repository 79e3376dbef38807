/* SPDX-License-Identifier: BSD-2-Clause */
/* A memory region is registered when the provider has said so. It has one operation in flight at a
 * time: a registration or a deregistration, whose outcome the provider reports. No lock. */
#ifndef ADAPTER_REGION_H
#define ADAPTER_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include <ndx/spi/provider.h>

/* Begin a registration (`registered` false) or deregistration, and put `ov` in flight. `call` is
 * for the error text. Then exactly one of the two below. */
enum ndx_status region_begin(struct ndx_spi_mr *mr, bool registered, struct ndx_overlapped *ov,
                             const char *call);
/* The operation failed at once: nothing has changed, and `ov` is as before. */
void region_abandon(struct ndx_spi_mr *mr);
/* The upcall mr_ended: the operation has this outcome. Completes `ov`. Any thread, any lock. */
void region_ended(struct ndx_spi_mr *mr, enum ndx_status status, int32_t native);

/* Whether an operation is in flight. */
bool region_is_busy(const struct ndx_spi_mr *mr);
/* Registered, and no deregistration is in flight. */
bool region_has_tokens(const struct ndx_spi_mr *mr);

/* Adapter lock held: what the next registration is about. */
void region_set_memory(struct ndx_spi_mr *mr, const void *buffer, size_t length, uint32_t flags);
/* Adapter lock held: state, memory, outcome and times; the rest of `info` is 0. */
void region_query(const struct ndx_spi_mr *mr, struct ndx_mr_info *info);

/* Wait until no operation is in flight, and until the thread that ended the last one has left the
 * region. If that takes longer than `ms`, complete `ov` with NDX_E_INTERNAL_ERROR and return false:
 * the region must then stay, because the provider may still report the end. */
bool region_await_end(struct ndx_spi_mr *mr, uint32_t ms);

#endif
