/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include <fcntl.h>

#include "loader.h"
#include "registry.h"

static struct seen seen;
static struct place place;

static int enter(void **state)
{
	(void)state;
	ndx_log_set_sink(see, &seen, NDX_LOG_ERROR);
	seen.errors = 0;
	place_make(&place);
	return 0;
}

static int leave(void **state)
{
	(void)state;
	place_remove(&place);
	return 0;
}

static void look_in(const char *directories)
{
	assert_int_equal(setenv("NDX_PROVIDER_PATH", directories, 1), 0);
}

/* A file of ours in place.dir, with what is in `from`. */
static void copy(const char *from, const char *name, mode_t mode)
{
	char to[256];
	char bytes[4096];
	ssize_t got;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out;

	(void)snprintf(to, sizeof(to), "%s/%s", place.dir, name);
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(in >= 0 && out >= 0);
	while ((got = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)got), got);
	assert_int_equal(fchmod(out, mode), 0);
	(void)close(in);
	(void)close(out);
}

static void remove_copy(const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", place.dir, name);
	assert_int_equal(unlink(path), 0);
}

#define FAKE "ndx-provider-fake.so"

static void is_refused(enum ndx_status expected, const char *part)
{
	struct loaded *loaded = (struct loaded *)&place;
	const struct ndx_provider *provider = NULL;

	failed_with(&seen, loader_open("fake", &loaded, &provider), expected);
	says(FAKE);
	says(part);
	assert_ptr_equal(loaded, &place);
	assert_null(provider);
}

static void a_provider_is_found_checked_and_let_go(void **state)
{
	struct loaded *loaded = NULL;
	const struct ndx_provider *provider = NULL;

	(void)state;
	look_in(TEST_PROVIDERS "/good");
	assert_true(loader_exists("fake"));
	assert_int_equal(loader_open("fake", &loaded, &provider), NDX_OK);
	assert_non_null(loaded);
	assert_string_equal(provider->name, "fake");
	assert_int_equal(registry_check_key(provider, "gid", "test"), NDX_OK);
	loader_close(loaded);
	loader_close(NULL);
}

static void count_loads(void *arg, const struct ndx_log_record *record)
{
	*(unsigned *)arg += strstr(record->text, "\" loaded from ") != NULL;
}

static void a_file_that_is_there_already_is_not_logged_again(void **state)
{
	const struct ndx_provider *provider = NULL;
	struct loaded *first = NULL;
	struct loaded *second = NULL;
	unsigned loads = 0;

	(void)state;
	ndx_log_set_sink(count_loads, &loads, NDX_LOG_INFO);
	look_in(TEST_PROVIDERS "/good");
	assert_int_equal(loader_open("fake", &first, &provider), NDX_OK);
	assert_int_equal(loads, 1);
	assert_int_equal(loader_open("fake", &second, &provider), NDX_OK);
	assert_int_equal(loads, 1);
	loader_close(second);
	loader_close(first);
	ndx_log_set_sink(see, &seen, NDX_LOG_ERROR);
}

static void a_built_in_provider_needs_no_file(void **state)
{
	const struct ndx_provider *first = registry_get(0);
	const struct ndx_provider *provider = NULL;
	struct loaded *loaded = (struct loaded *)&place;

	(void)state;
	if (first == NULL) {
		skip();
		return;
	}
	assert_int_equal(loader_open(first->name, &loaded, &provider), NDX_OK);
	assert_ptr_equal(provider, first);
	assert_null(loaded);
}

static void directories_are_gone_through_in_order(void **state)
{
	struct loaded *loaded = NULL;
	const struct ndx_provider *provider = NULL;

	(void)state;
	look_in(":/no/such/place::" TEST_PROVIDERS "/good:" TEST_PROVIDERS "/bad_abi:");
	assert_int_equal(loader_open("fake", &loaded, &provider), NDX_OK);
	loader_close(loaded);
	look_in(TEST_PROVIDERS "/bad_abi:" TEST_PROVIDERS "/good");
	is_refused(NDX_E_ABI_MISMATCH, "was built for interface 99");
}

