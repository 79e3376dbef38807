/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/wait.h>

#include "registry.h"
#include "select.h"

static struct seen seen;
static struct place place;

static int enter(void **state)
{
	(void)state;
	/* "fake", and "verbs" as the first of the automatic choice; see without_verbs.c */
	return place_enter(&place, &seen, TEST_PROVIDERS "/good");
}

static int leave(void **state)
{
	(void)state;
	place_remove(&place);
	return 0;
}

static void drop(struct selection *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		selection_free(&list[i]);
	free(list);
}

/* One adapter is chosen, and it is this. */
static void chooses(const char *uri, const char *whole)
{
	struct selection *list = NULL;
	size_t count = 0;
	const enum ndx_status st = select_adapter(uri, &list, &count);

	if (st != NDX_OK)
		fail_msg("%s", ndx_last_error());
	assert_int_equal(count, 1);
	assert_string_equal(list[0].uri, whole);
	assert_memory_equal(list[0].provider->name, whole, strlen(list[0].provider->name));
	drop(list, count);
}

static void is_refused(const char *uri, enum ndx_status expected, const char *part)
{
	struct selection *list = NULL;
	size_t count = 77;

	failed_with(&seen, select_adapter(uri, &list, &count), expected);
	says(part);
	assert_null(list);
	assert_int_equal(count, 77);
}

static void the_uri_of_the_call_counts_first(void **state)
{
	(void)state;
	assert_int_equal(setenv("NDX_ADAPTER", "fake:variable", 1), 0);
	place_write(&place, "[ndx]\nadapter = fake:file\n");
	chooses("fake:call", "fake:call");
	chooses(NULL, "fake:variable");
	assert_int_equal(setenv("NDX_ADAPTER", "", 1), 0);
	chooses(NULL, "fake:file");
	assert_int_equal(unsetenv("NDX_ADAPTER"), 0);
	chooses(NULL, "fake:file");
}

static void options_are_those_of_the_uri_then_those_of_the_file(void **state)
{
	struct selection *list = NULL;
	size_t count = 0;
	char origin[160];

	(void)state;
	place_write(&place, "[fake]\ngid = 7\ntrust = none\n");
	(void)snprintf(origin, sizeof(origin), "%s:3", place.file);
	assert_int_equal(select_adapter("fake:d%20e?gid=%31", &list, &count), NDX_OK);
	assert_int_equal(count, 1);
	assert_string_equal(list[0].device, "d e");
	assert_int_equal(list[0].option_count, 2);
	assert_string_equal(list[0].options[0].key, "gid");
	assert_string_equal(list[0].options[0].value, "1");
	assert_string_equal(list[0].options[0].origin, "URI");
	assert_string_equal(list[0].options[1].key, "trust");
	assert_string_equal(list[0].options[1].value, "none");
	assert_string_equal(list[0].options[1].origin, origin);
	assert_string_equal(list[0].uri, "fake:d%20e?gid=1&trust=none");
	drop(list, count);
}

static void the_place_of_an_option_is_that_of_its_uri(void **state)
{
	struct selection *list = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(setenv("NDX_ADAPTER", "fake?gid=1", 1), 0);
	assert_int_equal(select_adapter(NULL, &list, &count), NDX_OK);
	assert_string_equal(list[0].options[0].origin, "$NDX_ADAPTER");
	drop(list, count);
}

static void a_misspelt_provider_gets_the_nearest_and_all(void **state)
{
	(void)state;
	is_refused("faek:x", NDX_E_NOT_FOUND, "URI: no provider \"faek\"; did you mean \"fake\"?");
	says("There are: ");
	says("auto");
	is_refused("Fake", NDX_E_NOT_FOUND, "no provider \"Fake\"; did you mean \"fake\"?");
	is_refused("autp", NDX_E_NOT_FOUND, "did you mean \"auto\"?");
	is_refused("completely", NDX_E_NOT_FOUND, "no provider \"completely\"; there are: ");
	for (size_t i = 0; registry_get(i) != NULL; i++)
		says(registry_get(i)->name);
}

