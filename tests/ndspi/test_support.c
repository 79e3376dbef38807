/* SPDX-License-Identifier: BSD-2-Clause */
/* The helpers of <ndsupport.h>, and the provider. */
#include "nd_op.h"

#include <stdio.h>

union list {
	SOCKET_ADDRESS_LIST list;
	char bytes[8192];
};

static struct sockaddr *generic(struct sockaddr_storage *address)
{
	return (struct sockaddr *)address;
}

/* Each helper with arguments that are right. */
static void check_all(const struct sockaddr_storage *own, HRESULT expected)
{
	struct sockaddr_storage address = *own;
	struct sockaddr_storage local;
	SIZE_T size = sizeof(local);
	IND2Adapter *adapter = NULL;
	union list u;

	assert_status(NdResolveAddress(generic(&address), sizeof(struct sockaddr_in),
	                               generic(&local), &size),
	              expected);
	size = sizeof(u);
	assert_status(NdQueryAddressList(0, &u.list, &size), expected);
	assert_status(NdCheckAddress(generic(&address), sizeof(struct sockaddr_in)), expected);
	assert_status(NdOpenAdapter(BY_ID(IID_IND2Adapter), generic(&address),
	                            sizeof(struct sockaddr_in), OUT(adapter)),
	              expected);
	if (adapter != NULL)
		assert_int_equal(CALL(adapter, Release), 0);
}

/* main() has begun once. */
static void nothing_works_without_startup(void **state)
{
	struct sockaddr_storage own;
	struct INDAdapter *old = NULL;

	(void)state;
	(void)nd_local_address(&own);
	check_all(&own, ND_SUCCESS);
	assert_status(NdStartup(), ND_SUCCESS);
	assert_status(NdCleanup(), ND_SUCCESS);
	check_all(&own, ND_SUCCESS);
	assert_status(NdCleanup(), ND_SUCCESS);
	check_all(&own, ND_DEVICE_NOT_READY);
	assert_status(NdOpenV1Adapter(generic(&own), sizeof(struct sockaddr_in), &old),
	              ND_DEVICE_NOT_READY);
	assert_status(NdCleanup(), ND_DEVICE_NOT_READY);
	NdFlushProviders();
	assert_status(NdStartup(), ND_SUCCESS);
	check_all(&own, ND_SUCCESS);
}

static void cleanup_leaves_objects_alone(void **state)
{
	struct nd_pair p;

	(void)state;
	nd_make(&p);
	nd_connect(&p);
	assert_status(NdCleanup(), ND_SUCCESS);
	nd_receive(&p.b, 1, 0, 8);
	nd_send(&p.a, 2, 0, 8, 0);
	nd_expect(&p.a, Nd2RequestTypeSend, 2, ND_SUCCESS);
	nd_expect(&p.b, Nd2RequestTypeReceive, 1, ND_SUCCESS);
	nd_disconnect(&p);
	nd_drop(&p);
	assert_status(NdStartup(), ND_SUCCESS);
}

static void a_list_says_its_size(void **state)
{
	union list u;
	const SOCKET_ADDRESS *const all = u.list.Address; /* more than the array declares */
	SIZE_T needed = 0;
	SIZE_T size;

	(void)state;
	assert_status(NdQueryAddressList(0, NULL, NULL), ND_INVALID_PARAMETER_3);
	assert_status(NdQueryAddressList(0, NULL, &needed), ND_BUFFER_OVERFLOW);
	assert_true(needed > sizeof(SOCKET_ADDRESS_LIST) && needed < sizeof(u));
	memset(&u, 0x5a, sizeof(u));
	size = needed - 1;
	assert_status(NdQueryAddressList(0, &u.list, &size), ND_BUFFER_OVERFLOW);
	assert_int_equal(size, needed);
	assert_int_equal(u.bytes[0], 0x5a);
	assert_status(NdQueryAddressList(0, &u.list, &size), ND_SUCCESS);
	assert_int_equal(size, needed);
	assert_int_equal(u.bytes[needed], 0x5a);
	size = sizeof(u);
	assert_status(NdQueryAddressList(0, &u.list, &size), ND_SUCCESS);
	assert_int_equal(size, needed);
	for (INT i = 0; i < u.list.iAddressCount; i++) {
		const struct sockaddr *one = all[i].lpSockaddr;

		assert_true((const char *)one > u.bytes && (const char *)one < u.bytes + needed);
		assert_true(one->sa_family == AF_INET || one->sa_family == AF_INET6);
		assert_int_equal(all[i].iSockaddrLength, one->sa_family == AF_INET
		                                                 ? sizeof(struct sockaddr_in)
		                                                 : sizeof(struct sockaddr_in6));
		assert_int_equal(((const struct sockaddr_in *)one)->sin_port, 0);
		assert_status(NdCheckAddress(one, (SIZE_T)all[i].iSockaddrLength), ND_SUCCESS);
	}
}

