/* SPDX-License-Identifier: BSD-2-Clause */
/* The ways to name an adapter, through the public call. */
#include "says.h"

#include <pthread.h>

#include <ndx/adapter.h>

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

/* The in-process provider opens everywhere, under any device name. */
static bool has_loop(void)
{
	return registry_find("loop") != NULL;
}

static void opens(const char *uri, const char *expected)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	struct ndx_adapter *adapter = NULL;

	if (ndx_adapter_open(uri, &adapter) != NDX_OK)
		fail_msg("%s", ndx_last_error());
	assert_int_equal(ndx_adapter_query(adapter, &info), NDX_OK);
	assert_memory_equal(info.uri, expected, strlen(expected));
	assert_memory_equal(info.uri, info.provider, strlen(info.provider));
	ndx_adapter_close(adapter);
}

static void is_refused(const char *uri, enum ndx_status expected, const char *part)
{
	struct ndx_adapter *const before = (struct ndx_adapter *)&place;
	struct ndx_adapter *adapter = before;

	failed_with(&seen, ndx_adapter_open(uri, &adapter), expected);
	says(part);
	assert_ptr_equal(adapter, before);
}

static void call_variable_and_file_name_the_adapter_in_this_order(void **state)
{
	(void)state;
	if (!has_loop())
		skip();
	assert_int_equal(setenv("NDX_ADAPTER", "loop:variable", 1), 0);
	place_write(&place, "[ndx]\nadapter = loop:file\n");
	opens("loop:call", "loop:call");
	opens(NULL, "loop:variable");
	assert_int_equal(unsetenv("NDX_ADAPTER"), 0);
	opens(NULL, "loop:file");
}

/* ---- ndx_adapter_default ---- */

