/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/wait.h>

#include <ndx/adapter.h>

#include <ndx/spi/sockaddr.h>
#include "config.h"
#include "list.h"
#include "registry.h"

static struct seen seen;
static struct place place;

static int enter(void **state)
{
	(void)state;
	return place_enter(&place, &seen, TEST_PROVIDERS "/good");
}

static int leave(void **state)
{
	(void)state;
	place_remove(&place);
	return 0;
}

static const struct ndx_adapter_entry *find(const struct ndx_adapter_entry *entries, size_t count,
                                            const char *uri)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(entries[i].uri, uri) == 0)
			return &entries[i];
	}
	fail_msg("no entry %s", uri);
	return NULL;
}

static void every_provider_built_in_or_not_is_listed(void **state)
{
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(setenv("FAKE_LIST", "ok", 1), 0);
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	for (size_t p = 0; registry_get(p) != NULL; p++) {
		bool there = strcmp(registry_get(p)->name, "fault") == 0; /* only by its name */

		for (size_t i = 0; i < count; i++)
			there |= strcmp(entries[i].provider, registry_get(p)->name) == 0;
		assert_true(there);
	}
	for (size_t i = 0; i < count; i++) {
		assert_null(entries[i].reserved[0]);
		assert_null(entries[i].reserved[1]);
	}
	assert_string_equal(find(entries, count, "fake:two?gid=1")->provider, "fake");
	assert_int_equal(find(entries, count, "fake:two?gid=1")->state, NDX_OK);
	assert_string_equal(find(entries, count, "verbs:two?gid=1")->device, "two");
	ndx_adapter_list_free(entries);
	ndx_adapter_list_free(NULL);
}

static void what_cannot_be_used_is_listed_with_its_reason(void **state)
{
	struct ndx_adapter_entry *entries = NULL;
	const struct ndx_adapter_entry *entry;
	size_t count = 0;

	(void)state;
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	entry = find(entries, count, "fake:one?gid=1");
	assert_int_equal(entry->state, NDX_E_DEVICE_NOT_READY);
	assert_string_equal(entry->hint, "port of one is down");
	ndx_adapter_list_free(entries);
}

static void a_provider_that_fails_is_an_entry_that_says_so(void **state)
{
	struct ndx_adapter_entry *entries = NULL;
	const struct ndx_adapter_entry *entry;
	size_t count = 0;

	(void)state;
	assert_int_equal(setenv("FAKE_LIST", "fail", 1), 0);
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	entry = find(entries, count, "fake");
	assert_int_equal(entry->state, NDX_E_INTERNAL_ERROR);
	assert_string_equal(entry->hint, "provider \"fake\" failed and did not say why");
	ndx_adapter_list_free(entries);
}

static void a_provider_that_cannot_be_loaded_is_an_entry_that_says_so(void **state)
{
	struct ndx_adapter_entry *entries = NULL;
	const struct ndx_adapter_entry *entry;
	size_t count = 0;

	(void)state;
	assert_int_equal(setenv("NDX_PROVIDER_PATH", TEST_PROVIDERS "/bad_abi", 1), 0);
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	entry = find(entries, count, "fake");
	assert_int_equal(entry->state, NDX_E_ABI_MISMATCH);
	assert_non_null(strstr(entry->hint, "was built for interface 99"));
	ndx_adapter_list_free(entries);
}

static void a_provider_in_two_directories_is_listed_once(void **state)
{
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;
	unsigned fakes = 0;

	(void)state;
	assert_int_equal(
		setenv("NDX_PROVIDER_PATH", TEST_PROVIDERS "/good:" TEST_PROVIDERS "/good", 1), 0);
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	for (size_t i = 0; i < count; i++)
		fakes += strcmp(entries[i].provider, "fake") == 0;
	assert_int_equal(fakes, 2);
	ndx_adapter_list_free(entries);
}

static void a_list_wants_somewhere_to_go(void **state)
{
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 77;

	(void)state;
	failed_with(&seen, ndx_adapter_list(NULL, &count), NDX_E_INVALID_PARAMETER);
	says("ndx_adapter_list: entries is NULL");
	failed_with(&seen, ndx_adapter_list(&entries, NULL), NDX_E_INVALID_PARAMETER);
	says("ndx_adapter_list: count is NULL");
	assert_int_equal(count, 77);
	assert_null(entries);
}

