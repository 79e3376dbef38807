/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ends in one process, by the interfaces of NetworkDirect. A test that fails ends with cmocka's
 * message; what it has made is left behind. */
#ifndef ND_PAIR_H
#define ND_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#include <cmocka.h>
}
#else
#include <cmocka.h>
#endif

#include "nd_call.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ND_MEMORY = 1 << 16, ND_DEPTH = 16, ND_WAIT_MS = 20000 };

/* Hexadecimal in the message, as in the lists of statuses. */
#define assert_status(status, expected) \
	nd_assert_status((status), (expected), #status, __FILE__, __LINE__)

struct nd_side {
	IND2Adapter *adapter;
	ND2_ADAPTER_INFO info;
	HANDLE file;
	HANDLE event;
	OVERLAPPED ov;
	IND2CompletionQueue *cq;
	IND2QueuePair *qp;
	IND2Connector *connector;
	IND2MemoryRegion *mr;
	char *memory;
};

struct nd_pair {
	struct nd_side a, b;
	IND2Listener *listener;
	struct sockaddr_storage address; /* of the listener */
	ULONG address_length;
};

void nd_assert_status(HRESULT status, HRESULT expected, const char *what, const char *file,
                      int line);

/* argv[1] names the adapter; to be called first in main(). 77: none is named. */
int nd_begin(int argc, char **argv);
/* Its URI. */
const char *nd_adapter(void);
/* An address of the adapter, with port 0. */
ULONG nd_local_address(struct sockaddr_storage *address);

IND2Adapter *nd_open(void);
/* The end of a call: what the call returned, or with ND_PENDING, how it completed. */
HRESULT nd_end(struct nd_side *s, HRESULT started);

/* All objects of a side but the connection. */
void nd_make_side(struct nd_side *s);
void nd_drop_side(struct nd_side *s);
void nd_make(struct nd_pair *p);
void nd_drop(struct nd_pair *p);
void nd_listen(struct nd_pair *p);
/* A is active. */
void nd_connect(struct nd_pair *p);
void nd_disconnect(struct nd_pair *p);

ND2_SGE nd_sge(struct nd_side *s, size_t offset, ULONG length);
void nd_receive(struct nd_side *s, uintptr_t context, size_t offset, ULONG length);
void nd_send(struct nd_side *s, uintptr_t context, size_t offset, ULONG length, ULONG flags);
/* The next result; fails the test when none comes. */
ND2_RESULT nd_result(struct nd_side *s);
void nd_expect(struct nd_side *s, ND2_REQUEST_TYPE type, uintptr_t context, HRESULT status);

#ifdef __cplusplus
}
#endif

#endif
