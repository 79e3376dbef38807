/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads: detached POSIX threads behind a waitable handle. */
#include "winrt.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>

#define STACK_LEAST 65536u
#define PROCESSORS 64
#define MS_PER_S 1000
#define NS_PER_MS 1000000

namespace
{

struct Thread {
	void *waitable; /* what the handle names, with a reference while the thread runs */
	LPTHREAD_START_ROUTINE routine;
	void *parameter;
	sem_t started; /* the creator waits for the id, which the program may use at once */
	pid_t id;      /* 0: the thread could not begin */
	bool ended;    /* under `ids` */
	DWORD code;    /* of the exit; the thread's own while it runs */
};

pthread_once_t once = PTHREAD_ONCE_INIT;
pthread_key_t current; /* the Thread that runs, and its end */
bool usable;

/* The system gives the id of an ended thread to another one. No thread ends while this lock is
 * held, so an id is used under the lock. */
pthread_mutex_t ids = PTHREAD_MUTEX_INITIALIZER;

void drop(void *object)
{
	Thread *thread = static_cast<Thread *>(object);

	(void)sem_destroy(&thread->started);
	free(thread);
}

/* The end of a thread, whichever way: the destructors of thread_local objects have run before. */
void end(void *object)
{
	Thread *thread = static_cast<Thread *>(object);
	void *const waitable = thread->waitable;

	(void)pthread_mutex_lock(&ids);
	thread->ended = true;
	(void)pthread_mutex_unlock(&ids);
	ndx_nd_waitable_signal(waitable);
	ndx_nd_waitable_release(waitable);
}

void set_up()
{
	usable = pthread_key_create(&current, end) == 0;
}

void *begin(void *object)
{
	Thread *thread = static_cast<Thread *>(object);

	/* ExitThread() finds the thread by the key */
	if (pthread_setspecific(current, thread) != 0) {
		(void)sem_post(&thread->started);
		return nullptr;
	}
	(void)pthread_setname_np(pthread_self(), "ndx-win");
	thread->id = static_cast<pid_t>(syscall(SYS_gettid));
	(void)sem_post(&thread->started);
	thread->code = thread->routine(thread->parameter);
	return nullptr;
}

bool start(Thread *thread, size_t stack)
{
	pthread_attr_t attr;
	pthread_t self;
	bool ok;

	if (pthread_attr_init(&attr) != 0)
		return false;
	ok = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0;
	if (stack != 0)
		ok = ok && pthread_attr_setstacksize(&attr, stack < STACK_LEAST ? STACK_LEAST
		                                                                : stack) == 0;
	ok = ok && pthread_create(&self, &attr, begin, thread) == 0;
	(void)pthread_attr_destroy(&attr);
	return ok;
}

/* The id of the thread that a handle means, for as long as the lock is held; 0: it has ended. */
pid_t id_of(HANDLE handle)
{
	const Thread *thread;
	void *waitable;
	pid_t id = 0;

	if (handle == GetCurrentThread())
		return static_cast<pid_t>(syscall(SYS_gettid));
	thread = static_cast<const Thread *>(ndx_nd_waitable_object(handle, &waitable));
	if (thread == nullptr)
		return 0;
	if (!thread->ended)
		id = thread->id;
	ndx_nd_waitable_release(waitable);
	return id;
}

DWORD_PTR bind_id(pid_t id, DWORD_PTR mask)
{
	DWORD_PTR previous = 0;
	cpu_set_t set;

	if (id == 0 || sched_getaffinity(id, sizeof(set), &set) != 0)
		return static_cast<DWORD_PTR>(winrt_fail(ERROR_INVALID_HANDLE));
	for (unsigned i = 0; i < PROCESSORS; i++)
		previous |= static_cast<DWORD_PTR>(CPU_ISSET(i, &set) ? 1 : 0) << i;
	CPU_ZERO(&set);
	for (unsigned i = 0; i < PROCESSORS; i++) {
		if ((mask >> i & 1) != 0)
			CPU_SET(i, &set);
	}
	if (sched_setaffinity(id, sizeof(set), &set) != 0)
		return static_cast<DWORD_PTR>(winrt_fail(ERROR_INVALID_PARAMETER));
	return previous;
}

[[noreturn]] void leave(DWORD code)
{
	Thread *thread;

	(void)pthread_once(&once, set_up);
	thread = usable ? static_cast<Thread *>(pthread_getspecific(current)) : nullptr;
	if (thread != nullptr)
		thread->code = code;
	pthread_exit(nullptr);
}

} // namespace

