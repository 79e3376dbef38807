/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is counted: everything the reassembly holds goes through here, so the bound holds. */
#ifndef REASSEMBLY_MEM_H
#define REASSEMBLY_MEM_H

#include <stddef.h>

/* Pieces of this size come and go all the time; a few are kept instead of given back. */
#define MEM_BLOCK (32768 + 8)
#define MEM_SPARE_MAX 32

struct mem {
	size_t held; /* spare blocks count, too */
	size_t peak;
	size_t limit;
	void *spare[MEM_SPARE_MAX];
	unsigned spare_count;
};

/* Give the spare blocks back. */
void mem_trim(struct mem *mem);

/* NULL if out of memory, or if `limit` would be exceeded. Contents undefined. */
void *mem_get(struct mem *mem, size_t size);

/* Likewise, zeroed. */
void *mem_zero(struct mem *mem, size_t size);

/* `at` of `from` bytes becomes `to` bytes; NULL leaves it as it was. `at` may be NULL, `from` 0. */
void *mem_resize(struct mem *mem, void *at, size_t from, size_t to);

/* `size` is what it was got with. NULL is a no-op. */
void mem_put(struct mem *mem, void *at, size_t size);

#endif
