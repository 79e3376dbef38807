/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles and what they name. Windows has one space of handles in a process, so this is the one
 * place with global state: a table with its lock (handle.cpp), and the lock that all waits share
 * (wait.cpp). */
#ifndef NDX_ND_HANDLE_H
#define NDX_ND_HANDLE_H

#include <pthread.h>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "ndx_win32_handles.h"

namespace nd
{

enum class Kind : std::uint32_t { Event, Port, File, Waitable };

/* The library has no C++ runtime: memory comes from malloc(). */
struct Allocated {
	static void *operator new(std::size_t size) noexcept
	{
		return std::malloc(size);
	}
	static void operator delete(void *memory) noexcept
	{
		std::free(memory);
	}
};

/* What a handle names. The table has one reference, each use has one. */
struct Object : Allocated {
	using Action = void (*)(Object *);

	Object(Kind k, Action at_end, Action at_close = nullptr)
	    : kind(k), destroy(at_end), close(at_close)
	{
	}
	Object(const Object &) = delete;
	Object &operator=(const Object &) = delete;

	const Kind kind;
	const Action destroy; /* when the last reference is gone */
	const Action close;   /* when the program closes its handle; may be nullptr */
	std::uint32_t references = 1;
};

void hold(Object *object);
/* The last reference destroys the object; NULL is a no-op. */
void release(Object *object);

/* A handle of the object, which takes over the caller's reference; NULL: no memory, and the
 * reference is gone. */
HANDLE handle_of(Object *object);
/* The object with a reference more; nullptr, and the last error, if there is none. */
Object *find_any(HANDLE handle);
/* The same, of this kind. */
Object *find(HANDLE handle, Kind kind);

template <class T> T *find_as(HANDLE handle)
{
	return static_cast<T *>(find(handle, T::of_kind));
}

/* ---- waiting; all under one lock ---- */

struct Event : Object {
	static constexpr Kind of_kind = Kind::Event;
	Event(bool manual_reset, bool initially)
	    : Object(Kind::Event, drop), manual(manual_reset), set(initially)
	{
	}
	const bool manual;
	bool set;

      private:
	static void drop(Object *object)
	{
		delete static_cast<Event *>(object);
	}
};

/* A handle of libndx-winrt's, such as a thread. */
struct Waitable : Object {
	static constexpr Kind of_kind = Kind::Waitable;
	explicit Waitable(void *what) : Object(Kind::Waitable, drop_waitable), object(what)
	{
	}
	void *const object;
	void (*drop)(void *) = nullptr;
	bool set = false;

      private:
	static void drop_waitable(Object *object)
	{
		auto *self = static_cast<Waitable *>(object);

		if (self->drop != nullptr)
			self->drop(self->object);
		delete self;
	}
};

class Locked
{
      public:
	Locked();
	~Locked();
	Locked(const Locked &) = delete;
	Locked &operator=(const Locked &) = delete;
};

/* Locked: the event, or the waitable, is signalled. The threads that wait for it get it in their
 * order, in this call: what the program does to the object next does not take it from them. */
void signal(Object *object);

/* Locked: threads that wait for the call on this OVERLAPPED learn how it ended. */
void tell_status(const OVERLAPPED *overlapped, std::uint32_t status);
/* Locked: sleep until tell_status(); the lock is free for that time. */
std::uint32_t wait_for_status(const OVERLAPPED *overlapped);

} // namespace nd

#endif
