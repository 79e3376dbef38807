/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of a user, in C and in C++, for install.sh: opens an adapter and asks for a port. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* setenv() */
#endif
#include <ndsupport.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define OPEN(address, out) NdOpenAdapter(IID_IND2Adapter, (address), 16, (void **)(out))
#define CALL(object, method, ...) (object)->method(__VA_ARGS__)
#else
#define OPEN(address, out) NdOpenAdapter(&IID_IND2Adapter, (address), 16, (void **)(out))
#define CALL(object, method, ...) (object)->lpVtbl->method(object, ##__VA_ARGS__)
#endif

int main(void)
{
	struct sockaddr_in address;
	IND2Adapter *adapter = NULL;
	HANDLE file = NULL;
	HRESULT status;

	if (setenv("NDX_ADAPTER", "loop", 1) != 0 || FAILED(NdStartup()))
		return 1;
	memset(&address, 0, sizeof(address));
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	status = OPEN((struct sockaddr *)&address, &adapter);
	printf("adapter: %08x\n", (unsigned)status);
	if (FAILED(status) || FAILED(CALL(adapter, CreateOverlappedFile, &file)))
		return 1;
	if (CreateIoCompletionPort(file, NULL, 1, 0) == NULL || !CloseHandle(file))
		return 1;
	return CALL(adapter, Release) == 0 && SUCCEEDED(NdCleanup()) ? 0 : 1;
}
