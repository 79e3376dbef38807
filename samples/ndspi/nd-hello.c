/* SPDX-License-Identifier: BSD-2-Clause */
/* A message from one process to another, in C: an object is called through the table that it points
 * to. The headers of NDX also have macros for that, such as IND2QueuePair_Send(pair, ...), which
 * are there if COBJMACROS is defined; Microsoft's have not.
 *
 *     nd-hello -s ADDRESS[:PORT]
 *     nd-hello -c ADDRESS:PORT [TEXT]
 */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <ndsupport.h>

#include <stdio.h>
#include <string.h>

enum { ROOM = 256, PATIENCE_MS = 30000 };

struct hello {
	IND2Adapter *adapter;
	HANDLE file;
	OVERLAPPED overlapped; /* for one call at a time; its event tells the end of the call */
	IND2CompletionQueue *queue;
	IND2MemoryRegion *region;
	IND2QueuePair *pair;
	IND2Connector *connector;
	IND2Listener *listener;
	struct sockaddr_storage address; /* from the command line */
	INT address_length;
	struct sockaddr_storage local;
	ULONG local_length;
	char text[ROOM];
};

#define UNKNOWN(object) ((IUnknown *)(object))
#define OVERLAPPED_OF(object) ((IND2Overlapped *)(object))

/* Prints what has failed; returns whether the call was successful. */
static BOOL is_good(HRESULT status, const char *call)
{
	if (status == ND_SUCCESS)
		return TRUE;
	fprintf(stderr, "nd-hello: %s: status 0x%08X\n", call, (unsigned)status);
	return FALSE;
}

/* Wait for a call that has returned `started`. A call that does not end in time is cancelled. */
static HRESULT finish(struct hello *h, HRESULT started, IND2Overlapped *object, DWORD milliseconds)
{
	HRESULT status = started;

	while (status == ND_PENDING) {
		if (WaitForSingleObject(h->overlapped.hEvent, milliseconds) != WAIT_OBJECT_0) {
			object->lpVtbl->CancelOverlappedRequests(object);
			object->lpVtbl->GetOverlappedResult(object, &h->overlapped, TRUE);
			return ND_IO_TIMEOUT;
		}
		status = object->lpVtbl->GetOverlappedResult(object, &h->overlapped, FALSE);
	}
	return status;
}

static BOOL open_adapter(struct hello *h, BOOL is_server)
{
	SIZE_T length = sizeof(h->local);

	if (is_server) {
		h->local = h->address;
		h->local_length = (ULONG)h->address_length;
	} else {
		if (!is_good(NdResolveAddress((struct sockaddr *)&h->address,
		                              (SIZE_T)h->address_length,
		                              (struct sockaddr *)&h->local, &length),
		             "NdResolveAddress"))
			return FALSE;
		h->local_length = (ULONG)length;
	}
	return is_good(NdOpenAdapter(&IID_IND2Adapter, (struct sockaddr *)&h->local,
	                             h->local_length, (void **)&h->adapter),
	               "NdOpenAdapter") &&
	       is_good(h->adapter->lpVtbl->CreateOverlappedFile(h->adapter, &h->file),
	               "CreateOverlappedFile");
}

static BOOL create_objects(struct hello *h)
{
	IND2Adapter *const adapter = h->adapter;

	if (!is_good(adapter->lpVtbl->CreateCompletionQueue(adapter, &IID_IND2CompletionQueue,
	                                                    h->file, 2, 0, 0, (void **)&h->queue),
	             "CreateCompletionQueue") ||
	    !is_good(adapter->lpVtbl->CreateQueuePair(adapter, &IID_IND2QueuePair,
	                                              UNKNOWN(h->queue), UNKNOWN(h->queue), NULL, 1,
	                                              1, 1, 1, 0, (void **)&h->pair),
	             "CreateQueuePair") ||
	    !is_good(adapter->lpVtbl->CreateConnector(adapter, &IID_IND2Connector, h->file,
	                                              (void **)&h->connector),
	             "CreateConnector") ||
	    !is_good(adapter->lpVtbl->CreateMemoryRegion(adapter, &IID_IND2MemoryRegion, h->file,
	                                                 (void **)&h->region),
	             "CreateMemoryRegion"))
		return FALSE;
	return is_good(
		finish(h,
	               h->region->lpVtbl->Register(h->region, h->text, ROOM,
	                                           ND_MR_FLAG_ALLOW_LOCAL_WRITE, &h->overlapped),
	               OVERLAPPED_OF(h->region), PATIENCE_MS),
		"Register");
}