static void a_relative_directory_is_not_looked_into(void **state)
{
	char back[4096];

	(void)state;
	assert_non_null(getcwd(back, sizeof(back)));
	assert_int_equal(chdir(TEST_PROVIDERS), 0);
	look_in("good:./good");
	assert_false(loader_exists("fake"));
	assert_int_equal(chdir(back), 0);
}

static void a_directory_name_without_end_is_survived(void **state)
{
	static char path[200000];

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	look_in(path);
	assert_false(loader_exists("fake"));
}

static void names_that_lead_elsewhere_are_not_found(void **state)
{
	static const char *const names[] = {
		"", "../good/ndx-provider-fake", "/etc/passwd", ".", "fake.so", "no-such"};
	struct loaded *loaded;
	const struct ndx_provider *provider;

	(void)state;
	look_in(TEST_PROVIDERS "/good");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_false(loader_exists(names[i]));
		assert_int_equal(loader_open(names[i], &loaded, &provider), NDX_E_NOT_FOUND);
	}
	assert_int_equal(seen.errors, 0);
}

static void bad_providers_are_told_apart(void **state)
{
	(void)state;
	look_in(TEST_PROVIDERS "/bad_abi");
	is_refused(NDX_E_ABI_MISMATCH, "was built for interface 99, this library has");
	look_in(TEST_PROVIDERS "/bad_hole");
	is_refused(NDX_E_ABI_MISMATCH, "lacks operation request_refuse");
	look_in(TEST_PROVIDERS "/bad_symbol");
	is_refused(NDX_E_ABI_MISMATCH, "has no symbol ndx_provider, so it is no provider");
	look_in(TEST_PROVIDERS "/bad_name");
	is_refused(NDX_E_ABI_MISMATCH, "holds provider \"other\", not \"fake\"");
}

static void what_is_no_shared_object_is_refused(void **state)
{
	(void)state;
	copy("/dev/null", FAKE, 0644);
	look_in(place.dir);
	is_refused(NDX_E_DEVICE_NOT_READY, "cannot be loaded: ");
	remove_copy(FAKE);
}

static void a_directory_of_that_name_is_refused(void **state)
{
	char path[256];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/" FAKE, place.dir);
	assert_int_equal(mkdir(path, 0755), 0);
	look_in(place.dir);
	is_refused(NDX_E_DEVICE_NOT_READY, "is not a regular file");
	assert_int_equal(rmdir(path), 0);
}

static void a_file_that_everybody_may_write_is_refused(void **state)
{
	(void)state;
	copy(TEST_PROVIDERS "/good/" FAKE, FAKE, 0666);
	look_in(place.dir);
	is_refused(NDX_E_DEVICE_NOT_READY, "can be written by every user");
	says("chmod o-w");
	remove_copy(FAKE);
}

static void a_file_in_a_directory_that_everybody_may_write_is_refused(void **state)
{
	struct loaded *loaded;
	const struct ndx_provider *provider;

	(void)state;
	copy(TEST_PROVIDERS "/good/" FAKE, FAKE, 0644);
	look_in(place.dir);
	assert_int_equal(chmod(place.dir, 01777), 0);
	failed_with(&seen, loader_open("fake", &loaded, &provider), NDX_E_DEVICE_NOT_READY);
	says(place.dir);
	says("can be written by every user, so no code is loaded from it; chmod o-w");
	assert_int_equal(chmod(place.dir, 0700), 0);
	assert_int_equal(loader_open("fake", &loaded, &provider), NDX_OK);
	loader_close(loaded);
	remove_copy(FAKE);
}

