/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads, time, memory and atomic operations, as a C++ program has them. */
#include <algorithm>
#include <string>

#include <windows.h>
#include <process.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
extern "C" {
#include <cmocka.h>
}

#define THREADS 1000
#define AT_ONCE 50
#define ROUNDS 20000

/* ---- threads ---- */

static DWORD CALLBACK return_parameter(LPVOID parameter)
{
	return static_cast<DWORD>(reinterpret_cast<uintptr_t>(parameter));
}

static void a_thousand_threads_return_their_exit_codes(void **)
{
	HANDLE threads[AT_ONCE];

	for (uintptr_t first = 0; first < THREADS; first += AT_ONCE) {
		for (uintptr_t i = 0; i < AT_ONCE; i++) {
			DWORD id = 0;

			threads[i] =
				CreateThread(nullptr, 0, return_parameter,
			                     reinterpret_cast<LPVOID>(first + i + 1000), 0, &id);
			assert_non_null(threads[i]);
			assert_int_not_equal(id, 0);
		}
		assert_int_equal(WaitForMultipleObjects(AT_ONCE, threads, TRUE, INFINITE),
		                 WAIT_OBJECT_0);
		for (uintptr_t i = 0; i < AT_ONCE; i++) {
			DWORD code = 0;

			assert_true(GetExitCodeThread(threads[i], &code));
			assert_int_equal(code, first + i + 1000);
			assert_true(CloseHandle(threads[i]));
		}
	}
}

static DWORD CALLBACK wait_for_event(LPVOID event)
{
	return WaitForSingleObject(event, INFINITE);
}

