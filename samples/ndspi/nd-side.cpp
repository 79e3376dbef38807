/* SPDX-License-Identifier: BSD-2-Clause */
#include "nd-side.h"

#include <cstdio>
#include <cstdlib>
#include <new>

namespace
{

sockaddr *generic(sockaddr_storage *address)
{
	return reinterpret_cast<sockaddr *>(address);
}

const sockaddr *generic(const sockaddr_storage *address)
{
	return reinterpret_cast<const sockaddr *>(address);
}

bool read_number(const char *text, ULONG *number)
{
	char *end;
	const unsigned long long value = std::strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || value == 0 || value > 0x7FFFFFFF)
		return false;
	*number = static_cast<ULONG>(value);
	return true;
}

bool read_address(char *text, Options *options)
{
	for (int family : {AF_INET, AF_INET6}) {
		INT length = sizeof(options->address);

		if (WSAStringToAddressA(text, family, nullptr, generic(&options->address),
		                        &length) == 0) {
			options->address_length = static_cast<ULONG>(length);
			return true;
		}
	}
	return false;
}

bool read_option(char letter, char *value, Options *options)
{
	ULONG seconds;

	switch (letter) {
	case 's':
	case 'c':
		options->is_server = letter == 's';
		return read_address(value, options);
	case 'l':
		return read_number(value, &options->size);
	case 'n':
		return read_number(value, &options->rounds);
	case 't':
		if (!read_number(value, &seconds) || seconds > 1000000)
			return false;
		options->patience = seconds * 1000;
		return true;
	default:
		return false;
	}
}

/* The interface versions are the same everywhere, so a failure here is one of the installation. */
class Started
{
      public:
	Started()
	{
		WSADATA data;

		if (WSAStartup(MAKEWORD(2, 2), &data) != 0)
			throw Failure{"WSAStartup", ND_DEVICE_NOT_READY};
		const HRESULT status = NdStartup();
		if (status != ND_SUCCESS) {
			WSACleanup();
			throw Failure{"NdStartup", status};
		}
	}
	Started(const Started &) = delete;
	Started &operator=(const Started &) = delete;
	~Started()
	{
		NdCleanup();
		WSACleanup();
	}
};

} // namespace

bool read_options(int argc, char **argv, Options *options)
{
	for (int i = 1; i < argc; i += 2) {
		char *name = argv[i];
		const bool is_option = name[0] == '-' && name[1] != '\0' && name[2] == '\0';

		if (!is_option || i + 1 == argc || !read_option(name[1], argv[i + 1], options)) {
			std::fprintf(stderr, "%s: wrong: %s %s\n", argv[0], name,
			             i + 1 < argc ? argv[i + 1] : "");
			options->address_length = 0;
			break;
		}
	}
	if (options->address_length != 0)
		return true;
	std::fprintf(stderr,
	             "usage: %s -s ADDRESS[:PORT] [-t SECONDS]\n"
	             "       %s -c ADDRESS:PORT [-l BYTES] [-n ROUNDS] [-t SECONDS]\n",
	             argv[0], argv[0]);
	return false;
}

int run(int argc, char **argv, Options defaults, void (*program)(const Options &))
{
	try {
		const Started started;
		Options options = defaults;

		if (!read_options(argc, argv, &options))
			return 2;
		program(options);
		return 0;
	} catch (const Failure &failure) {
		std::fprintf(stderr, "%s: %s: status 0x%08X\n", argv[0], failure.call,
		             static_cast<unsigned>(failure.status));
	} catch (const std::bad_alloc &) {
		std::fprintf(stderr, "%s: no memory\n", argv[0]);
	}
	return 1;
}

Side::Side(const Options &options, Waiter *waiter) : options_(options), waiter_(waiter)
{
	open();
	waiter_->attach(file_.get());
}

/* A server knows its own address; a client has the routing table find the one that it needs. */
void Side::open()
{
	ULONG size = sizeof(info_);

	if (options_.is_server) {
		local_ = options_.address;
		local_length_ = options_.address_length;
	} else {
		SIZE_T length = sizeof(local_);

		check(NdResolveAddress(generic(&options_.address), options_.address_length,
		                       generic(&local_), &length),
		      "NdResolveAddress");
		local_length_ = static_cast<ULONG>(length);
	}
	check(NdOpenAdapter(IID_IND2Adapter, generic(&local_), local_length_, adapter_.out()),
	      "NdOpenAdapter");
	info_.InfoVersion = ND_VERSION_2;
	check(adapter_->Query(&info_, &size), "IND2Adapter::Query");
	check(adapter_->CreateOverlappedFile(file_.out()), "IND2Adapter::CreateOverlappedFile");
	check(adapter_->CreateConnector(IID_IND2Connector, file_.get(), connector_.out()),
	      "IND2Adapter::CreateConnector");
}

/* The connection goes first, so that nothing uses the memory any more. */
Side::~Side()
{
	connector_.release();
	listener_.release();
	pair_.release();
	if (is_registered_) {
		Operation *operation = fresh();

		(void)end(region_->Deregister(operation), region_.get(), operation,
		          options_.patience);
	}
}

Operation *Side::fresh()
{
	waiter_->prepare(&operation_);
	return &operation_;
}

