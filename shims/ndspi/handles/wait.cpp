/* SPDX-License-Identifier: BSD-2-Clause */
/* Events, and threads that wait. All waits share one lock, so that a completion can store its
 * status and set its event in one step. */
#include "handle.h"
#include "nd_waitable.h"

#include <ctime>

namespace nd
{

namespace
{

/* A thread that sleeps; on the thread's stack, in the list under the lock. */
struct Sleeper {
	Object *const *objects;       /* it waits for these, ... */
	std::size_t count;            /* ... or, with 0, for: */
	const OVERLAPPED *overlapped; /* the call on this */
	std::size_t found;            /* which object; count: none yet */
	std::uint32_t status;
	bool all;
	bool awake;
	pthread_cond_t condition;
	Sleeper *next;
};

struct {
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	Sleeper *first = nullptr;
} waits;

/* Locked. */
bool is_set(const Object *object)
{
	return object->kind == Kind::Event ? static_cast<const Event *>(object)->set
	                                   : static_cast<const Waitable *>(object)->set;
}

/* Locked: one waiter resets an event that is not reset by hand. */
void consume(Object *object)
{
	if (object->kind == Kind::Event && !static_cast<Event *>(object)->manual)
		static_cast<Event *>(object)->set = false;
}

/* Locked: take what was waited for; `count`: not there yet. */
std::size_t take_signalled(Object *const *objects, std::size_t count, bool all)
{
	std::size_t signalled = 0;
	std::size_t first = count;

	for (std::size_t i = 0; i < count; i++) {
		if (!is_set(objects[i]))
			continue;
		signalled++;
		if (first == count)
			first = i;
	}
	if (all && signalled < count)
		return count;
	for (std::size_t i = 0; all && i < count; i++)
		consume(objects[i]);
	if (!all && first < count)
		consume(objects[first]);
	return all ? 0 : first;
}

void wake(Sleeper *sleeper)
{
	sleeper->awake = true;
	pthread_cond_signal(&sleeper->condition);
}

std::uint64_t deadline_after(DWORD milliseconds)
{
	timespec t;

	if (milliseconds == INFINITE)
		return UINT64_MAX;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u +
	       static_cast<std::uint64_t>(t.tv_nsec) + milliseconds * UINT64_C(1000000);
}

/* Locked: in the list, behind those that wait already, until it is awake or the deadline, in
 * nanoseconds of the monotonic clock, has passed. */
void sleep(Sleeper *self, std::uint64_t deadline)
{
	const timespec until = {static_cast<time_t>(deadline / 1000000000u),
	                        static_cast<long>(deadline % 1000000000u)};
	pthread_condattr_t monotonic;
	Sleeper **last = &waits.first;
	int rc = 0;

	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&self->condition, &monotonic);
	while (*last != nullptr)
		last = &(*last)->next;
	*last = self;
	while (!self->awake && rc == 0)
		rc = deadline == UINT64_MAX
		             ? pthread_cond_wait(&self->condition, &waits.lock)
		             : pthread_cond_timedwait(&self->condition, &waits.lock, &until);
	for (last = &waits.first; *last != self; last = &(*last)->next)
		continue;
	*last = self->next;
	(void)pthread_cond_destroy(&self->condition);
	(void)pthread_condattr_destroy(&monotonic);
}

DWORD wait_for(Object *const *objects, std::size_t count, bool all, DWORD milliseconds)
{
	const std::uint64_t deadline = deadline_after(milliseconds);
	Sleeper self{};
	const Locked locked;

	self.objects = objects;
	self.count = count;
	self.all = all;
	self.found = take_signalled(objects, count, all);
	if (self.found == count && milliseconds != 0)
		sleep(&self, deadline);
	return self.found < count ? WAIT_OBJECT_0 + static_cast<DWORD>(self.found) : WAIT_TIMEOUT;
}

Object *find_waitable(HANDLE handle)
{
	Object *object = find_any(handle);

	if (object == nullptr || object->kind == Kind::Event || object->kind == Kind::Waitable)
		return object;
	release(object);
	SetLastError(ERROR_INVALID_HANDLE);
	return nullptr;
}

BOOL change_event(HANDLE handle, bool set)
{
	auto *event = find_as<Event>(handle);

	if (event == nullptr)
		return FALSE;
	{
		const Locked locked;

		if (set)
			signal(event);
		else
			event->set = false;
	}
	release(event);
	return TRUE;
}

HANDLE create_event(BOOL manual_reset, BOOL initial_state, bool named)
{
	if (named) {
		SetLastError(ERROR_INVALID_PARAMETER);
		return nullptr;
	}
	return handle_of(new Event(manual_reset != 0, initial_state != 0));
}

} // namespace

