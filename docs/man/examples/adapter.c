/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: adapters. */
#include <inttypes.h>
#include <stdio.h>

#include <ndx/ndx.h>

/* Open the adapter that the user chose, and look at what it can do. */
enum ndx_status example_open(struct ndx_adapter **out)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	enum ndx_status st = ndx_adapter_open(NULL, out);

	if (st != NDX_OK) {
		fprintf(stderr, "%s: %s\n", ndx_status_name(st), ndx_last_error());
		return st;
	}
	st = ndx_adapter_query(*out, &info);
	if (st == NDX_OK)
		printf("%s, messages of up to %" PRIu32 " bytes, %s: %s\n", info.uri,
		       info.max_transfer_length, ndx_capability_name(NDX_CAP_SRQ),
		       (info.capabilities & NDX_CAP_SRQ) != 0 ? "yes" : "no");
	else
		ndx_adapter_close(*out);
	return st;
}

/* Print the adapters of this host. */
enum ndx_status example_list(void)
{
	struct ndx_adapter_entry *entries;
	size_t count;
	enum ndx_status st = ndx_adapter_list(&entries, &count);

	if (st != NDX_OK)
		return st;
	for (size_t i = 0; i < count; i++)
		printf("%s: %s %s\n", entries[i].uri, ndx_status_name(entries[i].state),
		       entries[i].hint);
	ndx_adapter_list_free(entries);
	return NDX_OK;
}

/* What the environment or the INI file names; NDX_E_NOT_FOUND: the choice is automatic. */
enum ndx_status example_default(void)
{
	char uri[128];
	size_t size = sizeof(uri);
	enum ndx_status st = ndx_adapter_default(uri, &size);

	if (st == NDX_OK)
		printf("programs that name no adapter use %s\n", uri);
	return st;
}

/* Open the adapter that reaches a peer. */
enum ndx_status example_reach(const struct sockaddr *peer, socklen_t length,
                              struct ndx_adapter **out)
{
	struct sockaddr_storage local;
	char uri[128];
	size_t size = sizeof(uri);
	enum ndx_status st = ndx_resolve(peer, length, uri, &size, &local);

	return st == NDX_OK ? ndx_adapter_open(uri, out) : st;
}

/* The addresses at which an adapter can listen. */
enum ndx_status example_addresses(struct ndx_adapter *adapter)
{
	struct sockaddr_storage list[16];
	size_t count = 16;
	enum ndx_status st = ndx_adapter_query_addresses(adapter, list, &count);

	if (st == NDX_E_BUFFER_OVERFLOW)
		fprintf(stderr, "there are %zu addresses\n", count);
	return st;
}
