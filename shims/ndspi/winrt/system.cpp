/* SPDX-License-Identifier: BSD-2-Clause */
/* Time, and what the machine and the process are. */
#include "winrt.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

/* Units of 100 ns, in which Windows counts. */
#define UNITS_PER_S 10000000
#define UNITS_PER_MS 10000
#define NS_PER_UNIT 100
#define S_FROM_1601_TO_1970 11644473600
#define LOWEST_ADDRESS 0x10000u
#define HIGHEST_ADDRESS 0x7FFFFFFEFFFFu
#define PROCESSORS 64

namespace
{

int64_t units_of(clockid_t clock)
{
	timespec now;

	(void)clock_gettime(clock, &now);
	return static_cast<int64_t>(now.tv_sec) * UNITS_PER_S + now.tv_nsec / NS_PER_UNIT;
}

void put(LPFILETIME time, uint64_t units)
{
	if (time == nullptr)
		return;
	time->dwLowDateTime = static_cast<DWORD>(units);
	time->dwHighDateTime = static_cast<DWORD>(units >> 32);
}

/* The first line of /proc/stat: what all processors together have spent, in ticks. */
bool read_stat(unsigned long long *ticks, int count)
{
	char line[256];
	const int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	const ssize_t bytes = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	char *next = line;

	if (fd >= 0)
		(void)close(fd);
	if (bytes < 4 || memcmp(line, "cpu ", 4) != 0)
		return false;
	line[bytes] = '\0';
	next += 4;
	for (int i = 0; i < count; i++) {
		char *const begin = next;

		ticks[i] = strtoull(begin, &next, 10);
		if (next == begin)
			return false;
	}
	return true;
}

} // namespace

BOOL QueryPerformanceCounter(LARGE_INTEGER *count)
{
	if (count == nullptr)
		return winrt_fail(ERROR_NOACCESS);
	count->QuadPart = units_of(CLOCK_MONOTONIC);
	return TRUE;
}

BOOL QueryPerformanceFrequency(LARGE_INTEGER *frequency)
{
	if (frequency == nullptr)
		return winrt_fail(ERROR_NOACCESS);
	frequency->QuadPart = UNITS_PER_S;
	return TRUE;
}

ULONGLONG GetTickCount64()
{
	return static_cast<ULONGLONG>(units_of(CLOCK_MONOTONIC) / UNITS_PER_MS);
}

DWORD GetTickCount()
{
	return static_cast<DWORD>(GetTickCount64());
}

void GetSystemTimeAsFileTime(LPFILETIME time)
{
	put(time,
	    static_cast<uint64_t>(units_of(CLOCK_REALTIME) + S_FROM_1601_TO_1970 * UNITS_PER_S));
}

BOOL GetSystemTimes(LPFILETIME idle, LPFILETIME kernel, LPFILETIME user)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, COUNT };
	unsigned long long ticks[COUNT];
	const long per_s = sysconf(_SC_CLK_TCK);
	uint64_t unit;

	if (per_s <= 0 || !read_stat(ticks, COUNT))
		return winrt_fail(ERROR_NOT_SUPPORTED);
	unit = UNITS_PER_S / static_cast<uint64_t>(per_s);
	put(idle, (ticks[IDLE] + ticks[IOWAIT]) * unit);
	put(kernel,
	    (ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ] + ticks[IDLE] + ticks[IOWAIT]) * unit);
	put(user, (ticks[USER] + ticks[NICE]) * unit);
	return TRUE;
}

void GetSystemInfo(LPSYSTEM_INFO info)
{
	const DWORD page = static_cast<DWORD>(sysconf(_SC_PAGESIZE));
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (info == nullptr)
		return;
	memset(info, 0, sizeof(*info));
#if defined(__x86_64__)
	info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_AMD64;
#elif defined(__aarch64__)
	info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_ARM64;
#else
	info->wProcessorArchitecture = PROCESSOR_ARCHITECTURE_UNKNOWN;
#endif
	info->dwPageSize = page;
	info->dwAllocationGranularity = page;
	info->lpMinimumApplicationAddress = reinterpret_cast<void *>(LOWEST_ADDRESS);
	info->lpMaximumApplicationAddress = reinterpret_cast<void *>(HIGHEST_ADDRESS);
	info->dwNumberOfProcessors = static_cast<DWORD>(processors < 1 ? 1 : processors);
	info->dwActiveProcessorMask =
		processors >= PROCESSORS
			? ~static_cast<DWORD_PTR>(0)
			: (static_cast<DWORD_PTR>(1) << info->dwNumberOfProcessors) - 1;
}

DWORD GetCurrentProcessorNumber()
{
	const int processor = sched_getcpu();

	return processor < 0 ? 0 : static_cast<DWORD>(processor);
}

DWORD GetCurrentProcessId()
{
	return static_cast<DWORD>(getpid());
}

void ExitProcess(UINT code)
{
	exit(static_cast<int>(code));
}

void DebugBreak()
{
	(void)raise(SIGTRAP);
}
