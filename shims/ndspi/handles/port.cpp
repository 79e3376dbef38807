/* SPDX-License-Identifier: BSD-2-Clause */
#include "port.h"

#include <cstddef>

#include "ndstatus.h"

namespace nd
{

namespace
{

bool is_closed(const Port *port)
{
	return __atomic_load_n(&port->closed, __ATOMIC_ACQUIRE);
}

Call *packet_of(ndx_overlapped *ov)
{
	return reinterpret_cast<Call *>(reinterpret_cast<char *>(ov) - offsetof(Call, ov));
}

/* Up to `max` packets; 0, and the last error, if there is none in time. */
std::size_t take_packets(Port *port, ndx_overlapped **ovs, std::size_t max, DWORD milliseconds)
{
	const std::size_t n = ndx_port_get(port->queue, ovs, max,
	                                   milliseconds == INFINITE ? NDX_INFINITE : milliseconds);

	if (!is_closed(port)) {
		if (n == 0)
			SetLastError(WAIT_TIMEOUT);
		return n;
	}
	/* What is left wakes the next thread, and goes with the port. */
	for (std::size_t i = 0; i < n; i++)
		ndx_port_post(port->queue, ovs[i]);
	SetLastError(ERROR_ABANDONED_WAIT_0);
	return 0;
}

Port *create_port()
{
	auto *port = new Port();

	if (port == nullptr)
		return nullptr;
	if (ndx_port_create(&port->queue) != NDX_OK) {
		delete port;
		return nullptr;
	}
	return port;
}

Call *create_packet(DWORD bytes, ULONG_PTR key, OVERLAPPED *overlapped)
{
	auto *packet = new Call();

	if (packet == nullptr)
		return nullptr;
	ndx_overlapped_init(&packet->ov);
	packet->caller = overlapped;
	packet->key = key;
	packet->status = 0;
	packet->bytes = bytes;
	return packet;
}

/* A file is bound once. */
bool bind_file(File *file, Port *port, ULONG_PTR key)
{
	const Locked locked;

	if (file->port != nullptr)
		return false;
	hold(port);
	file->port = port;
	file->key = key;
	return true;
}

bool bind_handle(HANDLE handle, Port *port, ULONG_PTR key)
{
	auto *file = find_as<File>(handle);
	bool bound;

	if (file == nullptr)
		return false;
	bound = bind_file(file, port, key);
	release(file);
	if (!bound)
		SetLastError(ERROR_INVALID_PARAMETER);
	return bound;
}

/* Threads that wait for a packet return. */
void close_port(Object *object)
{
	auto *port = static_cast<Port *>(object);
	Call *last = create_packet(0, 0, nullptr);

	__atomic_store_n(&port->closed, true, __ATOMIC_RELEASE);
	/* Without memory, threads that wait without a limit go on to wait. */
	if (last != nullptr)
		ndx_port_post(port->queue, &last->ov);
}

void destroy_port(Object *object)
{
	auto *port = static_cast<Port *>(object);
	ndx_overlapped *ov;

	while (ndx_port_get(port->queue, &ov, 1, 0) == 1)
		delete packet_of(ov);
	ndx_port_close(port->queue);
	delete port;
}

void destroy_file(Object *object)
{
	auto *file = static_cast<File *>(object);

	ndx_port_close(file->sink);
	release(file->port);
	delete file;
}

} // namespace

Port::Port() : Object(Kind::Port, destroy_port, close_port)
{
}

File::File() : Object(Kind::File, destroy_file)
{
}

void post_packet(Port *port, Call *packet)
{
	if (is_closed(port))
		delete packet;
	else
		ndx_port_post(port->queue, &packet->ov);
	release(port);
}

DWORD last_error_of(HRESULT status)
{
	switch (status) {
	case ND_CANCELED:
		return ERROR_OPERATION_ABORTED;
	case ND_CONNECTION_REFUSED:
		return ERROR_CONNECTION_REFUSED;
	case ND_CONNECTION_ABORTED:
		return ERROR_CONNECTION_ABORTED;
	case ND_IO_TIMEOUT:
		return ERROR_SEM_TIMEOUT;
	case ND_NETWORK_UNREACHABLE:
		return ERROR_NETWORK_UNREACHABLE;
	case ND_HOST_UNREACHABLE:
		return ERROR_HOST_UNREACHABLE;
	case ND_BUFFER_OVERFLOW:
		return ERROR_MORE_DATA;
	case ND_INSUFFICIENT_RESOURCES:
		return ERROR_NO_SYSTEM_RESOURCES;
	case ND_NO_MEMORY:
		return ERROR_NOT_ENOUGH_MEMORY;
	case ND_ACCESS_VIOLATION:
		return ERROR_NOACCESS;
	default:
		return ERROR_GEN_FAILURE;
	}
}

} // namespace nd

