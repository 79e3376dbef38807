/* SPDX-License-Identifier: BSD-2-Clause */
/* The linker sends every call of NAME here as __wrap_NAME; the real one is __real_NAME. */
#include "allocation.h"

#include <errno.h>
#include <stddef.h>

/* The wrapped functions have no place for state of ours. */
static struct {
	uint64_t nth;
	uint64_t count;
	uint32_t failed;
} plan;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
char *__wrap_strdup(const char *text);

void allocation_arm(uint64_t nth)
{
	__atomic_store_n(&plan.nth, UINT64_MAX, __ATOMIC_SEQ_CST);
	__atomic_store_n(&plan.count, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&plan.failed, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&plan.nth, nth, __ATOMIC_SEQ_CST);
}

bool allocation_failed(void)
{
	return __atomic_load_n(&plan.failed, __ATOMIC_SEQ_CST) != 0;
}

uint64_t allocation_counted(void)
{
	return __atomic_load_n(&plan.count, __ATOMIC_SEQ_CST);
}

static bool fails(void)
{
	const uint64_t n = __atomic_add_fetch(&plan.count, 1, __ATOMIC_SEQ_CST);

	if (n != __atomic_load_n(&plan.nth, __ATOMIC_SEQ_CST))
		return false;
	__atomic_store_n(&plan.failed, 1, __ATOMIC_SEQ_CST);
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	return fails() ? NULL : __real_reallocarray(old, count, size);
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}
