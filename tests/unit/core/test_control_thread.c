/* SPDX-License-Identifier: BSD-2-Clause */
/* The name and the processors of an adapter's control thread, where the options come from an INI
 * file, and where the kernel gives fewer processors than were asked for. */
#include "says.h"

#include <pthread.h>
#include <sched.h>

#include <ndx/adapter.h>

#include "registry.h"

static struct seen seen;
static struct place place;

/* The kernel as it is in a cpuset without this processor; -1: as it is here. */
static int forbidden = -1;
static char bound_name[16]; /* of the thread that was asked about */

int __real_pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set);
int __wrap_pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set);

int __wrap_pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
	const int err = __real_pthread_getaffinity_np(thread, size, set);

	(void)pthread_getname_np(thread, bound_name, sizeof(bound_name));
	if (forbidden >= 0)
		CPU_CLR(forbidden, set);
	return err;
}

static int enter(void **state)
{
	(void)state;
	forbidden = -1;
	bound_name[0] = '\0';
	return place_enter(&place, &seen, TEST_PROVIDERS "/good");
}

static int leave(void **state)
{
	(void)state;
	place_remove(&place);
	return 0;
}

static int first_of_own(void)
{
	cpu_set_t own;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(own), &own), 0);
	while (!CPU_ISSET(cpu, &own))
		cpu++;
	return cpu;
}

static void a_processor_that_the_process_may_not_use_is_named(void **state)
{
	struct ndx_adapter *adapter = NULL;
	char uri[64];
	char part[64];

	(void)state;
	if (registry_find("loop") == NULL)
		skip();
	forbidden = first_of_own();
	(void)snprintf(uri, sizeof(uri), "loop?cpus=%d&thread=forbidden", forbidden);
	failed_with(&seen, ndx_adapter_open(uri, &adapter), NDX_E_INVALID_CONFIG);
	(void)snprintf(part, sizeof(part), "this process may not use processor %d;", forbidden);
	says(part);
	says("URI: key \"cpus\"");
	assert_null(adapter);
	assert_string_equal(bound_name, "forbidden");
}

static void the_file_has_defaults_and_the_uri_goes_before(void **state)
{
	struct ndx_adapter *adapter = NULL;
	char text[128];

	(void)state;
	if (registry_find("loop") == NULL)
		skip();
	(void)snprintf(text, sizeof(text), "[loop]\nthread = of-the-file\ncpus = %d\n",
	               first_of_own());
	place_write(&place, text);
	assert_int_equal(ndx_adapter_open("loop", &adapter), NDX_OK);
	assert_string_equal(bound_name, "of-the-file");
	ndx_adapter_close(adapter);
	assert_int_equal(ndx_adapter_open("loop:other?thread=of-the-uri", &adapter), NDX_OK);
	assert_string_equal(bound_name, "of-the-uri");
	ndx_adapter_close(adapter);
	place_write(&place, "[loop]\n\ncpus = 7-6\n");
	failed_with(&seen, ndx_adapter_open("loop", &adapter), NDX_E_INVALID_CONFIG);
	says("ndx.ini:3: key \"cpus\" cannot be \"7-6\"");
}

/* The keys are the core's: no provider gets them, when it opens or when it lists. */
static void providers_do_not_see_the_keys(void **state)
{
	struct ndx_adapter *adapter = NULL;
	struct ndx_adapter_entry *entries = NULL;
	size_t count = 0;
	bool listed = false;

	(void)state;
	place_write(&place, "[fake]\nthread = x\ntrust = lan\ncpus = 0\n");
	failed_with(&seen, ndx_adapter_open("fake?thread=y&gid=1", &adapter),
	            NDX_E_DEVICE_NOT_READY);
	assert_int_equal(ndx_adapter_list(&entries, &count), NDX_OK);
	for (size_t i = 0; i < count; i++)
		listed |= strcmp(entries[i].uri, "fake:one?gid=1") == 0;
	assert_true(listed);
	ndx_adapter_list_free(entries);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_processor_that_the_process_may_not_use_is_named,
	                                        enter, leave),
		cmocka_unit_test_setup_teardown(the_file_has_defaults_and_the_uri_goes_before,
	                                        enter, leave),
		cmocka_unit_test_setup_teardown(providers_do_not_see_the_keys, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
