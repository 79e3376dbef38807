/* SPDX-License-Identifier: BSD-2-Clause */
/* A completion port is a port of NDX: its order, its sleeping threads and its descriptor. */
#ifndef NDX_ND_PORT_H
#define NDX_ND_PORT_H

#include <ndx/ndx.h>

#include "handle.h"

namespace nd
{

struct Port : Object {
	static constexpr Kind of_kind = Kind::Port;
	Port();
	ndx_port *queue = nullptr;
	bool closed = false; /* atomic */
};

/* What IND2Adapter::CreateOverlappedFile gives out: where the completions of its objects go. */
struct File : Object {
	static constexpr Kind of_kind = Kind::File;
	File();
	ndx_port *sink = nullptr; /* of NDX: calls complete() */
	Port *port = nullptr;     /* a program may bind the file late; under the lock of waits */
	ULONG_PTR key = 0;
};

/* A call in flight, and then its packet. */
struct Call : Allocated {
	ndx_overlapped ov;
	OVERLAPPED *caller;
	Event *event; /* with a reference; may be nullptr */
	File *file;
	ULONG_PTR key;
	std::uint32_t status;
	DWORD bytes;
	ULONG_PTR before;      /* OVERLAPPED::Internal before the call, ... */
	bool event_was_set;    /* ... and the event: a call that fails at once leaves both */
	bool packet;           /* the completion port gets one */
	bool aborted_is_ended; /* the status of a disconnect */
};

/* The packet goes to the port, or away if the port is closed. Takes over the reference to the
 * port. */
void post_packet(Port *port, Call *packet);

/* What GetLastError() says of a call that failed. */
DWORD last_error_of(HRESULT status);

} // namespace nd

#endif