HANDLE CreateThread(LPSECURITY_ATTRIBUTES, SIZE_T stack, LPTHREAD_START_ROUTINE routine,
                    LPVOID parameter, DWORD flags, LPDWORD id)
{
	Thread *thread;
	HANDLE handle;
	bool begun;

	if (routine == nullptr)
		return winrt_null(ERROR_INVALID_PARAMETER);
	if ((flags & ~STACK_SIZE_PARAM_IS_A_RESERVATION) != 0)
		return winrt_null(ERROR_NOT_SUPPORTED);
	(void)pthread_once(&once, set_up);
	thread = static_cast<Thread *>(calloc(1, sizeof(*thread)));
	if (!usable || thread == nullptr || sem_init(&thread->started, 0, 0) != 0) {
		free(thread);
		return winrt_null(ERROR_NOT_ENOUGH_MEMORY);
	}
	thread->routine = routine;
	thread->parameter = parameter;
	thread->waitable = ndx_nd_waitable_create(thread, drop, &handle);
	if (thread->waitable == nullptr) {
		drop(thread);
		return winrt_null(ERROR_NOT_ENOUGH_MEMORY);
	}
	begun = start(thread, stack);
	while (begun && sem_wait(&thread->started) != 0) {
	}
	if (!begun || thread->id == 0) {
		ndx_nd_waitable_release(thread->waitable);
		(void)CloseHandle(handle);
		return winrt_null(ERROR_NOT_ENOUGH_MEMORY);
	}
	if (id != nullptr)
		*id = static_cast<DWORD>(thread->id);
	return handle;
}

uintptr_t _beginthreadex(void *, unsigned stack, unsigned (*routine)(void *), void *parameter,
                         unsigned flags, unsigned *id)
{
	const HANDLE handle = CreateThread(nullptr, stack, routine, parameter, flags, id);

	if (handle == nullptr)
		errno = GetLastError() == ERROR_NOT_ENOUGH_MEMORY ? EAGAIN : EINVAL;
	return reinterpret_cast<uintptr_t>(handle);
}

void ExitThread(DWORD code)
{
	leave(code);
}

void _endthreadex(unsigned code)
{
	leave(code);
}

BOOL GetExitCodeThread(HANDLE handle, LPDWORD code)
{
	const Thread *thread;
	void *waitable;

	if (code == nullptr)
		return winrt_fail(ERROR_INVALID_PARAMETER);
	thread = static_cast<const Thread *>(ndx_nd_waitable_object(handle, &waitable));
	if (thread == nullptr)
		return FALSE;
	(void)pthread_mutex_lock(&ids);
	*code = thread->ended ? thread->code : STILL_ACTIVE;
	(void)pthread_mutex_unlock(&ids);
	ndx_nd_waitable_release(waitable);
	return TRUE;
}

DWORD GetCurrentThreadId()
{
	return static_cast<DWORD>(syscall(SYS_gettid));
}

DWORD_PTR SetThreadAffinityMask(HANDLE thread, DWORD_PTR mask)
{
	DWORD_PTR previous;

	(void)pthread_mutex_lock(&ids);
	previous = bind_id(id_of(thread), mask);
	(void)pthread_mutex_unlock(&ids);
	return previous;
}

BOOL SetThreadPriority(HANDLE thread, int)
{
	void *waitable;

	if (thread == GetCurrentThread())
		return TRUE;
	if (ndx_nd_waitable_object(thread, &waitable) == nullptr)
		return FALSE;
	ndx_nd_waitable_release(waitable);
	return TRUE;
}

void Sleep(DWORD milliseconds)
{
	const long rest_ms = static_cast<long>(milliseconds % MS_PER_S);
	timespec left = {milliseconds / MS_PER_S, rest_ms * NS_PER_MS};

	if (milliseconds == 0)
		(void)sched_yield();
	if (milliseconds == INFINITE)
		left.tv_sec = LONG_MAX; /* a signal handler does not end the sleep */
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
	}
}

BOOL SwitchToThread()
{
	return sched_yield() == 0 ? TRUE : FALSE;
}
