/* SPDX-License-Identifier: BSD-2-Clause */
/* Counted memory: the reassembly allocates everything here, so the limit holds. */
#ifndef REASSEMBLY_MEM_H
#define REASSEMBLY_MEM_H

#include <stddef.h>
#include <stdint.h>

/* Blocks of this size are allocated often; a few are kept for reuse. */
#define MEM_BLOCK (32768 + 8)
#define MEM_SPARE_MAX 32

struct mem {
	size_t held; /* including spare blocks */
	size_t peak;
	size_t limit;
	void *spare[MEM_SPARE_MAX];
	unsigned spare_count;
};

/* Free the spare blocks. */
void mem_trim(struct mem *mem);

/* NULL if out of memory, or if `limit` would be exceeded. The content is undefined. */
void *mem_get(struct mem *mem, size_t size);

/* Like mem_get(), zeroed. */
void *mem_zero(struct mem *mem, size_t size);

/* Resize `at` from `from` to `to` bytes; NULL leaves `at` unchanged. `at` may be NULL, with `from`
 * 0. */
void *mem_resize(struct mem *mem, void *at, size_t from, size_t to);

/* Grow `at` to `want` elements, moving it if necessary; NULL if out of memory: then it is
 * unchanged. */
static inline void *mem_grow(struct mem *mem, void *at, uint32_t *room, uint32_t want,
                             size_t element)
{
	uint32_t size = *room == 0 ? 8 : *room;
	void *moved;

	if (want <= *room)
		return at;
	while (size < want)
		size *= 2;
	moved = mem_resize(mem, at, *room * element, size * element);
	if (moved != NULL)
		*room = size;
	return moved;
}

/* `size` is the allocated size. Does nothing for NULL. */
void mem_put(struct mem *mem, void *at, size_t size);

#endif
