/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem.h"

#include <stdbool.h>
#include <stdlib.h>

/* The overhead of malloc per allocation, counted so that many small ones stay within the limit. */
#define OVERHEAD 16

void mem_trim(struct mem *mem)
{
	while (mem->spare_count > 0) {
		mem->held -= MEM_BLOCK + OVERHEAD;
		free(mem->spare[--mem->spare_count]);
	}
}

static bool admit(struct mem *mem, size_t size)
{
	if (size > mem->limit)
		return false;
	if (mem->held > mem->limit - size)
		mem_trim(mem);
	return mem->held <= mem->limit - size;
}

static void count(struct mem *mem, size_t size)
{
	mem->held += size;
	if (mem->held > mem->peak)
		mem->peak = mem->held;
}

void *mem_get(struct mem *mem, size_t size)
{
	void *at;

	if (size == MEM_BLOCK && mem->spare_count > 0)
		return mem->spare[--mem->spare_count];
	if (size > mem->limit || !admit(mem, size + OVERHEAD))
		return NULL;
	at = malloc(size);
	if (at != NULL)
		count(mem, size + OVERHEAD);
	return at;
}

void *mem_zero(struct mem *mem, size_t size)
{
	void *at;

	if (size > mem->limit || !admit(mem, size + OVERHEAD))
		return NULL;
	at = calloc(1, size);
	if (at != NULL)
		count(mem, size + OVERHEAD);
	return at;
}

void *mem_resize(struct mem *mem, void *at, size_t from, size_t to)
{
	void *moved;

	if (at == NULL)
		return mem_get(mem, to);
	if (to > from && !admit(mem, to - from))
		return NULL;
	moved = realloc(at, to);
	if (moved == NULL)
		return NULL;
	mem->held -= from;
	count(mem, to);
	return moved;
}

void mem_put(struct mem *mem, void *at, size_t size)
{
	if (at == NULL)
		return;
	if (size == MEM_BLOCK && mem->spare_count < MEM_SPARE_MAX && mem->held <= mem->limit / 2) {
		mem->spare[mem->spare_count++] = at;
		return;
	}
	mem->held -= size + OVERHEAD;
	free(at);
}