/* "verbs", of without_verbs.c, has devices of the same names; either is right. */
static void a_device_alone_gets_the_uri_of_its_adapter(void **state)
{
	(void)state;
	is_refused("one", NDX_E_NOT_FOUND, "no provider \"one\"; did you mean \"");
	says(":one?gid=1\"? There are: ");
	is_refused("two?gid=2", NDX_E_NOT_FOUND, ":two?gid=1\"?");
	is_refused("rxe0", NDX_E_NOT_FOUND, "no provider \"rxe0\"; there are: ");
	says("would stand behind its provider: PROVIDER:rxe0");
}

static void a_wrong_separator_of_keys_gets_the_right_one(void **state)
{
	(void)state;
	is_refused("fake?gid=1;trust=lan", NDX_E_INVALID_CONFIG,
	           "URI: gid=1;trust=lan: keys are separated by '&'; write gid=1&trust=lan");
	is_refused("fake?gid=1,trust=lan;gid=2", NDX_E_INVALID_CONFIG,
	           "write gid=1&trust=lan&gid=2");
	chooses("fake?gid=2,3;x=4", "fake?gid=2,3;x=4"); /* no key of the provider */
}

static void a_provider_that_is_not_installed_is_said_to_be_so(void **state)
{
	(void)state;
	assert_int_equal(unsetenv("NDX_PROVIDER_PATH"), 0);
	is_refused("verbs", NDX_E_NOT_FOUND, "provider \"verbs\" is not installed in /");
	says("install the package ndx-provider-verbs");
}

static void a_misspelt_key_is_refused_with_its_place(void **state)
{
	(void)state;
	is_refused("fake?gdi=1", NDX_E_INVALID_CONFIG,
	           "URI: provider \"fake\" has no key \"gdi\"; did you mean \"gid\"? There are: "
	           "gid (index of an address), trust (lan|none)");
	assert_int_equal(setenv("NDX_ADAPTER", "fake?gdi=1", 1), 0);
	is_refused(NULL, NDX_E_INVALID_CONFIG, "$NDX_ADAPTER: provider \"fake\" has no key");
	assert_int_equal(unsetenv("NDX_ADAPTER"), 0);
	place_write(&place, "[ndx]\nadapter = fake?gdi=1\n");
	is_refused(NULL, NDX_E_INVALID_CONFIG, "ndx.ini:2: provider \"fake\" has no key");
	place_write(&place, "[fake]\n\nturst = lan\n");
	is_refused("fake", NDX_E_INVALID_CONFIG,
	           "ndx.ini:3: provider \"fake\" has no key \"turst\"; did you mean \"trust\"?");
}

static void a_malformed_uri_is_refused_with_its_place(void **state)
{
	(void)state;
	is_refused("", NDX_E_INVALID_CONFIG, "URI is empty");
	assert_int_equal(setenv("NDX_ADAPTER", "fake:", 1), 0);
	is_refused(NULL, NDX_E_INVALID_CONFIG, "$NDX_ADAPTER \"fake:\": no device");
	assert_int_equal(unsetenv("NDX_ADAPTER"), 0);
	place_write(&place, "[ndx]\nadapter = fake?gid\n");
	is_refused(NULL, NDX_E_INVALID_CONFIG, "ndx.ini:2 \"fake?gid\": key \"gid\"");
}

static void a_broken_file_is_refused_even_if_the_call_names_the_adapter(void **state)
{
	(void)state;
	place_write(&place, "[faek]\ngid = 1\n");
	is_refused("fake", NDX_E_INVALID_CONFIG, "did you mean \"fake\"?");
}

static void a_broken_provider_is_refused(void **state)
{
	(void)state;
	assert_int_equal(setenv("NDX_PROVIDER_PATH", TEST_PROVIDERS "/bad_abi", 1), 0);
	is_refused("fake", NDX_E_ABI_MISMATCH, "was built for interface 99");
}