static enum ndx_status flood(const struct ndx_provider *self, const struct ndx_spi_open *defaults,
                             ndx_spi_list_fn *each, void *arg)
{
	struct ndx_adapter_entry entry;

	(void)self;
	(void)defaults;
	memset(&entry, 'x', sizeof(entry)); /* no string in it ends */
	for (int i = 0; i < 100000; i++)
		each(arg, &entry);
	return NDX_OK;
}

static void a_provider_out_of_order_does_no_harm(void **state)
{
	const struct ndx_provider_ops ops = {.list = flood};
	const struct ndx_provider provider = {.abi = NDX_SPI_ABI, .name = "flood", .ops = &ops};
	const struct config config = {0};
	struct listing listing = {0};

	(void)state;
	assert_int_equal(list_provider(&provider, &config, &listing), NDX_OK);
	assert_int_equal(listing.count, 1024);
	assert_string_equal(listing.entries[7].provider, "flood");
	assert_int_equal(strlen(listing.entries[7].uri), sizeof(listing.entries[7].uri) - 1);
	assert_int_equal(strlen(listing.entries[7].hint), sizeof(listing.entries[7].hint) - 1);
	assert_int_equal(listing.entries[7].address_count, 1);
	list_clear(&listing);
}

static void an_entry_fits_a_uri_by_provider_and_device(void **state)
{
	const struct ndx_adapter_entry e = {.uri = "p:dev?k=v", .provider = "p", .device = "dev"};

	(void)state;
	assert_true(list_entry_fits(&e, "p"));
	assert_true(list_entry_fits(&e, "p?x=y"));
	assert_true(list_entry_fits(&e, "p:dev"));
	assert_true(list_entry_fits(&e, "p:dev?x=y"));
	assert_false(list_entry_fits(&e, "p:de"));
	assert_false(list_entry_fits(&e, "p:device"));
	assert_false(list_entry_fits(&e, "pp"));
	assert_false(list_entry_fits(&e, ""));
}

/* ---- ndx_resolve ---- */

static struct sockaddr_in v4(const char *host)
{
	struct sockaddr_in in = {.sin_family = AF_INET};

	assert_int_equal(inet_pton(AF_INET, host, &in.sin_addr), 1);
	return in;
}

/* "verbs" is in no file now, and not built in (without_verbs.c). */
static void what_is_not_installed_is_listed_with_its_package(void **state)
{
	struct ndx_adapter_entry verbs;
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(unsetenv("NDX_PROVIDER_PATH"), 0);
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	verbs = *find(entries, count, "verbs");
	assert_int_equal(verbs.state, NDX_E_NOT_FOUND);
	assert_string_equal(verbs.provider, "verbs");
	assert_non_null(strstr(verbs.hint, "install the package ndx-provider-verbs"));
	ndx_adapter_list_free(entries);
}

static void a_rank_of_a_device_goes_before_that_of_all(void **state)
{
	static const struct ndx_spi_rank ranks[] = {{"", 50}, {"x", 300}, {"y", -1}, {NULL, 0}};
	static const struct ndx_provider with = {.name = "p", .ranks = ranks};
	static const struct ndx_provider without = {.name = "p"};
	struct ndx_adapter_entry e = {.uri = "p:x?a=b"};

	(void)state;
	assert_int_equal(list_rank(&with, &e), 300);
	assert_int_equal(list_rank(&without, &e), 0);
	(void)strcpy(e.uri, "p:xx");
	assert_int_equal(list_rank(&with, &e), 50);
	(void)strcpy(e.uri, "p?a=b");
	assert_int_equal(list_rank(&with, &e), 50);
	(void)strcpy(e.uri, "p:y");
	assert_int_equal(list_rank(&with, &e), 0);
}

static enum ndx_status resolve(const char *host, char *uri, size_t size,
                               struct sockaddr_storage *local)
{
	const struct sockaddr_in to = v4(host);

	return ndx_resolve((const struct sockaddr *)&to, sizeof(to), uri, &size, local);
}