static void flags_exclude_addresses(void **state)
{
	SIZE_T all = 0;
	SIZE_T size = 0;
	union list u;

	(void)state;
	assert_status(NdQueryAddressList(0, NULL, &all), ND_BUFFER_OVERFLOW);
	assert_status(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv1_ADDRESSES, NULL, &size),
	              ND_BUFFER_OVERFLOW);
	assert_int_equal(size, all);
	size = sizeof(u);
	assert_status(NdQueryAddressList(ND_QUERY_EXCLUDE_NDv2_ADDRESSES, &u.list, &size),
	              ND_SUCCESS);
	assert_int_equal(size, 0);
	/* both providers under test are software */
	size = sizeof(u);
	assert_status(NdQueryAddressList(ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES, &u.list, &size),
	              ND_SUCCESS);
	assert_int_equal(size, 0);
}

static void resolve_finds_the_local_end(void **state)
{
	struct sockaddr_storage own;
	struct sockaddr_storage local;
	SIZE_T size = 0;
	const ULONG length = nd_local_address(&own);

	(void)state;
	((struct sockaddr_in *)&own)->sin_port = htons(4711);
	assert_status(NdResolveAddress(generic(&own), length, generic(&local), NULL),
	              ND_INVALID_PARAMETER_4);
	assert_status(NdResolveAddress(NULL, 0, generic(&local), &size), ND_INVALID_PARAMETER_2);
	assert_status(NdResolveAddress(generic(&own), 1, generic(&local), &size),
	              ND_INVALID_PARAMETER_2);
	assert_status(NdResolveAddress(generic(&own), length, NULL, &size), ND_BUFFER_OVERFLOW);
	assert_int_equal(size, length);
	size = length - 1;
	assert_status(NdResolveAddress(generic(&own), length, generic(&local), &size),
	              ND_BUFFER_OVERFLOW);
	assert_int_equal(size, length);
	assert_status(NdResolveAddress(generic(&own), length, generic(&local), &size), ND_SUCCESS);
	((struct sockaddr_in *)&own)->sin_port = 0;
	assert_memory_equal(&own, &local, length);
}

static void other_addresses_are_refused(void **state)
{
	struct sockaddr_storage address;
	struct sockaddr_in *in = (struct sockaddr_in *)&address;
	IND2Adapter *adapter = NULL;

	(void)state;
	(void)nd_local_address(&address);
	assert_status(NdCheckAddress(NULL, sizeof(*in)), ND_INVALID_PARAMETER_2);
	assert_status(NdCheckAddress(generic(&address), sizeof(*in) - 1), ND_INVALID_PARAMETER_2);
	assert_status(NdOpenAdapter(BY_ID(IID_IND2Adapter), generic(&address), sizeof(*in) - 1,
	                            OUT(adapter)),
	              ND_INVALID_PARAMETER_2);
	address.ss_family = AF_INET6;
	assert_status(NdCheckAddress(generic(&address), sizeof(*in)), ND_INVALID_PARAMETER_2);
	address.ss_family = AF_UNIX;
	assert_status(NdCheckAddress(generic(&address), sizeof(address)), ND_INVALID_ADDRESS);
	address.ss_family = AF_INET;
	in->sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
	assert_status(NdCheckAddress(generic(&address), sizeof(*in)), ND_INVALID_ADDRESS);
	assert_status(
		NdOpenAdapter(BY_ID(IID_IND2Adapter), generic(&address), sizeof(*in), OUT(adapter)),
		ND_INVALID_ADDRESS);
	assert_null(adapter);
}

static void opening_needs_the_right_interface(void **state)
{
	struct sockaddr_storage own;
	const ULONG length = nd_local_address(&own);
	struct INDAdapter *old = NULL;
	IND2Adapter *first = NULL;
	IND2Adapter *second = NULL;

	(void)state;
	((struct sockaddr_in *)&own)->sin_port = htons(4711);
	assert_status(NdOpenAdapter(BY_ID(IID_IND2Connector), generic(&own), length, OUT(first)),
	              E_NOINTERFACE);
	assert_null(first);
	assert_status(NdOpenAdapter(BY_ID(IID_IND2Adapter), generic(&own), length, NULL),
	              E_POINTER);
	assert_status(NdOpenAdapter(BY_ID(IID_IND2Adapter), generic(&own), length, OUT(first)),
	              ND_SUCCESS);
	assert_status(NdOpenAdapter(BY_ID(IID_IND2Adapter), generic(&own), length, OUT(second)),
	              ND_SUCCESS);
	assert_ptr_not_equal(first, second);
	assert_int_equal(CALL(first, Release), 0);
	assert_int_equal(CALL(second, Release), 0);
	assert_status(NdOpenV1Adapter(generic(&own), length, &old), ND_NOT_SUPPORTED);
	assert_null(old);
}