static void a_selection_may_be_moved(void **state)
{
	struct selection *list = NULL;
	struct selection moved;
	size_t count = 0;

	(void)state;
	assert_int_equal(select_adapter("fake:one?gid=5", &list, &count), NDX_OK);
	moved = list[0];
	free(list);
	assert_string_equal(moved.device, "one");
	assert_string_equal(moved.options[0].value, "5");
	selection_free(&moved);
}

/* ---- set-user-id ---- */

/* What this program does when it runs as another user: choose, with a misleading environment. */
static int choose_as_another(void)
{
	struct selection *list = NULL;
	size_t count = 0;

	if (getauxval(AT_SECURE) == 0)
		return 77;
	/* nothing of the environment may be looked at, let alone be what fails */
	if (select_adapter(NULL, &list, &count) == NDX_OK)
		drop(list, count);
	else if (strstr(ndx_last_error(), "automatic choice") == NULL)
		return 1;
	if (select_adapter("fake", &list, &count) != NDX_E_NOT_FOUND)
		return 2;
	return 0;
}

/* This program again, with the user-id bit and another owner. */
static void copy_myself(const char *to)
{
	char bytes[65536];
	const int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t got;

	assert_true(in >= 0 && out >= 0);
	while ((got = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)got), got);
	assert_int_equal(fchown(out, 65534, 65534), 0);
	assert_int_equal(fchmod(out, 04755), 0);
	(void)close(in);
	(void)close(out);
}