static void loopback_is_reached_by_whatever_serves_it(void **state)
{
	char text[NDXP_SOCKADDR_TEXT];
	char uri[128] = "before";
	struct sockaddr_storage local;

	(void)state;
	if (registry_get(0) == NULL) {
		failed_with(&seen, resolve("127.0.0.1", uri, sizeof(uri), &local),
		            NDX_E_INVALID_ADDRESS);
		says("ndx_resolve: local address 127.0.0.1:0 on interface \"lo\" is that of none");
		assert_string_equal(uri, "before");
		return;
	}
	assert_int_equal(resolve("127.0.0.1", uri, sizeof(uri), &local), NDX_OK);
	assert_string_equal(ndxp_sockaddr_text(&local, text), "127.0.0.1:0");
	assert_int_equal(resolve("127.0.0.1", uri, sizeof(uri), NULL), NDX_OK);
	/* what reaches other processes goes before what does not */
	for (size_t i = 0; registry_get(i + 1) != NULL; i++)
		assert_memory_not_equal(uri, registry_get(0)->name, strlen(registry_get(0)->name));
	assert_int_equal(resolve("127.0.0.1", uri, 3, NULL), NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(seen.errors, 0);
	/* the program may have asked for the size: no log record */
	assert_non_null(strstr(ndx_last_error(), "but room for 3"));
}

/* The list has ofi:tcp of an interface, not this address with these options. */
static void the_adapter_that_is_named_goes_first(void **state)
{
	static const char *const named[] = {"loop", "ofi:tcp?addr=127.0.0.1&cq=shared"};
	char uri[128] = "";

	(void)state;
	if (registry_find("loop") == NULL || registry_find("ofi") == NULL)
		skip();
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		assert_int_equal(setenv("NDX_ADAPTER", named[i], 1), 0);
		assert_int_equal(resolve("127.0.0.1", uri, sizeof(uri), NULL), NDX_OK);
		assert_string_equal(uri, named[i]);
	}
	/* What does not reach the address is no help, nor what cannot be opened. */
	assert_int_equal(setenv("NDX_ADAPTER", "ofi:tcp?iface=nowhere", 1), 0);
	assert_int_equal(resolve("127.0.0.1", uri, sizeof(uri), NULL), NDX_OK);
	assert_string_not_equal(uri, "ofi:tcp?iface=nowhere");
	assert_int_equal(unsetenv("NDX_ADAPTER"), 0);
}

/* "verbs" of the fakes goes before whatever else has the address. The fakes open nothing. */
static void every_address_of_an_adapter_leads_to_it(void **state)
{
	char uri[128] = "";

	(void)state;
	assert_int_equal(setenv("FAKE_LIST", "ok", 1), 0);
	assert_int_equal(setenv("FAKE_ADDRESSES", "192.0.2.1 192.0.2.2 127.0.0.1", 1), 0);
	assert_int_equal(resolve("127.0.0.1", uri, sizeof(uri), NULL), NDX_OK);
	assert_string_equal(uri, "verbs:two?gid=1");
	/* a device that is down is not asked for */
	assert_int_equal(setenv("FAKE_LIST", "down", 1), 0);
	if (registry_get(0) == NULL) {
		failed_with(&seen, resolve("127.0.0.1", uri, sizeof(uri), NULL),
		            NDX_E_INVALID_ADDRESS);
		says("which cannot be used: port of one is down");
	} else {
		assert_int_equal(resolve("127.0.0.1", uri, sizeof(uri), NULL), NDX_OK);
		assert_string_not_equal(uri, "verbs:two?gid=1");
	}
	assert_null(getenv("FAKE_OPENED"));
}