static void a_running_thread_is_active(void **)
{
	const HANDLE event = CreateEvent(nullptr, TRUE, FALSE, nullptr);
	const HANDLE thread = CreateThread(nullptr, 1, wait_for_event, event, 0, nullptr);
	DWORD code = 0;

	assert_true(GetExitCodeThread(thread, &code));
	assert_int_equal(code, STILL_ACTIVE);
	assert_int_equal(WaitForSingleObject(thread, 10), WAIT_TIMEOUT);
	assert_true(SetEvent(event));
	assert_int_equal(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
	assert_true(GetExitCodeThread(thread, &code));
	assert_int_equal(code, WAIT_OBJECT_0);
	assert_true(CloseHandle(thread));
	assert_true(CloseHandle(event));
}

static volatile long destroyed;

struct Local {
	bool used = false;
	~Local()
	{
		InterlockedIncrement(&destroyed);
	}
};

static thread_local Local local;

static unsigned __stdcall exit_within(void *parameter)
{
	local.used = true;
	if (parameter != nullptr)
		ExitThread(7);
	_endthreadex(8);
}

static void the_end_of_a_thread_is_behind_its_destructors(void **)
{
	for (unsigned i = 0; i < 2; i++) {
		unsigned id = 0;
		DWORD code = 0;
		const uintptr_t thread =
			_beginthreadex(nullptr, 0, exit_within, i == 0 ? nullptr : &id, 0, &id);

		assert_int_not_equal(thread, 0);
		assert_int_equal(WaitForSingleObject(reinterpret_cast<HANDLE>(thread), INFINITE),
		                 WAIT_OBJECT_0);
		assert_int_equal(ReadAcquire(&destroyed), i + 1);
		assert_true(GetExitCodeThread(reinterpret_cast<HANDLE>(thread), &code));
		assert_int_equal(code, i == 0 ? 8 : 7);
		assert_true(CloseHandle(reinterpret_cast<HANDLE>(thread)));
	}
}

static void a_handle_may_be_closed_while_its_thread_runs(void **)
{
	const HANDLE begin = CreateEvent(nullptr, TRUE, FALSE, nullptr);

	for (unsigned i = 0; i < AT_ONCE; i++) {
		const HANDLE thread = CreateThread(nullptr, 0, wait_for_event, begin, 0, nullptr);

		assert_non_null(thread);
		assert_true(CloseHandle(thread));
	}
	assert_true(SetEvent(begin));
	Sleep(100);
	assert_true(CloseHandle(begin));
}

static void bad_threads_are_refused(void **)
{
	const HANDLE event = CreateEvent(nullptr, TRUE, FALSE, nullptr);
	DWORD code = 1;

	assert_null(CreateThread(nullptr, 0, nullptr, nullptr, 0, nullptr));
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	assert_null(CreateThread(nullptr, 0, return_parameter, nullptr, 4, nullptr));
	assert_int_equal(GetLastError(), ERROR_NOT_SUPPORTED);
	errno = 0;
	assert_int_equal(_beginthreadex(nullptr, 0, nullptr, nullptr, 0, nullptr), 0);
	assert_int_equal(errno, EINVAL);
	assert_false(GetExitCodeThread(event, &code));
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
	assert_int_equal(code, 1);
	assert_false(SetThreadPriority(event, THREAD_PRIORITY_HIGHEST));
	assert_int_equal(SetThreadAffinityMask(event, 1), 0);
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
	assert_true(CloseHandle(event));
}

/* A sanitizer calls the function before a program begins. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static void a_thread_without_its_key_does_not_begin(void **)
{
	skip();
}
#else
static bool no_keys; /* atomic */

/* In place of the system's: there is no memory for the key of a thread. */
extern "C" int pthread_setspecific(pthread_key_t key, const void *value) noexcept
{
	using Set = int (*)(pthread_key_t, const void *);
	static const Set set = reinterpret_cast<Set>(dlsym(RTLD_NEXT, "pthread_setspecific"));

	return __atomic_load_n(&no_keys, __ATOMIC_ACQUIRE) ? ENOMEM : set(key, value);
}

static void a_thread_without_its_key_does_not_begin(void **)
{
	HANDLE thread;

	__atomic_store_n(&no_keys, true, __ATOMIC_RELEASE);
	thread = CreateThread(nullptr, 0, return_parameter, nullptr, 0, nullptr);
	__atomic_store_n(&no_keys, false, __ATOMIC_RELEASE);
	assert_null(thread);
	assert_int_equal(GetLastError(), ERROR_NOT_ENOUGH_MEMORY);
	thread = CreateThread(nullptr, 0, return_parameter, nullptr, 0, nullptr);
	assert_int_equal(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
	assert_true(CloseHandle(thread));
}
#endif

static void a_thread_has_an_affinity(void **)
{
	const DWORD_PTR before = SetThreadAffinityMask(GetCurrentThread(), 1);
	const HANDLE event = CreateEvent(nullptr, FALSE, FALSE, nullptr);
	const HANDLE thread = CreateThread(nullptr, 0, wait_for_event, event, 0, nullptr);

	assert_int_not_equal(before, 0);
	assert_int_equal(GetCurrentProcessorNumber(), 0);
	assert_int_equal(SetThreadAffinityMask(thread, before), 1);
	assert_int_equal(SetThreadAffinityMask(thread, before), before);
	assert_int_equal(SetThreadAffinityMask(GetCurrentThread(), 0), 0);
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	assert_int_equal(SetThreadAffinityMask(GetCurrentThread(), before), 1);
	assert_true(SetThreadPriority(thread, THREAD_PRIORITY_HIGHEST));
	assert_true(SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_NORMAL));
	assert_true(SetEvent(event));
	assert_int_equal(WaitForSingleObject(thread, INFINITE), WAIT_OBJECT_0);
	assert_int_equal(SetThreadAffinityMask(thread, before), 0);
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
	assert_true(CloseHandle(thread));
	assert_true(CloseHandle(event));
}

/* ---- atomic operations ---- */

static struct {
	volatile long count;
	volatile LONG narrow;
	LONG64 wide;
	volatile LONG bits;
	PVOID pointer;
} shared;

static DWORD CALLBACK count(LPVOID)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		LONG old;

		InterlockedIncrement(&shared.count);
		InterlockedIncrement(&shared.narrow);
		InterlockedDecrement(&shared.narrow);
		InterlockedExchangeAdd64(&shared.wide, 3);
		do {
			old = ReadNoFence(&shared.bits);
		} while (InterlockedCompareExchange(&shared.bits, old + 1, old) != old);
		YieldProcessor();
	}
	return 0;
}

static void atomic_operations_lose_nothing(void **)
{
	HANDLE threads[4];

	for (HANDLE &thread : threads)
		thread = CreateThread(nullptr, 0, count, nullptr, 0, nullptr);
	assert_int_equal(WaitForMultipleObjects(4, threads, TRUE, INFINITE), WAIT_OBJECT_0);
	for (const HANDLE thread : threads)
		assert_true(CloseHandle(thread));
	assert_int_equal(shared.count, 4 * ROUNDS);
	assert_int_equal(shared.narrow, 0);
	assert_int_equal(shared.wide, 4 * ROUNDS * 3);
	assert_int_equal(shared.bits, 4 * ROUNDS);
}