/* The result of the one request that is in flight. */
static BOOL await_result(struct hello *h, ND2_RESULT *result, const char *request)
{
	while (h->queue->lpVtbl->GetResults(h->queue, result, 1) == 0) {
		const HRESULT started =
			h->queue->lpVtbl->Notify(h->queue, ND_CQ_NOTIFY_ANY, &h->overlapped);

		if (!is_good(finish(h, started, OVERLAPPED_OF(h->queue), PATIENCE_MS), "Notify"))
			return FALSE;
	}
	return is_good(result->Status, request);
}

static BOOL disconnect(struct hello *h)
{
	return is_good(finish(h, h->connector->lpVtbl->Disconnect(h->connector, &h->overlapped),
	                      OVERLAPPED_OF(h->connector), PATIENCE_MS),
	               "Disconnect");
}

static BOOL listen_there(struct hello *h)
{
	struct sockaddr_storage address;
	ULONG length = sizeof(address);
	char text[80];
	DWORD text_length = sizeof(text);

	if (!is_good(h->adapter->lpVtbl->CreateListener(h->adapter, &IID_IND2Listener, h->file,
	                                                (void **)&h->listener),
	             "CreateListener") ||
	    !is_good(h->listener->lpVtbl->Bind(h->listener, (struct sockaddr *)&h->local,
	                                       h->local_length),
	             "Bind") ||
	    !is_good(h->listener->lpVtbl->Listen(h->listener, 0), "Listen") ||
	    !is_good(h->listener->lpVtbl->GetLocalAddress(h->listener, (struct sockaddr *)&address,
	                                                  &length),
	             "GetLocalAddress"))
		return FALSE;
	if (WSAAddressToStringA((struct sockaddr *)&address, length, NULL, text, &text_length) != 0)
		return is_good(ND_INVALID_ADDRESS, "WSAAddressToString");
	printf("nd-hello: listening on %s\n", text);
	fflush(stdout);
	return TRUE;
}

static BOOL serve(struct hello *h)
{
	ND2_RESULT result;
	ND2_SGE sge;

	sge.Buffer = h->text;
	sge.BufferLength = ROOM - 1;
	sge.MemoryRegionToken = h->region->lpVtbl->GetLocalToken(h->region);
	/* The receive comes first: a message must find one. */
	if (!listen_there(h) ||
	    !is_good(h->pair->lpVtbl->Receive(h->pair, NULL, &sge, 1), "Receive") ||
	    !is_good(finish(h,
	                    h->listener->lpVtbl->GetConnectionRequest(
				    h->listener, UNKNOWN(h->connector), &h->overlapped),
	                    OVERLAPPED_OF(h->listener), INFINITE),
	             "GetConnectionRequest") ||
	    !is_good(finish(h,
	                    h->connector->lpVtbl->Accept(h->connector, UNKNOWN(h->pair), 0, 0, NULL,
	                                                 0, &h->overlapped),
	                    OVERLAPPED_OF(h->connector), PATIENCE_MS),
	             "Accept") ||
	    !await_result(h, &result, "the receive"))
		return FALSE;
	h->text[result.BytesTransferred] = '\0';
	printf("received: %s\n", h->text);
	return is_good(finish(h,
	                      h->connector->lpVtbl->NotifyDisconnect(h->connector, &h->overlapped),
	                      OVERLAPPED_OF(h->connector), PATIENCE_MS),
	               "NotifyDisconnect") &&
	       disconnect(h);
}

