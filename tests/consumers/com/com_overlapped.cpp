// SPDX-License-Identifier: BSD-2-Clause
#include "com_overlapped.hpp"

#include <chrono>

namespace nd
{

HRESULT to_hresult(ndx_status status)
{
	// One row for each status; a switch, so that a new one cannot be forgotten.
	switch (status) {
	case NDX_OK:
		return ND_SUCCESS;
	case NDX_PENDING:
		return ND_PENDING;
	case NDX_E_INVALID_PARAMETER:
		return ND_INVALID_PARAMETER;
	case NDX_E_INVALID_BUFFER_SIZE:
		return ND_INVALID_BUFFER_SIZE;
	case NDX_E_BUFFER_OVERFLOW:
		return ND_BUFFER_OVERFLOW;
	case NDX_E_DATA_OVERRUN:
		return ND_DATA_OVERRUN;
	case NDX_E_NO_MORE_ENTRIES:
		return ND_NO_MORE_ENTRIES;
	case NDX_E_ACCESS_VIOLATION:
		return ND_ACCESS_VIOLATION;
	case NDX_E_INVALID_DEVICE_REQUEST:
		return ND_INVALID_DEVICE_REQUEST;
	case NDX_E_INVALID_DEVICE_STATE:
	case NDX_E_WOULD_BLOCK: // never: programs get no callbacks
		return ND_INVALID_DEVICE_STATE;
	case NDX_E_DEVICE_BUSY:
		return ND_DEVICE_BUSY;
	case NDX_E_NOT_SUPPORTED:
		return ND_NOT_SUPPORTED;
	case NDX_E_NOT_FOUND:
	case NDX_E_INVALID_ADDRESS:
		return ND_INVALID_ADDRESS;
	case NDX_E_INVALID_CONFIG:
	case NDX_E_ABI_MISMATCH:
	case NDX_E_DEVICE_NOT_READY:
		return ND_DEVICE_NOT_READY;
	case NDX_E_SHARING_VIOLATION:
		return ND_SHARING_VIOLATION;
	case NDX_E_ADDRESS_ALREADY_EXISTS:
		return ND_ADDRESS_ALREADY_EXISTS;
	case NDX_E_ADDRESS_ALREADY_ASSOCIATED:
		return ND_ADDRESS_ALREADY_ASSOCIATED;
	case NDX_E_TOO_MANY_ADDRESSES:
		return ND_TOO_MANY_ADDRESSES;
	case NDX_E_BAD_NETWORK_NAME:
		return ND_BAD_NETWORK_NAME;
	case NDX_E_NETWORK_UNREACHABLE:
		return ND_NETWORK_UNREACHABLE;
	case NDX_E_HOST_UNREACHABLE:
		return ND_HOST_UNREACHABLE;
	case NDX_E_CONNECTION_REFUSED:
		return ND_CONNECTION_REFUSED;
	case NDX_E_CONNECTION_INVALID:
		return ND_CONNECTION_INVALID;
	case NDX_E_CONNECTION_ACTIVE:
		return ND_CONNECTION_ACTIVE;
	case NDX_E_CONNECTION_ABORTED:
		return ND_CONNECTION_ABORTED;
	case NDX_E_IO_TIMEOUT:
		return ND_IO_TIMEOUT;
	case NDX_E_CANCELED:
		return ND_CANCELED;
	case NDX_E_REMOTE_ERROR:
		return ND_REMOTE_ERROR;
	case NDX_E_NO_MEMORY:
		return ND_NO_MEMORY;
	case NDX_E_INSUFFICIENT_RESOURCES:
		return ND_INSUFFICIENT_RESOURCES;
	case NDX_E_DEVICE_REMOVED:
		return ND_DEVICE_REMOVED;
	case NDX_E_INTERNAL_ERROR:
		return ND_INTERNAL_ERROR;
	case NDX_E_UNSUCCESSFUL:
		return ND_UNSUCCESSFUL;
	}
	return ND_UNSUCCESSFUL;
}

void Event::set()
{
	std::lock_guard<std::mutex> lock(mutex_);

	set_ = true;
	changed_.notify_one();
}

void Event::wait()
{
	std::unique_lock<std::mutex> lock(mutex_);

	changed_.wait(lock, [this] { return set_; });
	set_ = false;
}

void CompletionPort::post(OVERLAPPED *overlapped)
{
	std::lock_guard<std::mutex> lock(mutex_);

	queue_.push_back(overlapped);
	changed_.notify_one();
}

OVERLAPPED *CompletionPort::get(std::uint32_t timeout_ms)
{
	std::unique_lock<std::mutex> lock(mutex_);
	const auto something = [this] { return !queue_.empty(); };
	OVERLAPPED *overlapped;

	if (timeout_ms == NDX_INFINITE)
		changed_.wait(lock, something);
	else if (!changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), something))
		return nullptr;
	overlapped = queue_.front();
	queue_.pop_front();
	return overlapped;
}

void OverlappedFile::bind(CompletionPort *port)
{
	port_.store(port);
}

void OverlappedFile::deliver(OVERLAPPED *overlapped, HANDLE event_handle)
{
	// Windows' rule: with the lowest bit of the event set, the event is all there is.
	const auto handle = reinterpret_cast<std::uintptr_t>(event_handle);
	auto *event = reinterpret_cast<Event *>(handle & ~std::uintptr_t{1});
	CompletionPort *port = port_.load();

	if (port != nullptr && (handle & 1) == 0)
		port->post(overlapped);
	if (event != nullptr)
		event->set();
}

void Pending::completed(ndx_overlapped *ov)
{
	auto *pending = static_cast<Pending *>(ov->context);
	OVERLAPPED *caller = pending->caller;
	OverlappedFile *file = pending->file;
	HANDLE event = caller->hEvent;

	caller->InternalHigh = ov->information;
	__atomic_store_n(&caller->Internal, static_cast<std::uint32_t>(to_hresult(ov->status)),
	                 __ATOMIC_RELEASE);
	delete pending;
	file->deliver(caller, event);
}

HRESULT result_of(OVERLAPPED *overlapped, bool wait)
{
	const auto status = [overlapped] {
		return hr(static_cast<std::uint32_t>(
			__atomic_load_n(&overlapped->Internal, __ATOMIC_ACQUIRE)));
	};

	while (wait && overlapped->hEvent != nullptr && status() == ND_PENDING)
		static_cast<Event *>(overlapped->hEvent)->wait();
	return status();
}

} // namespace nd