static void atomic_operations_return_what_they_do_on_windows(void **)
{
	LONG value = 5;
	LONG64 wide = INT64_MAX - 1;
	volatile long plain = 0;

	assert_int_equal(InterlockedIncrement(&value), 6);
	assert_int_equal(InterlockedDecrement(&value), 5);
	assert_int_equal(InterlockedAdd(&value, 2), 7);
	assert_int_equal(InterlockedExchangeAdd(&value, 1), 7);
	assert_int_equal(InterlockedExchange(&value, 12), 8);
	assert_int_equal(InterlockedAnd(&value, 6), 12);
	assert_int_equal(InterlockedOr(&value, 3), 4);
	assert_int_equal(InterlockedXor(&value, 1), 7);
	assert_int_equal(InterlockedCompareExchange(&value, 9, 5), 6);
	assert_int_equal(InterlockedCompareExchange(&value, 9, 6), 6);
	assert_int_equal(value, 9);
	assert_true(InterlockedIncrement64(&wide) == INT64_MAX);
	assert_true(InterlockedCompareExchange64(&wide, 1, INT64_MAX) == INT64_MAX);
	assert_int_equal(InterlockedExchange(&plain, 1), 0);
	assert_null(InterlockedExchangePointer(&shared.pointer, &value));
	assert_ptr_equal(InterlockedCompareExchangePointer(&shared.pointer, nullptr, &value),
	                 &value);
	assert_null(shared.pointer);
	MemoryBarrier();
	WriteRelease(&value, 3);
	assert_int_equal(ReadAcquire(&value), 3);
}

/* ---- memory ---- */

static void heap_blocks_are_aligned_zeroed_and_sized(void **)
{
	const HANDLE heap = GetProcessHeap();

	for (SIZE_T bytes = 0; bytes < 300; bytes++) {
		BYTE *block = static_cast<BYTE *>(HeapAlloc(heap, HEAP_ZERO_MEMORY, bytes));

		assert_non_null(block);
		assert_int_equal(reinterpret_cast<uintptr_t>(block) % 16, 0);
		assert_int_equal(HeapSize(heap, 0, block), bytes);
		assert_int_equal(std::count(block, block + bytes, 0), bytes);
		memset(block, 0xFF, bytes);
		block = static_cast<BYTE *>(HeapReAlloc(heap, HEAP_ZERO_MEMORY, block, bytes + 64));
		assert_int_equal(std::count(block, block + bytes, 0xFF), bytes);
		assert_int_equal(std::count(block + bytes, block + bytes + 64, 0), 64);
		assert_true(HeapFree(heap, 0, block));
	}
}

static void heap_misuse_fails_with_a_last_error(void **)
{
	const HANDLE heap = HeapCreate(0, 0, 0);
	void *block = HeapAlloc(heap, 0, 10);

	assert_true(HeapFree(heap, 0, nullptr));
	assert_null(HeapAlloc(nullptr, 0, 1));
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
	assert_null(HeapAlloc(heap, 0, SIZE_MAX - 8));
	assert_int_equal(GetLastError(), ERROR_NOT_ENOUGH_MEMORY);
	assert_false(HeapFree(GetProcessHeap(), 0, block));
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	assert_null(HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, 1000));
	assert_ptr_equal(HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, block, 5), block);
	assert_int_equal(HeapSize(heap, 0, block), 5);
	assert_true(HeapSize(heap, 0, nullptr) == static_cast<SIZE_T>(-1));
	assert_false(HeapDestroy(GetProcessHeap()));
	assert_true(HeapDestroy(heap));
	assert_false(HeapDestroy(heap));
	assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
}

static void a_heap_frees_its_blocks(void **)
{
	const HANDLE heap = HeapCreate(HEAP_NO_SERIALIZE, 4096, 0);
	void *blocks[20];

	for (void *&block : blocks)
		block = HeapAlloc(heap, 0, 100);
	assert_true(HeapFree(heap, 0, blocks[0]));
	assert_true(HeapFree(heap, 0, blocks[19]));
	assert_true(HeapFree(heap, 0, blocks[7]));
	assert_true(HeapDestroy(heap)); /* the leak checker sees the others, if they stay */
}