static void default_is(const char *expected)
{
	char uri[256] = "?";
	size_t size = sizeof(uri);

	assert_int_equal(ndx_adapter_default(uri, &size), NDX_OK);
	assert_string_equal(uri, expected);
	assert_int_equal(size, strlen(expected) + 1);
	/* the size alone */
	size = 0;
	assert_int_equal(ndx_adapter_default(NULL, &size), NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(size, strlen(expected) + 1);
	size--;
	(void)strcpy(uri, "?");
	assert_int_equal(ndx_adapter_default(uri, &size), NDX_E_BUFFER_OVERFLOW);
	assert_int_equal(size, strlen(expected) + 1);
	assert_string_equal(uri, "?");
	says("ndx_adapter_default: there are ");
	assert_int_equal(ndx_adapter_default(uri, &size), NDX_OK);
	assert_string_equal(uri, expected);
	assert_int_equal(seen.errors, 0);
}

/* The user chose no adapter: that is no error, so no record. */
static void there_is_no_default(void)
{
	char uri[256] = "?";
	size_t size = sizeof(uri);

	assert_int_equal(ndx_adapter_default(uri, &size), NDX_E_NOT_FOUND);
	says("neither $NDX_ADAPTER nor an INI file names an adapter");
	assert_string_equal(uri, "?");
	assert_int_equal(size, sizeof(uri));
	assert_int_equal(seen.errors, 0);
}

static void the_default_is_what_the_user_wrote(void **state)
{
	(void)state;
	there_is_no_default();
	place_write(&place, "[ndx]\nadapter = fake:file?gid=1\n");
	default_is("fake:file?gid=1");
	/* neither opened nor checked */
	assert_int_equal(setenv("NDX_ADAPTER", "no such:%%%", 1), 0);
	default_is("no such:%%%");
	assert_int_equal(setenv("NDX_ADAPTER", "", 1), 0);
	default_is("fake:file?gid=1");
	assert_int_equal(unsetenv("NDX_ADAPTER"), 0);
}

static void the_automatic_choice_is_no_default(void **state)
{
	(void)state;
	place_write(&place, "[ndx]\nadapter = auto\n");
	there_is_no_default();
	assert_int_equal(setenv("NDX_ADAPTER", "auto", 1), 0);
	place_write(&place, "[ndx]\nadapter = fake:file\n");
	there_is_no_default();
	assert_int_equal(unsetenv("NDX_ADAPTER"), 0);
	default_is("fake:file");
}

static void a_default_that_cannot_be_read_is_refused(void **state)
{
	char uri[256] = "?";
	size_t size = sizeof(uri);

	(void)state;
	place_write(&place, "[ndx]\nadaptor = fake\n");
	failed_with(&seen, ndx_adapter_default(uri, &size), NDX_E_INVALID_CONFIG);
	says("ndx.ini:2: section [ndx] has no key \"adaptor\"");
	failed_with(&seen, ndx_adapter_default(NULL, &size), NDX_E_INVALID_PARAMETER);
	says("ndx_adapter_default: uri or its size is NULL");
	failed_with(&seen, ndx_adapter_default(uri, NULL), NDX_E_INVALID_PARAMETER);
	assert_string_equal(uri, "?");
}

static void the_uri_that_an_adapter_tells_opens_it_again(void **state)
{
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	for (size_t i = 0; i < count; i++) {
		if (entries[i].state == NDX_OK)
			opens(entries[i].uri, entries[i].provider);
	}
	ndx_adapter_list_free(entries);
}

static void automatic_passes_over_what_does_not_open(void **state)
{
	struct ndx_adapter *adapter = NULL;

	(void)state;
	/* "verbs" says that it has a device, and then fails to open it */
	assert_int_equal(setenv("FAKE_LIST", "ok", 1), 0);
	if (registry_find("ofi") != NULL) {
		opens("auto", "ofi:");
		opens(NULL, "ofi:");
		return;
	}
	assert_int_equal(ndx_adapter_open("auto", &adapter), NDX_E_DEVICE_NOT_READY);
	assert_null(adapter);
}

static void the_file_gives_the_defaults_of_a_provider(void **state)
{
	(void)state;
	if (registry_find("ofi") == NULL)
		skip();
	place_write(&place, "[ofi]\niface = lo\n");
	opens("ofi:tcp", "ofi:tcp?iface=lo");
	place_write(&place, "[ofi]\niface = no-such-if\n");
	opens("ofi:tcp?iface=lo", "ofi:tcp?iface=lo");
	is_refused("ofi:tcp", NDX_E_NOT_FOUND, "no-such-if");
	place_write(&place, "[ofi]\n\ntrust = perhaps\n");
	is_refused("ofi:tcp", NDX_E_INVALID_CONFIG, "ndx.ini:3: trust=perhaps is not one of");
}

static void what_is_wrong_is_refused_with_its_place(void **state)
{
	(void)state;
	is_refused("lopo", NDX_E_NOT_FOUND, "URI: no provider \"lopo\"");
	is_refused("fake?gdi=1", NDX_E_INVALID_CONFIG, "did you mean \"gid\"?");
	is_refused("fake:%", NDX_E_INVALID_CONFIG, "'%' at position 6");
	assert_int_equal(setenv("NDX_ADAPTER", "fake:", 1), 0);
	is_refused(NULL, NDX_E_INVALID_CONFIG, "$NDX_ADAPTER \"fake:\": no device after");
	place_write(&place, "[ndx]\nadaptor = fake\n");
	is_refused(NULL, NDX_E_INVALID_CONFIG, "ndx.ini:2: section [ndx] has no key \"adaptor\"");
	failed_with(&seen, ndx_adapter_open("fake", NULL), NDX_E_INVALID_PARAMETER);
	says("ndx_adapter_open: out is NULL");
}

static void a_provider_from_a_file_may_fail_without_a_trace(void **state)
{
	struct ndx_adapter *adapter = NULL;

	(void)state;
	assert_int_equal(ndx_adapter_open("fake:one", &adapter), NDX_E_DEVICE_NOT_READY);
	assert_null(adapter);
}

#define THREADS 4
#define ROUNDS 10

/* Assertions belong to the test's own thread: this one only counts what went wrong. */
static void *open_and_list(void *arg)
{
	unsigned *wrong = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct ndx_adapter_entry *entries = NULL;
		struct ndx_adapter *adapter = NULL;
		size_t count = 0;

		*wrong += ndx_adapter_list(&entries, &count) != NDX_OK || count == 0;
		ndx_adapter_list_free(entries);
		*wrong += ndx_adapter_open("fake:one", &adapter) != NDX_E_DEVICE_NOT_READY;
		if (has_loop())
			*wrong += ndx_adapter_open("loop", &adapter) != NDX_OK;
		ndx_adapter_close(adapter);
		*wrong += ndx_adapter_open("lopo", &adapter) != NDX_E_NOT_FOUND;
		*wrong += strstr(ndx_last_error(), "no provider \"lopo\"") == NULL;
	}
	return NULL;
}

static void adapters_are_opened_from_many_threads_at_once(void **state)
{
	pthread_t threads[THREADS];
	unsigned wrong[THREADS] = {0};

	(void)state;
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_list, &wrong[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(wrong[i], 0);
	}
}

#define AT_A_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AT_A_PLACE(call_variable_and_file_name_the_adapter_in_this_order),
		AT_A_PLACE(the_default_is_what_the_user_wrote),
		AT_A_PLACE(the_automatic_choice_is_no_default),
		AT_A_PLACE(a_default_that_cannot_be_read_is_refused),
		AT_A_PLACE(the_uri_that_an_adapter_tells_opens_it_again),
		AT_A_PLACE(automatic_passes_over_what_does_not_open),
		AT_A_PLACE(the_file_gives_the_defaults_of_a_provider),
		AT_A_PLACE(what_is_wrong_is_refused_with_its_place),
		AT_A_PLACE(a_provider_from_a_file_may_fail_without_a_trace),
		AT_A_PLACE(adapters_are_opened_from_many_threads_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
