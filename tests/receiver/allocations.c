/* SPDX-License-Identifier: BSD-2-Clause */
/* malloc() and its like, counted: this file's take the place of glibc's in the whole program. */
#include "rig.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTED 0
#endif
#endif
#ifndef COUNTED
#define COUNTED 1
#endif

static uint64_t calls;

uint64_t rig_allocations(void)
{
	return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

#if COUNTED
/* glibc's own names of its functions. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	(void)__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return __libc_malloc(size);
}

void *calloc(size_t nmemb, size_t size)
{
	(void)__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return __libc_calloc(nmemb, size);
}

void *realloc(void *ptr, size_t size)
{
	(void)__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return __libc_realloc(ptr, size);
}
#endif