static void pages_are_reserved_committed_and_released(void **)
{
	SYSTEM_INFO info;
	BYTE *pages;
	BYTE *fixed;

	GetSystemInfo(&info);
	pages = static_cast<BYTE *>(
		VirtualAlloc(nullptr, 3 * info.dwPageSize, MEM_RESERVE, PAGE_READWRITE));
	assert_non_null(pages);
	fixed = pages + info.dwPageSize;
	assert_ptr_equal(VirtualAlloc(fixed + 1, 1, MEM_COMMIT, PAGE_READWRITE), fixed);
	fixed[0] = 1;
	assert_true(VirtualFree(fixed, 1, MEM_DECOMMIT));
	assert_ptr_equal(VirtualAlloc(fixed, 1, MEM_COMMIT, PAGE_READWRITE), fixed);
	assert_int_equal(fixed[0], 0);
	assert_null(VirtualAlloc(fixed, 3 * info.dwPageSize, MEM_COMMIT, PAGE_READWRITE));
	assert_int_equal(GetLastError(), ERROR_INVALID_ADDRESS);
	assert_null(VirtualAlloc(fixed, 1, MEM_RESERVE, PAGE_READWRITE));
	assert_int_equal(GetLastError(), ERROR_INVALID_ADDRESS);
	assert_false(VirtualFree(fixed, 0, MEM_RELEASE));
	assert_int_equal(GetLastError(), ERROR_INVALID_ADDRESS);
	assert_true(VirtualFree(pages, 0, MEM_RELEASE));
	assert_false(VirtualFree(pages, 0, MEM_RELEASE));
}

static void bad_page_requests_are_refused(void **)
{
	assert_null(VirtualAlloc(nullptr, 0, MEM_COMMIT, PAGE_READWRITE));
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	assert_null(VirtualAlloc(nullptr, 1, 0, PAGE_READWRITE));
	assert_null(VirtualAlloc(nullptr, 1, MEM_COMMIT | MEM_RELEASE, PAGE_READWRITE));
	assert_null(VirtualAlloc(nullptr, 1, MEM_COMMIT, 3));
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	assert_null(VirtualAlloc(nullptr, SIZE_MAX, MEM_COMMIT, PAGE_READWRITE));
	assert_int_equal(GetLastError(), ERROR_NOT_ENOUGH_MEMORY);
	assert_null(VirtualAlloc(nullptr, SIZE_MAX / 4, MEM_COMMIT, PAGE_READWRITE));
	assert_int_equal(GetLastError(), ERROR_NOT_ENOUGH_MEMORY);
	assert_false(VirtualFree(nullptr, 0, MEM_RELEASE));
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	assert_false(VirtualFree(&shared, 1, MEM_RELEASE));
	assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
	assert_false(VirtualFree(&shared, 1, MEM_DECOMMIT));
	assert_int_equal(GetLastError(), ERROR_INVALID_ADDRESS);
}

static void aligned_memory_is_aligned(void **)
{
	for (size_t alignment = 1; alignment <= 65536; alignment *= 2) {
		void *block = _aligned_malloc(100, alignment);

		assert_non_null(block);
		assert_int_equal(reinterpret_cast<uintptr_t>(block) % alignment, 0);
		_aligned_free(block);
	}
	errno = 0;
	assert_null(_aligned_malloc(100, 24));
	assert_int_equal(errno, EINVAL);
	_aligned_free(nullptr);
}

/* ---- time and the machine ---- */

static uint64_t number_of(const FILETIME &time)
{
	return static_cast<uint64_t>(time.dwHighDateTime) << 32 | time.dwLowDateTime;
}

static void clocks_agree(void **)
{
	LARGE_INTEGER frequency;
	LARGE_INTEGER begin;
	LARGE_INTEGER end;
	FILETIME date;
	struct timespec now;
	const DWORD tick = GetTickCount();
	const ULONGLONG tick64 = GetTickCount64();

	assert_true(QueryPerformanceFrequency(&frequency));
	assert_int_equal(frequency.QuadPart, 10000000);
	assert_int_equal(frequency.LowPart, 10000000);
	assert_true(QueryPerformanceCounter(&begin));
	Sleep(50);
	Sleep(0);
	(void)SwitchToThread();
	assert_true(QueryPerformanceCounter(&end));
	assert_in_range(end.QuadPart - begin.QuadPart, 500000, 50000000);
	assert_in_range(GetTickCount() - tick, 49, 5000);
	assert_in_range(GetTickCount64() - tick64, 49, 5000);
	assert_false(QueryPerformanceCounter(nullptr));
	GetSystemTimeAsFileTime(&date);
	/* not time(), which goes by the kernel's last tick and may be a second behind */
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	assert_in_range(now.tv_sec - (number_of(date) / 10000000 - 11644473600), 0, 5);
}