Locked::Locked()
{
	pthread_mutex_lock(&waits.lock);
}

Locked::~Locked()
{
	pthread_mutex_unlock(&waits.lock);
}

void signal(Object *object)
{
	if (object->kind == Kind::Event)
		static_cast<Event *>(object)->set = true;
	else
		static_cast<Waitable *>(object)->set = true;
	for (Sleeper *s = waits.first; s != nullptr && is_set(object); s = s->next) {
		if (s->awake || s->count == 0)
			continue;
		s->found = take_signalled(s->objects, s->count, s->all);
		if (s->found < s->count)
			wake(s);
	}
}

void tell_status(const OVERLAPPED *overlapped, std::uint32_t status)
{
	for (Sleeper *s = waits.first; s != nullptr; s = s->next) {
		if (s->awake || s->overlapped != overlapped)
			continue;
		s->status = status;
		wake(s);
	}
}

std::uint32_t wait_for_status(const OVERLAPPED *overlapped)
{
	Sleeper self{};

	self.overlapped = overlapped;
	sleep(&self, UINT64_MAX);
	return self.status;
}

} // namespace nd

using namespace nd;

HANDLE CreateEventW(LPSECURITY_ATTRIBUTES, BOOL manual_reset, BOOL initial_state, LPCWSTR name)
{
	return create_event(manual_reset, initial_state, name != nullptr);
}

HANDLE CreateEventA(LPSECURITY_ATTRIBUTES, BOOL manual_reset, BOOL initial_state, LPCSTR name)
{
	return create_event(manual_reset, initial_state, name != nullptr);
}

BOOL SetEvent(HANDLE event)
{
	return change_event(event, true);
}

BOOL ResetEvent(HANDLE event)
{
	return change_event(event, false);
}

DWORD WaitForMultipleObjects(DWORD count, const HANDLE *handles, BOOL wait_all, DWORD milliseconds)
{
	Object *objects[MAXIMUM_WAIT_OBJECTS];
	DWORD found = 0;
	DWORD result = WAIT_FAILED;

	if (count == 0 || count > MAXIMUM_WAIT_OBJECTS || handles == nullptr) {
		SetLastError(ERROR_INVALID_PARAMETER);
		return WAIT_FAILED;
	}
	while (found < count && (objects[found] = find_waitable(handles[found])) != nullptr)
		found++;
	if (found == count)
		result = wait_for(objects, count, wait_all != 0, milliseconds);
	while (found > 0)
		release(objects[--found]);
	return result;
}

DWORD WaitForSingleObject(HANDLE handle, DWORD milliseconds)
{
	return WaitForMultipleObjects(1, &handle, FALSE, milliseconds);
}

/* ---- for libndx-winrt ---- */

void *ndx_nd_waitable_create(void *object, void (*drop)(void *), HANDLE *handle)
{
	auto *waitable = new Waitable(object);

	if (waitable == nullptr) {
		SetLastError(ERROR_NOT_ENOUGH_MEMORY);
		return nullptr;
	}
	hold(waitable);
	*handle = handle_of(waitable);
	if (*handle == nullptr) {
		release(waitable);
		return nullptr;
	}
	waitable->drop = drop;
	return waitable;
}

void ndx_nd_waitable_signal(void *waitable)
{
	const Locked locked;

	signal(static_cast<Waitable *>(waitable));
}

void ndx_nd_waitable_release(void *waitable)
{
	release(static_cast<Waitable *>(waitable));
}

void *ndx_nd_waitable_object(HANDLE handle, void **waitable)
{
	auto *found = find_as<Waitable>(handle);

	*waitable = found;
	return found != nullptr ? found->object : nullptr;
}
