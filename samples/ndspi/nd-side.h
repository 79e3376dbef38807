/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a connection, for the samples in C++. How a program waits is a class of its own, so
 * that one sample waits for events and the other one takes packets off a completion port. */
#ifndef ND_SIDE_H
#define ND_SIDE_H

#define NOMINMAX /* min and max are functions of C++ here, not macros of Windows */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <ndsupport.h>

#include <vector>

/* What ends a program: the call that failed, and its status. */
struct Failure {
	const char *call;
	HRESULT status;
};

/* ND_TIMEOUT and ND_PENDING are successes for FAILED(), and not for a program. */
inline void check(HRESULT status, const char *call)
{
	if (status != ND_SUCCESS)
		throw Failure{call, status};
}

/* Owns one reference of an object. */
template <class Interface> class Reference
{
      public:
	Reference() = default;
	Reference(const Reference &) = delete;
	Reference &operator=(const Reference &) = delete;
	~Reference()
	{
		release();
	}
	void release()
	{
		if (object_ != nullptr)
			object_->Release();
		object_ = nullptr;
	}
	Interface *operator->() const
	{
		return object_;
	}
	Interface *get() const
	{
		return object_;
	}
	/* For functions that create the object. */
	void **out()
	{
		release();
		return reinterpret_cast<void **>(&object_);
	}

      private:
	Interface *object_ = nullptr;
};

/* Owns a handle. */
class Handle
{
      public:
	Handle() = default;
	Handle(const Handle &) = delete;
	Handle &operator=(const Handle &) = delete;
	~Handle()
	{
		if (handle_ != nullptr)
			CloseHandle(handle_);
	}
	HANDLE get() const
	{
		return handle_;
	}
	/* For functions that create the object; once. */
	HANDLE *out()
	{
		return &handle_;
	}

      private:
	HANDLE handle_ = nullptr;
};

struct Options {
	bool is_server = false;
	sockaddr_storage address = {}; /* to listen at, or of the server */
	ULONG address_length = 0;
	ULONG size = 64;
	ULONG rounds = 1000;
	DWORD patience = 30000; /* milliseconds, for all but the first request of a client */
};

/* Reads the command line. Prints what is wrong with it, and the usage; then false. */
bool read_options(int argc, char **argv, Options *options);

/* Runs the program between the start and the end of Winsock and NetworkDirect, and prints the
 * failure that ends it. Returns the exit status: 0, 1 after a failure, 2 for a wrong command line.
 */
int run(int argc, char **argv, Options defaults, void (*program)(const Options &));

/* A call that ends later. */
struct Operation : OVERLAPPED {
	bool has_packet; /* its packet has been taken off the port */
};

/* How a program waits for its operations. */
class Waiter
{
      public:
	virtual ~Waiter() = default;
	/* The file that the objects are created with. */
	virtual void attach(HANDLE file) = 0;
	/* Before the operation starts. */
	virtual void prepare(Operation *operation) = 0;
	/* Once for each operation that is pending. false: it has not ended in this time. */
	virtual bool wait(Operation *operation, DWORD milliseconds) = 0;
};

/* What both roles of both samples have. Objects are released in the destructor, in any case. */
class Side
{
      public:
	/* Opens the adapter with the address of a server, or the one that reaches the server. */
	Side(const Options &options, Waiter *waiter);
	Side(const Side &) = delete;
	Side &operator=(const Side &) = delete;
	~Side();

	/* Memory for `bytes` bytes, registered, and a queue pair for `depth` requests of each kind.
	 */
	void create(ULONG bytes, ULONG flags, ULONG depth);
	void listen(const char *program);
	/* Waits for a client, which has to send at least `length` bytes of private data. */
	void get_request(void *data, ULONG length);
	void accept(const void *data, ULONG length);
	/* The server has to answer with at least `answer_length` bytes of private data. */
	void connect(const void *data, ULONG length, void *answer, ULONG answer_length);
	/* Ends the connection; the peer may have done so before. */
	void disconnect();
	void await_disconnect();

	/* Takes at least one result and at most `room`. */
	ULONG take_results(ND2_RESULT *results, ULONG room);
	ND2_SGE piece(ULONG offset, ULONG length);

	/* `started` is what the call on `object` returned. Waits if it is pending; then the status
	 * with which the operation ended, or ND_IO_TIMEOUT. */
	HRESULT end(HRESULT started, IND2Overlapped *object, Operation *operation,
	            DWORD milliseconds);

	const Options &options() const
	{
		return options_;
	}
	const ND2_ADAPTER_INFO &info() const
	{
		return info_;
	}
	unsigned char *memory()
	{
		return memory_.data();
	}
	IND2MemoryRegion *region() const
	{
		return region_.get();
	}
	IND2QueuePair *pair() const
	{
		return pair_.get();
	}

      private:
	void open();
	void get_private_data(void *data, ULONG length);
	Operation *fresh();

	const Options &options_;
	Waiter *waiter_;
	Operation operation_ = {}; /* for one operation at a time */
	sockaddr_storage local_ = {};
	ULONG local_length_ = 0;
	ND2_ADAPTER_INFO info_ = {};
	bool is_registered_ = false;
	std::vector<unsigned char> memory_;
	/* the members below are released from the last one to the first one */
	Reference<IND2Adapter> adapter_;
	Handle file_;
	Reference<IND2Listener> listener_;
	Reference<IND2CompletionQueue> queue_;
	Reference<IND2MemoryRegion> region_;
	Reference<IND2QueuePair> pair_;
	Reference<IND2Connector> connector_;
};

#endif