static void processors_spend_time(void **)
{
	FILETIME times[2][3];
	const DWORD begin = GetTickCount();

	assert_true(GetSystemTimes(&times[0][0], &times[0][1], &times[0][2]));
	while (GetTickCount() - begin < 200)
		YieldProcessor();
	assert_true(GetSystemTimes(&times[1][0], &times[1][1], &times[1][2]));
	assert_true(number_of(times[1][1]) >= number_of(times[1][0]));
	assert_true(number_of(times[1][1]) + number_of(times[1][2]) >
	            number_of(times[0][1]) + number_of(times[0][2]));
	assert_true(GetSystemTimes(nullptr, nullptr, nullptr));
}

static void the_machine_is_described(void **)
{
	SYSTEM_INFO info;

	GetSystemInfo(&info);
	assert_int_equal(info.dwPageSize, sysconf(_SC_PAGESIZE));
	assert_int_equal(info.dwNumberOfProcessors, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(GetCurrentProcessId(), getpid());
	assert_int_equal(GetCurrentThreadId(), getpid());
}

/* ---- the language ---- */

struct __declspec(align(64)) Aligned {
	int first;
	int second;
};

__forceinline static int forced()
{
	return __LINE__;
}

static void smaller_and_larger_work_beside_std(void **)
{
	using namespace std;
	const size_t length = 7;
	const DWORD number = 3;

	assert_int_equal(min(length, number), 3);
	assert_int_equal(max(1, 2L), 2);
	assert_int_equal(min(1, 2), 1);
	assert_int_equal(std::min<size_t>(length, 9), 7);
	assert_true(std::max(string("a"), string("b")) == "b");
	assert_true(max(string("a"), string("b")) == "b");
	assert_int_equal((std::min)({4, 2, 3}), 2);
}

static void macros_of_the_language_work(void **)
{
	Aligned object[2] = {};
	unsigned __int64 big = 0;

	assert_int_equal(sizeof(object), 128);
	assert_ptr_equal(CONTAINING_RECORD(&object[1].second, Aligned, second), &object[1]);
	assert_int_equal(FIELD_OFFSET(Aligned, second), 4);
	assert_int_equal(_countof(object), 2);
	assert_true(forced() > 0);
	assert_int_equal(sizeof(big), 8);
	assert_int_equal(MAKEWORD(2, 1), 0x0102);
	assert_int_equal(HRESULT_FROM_WIN32(ERROR_INVALID_HANDLE), E_HANDLE);
	assert_int_equal(HRESULT_FROM_WIN32(0), S_OK);
	assert_int_equal(HRESULT_FROM_WIN32(E_FAIL), E_FAIL);
	FillMemory(&big, sizeof(big), 0xFF);
	assert_true(big == UINT64_MAX);
	RtlZeroMemory(&big, sizeof(big));
	assert_int_equal(big, 0);
}

int main()
{
	const CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_threads_return_their_exit_codes),
		cmocka_unit_test(a_running_thread_is_active),
		cmocka_unit_test(the_end_of_a_thread_is_behind_its_destructors),
		cmocka_unit_test(a_handle_may_be_closed_while_its_thread_runs),
		cmocka_unit_test(bad_threads_are_refused),
		cmocka_unit_test(a_thread_without_its_key_does_not_begin),
		cmocka_unit_test(a_thread_has_an_affinity),
		cmocka_unit_test(atomic_operations_lose_nothing),
		cmocka_unit_test(atomic_operations_return_what_they_do_on_windows),
		cmocka_unit_test(heap_blocks_are_aligned_zeroed_and_sized),
		cmocka_unit_test(heap_misuse_fails_with_a_last_error),
		cmocka_unit_test(a_heap_frees_its_blocks),
		cmocka_unit_test(pages_are_reserved_committed_and_released),
		cmocka_unit_test(bad_page_requests_are_refused),
		cmocka_unit_test(aligned_memory_is_aligned),
		cmocka_unit_test(clocks_agree),
		cmocka_unit_test(processors_spend_time),
		cmocka_unit_test(the_machine_is_described),
		cmocka_unit_test(smaller_and_larger_work_beside_std),
		cmocka_unit_test(macros_of_the_language_work),
	};

	return cmocka_run_group_tests(tests, nullptr, nullptr);
}