static void a_link_to_where_everybody_may_write_is_refused(void **state)
{
	char inner[128];
	char target[256];
	char link[256];

	(void)state;
	(void)snprintf(inner, sizeof(inner), "%s/in", place.dir);
	(void)snprintf(target, sizeof(target), "%s/evil.so", inner);
	(void)snprintf(link, sizeof(link), "%s/" FAKE, place.dir);
	assert_int_equal(mkdir(inner, 0700), 0);
	copy(TEST_PROVIDERS "/good/" FAKE, "in/evil.so", 0644);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(chmod(inner, 0777), 0);
	look_in(place.dir);
	failed_with(
		&seen,
		loader_open("fake", &(struct loaded *){NULL}, &(const struct ndx_provider *){NULL}),
		NDX_E_DEVICE_NOT_READY);
	says(inner);
	says("can be written by every user");
	assert_int_equal(unlink(target), 0);
	is_refused(NDX_E_DEVICE_NOT_READY, "cannot be resolved");
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(inner), 0);
}

static void count_good(void *arg, const char *name)
{
	if (strcmp(name, "fake") == 0 || strcmp(name, "verbs") == 0)
		(*(unsigned *)arg)++;
	else
		fail_msg("what is %s?", name);
}

struct told {
	char text[64];
};

static void write_name(void *arg, const char *name)
{
	struct told *told = arg;

	(void)snprintf(told->text + strlen(told->text), sizeof(told->text) - strlen(told->text),
	               "%s ", name);
}

/* Two directories have the same names, and directories have no order. */
static void each_name_is_told_once_and_in_order(void **state)
{
	static const char *const names[] = {"ndx-provider-zz.so", "ndx-provider-b.so",
	                                    "ndx-provider-fake.so", "ndx-provider-a.so",
	                                    "ndx-provider-loop.so"};
	struct told told = {""};
	char path[2 * sizeof(place.dir) + sizeof(TEST_PROVIDERS) + 8];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		copy("/dev/null", names[i], 0644);
	(void)snprintf(path, sizeof(path), "%s:%s", place.dir, place.dir);
	look_in(path);
	loader_each(write_name, &told);
	assert_string_equal(told.text,
	                    registry_find("loop") != NULL ? "a b fake zz " : "a b fake loop zz ");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		remove_copy(names[i]);
}

static void the_names_of_all_files_are_told(void **state)
{
	static const char *const others[] = {"ndx-provider-.so", "ndx-provider-x", "x.so",
	                                     "ndx-provider-UPPER.so",
	                                     "ndx-provider-a-name-that-is-too-long.so"};
	const unsigned good =
		registry_find("verbs") != NULL ? 1 : 2; /* fake; verbs if not inside */
	unsigned count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		copy("/dev/null", others[i], 0644);
	look_in(TEST_PROVIDERS "/good:/no/such/place");
	loader_each(count_good, &count);
	assert_int_equal(count, good);
	look_in(place.dir);
	loader_each(count_good, &count);
	assert_int_equal(count, good);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		remove_copy(others[i]);
}

#define AT_A_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		AT_A_PLACE(a_provider_is_found_checked_and_let_go),
		AT_A_PLACE(a_file_that_is_there_already_is_not_logged_again),
		AT_A_PLACE(a_built_in_provider_needs_no_file),
		AT_A_PLACE(directories_are_gone_through_in_order),
		AT_A_PLACE(a_relative_directory_is_not_looked_into),
		AT_A_PLACE(a_directory_name_without_end_is_survived),
		AT_A_PLACE(names_that_lead_elsewhere_are_not_found),
		AT_A_PLACE(bad_providers_are_told_apart),
		AT_A_PLACE(what_is_no_shared_object_is_refused),
		AT_A_PLACE(a_directory_of_that_name_is_refused),
		AT_A_PLACE(a_file_that_everybody_may_write_is_refused),
		AT_A_PLACE(a_file_in_a_directory_that_everybody_may_write_is_refused),
		AT_A_PLACE(a_link_to_where_everybody_may_write_is_refused),
		AT_A_PLACE(the_names_of_all_files_are_told),
		AT_A_PLACE(each_name_is_told_once_and_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