using namespace nd;

HANDLE CreateIoCompletionPort(HANDLE file, HANDLE existing, ULONG_PTR key, DWORD)
{
	HANDLE handle = existing;
	Port *port;

	if (existing != nullptr) {
		port = find_as<Port>(existing);
		if (port == nullptr)
			return nullptr;
	} else {
		port = create_port();
		if (port == nullptr) {
			SetLastError(ERROR_NOT_ENOUGH_MEMORY);
			return nullptr;
		}
		hold(port);
		handle = handle_of(port);
	}
	if (handle != nullptr && file != INVALID_HANDLE_VALUE && !bind_handle(file, port, key)) {
		const DWORD error = GetLastError();

		if (existing == nullptr)
			(void)CloseHandle(handle);
		SetLastError(error);
		handle = nullptr;
	}
	release(port);
	return handle;
}

BOOL GetQueuedCompletionStatusEx(HANDLE handle, LPOVERLAPPED_ENTRY entries, ULONG count,
                                 ULONG *removed, DWORD milliseconds, BOOL)
{
	constexpr ULONG batch = 64;
	ndx_overlapped *ovs[batch];
	Port *port = find_as<Port>(handle);
	std::size_t n;

	if (entries == nullptr || removed == nullptr || count == 0) {
		release(port);
		SetLastError(ERROR_INVALID_PARAMETER);
		return FALSE;
	}
	*removed = 0;
	if (port == nullptr)
		return FALSE;
	n = take_packets(port, ovs, count < batch ? count : batch, milliseconds);
	for (std::size_t i = 0; i < n; i++) {
		Call *packet = packet_of(ovs[i]);

		entries[i].lpCompletionKey = packet->key;
		entries[i].lpOverlapped = packet->caller;
		entries[i].Internal = packet->status;
		entries[i].dwNumberOfBytesTransferred = packet->bytes;
		delete packet;
	}
	release(port);
	*removed = static_cast<ULONG>(n);
	return n > 0;
}

BOOL GetQueuedCompletionStatus(HANDLE handle, DWORD *bytes, ULONG_PTR *key,
                               LPOVERLAPPED *overlapped, DWORD milliseconds)
{
	OVERLAPPED_ENTRY entry;
	HRESULT status;
	ULONG removed;

	if (bytes == nullptr || key == nullptr || overlapped == nullptr) {
		SetLastError(ERROR_INVALID_PARAMETER);
		return FALSE;
	}
	*overlapped = nullptr;
	if (!GetQueuedCompletionStatusEx(handle, &entry, 1, &removed, milliseconds, FALSE))
		return FALSE;
	*bytes = entry.dwNumberOfBytesTransferred;
	*key = entry.lpCompletionKey;
	*overlapped = entry.lpOverlapped;
	status = static_cast<HRESULT>(entry.Internal);
	if (FAILED(status))
		SetLastError(last_error_of(status));
	return SUCCEEDED(status);
}

BOOL PostQueuedCompletionStatus(HANDLE handle, DWORD bytes, ULONG_PTR key, LPOVERLAPPED overlapped)
{
	Port *port = find_as<Port>(handle);
	Call *packet;

	if (port == nullptr)
		return FALSE;
	packet = create_packet(bytes, key, overlapped);
	if (packet == nullptr) {
		release(port);
		SetLastError(ERROR_NOT_ENOUGH_MEMORY);
		return FALSE;
	}
	post_packet(port, packet);
	return TRUE;
}

int NdxPortDescriptor(HANDLE handle)
{
	Port *port = find_as<Port>(handle);
	int fd;

	if (port == nullptr)
		return -1;
	fd = ndx_port_get_fd(port->queue);
	release(port);
	return fd;
}
