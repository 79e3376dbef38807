/* SPDX-License-Identifier: BSD-2-Clause */
/* Which questions open adapters, and that the answers are those of the open adapter. */
#include "nd_op.h"

#include <dlfcn.h>
#include <stdio.h>

#include <ndx/adapter.h>

union list {
	SOCKET_ADDRESS_LIST list;
	char bytes[8192];
};

static unsigned opens;
static char opened[256]; /* the latest */

typedef enum ndx_status open_fn(const char *uri, struct ndx_adapter **out);

/* Takes the place of the library's for all libraries of this process. */
enum ndx_status ndx_adapter_open(const char *uri, struct ndx_adapter **out)
{
	open_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "ndx_adapter_open");
	opens++;
	(void)snprintf(opened, sizeof(opened), "%s", uri != NULL ? uri : "");
	return real(uri, out);
}

static struct sockaddr *generic(struct sockaddr_storage *address)
{
	return (struct sockaddr *)address;
}

static IND2Provider *get_provider(void)
{
	IND2Provider *provider = NULL;

	assert_status(
		DllGetClassObject(BY_ID(CLSID_NdxProvider), BY_ID(IID_IND2Provider), OUT(provider)),
		S_OK);
	return provider;
}

/* Ask everything about the first address of the list. Returns the number of adapters that were
 * opened for the answers. */
static unsigned opens_of_questions(void)
{
	IND2Provider *provider = get_provider();
	struct sockaddr_storage own;
	struct sockaddr_storage local;
	union list u;
	SIZE_T size = sizeof(local);
	ULONG list_size = sizeof(u);
	UINT64 id = 0;
	ULONG length;

	opens = 0;
	length = nd_local_address(&own);
	assert_status(NdCheckAddress(generic(&own), length), ND_SUCCESS);
	assert_status(NdResolveAddress(generic(&own), length, generic(&local), &size), ND_SUCCESS);
	assert_memory_equal(&own, &local, length);
	assert_status(CALL(provider, QueryAddressList, &u.list, &list_size), ND_SUCCESS);
	assert_status(CALL(provider, ResolveAddress, generic(&own), length, &id), ND_SUCCESS);
	assert_int_equal(CALL(provider, Release), 0);
	return opens;
}

/* The address opens one adapter, the one that was expected, and so does its id. */
static void opens_once(const char *uri)
{
	IND2Provider *provider = get_provider();
	struct sockaddr_storage own;
	const ULONG length = nd_local_address(&own);
	IND2Adapter *adapter = NULL;
	UINT64 id = 0;

	opens = 0;
	assert_status(NdOpenAdapter(BY_ID(IID_IND2Adapter), generic(&own), length, OUT(adapter)),
	              ND_SUCCESS);
	assert_int_equal(opens, 1);
	assert_string_equal(opened, uri);
	assert_int_equal(CALL(adapter, Release), 0);
	assert_status(CALL(provider, ResolveAddress, generic(&own), length, &id), ND_SUCCESS);
	opens = 0;
	assert_status(CALL(provider, OpenAdapter, BY_ID(IID_IND2Adapter), id, OUT(adapter)),
	              ND_SUCCESS);
	assert_int_equal(opens, 1);
	assert_int_equal(CALL(adapter, Release), 0);
	assert_int_equal(CALL(provider, Release), 0);
}

/* Two lists have equal addresses in the same order. */
static void is_equal(const SOCKET_ADDRESS_LIST *one, const SOCKET_ADDRESS_LIST *other)
{
	const SOCKET_ADDRESS *const ones = one->Address; /* more than the array declares */
	const SOCKET_ADDRESS *const others = other->Address;

	assert_int_equal(one->iAddressCount, other->iAddressCount);
	for (INT i = 0; i < one->iAddressCount; i++) {
		assert_int_equal(ones[i].iSockaddrLength, others[i].iSockaddrLength);
		assert_memory_equal(ones[i].lpSockaddr, others[i].lpSockaddr,
		                    (size_t)ones[i].iSockaddrLength);
	}
}

