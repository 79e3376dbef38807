/* SPDX-License-Identifier: BSD-2-Clause */
#include "overlapped.h"

#include <cstddef>
#include <cstring>

namespace nd
{

namespace
{

Call *call_of(ndx_overlapped *ov)
{
	return reinterpret_cast<Call *>(reinterpret_cast<char *>(ov) - offsetof(Call, ov));
}

std::uint32_t status_of(const OVERLAPPED *overlapped)
{
	return static_cast<std::uint32_t>(__atomic_load_n(&overlapped->Internal, __ATOMIC_ACQUIRE));
}

/*
 * The sink of NDX: any thread, with locks of NDX held. Status and event change in one step: a
 * thread that has seen the status may begin a call with the same event, and must not find the event
 * set for the old one. From the status on, the OVERLAPPED may be gone.
 */
void complete(ndx_overlapped *ov)
{
	Call *call = call_of(ov);
	ndx_status status = ov->status;
	Event *event = call->event;
	Port *port = nullptr;

	if (call->aborted_is_ended && status == NDX_E_CONNECTION_ABORTED)
		status = NDX_OK;
	call->status = static_cast<std::uint32_t>(hresult_of(status));
	call->bytes = 0;
	{
		const Locked locked;

		if (call->packet && call->file->port != nullptr) {
			port = call->file->port;
			call->key = call->file->key;
			hold(port);
		}
		__atomic_store_n(&call->caller->Internal, call->status, __ATOMIC_RELEASE);
		tell_status(call->caller, call->status);
		if (event != nullptr)
			signal(event);
	}
	release(event);
	if (port != nullptr)
		post_packet(port, call);
	else
		delete call;
}

/* The event that a call will set; false: hEvent names none. */
bool find_event(HANDLE handle, Event **out)
{
	*out = nullptr;
	if ((reinterpret_cast<std::uintptr_t>(handle) & ~std::uintptr_t{3}) == 0)
		return true;
	*out = find_as<Event>(handle);
	return *out != nullptr;
}

} // namespace

File *create_file()
{
	auto *file = new File();

	if (file != nullptr && ndx_port_create_sink(complete, &file->sink) != NDX_OK) {
		delete file;
		return nullptr;
	}
	return file;
}

Call *begin_call(OVERLAPPED *caller, File *file, HRESULT *failure)
{
	const bool packet = (reinterpret_cast<std::uintptr_t>(caller->hEvent) & 1) == 0;
	Event *event;
	Call *call;

	if (!find_event(caller->hEvent, &event)) {
		*failure = ND_INVALID_HANDLE;
		return nullptr;
	}
	call = new Call();
	if (call == nullptr) {
		release(event);
		*failure = ND_NO_MEMORY;
		return nullptr;
	}
	ndx_overlapped_init(&call->ov);
	call->ov.port = file->sink;
	call->caller = caller;
	call->event = event;
	call->file = file;
	call->packet = packet;
	const Locked locked;

	call->before = __atomic_load_n(&caller->Internal, __ATOMIC_ACQUIRE);
	call->event_was_set = event != nullptr && event->set;
	if (event != nullptr)
		event->set = false;
	__atomic_store_n(&caller->Internal, static_cast<ULONG_PTR>(ND_PENDING), __ATOMIC_RELEASE);
	return call;
}

void abandon_call(Call *call)
{
	const auto pending = static_cast<ULONG_PTR>(ND_PENDING);
	OVERLAPPED *caller = call->caller;

	{
		const Locked locked;

		/* if another call on the same OVERLAPPED has ended since, its status stays */
		if (caller->Internal == pending && call->before != pending) {
			__atomic_store_n(&caller->Internal, call->before, __ATOMIC_RELEASE);
			tell_status(caller, static_cast<std::uint32_t>(call->before));
		}
		if (call->event_was_set)
			signal(call->event);
	}
	release(call->event);
	delete call;
}

HRESULT result_of(OVERLAPPED *overlapped, bool wait)
{
	const auto pending = static_cast<std::uint32_t>(ND_PENDING);
	const DWORD error = GetLastError();
	Event *event = nullptr;
	std::uint32_t status;

	if (overlapped == nullptr)
		return ND_INVALID_PARAMETER;
	status = status_of(overlapped);
	if (status != pending || !wait)
		return static_cast<HRESULT>(status);
	/* the program may have closed the event's handle */
	if (!find_event(overlapped->hEvent, &event))
		SetLastError(error);
	{
		const Locked locked;

		status = status_of(overlapped);
		if (status == pending)
			status = wait_for_status(overlapped);
		/* as if the event had been waited for */
		if (event != nullptr && !event->manual)
			event->set = false;
	}
	release(event);
	return static_cast<HRESULT>(status);
}

} // namespace nd

using namespace nd;

BOOL GetOverlappedResult(HANDLE, LPOVERLAPPED overlapped, DWORD *bytes, BOOL wait)
{
	const HRESULT status = result_of(overlapped, wait != 0);

	if (status == ND_PENDING) {
		SetLastError(ERROR_IO_INCOMPLETE);
		return FALSE;
	}
	if (bytes != nullptr)
		*bytes = 0; /* no call of an overlapped file transfers bytes */
	if (FAILED(status))
		SetLastError(last_error_of(status));
	return SUCCEEDED(status);
}
