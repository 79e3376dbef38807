// SPDX-License-Identifier: BSD-2-Clause
// Asynchronous calls of the facade: the caller's OVERLAPPED, its event, its completion port.
#ifndef COM_OVERLAPPED_HPP
#define COM_OVERLAPPED_HPP

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>

#include <ndx/ndx.h>

#include "com_types.hpp"

namespace nd
{

/// The status as NetworkDirect spells it.
HRESULT to_hresult(ndx_status status);

/// An auto-reset event: what OVERLAPPED::hEvent points at.
class Event
{
      public:
	void set();
	void wait();

      private:
	std::mutex mutex_;
	std::condition_variable changed_;
	bool set_ = false;
};

/// A completion port: takes OVERLAPPEDs of any number of files.
class CompletionPort
{
      public:
	void post(OVERLAPPED *overlapped);
	/// nullptr when time is over.
	OVERLAPPED *get(std::uint32_t timeout_ms);

      private:
	std::mutex mutex_;
	std::condition_variable changed_;
	std::deque<OVERLAPPED *> queue_;
};

/// What CreateOverlappedFile hands out. A port may be bound to it after objects were made with it.
class OverlappedFile
{
      public:
	void bind(CompletionPort *port);
	/// Report that `overlapped` has ended. The caller may free it as soon
	/// as its status is there, so its event was read before.
	void deliver(OVERLAPPED *overlapped, HANDLE event);

      private:
	std::atomic<CompletionPort *> port_{nullptr};
};

/// One call in flight: the library's object beside the caller's. Two calls may be pending on one
/// OVERLAPPED; each has its own of these.
struct Pending {
	ndx_overlapped ov;
	OVERLAPPED *caller;
	OverlappedFile *file;

	static void completed(ndx_overlapped *ov);
};

/// Start a call: `start(ndx_overlapped *)` is the library's. Either it fails, and nothing
/// completes; or it is pending, and completes once: there is no third way, as programs expect.
template <class Start> HRESULT begin(OVERLAPPED *caller, OverlappedFile *file, Start start)
{
	auto *pending = new (std::nothrow) Pending{};

	if (pending == nullptr)
		return ND_NO_MEMORY;
	ndx_overlapped_init(&pending->ov);
	pending->ov.callback = Pending::completed;
	pending->ov.context = pending;
	pending->caller = caller;
	pending->file = file;
	__atomic_store_n(&caller->Internal, static_cast<std::uintptr_t>(ND_PENDING),
	                 __ATOMIC_RELEASE);
	const ndx_status status = start(&pending->ov);
	if (status != NDX_PENDING) {
		delete pending;
		return to_hresult(status);
	}
	return ND_PENDING; // `pending` may be gone by now
}

/// How a call on `overlapped` ended; keyed by the OVERLAPPED alone, whichever object it was for.
HRESULT result_of(OVERLAPPED *overlapped, bool wait);

} // namespace nd

#endif