static BOOL greet(struct hello *h, const char *text)
{
	ND2_RESULT result;
	ND2_SGE sge;

	sge.Buffer = h->text;
	sge.BufferLength = (ULONG)snprintf(h->text, ROOM - 1, "%s", text);
	if (sge.BufferLength > ROOM - 1)
		sge.BufferLength = ROOM - 1;
	sge.MemoryRegionToken = h->region->lpVtbl->GetLocalToken(h->region);
	if (!is_good(h->connector->lpVtbl->Bind(h->connector, (struct sockaddr *)&h->local,
	                                        h->local_length),
	             "Bind") ||
	    !is_good(finish(h,
	                    h->connector->lpVtbl->Connect(
				    h->connector, UNKNOWN(h->pair), (struct sockaddr *)&h->address,
				    (ULONG)h->address_length, 0, 0, NULL, 0, &h->overlapped),
	                    OVERLAPPED_OF(h->connector), PATIENCE_MS),
	             "Connect") ||
	    !is_good(finish(h, h->connector->lpVtbl->CompleteConnect(h->connector, &h->overlapped),
	                    OVERLAPPED_OF(h->connector), PATIENCE_MS),
	             "CompleteConnect") ||
	    !is_good(h->pair->lpVtbl->Send(h->pair, NULL, &sge, 1, 0), "Send") ||
	    !await_result(h, &result, "the send"))
		return FALSE;
	return disconnect(h);
}

/* The connection goes first, so that no object is released while another one uses it. */
static void release_objects(struct hello *h)
{
	if (h->connector != NULL)
		h->connector->lpVtbl->Release(h->connector);
	if (h->listener != NULL)
		h->listener->lpVtbl->Release(h->listener);
	if (h->pair != NULL)
		h->pair->lpVtbl->Release(h->pair);
	if (h->region != NULL) {
		(void)finish(h, h->region->lpVtbl->Deregister(h->region, &h->overlapped),
		             OVERLAPPED_OF(h->region), PATIENCE_MS);
		h->region->lpVtbl->Release(h->region);
	}
	if (h->queue != NULL)
		h->queue->lpVtbl->Release(h->queue);
	if (h->file != NULL)
		CloseHandle(h->file);
	if (h->adapter != NULL)
		h->adapter->lpVtbl->Release(h->adapter);
	if (h->overlapped.hEvent != NULL)
		CloseHandle(h->overlapped.hEvent);
}

/* Reads `-s ADDRESS` or `-c ADDRESS`. */
static BOOL read_address(struct hello *h, char **argv)
{
	INT length = sizeof(h->address);

	if (strcmp(argv[1], "-s") != 0 && strcmp(argv[1], "-c") != 0)
		return FALSE;
	h->address_length = length;
	if (WSAStringToAddressA(argv[2], AF_INET, NULL, (struct sockaddr *)&h->address,
	                        &h->address_length) == 0)
		return TRUE;
	h->address_length = length;
	return WSAStringToAddressA(argv[2], AF_INET6, NULL, (struct sockaddr *)&h->address,
	                           &h->address_length) == 0;
}

int main(int argc, char **argv)
{
	struct hello h;
	int exit_status = 1;
	BOOL is_server;
	WSADATA data;

	memset(&h, 0, sizeof(h));
	if (WSAStartup(MAKEWORD(2, 2), &data) != 0)
		return 1;
	if (!is_good(NdStartup(), "NdStartup"))
		goto clean_sockets;
	if (argc < 3 || argc > 4 || !read_address(&h, argv)) {
		fprintf(stderr, "usage: %s -s ADDRESS[:PORT]\n       %s -c ADDRESS:PORT [TEXT]\n",
		        argv[0], argv[0]);
		exit_status = 2;
		goto clean_networkdirect;
	}
	is_server = argv[1][1] == 's';
	h.overlapped.hEvent = CreateEvent(NULL, FALSE, FALSE, NULL);
	if (h.overlapped.hEvent != NULL && open_adapter(&h, is_server) && create_objects(&h) &&
	    (is_server ? serve(&h) : greet(&h, argc == 4 ? argv[3] : "hello")))
		exit_status = 0;
	release_objects(&h);
clean_networkdirect:
	NdCleanup();
clean_sockets:
	WSACleanup();
	return exit_status;
}