static void a_named_adapter_of_the_list_is_not_opened(void **state)
{
	char uri[128] = "";

	(void)state;
	if (registry_get(0) == NULL)
		skip();
	assert_int_equal(setenv("FAKE_LIST", "ok", 1), 0);
	assert_int_equal(setenv("FAKE_ADDRESSES", "192.0.2.1 127.0.0.1", 1), 0);
	assert_int_equal(setenv("NDX_ADAPTER", "fake:two?gid=1", 1), 0);
	assert_int_equal(resolve("127.0.0.1", uri, sizeof(uri), NULL), NDX_OK);
	assert_string_equal(uri, "fake:two?gid=1");
	assert_null(getenv("FAKE_OPENED"));
	assert_int_equal(seen.errors, 0);
	/* another URI, or an adapter that is down in the list, may have other addresses if opened
	 */
	assert_int_equal(setenv("NDX_ADAPTER", "fake:two?gid=2", 1), 0);
	assert_int_equal(resolve("127.0.0.1", uri, sizeof(uri), NULL), NDX_OK);
	assert_string_equal(uri, "verbs:two?gid=1");
	assert_string_equal(getenv("FAKE_OPENED"), "1");
	assert_int_equal(setenv("NDX_ADAPTER", "fake:one?gid=1", 1), 0);
	assert_int_equal(resolve("127.0.0.1", uri, sizeof(uri), NULL), NDX_OK);
	assert_string_equal(getenv("FAKE_OPENED"), "2");
	seen.errors = 0; /* of the opens */
}

static void what_is_no_address_to_go_to_is_refused(void **state)
{
	struct sockaddr_in6 scopeless = {.sin6_family = AF_INET6};
	const struct sockaddr_in to = v4("127.0.0.1");
	char uri[128];
	size_t size = sizeof(uri);

	(void)state;
	failed_with(&seen, ndx_resolve(NULL, 0, uri, &size, NULL), NDX_E_INVALID_PARAMETER);
	says("ndx_resolve: remote is no IPv4 or IPv6 address");
	failed_with(&seen,
	            ndx_resolve((const struct sockaddr *)&to, sizeof(to) - 1, uri, &size, NULL),
	            NDX_E_INVALID_PARAMETER);
	failed_with(&seen, ndx_resolve((const struct sockaddr *)&to, sizeof(to), NULL, &size, NULL),
	            NDX_E_INVALID_PARAMETER);
	says("ndx_resolve: uri or its size is NULL");
	failed_with(&seen, resolve("0.0.0.0", uri, sizeof(uri), NULL), NDX_E_INVALID_PARAMETER);
	says("the unspecified address");
	assert_int_equal(inet_pton(AF_INET6, "fe80::1", &scopeless.sin6_addr), 1);
	assert_int_not_equal(ndx_resolve((const struct sockaddr *)&scopeless, sizeof(scopeless),
	                                 uri, &size, NULL),
	                     NDX_OK);
	says("ndx_resolve: no way to [fe80::1]:9");
}

/* In a network that has nothing at all. 0 if the right thing was said, 77 if we may not go there.
 */
static int resolve_nowhere(void)
{
	char uri[128];

	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return 77;
	return resolve("192.0.2.1", uri, sizeof(uri), NULL) == NDX_E_NETWORK_UNREACHABLE &&
	                       strstr(ndx_last_error(),
	                              "no way to 192.0.2.1:9; see what \"ip route "
	                              "get\" says") != NULL
	               ? 0
	               : 1;
}

static void where_no_route_leads_is_unreachable(void **state)
{
	const pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0)
		_exit(resolve_nowhere());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define AT_A_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AT_A_PLACE(every_provider_built_in_or_not_is_listed),
		AT_A_PLACE(what_is_not_installed_is_listed_with_its_package),
		AT_A_PLACE(a_rank_of_a_device_goes_before_that_of_all),
		AT_A_PLACE(what_cannot_be_used_is_listed_with_its_reason),
		AT_A_PLACE(a_provider_that_fails_is_an_entry_that_says_so),
		AT_A_PLACE(a_provider_that_cannot_be_loaded_is_an_entry_that_says_so),
		AT_A_PLACE(a_provider_in_two_directories_is_listed_once),
		AT_A_PLACE(a_list_wants_somewhere_to_go),
		AT_A_PLACE(a_provider_out_of_order_does_no_harm),
		AT_A_PLACE(an_entry_fits_a_uri_by_provider_and_device),
		AT_A_PLACE(loopback_is_reached_by_whatever_serves_it),
		AT_A_PLACE(the_adapter_that_is_named_goes_first),
		AT_A_PLACE(every_address_of_an_adapter_leads_to_it),
		AT_A_PLACE(a_named_adapter_of_the_list_is_not_opened),
		AT_A_PLACE(what_is_no_address_to_go_to_is_refused),
		AT_A_PLACE(where_no_route_leads_is_unreachable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
