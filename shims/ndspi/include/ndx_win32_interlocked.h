/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Atomic operations, all sequentially consistent, on aligned integers of 8 to 64 bits. The type is
 * that of the operand, so a plain `long` is changed as the 64 bits which the type has here.
 * Increment, Decrement and Add return the new value, all others the old one.
 */
#ifndef NDX_WIN32_INTERLOCKED_H
#define NDX_WIN32_INTERLOCKED_H

#include "ndx_win32_types.h"

#ifdef __cplusplus
extern "C++" {
template <class Int> inline Int InterlockedIncrement(volatile Int *target)
{
	return __atomic_add_fetch(target, 1, __ATOMIC_SEQ_CST);
}
template <class Int> inline Int InterlockedDecrement(volatile Int *target)
{
	return __atomic_sub_fetch(target, 1, __ATOMIC_SEQ_CST);
}
template <class Int, class Value> inline Int InterlockedAdd(volatile Int *target, Value value)
{
	return __atomic_add_fetch(target, (Int)value, __ATOMIC_SEQ_CST);
}
template <class Int, class Value>
inline Int InterlockedExchangeAdd(volatile Int *target, Value value)
{
	return __atomic_fetch_add(target, (Int)value, __ATOMIC_SEQ_CST);
}
template <class Int, class Value> inline Int InterlockedExchange(volatile Int *target, Value value)
{
	return __atomic_exchange_n(target, (Int)value, __ATOMIC_SEQ_CST);
}
template <class Int, class Value> inline Int InterlockedAnd(volatile Int *target, Value value)
{
	return __atomic_fetch_and(target, (Int)value, __ATOMIC_SEQ_CST);
}
template <class Int, class Value> inline Int InterlockedOr(volatile Int *target, Value value)
{
	return __atomic_fetch_or(target, (Int)value, __ATOMIC_SEQ_CST);
}
template <class Int, class Value> inline Int InterlockedXor(volatile Int *target, Value value)
{
	return __atomic_fetch_xor(target, (Int)value, __ATOMIC_SEQ_CST);
}
template <class Int, class Value, class Old>
inline Int InterlockedCompareExchange(volatile Int *target, Value value, Old comparand)
{
	return __sync_val_compare_and_swap(target, (Int)comparand, (Int)value);
}
inline PVOID InterlockedExchangePointer(PVOID volatile *target, PVOID value)
{
	return __atomic_exchange_n(target, value, __ATOMIC_SEQ_CST);
}
inline PVOID InterlockedCompareExchangePointer(PVOID volatile *target, PVOID value, PVOID comparand)
{
	return __sync_val_compare_and_swap(target, comparand, value);
}
} // extern "C++"
#else
#define InterlockedIncrement(target) __atomic_add_fetch((target), 1, __ATOMIC_SEQ_CST)
#define InterlockedDecrement(target) __atomic_sub_fetch((target), 1, __ATOMIC_SEQ_CST)
#define InterlockedAdd(target, value) __atomic_add_fetch((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedExchangeAdd(target, value) \
	__atomic_fetch_add((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedExchange(target, value) __atomic_exchange_n((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedAnd(target, value) __atomic_fetch_and((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedOr(target, value) __atomic_fetch_or((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedXor(target, value) __atomic_fetch_xor((target), (value), __ATOMIC_SEQ_CST)
#define InterlockedCompareExchange(target, value, comparand) \
	__sync_val_compare_and_swap((target), (comparand), (value))
#define InterlockedExchangePointer InterlockedExchange
#define InterlockedCompareExchangePointer InterlockedCompareExchange
#endif

#define InterlockedIncrement64 InterlockedIncrement
#define InterlockedDecrement64 InterlockedDecrement
#define InterlockedAdd64 InterlockedAdd
#define InterlockedExchangeAdd64 InterlockedExchangeAdd
#define InterlockedExchange64 InterlockedExchange
#define InterlockedAnd64 InterlockedAnd
#define InterlockedOr64 InterlockedOr
#define InterlockedXor64 InterlockedXor
#define InterlockedCompareExchange64 InterlockedCompareExchange

#define ReadAcquire(source) __atomic_load_n((source), __ATOMIC_ACQUIRE)
#define ReadNoFence(source) __atomic_load_n((source), __ATOMIC_RELAXED)
#define WriteRelease(target, value) __atomic_store_n((target), (value), __ATOMIC_RELEASE)
#define WriteNoFence(target, value) __atomic_store_n((target), (value), __ATOMIC_RELAXED)
#define MemoryBarrier() __sync_synchronize()

/** Tells the processor that the thread spins. */
#if defined(__x86_64__) || defined(__i386__)
#define YieldProcessor() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define YieldProcessor() __asm__ volatile("yield" ::: "memory")
#else
#define YieldProcessor() __asm__ volatile("" ::: "memory")
#endif

#endif