void Side::create(ULONG bytes, ULONG flags, ULONG depth)
{
	Operation *operation = fresh();

	if (bytes > info_.MaxRegistrationSize)
		throw Failure{"the size: more than the adapter registers", ND_INVALID_BUFFER_SIZE};
	memory_.resize(bytes);
	check(adapter_->CreateMemoryRegion(IID_IND2MemoryRegion, file_.get(), region_.out()),
	      "IND2Adapter::CreateMemoryRegion");
	check(end(region_->Register(memory_.data(), bytes, flags, operation), region_.get(),
	          operation, options_.patience),
	      "IND2MemoryRegion::Register");
	is_registered_ = true;
	check(adapter_->CreateCompletionQueue(IID_IND2CompletionQueue, file_.get(), 2 * depth, 0, 0,
	                                      queue_.out()),
	      "IND2Adapter::CreateCompletionQueue");
	check(adapter_->CreateQueuePair(IID_IND2QueuePair, queue_.get(), queue_.get(), this, depth,
	                                depth, 1, 1, 0, pair_.out()),
	      "IND2Adapter::CreateQueuePair");
}

void Side::listen(const char *program)
{
	sockaddr_storage address;
	ULONG length = sizeof(address);
	char text[80];
	DWORD text_length = sizeof(text);

	check(adapter_->CreateListener(IID_IND2Listener, file_.get(), listener_.out()),
	      "IND2Adapter::CreateListener");
	check(listener_->Bind(generic(&local_), local_length_), "IND2Listener::Bind");
	check(listener_->Listen(0), "IND2Listener::Listen");
	check(listener_->GetLocalAddress(generic(&address), &length),
	      "IND2Listener::GetLocalAddress");
	if (WSAAddressToStringA(generic(&address), length, nullptr, text, &text_length) != 0)
		throw Failure{"WSAAddressToString", ND_INVALID_ADDRESS};
	std::printf("%s: listening on %s\n", program, text);
	std::fflush(stdout);
}

/* InfiniBand pads private data to a block, so that more may come than the peer has sent, and than
 * there is room for. What there is room for is copied nevertheless. */
void Side::get_private_data(void *data, ULONG length)
{
	ULONG there = length;
	const HRESULT status = connector_->GetPrivateData(data, &there);

	if (status != ND_BUFFER_OVERFLOW)
		check(status, "IND2Connector::GetPrivateData");
	if (there < length)
		throw Failure{"the private data of the peer: too short", ND_INVALID_BUFFER_SIZE};
}

void Side::get_request(void *data, ULONG length)
{
	Operation *operation = fresh();

	check(end(listener_->GetConnectionRequest(connector_.get(), operation), listener_.get(),
	          operation, INFINITE),
	      "IND2Listener::GetConnectionRequest");
	get_private_data(data, length);
}

void Side::accept(const void *data, ULONG length)
{
	Operation *operation = fresh();

	check(end(connector_->Accept(pair_.get(), info_.MaxInboundReadLimit,
	                             info_.MaxOutboundReadLimit, data, length, operation),
	          connector_.get(), operation, options_.patience),
	      "IND2Connector::Accept");
}

void Side::connect(const void *data, ULONG length, void *answer, ULONG answer_length)
{
	Operation *operation = fresh();

	check(connector_->Bind(generic(&local_), local_length_), "IND2Connector::Bind");
	check(end(connector_->Connect(pair_.get(), generic(&options_.address),
	                              options_.address_length, info_.MaxInboundReadLimit,
	                              info_.MaxOutboundReadLimit, data, length, operation),
	          connector_.get(), operation, options_.patience),
	      "IND2Connector::Connect");
	if (answer_length > 0)
		get_private_data(answer, answer_length);
	operation = fresh();
	check(end(connector_->CompleteConnect(operation), connector_.get(), operation,
	          options_.patience),
	      "IND2Connector::CompleteConnect");
}

void Side::disconnect()
{
	Operation *operation = fresh();

	check(end(connector_->Disconnect(operation), connector_.get(), operation,
	          options_.patience),
	      "IND2Connector::Disconnect");
}

void Side::await_disconnect()
{
	Operation *operation = fresh();

	check(end(connector_->NotifyDisconnect(operation), connector_.get(), operation,
	          options_.patience),
	      "IND2Connector::NotifyDisconnect");
}

/* A notification is for results that come after it was asked for, or that no notification has told
 * yet. So none is lost between the call that finds nothing and the one that asks. */
ULONG Side::take_results(ND2_RESULT *results, ULONG room)
{
	for (;;) {
		const ULONG count = queue_->GetResults(results, room);

		if (count > 0)
			return count;
		Operation *operation = fresh();
		check(end(queue_->Notify(ND_CQ_NOTIFY_ANY, operation), queue_.get(), operation,
		          options_.patience),
		      "IND2CompletionQueue::Notify");
	}
}

ND2_SGE Side::piece(ULONG offset, ULONG length)
{
	ND2_SGE sge;

	sge.Buffer = memory_.data() + offset;
	sge.BufferLength = length;
	sge.MemoryRegionToken = region_->GetLocalToken();
	return sge;
}

HRESULT Side::end(HRESULT started, IND2Overlapped *object, Operation *operation, DWORD milliseconds)
{
	HRESULT status = started;

	while (status == ND_PENDING) {
		if (!waiter_->wait(operation, milliseconds)) {
			/* the operation must not end after its OVERLAPPED is gone */
			object->CancelOverlappedRequests();
			(void)waiter_->wait(operation, INFINITE);
			(void)object->GetOverlappedResult(operation, FALSE);
			return ND_IO_TIMEOUT;
		}
		status = object->GetOverlappedResult(operation, FALSE);
	}
	return status;
}