/* What Microsoft's programs rely on. */
static void the_limits_fit_together(void **state)
{
	const ULONG versions[] = {ND_VERSION_1, ND_VERSION_2};
	IND2Adapter *adapter = nd_open();

	(void)state;
	assert_int_equal(sizeof(ND2_ADAPTER_INFO), 96);
	for (int i = 0; i < 2; i++) {
		struct {
			ND2_ADAPTER_INFO info;
			char more[8];
		} u;
		ULONG size = sizeof(u);

		memset(&u, 0x5a, sizeof(u));
		u.info.InfoVersion = versions[i];
		assert_status(CALL(adapter, Query, &u.info, &size), ND_SUCCESS);
		assert_int_equal(size, sizeof(u.info));
		assert_int_equal(u.more[0], 0x5a);
		assert_int_equal(u.info.InfoVersion, versions[i]);
		assert_int_equal(u.info.MaxReceiveQueueDepth, u.info.MaxInitiatorQueueDepth);
		assert_int_equal(u.info.MaxReceiveQueueDepth % 2, 1);
		assert_true(u.info.MaxReceiveQueueDepth > 0);
		assert_true(u.info.InlineRequestThreshold <= u.info.MaxInlineDataSize);
		assert_true(u.info.MaxReadSge > 0 && u.info.MaxReadSge <= u.info.MaxInitiatorSge);
		assert_true(u.info.MaxReceiveSge > 0);
		assert_true(u.info.MaxRegistrationSize >= u.info.MaxTransferLength);
		assert_true(u.info.MaxCompletionQueueDepth >= u.info.MaxReceiveQueueDepth);
		assert_int_equal(u.info.MaxWindowSize > 0, nd_has(NDX_CAP_MEMORY_WINDOW));
		assert_int_equal(u.info.MaxSharedReceiveQueueDepth > 0, nd_has(NDX_CAP_SRQ));
	}
	assert_int_equal(CALL(adapter, Release), 0);
}

/* What the environment names is not there. */
static void a_wrong_choice_is_not_ready(void **state)
{
	struct sockaddr_storage own;
	struct sockaddr_storage local;
	char uri[256];
	SIZE_T size = sizeof(local);

	(void)state;
	(void)nd_local_address(&own);
	assert_true((size_t)snprintf(uri, sizeof(uri), "%s", nd_adapter()) < sizeof(uri));
	assert_int_equal(setenv("NDX_ADAPTER", "nosuch:thing", 1), 0);
	assert_status(NdQueryAddressList(0, NULL, &size), ND_DEVICE_NOT_READY);
	assert_status(NdCheckAddress(generic(&own), sizeof(own)), ND_DEVICE_NOT_READY);
	/* the routes know another adapter for the address */
	assert_status(NdResolveAddress(generic(&own), sizeof(own), generic(&local), &size),
	              ND_DEVICE_NOT_READY);
	assert_int_equal(setenv("NDX_ADAPTER", uri, 1), 0);
	assert_status(NdCheckAddress(generic(&own), sizeof(own)), ND_SUCCESS);
}

static void class_object_is_checked(void **state)
{
	IUnknown *object = NULL;
	IND2Provider *provider = NULL;
	UINT64 id = 0;

	(void)state;
	assert_status(
		DllGetClassObject(BY_ID(CLSID_NdxProvider), BY_ID(IID_IND2Adapter), OUT(object)),
		E_NOINTERFACE);
	assert_null(object);
	assert_status(DllGetClassObject(BY_ID(CLSID_NdxProvider), BY_ID(IID_IUnknown), NULL),
	              E_POINTER);
	assert_status(DllGetClassObject(BY_ID(CLSID_NdxProvider), BY_ID(IID_IUnknown), OUT(object)),
	              S_OK);
	assert_status(CALL(object, QueryInterface, BY_ID(IID_IND2Provider), OUT(provider)), S_OK);
	assert_int_equal(CALL(object, Release), 1);
	assert_status(CALL(provider, ResolveAddress, NULL, 0, &id), ND_INVALID_ADDRESS);
	assert_status(CALL(provider, ResolveAddress, NULL, 0, NULL), ND_INVALID_PARAMETER_3);
	assert_status(CALL(provider, QueryAddressList, NULL, NULL), ND_INVALID_PARAMETER_2);
	assert_int_equal(CALL(provider, Release), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_works_without_startup),
		cmocka_unit_test(cleanup_leaves_objects_alone),
		cmocka_unit_test(a_list_says_its_size),
		cmocka_unit_test(flags_exclude_addresses),
		cmocka_unit_test(resolve_finds_the_local_end),
		cmocka_unit_test(other_addresses_are_refused),
		cmocka_unit_test(opening_needs_the_right_interface),
		cmocka_unit_test(the_limits_fit_together),
		cmocka_unit_test(a_wrong_choice_is_not_ready),
		cmocka_unit_test(class_object_is_checked),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