static void a_set_user_id_program_does_not_listen_to_the_environment(void **state)
{
	char program[128];
	pid_t child;
	int status;

	(void)state;
	if (geteuid() != 0) {
		skip();
		return;
	}
	(void)snprintf(program, sizeof(program), "%s/program", place.dir);
	copy_myself(program);
	place_write(&place, "this is no INI file");
	assert_int_equal(chmod(place.dir, 0755), 0);
	assert_int_equal(setenv("NDX_ADAPTER", "%%%", 1), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)execl(program, program, "as-another", (char *)NULL);
		_exit(77);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(unlink(program), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* a file system without user-id bits */
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- the automatic choice ---- */

static void what_has_a_usable_device_is_tried_first_then_the_others(void **state)
{
	struct selection *list = NULL;
	/* by their ranks: 300, 200, 150, 100 */
	static const char *const order[] = {"verbs?gid=3", "ofi:verbs", "fake", "ofi:tcp"};
	const bool with_ofi = registry_find("ofi") != NULL;
	const size_t expected = with_ofi ? 4 : 2;
	size_t count = 0;

	(void)state;
	assert_int_equal(setenv("FAKE_LIST", "ok", 1), 0);
	place_write(&place, "[verbs]\ngid = 3\n");
	assert_int_equal(select_adapter(NULL, &list, &count), NDX_OK);
	assert_int_equal(count, expected);
	for (size_t i = 0; i < expected; i++)
		assert_string_equal(list[i].uri, order[with_ofi ? i : 2 * i]);
	drop(list, count);
	assert_int_equal(select_adapter("auto", &list, &count), NDX_OK);
	assert_int_equal(count, expected);
	drop(list, count);
}

/* It stands second, and no text is an adapter URI with its device. */
static void a_malformed_rank_does_not_hinder_the_others(void **state)
{
	struct selection *list = NULL;
	size_t count = 0;

	(void)state;
	assert_int_equal(setenv("FAKE_LIST", "ok", 1), 0);
	assert_int_equal(
		setenv("NDX_PROVIDER_PATH", TEST_PROVIDERS "/bad_rank:" TEST_PROVIDERS "/good", 1),
		0);
	assert_int_equal(select_adapter("auto", &list, &count), NDX_OK);
	assert_int_equal(count, registry_find("ofi") != NULL ? 4 : 2);
	for (size_t i = 0; i < count; i++)
		assert_string_not_equal(list[i].provider->name, "odd");
	drop(list, count);
}

static void what_has_no_usable_device_is_passed_over(void **state)
{
	static const char *const ways[] = {"down", "none", "fail"};
	struct selection *list = NULL;
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		assert_int_equal(setenv("FAKE_LIST", ways[i], 1), 0);
		if (select_adapter("auto", &list, &count) == NDX_OK) {
			for (size_t k = 0; k < count; k++)
				assert_string_not_equal(list[k].provider->name, "verbs");
			drop(list, count);
			continue;
		}
		says("automatic choice: no adapter is usable (verbs: ");
		says("name one in the call, $NDX_ADAPTER or the INI file");
		if (i == 0)
			says("port of two is down");
	}
}

static void a_broken_file_of_one_does_not_hinder_the_others(void **state)
{
	struct selection *list = NULL;
	size_t count = 0;

	(void)state;
	if (registry_get(0) == NULL)
		skip();
	/* there is a "verbs" that cannot be loaded */
	(void)snprintf(place.file, sizeof(place.file), "%s/ndx-provider-verbs.so", place.dir);
	place_write(&place, "rubbish");
	assert_int_equal(setenv("NDX_PROVIDER_PATH", place.dir, 1), 0);
	assert_int_equal(setenv("NDX_CONFIG", "/dev/null", 1), 0);
	if (select_adapter("auto", &list, &count) == NDX_OK)
		drop(list, count);
	else
		says("verbs: the device is there but");
}

static void the_automatic_choice_takes_neither_device_nor_keys(void **state)
{
	(void)state;
	is_refused("auto:one", NDX_E_INVALID_CONFIG, "\"auto\" takes neither device nor keys");
	is_refused("auto?gid=1", NDX_E_INVALID_CONFIG, "\"auto\" takes neither device nor keys");
}

static void a_wrong_default_stops_the_automatic_choice(void **state)
{
	(void)state;
	assert_int_equal(setenv("FAKE_LIST", "ok", 1), 0);
	place_write(&place, "[verbs]\ngdi = 3\n");
	is_refused("auto", NDX_E_INVALID_CONFIG,
	           "ndx.ini:2: provider \"verbs\" has no key \"gdi\"");
}

#define AT_A_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		AT_A_PLACE(the_uri_of_the_call_counts_first),
		AT_A_PLACE(options_are_those_of_the_uri_then_those_of_the_file),
		AT_A_PLACE(the_place_of_an_option_is_that_of_its_uri),
		AT_A_PLACE(a_misspelt_provider_gets_the_nearest_and_all),
		AT_A_PLACE(a_device_alone_gets_the_uri_of_its_adapter),
		AT_A_PLACE(a_wrong_separator_of_keys_gets_the_right_one),
		AT_A_PLACE(a_provider_that_is_not_installed_is_said_to_be_so),
		AT_A_PLACE(a_misspelt_key_is_refused_with_its_place),
		AT_A_PLACE(a_malformed_uri_is_refused_with_its_place),
		AT_A_PLACE(a_broken_file_is_refused_even_if_the_call_names_the_adapter),
		AT_A_PLACE(a_broken_provider_is_refused),
		AT_A_PLACE(a_selection_may_be_moved),
		AT_A_PLACE(a_set_user_id_program_does_not_listen_to_the_environment),
		AT_A_PLACE(what_has_a_usable_device_is_tried_first_then_the_others),
		AT_A_PLACE(a_malformed_rank_does_not_hinder_the_others),
		AT_A_PLACE(what_has_no_usable_device_is_passed_over),
		AT_A_PLACE(a_broken_file_of_one_does_not_hinder_the_others),
		AT_A_PLACE(the_automatic_choice_takes_neither_device_nor_keys),
		AT_A_PLACE(a_wrong_default_stops_the_automatic_choice),
	};

	/* without the leak check, which may not look into such a process */
	if (argc == 2 && strcmp(argv[1], "as-another") == 0)
		_exit(choose_as_another());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