static int is_usable_in_list(const char *uri)
{
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;
	int is = 0;

	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	for (size_t i = 0; i < count; i++)
		is |= entries[i].state == NDX_OK && strcmp(entries[i].uri, uri) == 0;
	ndx_adapter_list_free(entries);
	return is;
}

static void a_chosen_adapter_has_its_addresses(void **state)
{
	const char *uri = nd_adapter();
	IND2Adapter *adapter = nd_open();
	union list all;
	union list own;
	SIZE_T size = sizeof(all);
	ULONG own_size = sizeof(own);

	(void)state;
	assert_status(NdQueryAddressList(0, &all.list, &size), ND_SUCCESS);
	assert_status(CALL(adapter, QueryAddressList, &own.list, &own_size), ND_SUCCESS);
	is_equal(&all.list, &own.list);
	assert_int_equal(CALL(adapter, Release), 0);
	/* the list is asked for no adapter but those of RDMA stacks, which listing has to load */
	if (strncmp(uri, "loop", 4) != 0 && is_usable_in_list(uri))
		assert_int_equal(opens_of_questions(), 0);
	else
		assert_true(opens_of_questions() > 0);
	opens_once(uri);
}

/* The list has no entry with such keys. */
static void other_keys_are_asked_of_the_adapter(void **state)
{
	union list u;
	SIZE_T size = sizeof(u);
	char uri[256];
	char with[300];

	(void)state;
	(void)snprintf(uri, sizeof(uri), "%s", nd_adapter());
	if (strncmp(uri, "ofi:tcp", 7) != 0)
		nd_skip("ofi:tcp alone has a key that chooses an address");
	(void)snprintf(with, sizeof(with), "%s&addr=127.0.0.1", uri);
	assert_int_equal(setenv("NDX_ADAPTER", with, 1), 0);
	assert_true(opens_of_questions() > 0);
	assert_string_equal(opened, with);
	assert_status(NdQueryAddressList(0, &u.list, &size), ND_SUCCESS);
	assert_int_equal(u.list.iAddressCount, 1);
	opens_once(with);
	assert_int_equal(setenv("NDX_ADAPTER", uri, 1), 0);
}

/* Without a choice the adapters of all RDMA stacks count, here at least the one under test. */
static void nobody_has_to_open_adapters_to_find_one(void **state)
{
	struct sockaddr_storage own;
	struct sockaddr_in *in = (struct sockaddr_in *)&own;
	const ULONG length = nd_local_address(&own);
	IND2Adapter *adapter = NULL;
	char uri[256];

	(void)state;
	(void)snprintf(uri, sizeof(uri), "%s", nd_adapter());
	if (strncmp(uri, "loop", 4) == 0)
		nd_skip("nobody finds loop who does not name it");
	assert_int_equal(setenv("NDX_CONFIG", "/dev/null", 1), 0);
	assert_int_equal(setenv("NDX_ADAPTER", "auto", 1), 0);
	assert_int_equal(opens_of_questions(), 0);
	assert_status(NdCheckAddress(generic(&own), length), ND_SUCCESS);
	assert_int_equal(opens, 0);
	assert_status(NdOpenAdapter(BY_ID(IID_IND2Adapter), generic(&own), length, OUT(adapter)),
	              ND_SUCCESS);
	assert_int_equal(opens, 1);
	assert_int_equal(CALL(adapter, Release), 0);
	memset(&own, 0, sizeof(own));
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0xc0000263); /* 192.0.2.99, for documents */
	opens = 0;
	assert_status(
		NdOpenAdapter(BY_ID(IID_IND2Adapter), generic(&own), sizeof(*in), OUT(adapter)),
		ND_INVALID_ADDRESS);
	assert_int_equal(opens, 0);
	assert_int_equal(setenv("NDX_ADAPTER", uri, 1), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chosen_adapter_has_its_addresses),
		cmocka_unit_test(other_keys_are_asked_of_the_adapter),
		cmocka_unit_test(nobody_has_to_open_adapters_to_find_one),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
