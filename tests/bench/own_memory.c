/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library itself holds of the heap. The linker hands over the calls that its objects make
 * (--wrap); those of the stack below go to the C library as ever and are not counted.
 */
#include "own_memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

/* The linker's names. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *at);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *at);

static int64_t held; /* atomic */

static void *count(void *at)
{
	(void)__atomic_add_fetch(&held, (int64_t)malloc_usable_size(at), __ATOMIC_RELAXED);
	return at;
}

static void discount(void *at)
{
	(void)__atomic_sub_fetch(&held, (int64_t)malloc_usable_size(at), __ATOMIC_RELAXED);
}

void *__wrap_malloc(size_t size)
{
	return count(__real_malloc(size));
}

void *__wrap_calloc(size_t count_of, size_t size)
{
	return count(__real_calloc(count_of, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	const size_t was = malloc_usable_size(old);
	void *at = __real_realloc(old, size);

	if (at != NULL) {
		(void)__atomic_sub_fetch(&held, (int64_t)was, __ATOMIC_RELAXED);
		(void)count(at);
	}
	return at;
}

void __wrap_free(void *at)
{
	discount(at);
	__real_free(at);
}
/* NOLINTEND(bugprone-reserved-identifier) */

double own_memory_kib(void)
{
	return (double)__atomic_load_n(&held, __ATOMIC_RELAXED) / 1024.0;
}
