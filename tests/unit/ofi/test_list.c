/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of adapters has the addresses that an adapter has when it is opened, and finds the
 * adapter of an address: on real interfaces with several addresses. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <ndx/ndx.h>

#include "netif_host.h"

#define ADDRESSES 16u

/* Two ends of a virtual cable. Both have the link-local address fe80::1; the kernel adds none,
 * which would come some time later. */
static void make_interfaces(void)
{
	netif_host_begin();
	if (!netif_host_ip("link add va type veth peer name vb") ||
	    !netif_host_ip("link set va addrgenmode none") ||
	    !netif_host_ip("link set vb addrgenmode none") || !netif_host_ip("link set vb up") ||
	    !netif_host_ip("link set va up"))
		skip();
	netif_host_await_carrier("va");
	assert_true(netif_host_ip("address add 192.0.2.1/24 dev va") &&
	            netif_host_ip("address add 203.0.113.2/24 dev va") &&
	            netif_host_ip("address add 198.51.100.1/24 dev vb") &&
	            netif_host_ip("address add 2001:db8::1/64 dev va nodad") &&
	            netif_host_ip("address add 2001:db8::2/64 dev va nodad") &&
	            netif_host_ip("address add 198.18.0.3/24 dev va label va:1") &&
	            netif_host_ip("address add fe80::1/64 dev va nodad") &&
	            netif_host_ip("address add fe80::1/64 dev vb nodad"));
}

static int drop_interfaces(void **state)
{
	(void)state;
	(void)unsetenv("NDX_CONFIG");
	(void)netif_host_ip("link del va");
	return 0;
}

static const struct ndx_adapter_entry *find(const struct ndx_adapter_entry *entries, size_t count,
                                            const char *uri)
{
	const struct ndx_adapter_entry *found = NULL;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(entries[i].uri, uri) != 0)
			continue;
		if (found != NULL)
			fail_msg("%s is in the list twice", uri);
		found = &entries[i];
	}
	return found;
}

/* The same addresses in the same order, with their scopes. */
static void has_what_opens(const struct ndx_adapter_entry *entry)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct sockaddr_storage list[ADDRESSES];
	struct ndx_adapter *adapter = NULL;
	size_t count = ADDRESSES;

	if (ndx_adapter_open(entry->uri, &adapter) != NDX_OK)
		fail_msg("%s: %s", entry->uri, ndx_last_error());
	assert_int_equal(ndx_adapter_query_addresses(adapter, list, &count), NDX_OK);
	assert_int_equal(entry->address_count, count);
	assert_true(count > 0);
	assert_memory_equal(entry->addresses, list, count * sizeof(list[0]));
	assert_memory_equal(&entry->address, list, sizeof(list[0]));
	assert_int_equal(ndx_adapter_query(adapter, &info), NDX_OK);
	assert_int_equal(entry->adapter_id, info.adapter_id);
	ndx_adapter_close(adapter);
}

static void every_interface_has_all_of_its_addresses(void **state)
{
	static const struct {
		const char *uri;
		size_t count; /* 0: as many as lo has */
	} expected[] = {{"ofi:tcp?iface=lo", 0},
	                {"ofi:tcp?iface=va&trust=lan", 5},
	                {"ofi:tcp?iface=va:1&trust=lan", 1},
	                {"ofi:tcp?iface=vb&trust=lan", 2}};
	struct ndx_adapter_entry *entries;
	size_t count;

	(void)state;
	make_interfaces();
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const struct ndx_adapter_entry *entry = find(entries, count, expected[i].uri);

		if (entry == NULL) {
			fail_msg("%s is not in the list", expected[i].uri);
			break;
		}
		if (expected[i].count > 0)
			assert_int_equal(entry->address_count, expected[i].count);
		/* without trust=lan the entry is not usable, but its URI has the words */
		assert_int_equal(entry->state, i == 0 ? NDX_OK : NDX_E_DEVICE_NOT_READY);
		has_what_opens(entry);
	}
	ndx_adapter_list_free(entries);
}

/* What the configuration says of each adapter that is opened, the list says as well. */
static void the_configuration_counts(void **state)
{
	char path[] = "/tmp/ndx-test-XXXXXX";
	const int fd = mkstemp(path);
	static const char text[] = "[ofi]\naddr = 203.0.113.2\ntrust = lan\n";
	const struct ndx_adapter_entry *entry;
	struct ndx_adapter_entry *entries;
	size_t count;

	(void)state;
	make_interfaces();
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	(void)close(fd);
	assert_int_equal(setenv("NDX_CONFIG", path, 1), 0);
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	entry = find(entries, count, "ofi:tcp?iface=va&trust=lan");
	assert_non_null(entry);
	assert_int_equal(entry->state, NDX_OK);
	assert_int_equal(entry->address_count, 1);
	has_what_opens(entry);
	entry = find(entries, count, "ofi:tcp?iface=lo");
	assert_non_null(entry);
	assert_int_equal(entry->state, NDX_E_NOT_FOUND);
	assert_non_null(strstr(entry->hint, "no interface that is up has address 203.0.113.2"));
	assert_int_equal(entry->address_count, 0);
	assert_null(entry->addresses);
	assert_int_equal(entry->address.ss_family, AF_UNSPEC);
	ndx_adapter_list_free(entries);
	(void)unlink(path);
}

static enum ndx_status resolve(const char *text, const char *scope, char uri[128])
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in in = {.sin_family = AF_INET};
	size_t size = 128;

	if (scope == NULL && inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return ndx_resolve((const struct sockaddr *)&in, sizeof(in), uri, &size, NULL);
	assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
	in6.sin6_scope_id = scope != NULL ? if_nametoindex(scope) : 0;
	return ndx_resolve((const struct sockaddr *)&in6, sizeof(in6), uri, &size, NULL);
}

static void an_address_leads_to_the_adapter_that_has_it(void **state)
{
	static const struct {
		const char *address;
		const char *scope;
		const char *uri;
	} cases[] = {{"192.0.2.1", NULL, "ofi:tcp?iface=va&trust=lan"},
	             {"203.0.113.2", NULL, "ofi:tcp?iface=va&trust=lan"},
	             {"198.18.0.3", NULL, "ofi:tcp?iface=va:1&trust=lan"},
	             {"2001:db8::2", NULL, "ofi:tcp?iface=va&trust=lan"},
	             {"198.51.100.1", NULL, "ofi:tcp?iface=vb&trust=lan"},
	             {"fe80::1", "va", "ofi:tcp?iface=va&trust=lan"},
	             {"fe80::1", "vb", "ofi:tcp?iface=vb&trust=lan"},
	             {"127.0.0.1", NULL, "ofi:tcp?iface=lo"}};
	char path[] = "/tmp/ndx-test-XXXXXX";
	const int fd = mkstemp(path);
	char uri[128];

	(void)state;
	make_interfaces();
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "[ofi]\ntrust = lan\n", 18), 18);
	(void)close(fd);
	assert_int_equal(setenv("NDX_CONFIG", path, 1), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (resolve(cases[i].address, cases[i].scope, uri) != NDX_OK)
			fail_msg("%s: %s", cases[i].address, ndx_last_error());
		assert_string_equal(uri, cases[i].uri);
	}
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_interface_has_all_of_its_addresses,
	                                  drop_interfaces),
		cmocka_unit_test_teardown(the_configuration_counts, drop_interfaces),
		cmocka_unit_test_teardown(an_address_leads_to_the_adapter_that_has_it,
	                                  drop_interfaces),
	};

	netif_host_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
