/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include <errno.h>
#include <sys/wait.h>

#include "config.h"
#include "registry.h"

static struct seen seen;
static struct place place;

static int enter(void **state)
{
	(void)state;
	ndx_log_set_sink(see, &seen, NDX_LOG_ERROR);
	seen.errors = 0;
	place_make(&place);
	/* "fake" and "verbs" are providers that are not built in */
	return setenv("NDX_PROVIDER_PATH", TEST_PROVIDERS "/good", 1);
}

static int leave(void **state)
{
	(void)state;
	place_remove(&place);
	return 0;
}

static enum ndx_status parse(const char *text, struct config *out)
{
	return config_parse("x.ini", text, strlen(text), out);
}

/* Wrong: the text has what is expected; nothing comes out. */
static void is_refused(const char *text, size_t len, const char *part)
{
	struct config config = {.count = 77};

	failed_with(&seen, config_parse("x.ini", text, len, &config), NDX_E_INVALID_CONFIG);
	says("x.ini:");
	says(part);
	assert_int_equal(config.count, 77);
}

static void entries_come_out_with_their_place(void **state)
{
	static const char text[] = "# a comment\n"
				   "[ndx]\n"
				   "adapter = fake:one?gid=2 ; which\n"
				   "\n"
				   "[fake]\n"
				   "  gid : 3\r\n"
				   "\ttrust=lan\n";
	struct config config;

	(void)state;
	assert_int_equal(parse(text, &config), NDX_OK);
	assert_int_equal(config.count, 3);
	assert_string_equal(config_adapter(&config)->value, "fake:one?gid=2");
	assert_string_equal(config_adapter(&config)->origin, "x.ini:3");
	assert_string_equal(config.entries[1].section, "fake");
	assert_string_equal(config.entries[1].key, "gid");
	assert_string_equal(config.entries[1].value, "3");
	assert_string_equal(config.entries[2].value, "lan");
	assert_string_equal(config.entries[2].origin, "x.ini:7");
	config_free(&config);
	assert_int_equal(config.count, 0);
}

static void many_entries_fit(void **state)
{
	struct config config;
	char text[4096] = "[fake]\n";

	(void)state;
	for (int i = 0; i < 100; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "k%d=v%d\n", i, i);
	assert_int_equal(parse(text, &config), NDX_OK);
	assert_int_equal(config.count, 100);
	assert_string_equal(config.entries[99].value, "v99");
	assert_string_equal(config.entries[99].origin, "x.ini:101");
	config_free(&config);
}

static void an_empty_file_has_no_entries(void **state)
{
	static const char *const texts[] = {"", "\n", "# only this", "[ndx]",
	                                    "\xef\xbb\xbf[ndx]\n"};
	struct config config;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(parse(texts[i], &config), NDX_OK);
		assert_int_equal(config.count, 0);
		assert_null(config_adapter(&config));
		config_free(&config);
	}
}

static void what_is_wrong_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text;
		const char *part;
	} cases[] = {
		{"adapter = fake\n",
	         "x.ini:1: key \"adapter\" stands before any section; put [ndx] above it"},
		{"[ndx]\nadaptor = fake\n",
	         "x.ini:2: section [ndx] has no key \"adaptor\"; did you mean \"adapter\"? There "
	         "are: adapter (an adapter URI)"},
		{"[ndx]\nadapter =\n",
	         "x.ini:2: key \"adapter\" has no value; write adapter = VALUE"},
		{"[ndx]\nadapter = fake\n\nadapter = fake\n",
	         "x.ini:4: key \"adapter\" of section [ndx] is already in x.ini:2; take one out"},
		{"[fake]\na=1\n[ndx]\nadapter=x\n[fake]\na=2\n", "x.ini:6: key \"a\""},
		{"[faek]\na=1\n",
	         "x.ini:2: no section \"[faek]\"; did you mean \"fake\"? There are: "},
		{"[../fake]\na=1\n", "x.ini:2: no section \"[../fake]\""},
		{"[NDX]\nadapter=x\n", "did you mean \"ndx\"?"},
		{"[ndx]\n\nadapter fake\n", "x.ini:3: neither \"[section]\" nor \"key = value\""},
		{"[ndx\nadapter=fake\n", "x.ini:1: neither"},
		{"oops\n[ndx]\nadapter=\x01\n", "x.ini:1: neither"},
		{"[ndx]\n= fake\n", "x.ini:2: no key in front of the '='; write KEY = VALUE"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		is_refused(cases[i].text, strlen(cases[i].text), cases[i].part);
}

static void keys_of_built_in_providers_are_checked(void **state)
{
	const struct ndx_provider *provider = registry_get(0);
	char text[64];

	(void)state;
	if (provider == NULL) {
		skip();
		return;
	}
	(void)snprintf(text, sizeof(text), "[%s]\nno_such_key_at_all=1\n", provider->name);
	is_refused(text, strlen(text), "has no key \"no_such_key_at_all\"");
}

static void a_section_of_a_provider_that_others_have_is_left_alone(void **state)
{
	struct config config;
	size_t len;

	(void)state;
	assert_int_equal(unsetenv("NDX_PROVIDER_PATH"), 0);
	for (size_t i = 0; registry_module(i, &len) != NULL; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "[%.*s]\n", (int)len, registry_module(i, &len));
		assert_int_equal(parse(text, &config), NDX_OK);
		config_free(&config);
	}
	is_refused("[fake]\na=1\n", 11, "no section \"[fake]\"");
}

static void what_is_no_text_is_refused(void **state)
{
	static const char zero[] = "[ndx]\nadapter=fa\0ke\n";
	char noise[4096];
	struct config config;
	unsigned random = 1;

	(void)state;
	is_refused(zero, sizeof(zero) - 1, "x.ini:2: byte 0x00 at column 11; this is not a text");
	is_refused("\x7f\x45LF\x02\x01", 6, "x.ini:1: byte 0x7f at column 1");
	for (size_t i = 0; i < sizeof(noise); i++) {
		random = random * 1103515245u + 12345u;
		noise[i] = (char)(random >> 16);
	}
	assert_int_equal(config_parse("x.ini", noise, sizeof(noise), &config),
	                 NDX_E_INVALID_CONFIG);
}

static void a_long_line_is_refused_and_not_cut(void **state)
{
	char text[70000];
	struct config config;

	(void)state;
	(void)snprintf(text, sizeof(text), "[fake]\nk=%0180d\n", 1);
	assert_int_equal(parse(text, &config), NDX_OK);
	assert_int_equal(strlen(config.entries[0].value), 180);
	config_free(&config);
	(void)snprintf(text, sizeof(text), "[fake]\nk=%0400d\n", 1);
	is_refused(text, strlen(text), "x.ini:2: line of 402 bytes, at most 198 are read");
	says("shorten it");
	memset(text, 'a', sizeof(text));
	is_refused(text, sizeof(text), "x.ini:1: line of 70000 bytes");
	memset(text, ' ', sizeof(text));
	is_refused(text, sizeof(text), "x.ini:1: line of 70000 bytes");
}

/* ---- which file ---- */

static void loads(const char *adapter)
{
	struct config config;

	assert_int_equal(config_load(&config), NDX_OK);
	if (adapter == NULL)
		assert_null(config_adapter(&config));
	else
		assert_string_equal(config_adapter(&config)->value, adapter);
	config_free(&config);
}

static void the_variable_names_the_first_file(void **state)
{
	(void)state;
	place_write(&place, "[ndx]\nadapter=fake:one\n");
	loads("fake:one");
}

static void the_home_directory_is_looked_into_next(void **state)
{
	struct place home = place;
	char dir[128];

	(void)state;
	(void)snprintf(dir, sizeof(dir), "%s/.config", place.dir);
	(void)snprintf(home.file, sizeof(home.file), "%s/.config/ndx.ini", place.dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	place_write(&home, "[ndx]\nadapter=fake:home\n");
	assert_int_equal(setenv("NDX_CONFIG", "", 1), 0);
	loads("fake:home");
	assert_int_equal(unsetenv("NDX_CONFIG"), 0);
	loads("fake:home");
	assert_int_equal(setenv("NDX_CONFIG", place.file, 1), 0);
	place_write(&place, "[ndx]\nadapter=fake:named\n");
	loads("fake:named");
	assert_int_equal(unlink(home.file), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void the_null_device_is_an_empty_file(void **state)
{
	(void)state;
	assert_int_equal(setenv("NDX_CONFIG", "/dev/null", 1), 0);
	loads(NULL);
}

static void is_not_loaded(const char *path, const char *part)
{
	struct config config = {.count = 77};

	assert_int_equal(setenv("NDX_CONFIG", path, 1), 0);
	failed_with(&seen, config_load(&config), NDX_E_INVALID_CONFIG);
	says(path);
	says(part);
	assert_int_equal(config.count, 77);
}

static void a_named_file_has_to_exist(void **state)
{
	char inside[256];

	(void)state;
	is_not_loaded("/nowhere/ndx.ini", "does not exist; name a file that does, or /dev/null");
	place_write(&place, "");
	(void)snprintf(inside, sizeof(inside), "%s/ndx.ini", place.file);
	is_not_loaded(inside, "does not exist");
}

static void what_is_no_file_is_refused(void **state)
{
	(void)state;
	is_not_loaded(place.dir, "is not a regular file; name an INI file");
	is_not_loaded("/dev/zero", "is longer than 65536 bytes; is it the right file?");
	assert_int_equal(unlink(place.file), 0);
	assert_int_equal(mkfifo(place.file, 0600), 0);
	is_not_loaded(place.file, "is not a regular file"); /* and no call waits for a writer */
}

static void a_path_without_end_is_refused(void **state)
{
	char path[10000];

	(void)state;
	memset(path, '/', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	path[sizeof(path) - 2] = 'x';
	assert_int_equal(setenv("NDX_CONFIG", path, 1), 0);
	failed_with(&seen, config_load(&(struct config){0}), NDX_E_INVALID_CONFIG);
	says("File name too long");
}

/* As another user than root, because rights do not count for root. */
static int load_as_nobody(void)
{
	struct config config;

	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 77;
	return config_load(&config) == NDX_E_INVALID_CONFIG &&
	                       strstr(ndx_last_error(), "cannot be opened; mend its rights") !=
	                               NULL &&
	                       strstr(ndx_last_error(), "Permission denied") != NULL
	               ? 0
	               : 1;
}

static void a_file_that_may_not_be_read_is_refused(void **state)
{
	int status;
	pid_t child;

	(void)state;
	place_write(&place, "[ndx]\nadapter=fake\n");
	assert_int_equal(chmod(place.file, 0), 0);
	assert_int_equal(chmod(place.dir, 0755), 0);
	if (geteuid() != 0) {
		is_not_loaded(place.file, "cannot be opened; mend its rights");
		return;
	}
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(load_as_nobody());
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
		AT_A_PLACE(entries_come_out_with_their_place),
		AT_A_PLACE(many_entries_fit),
		AT_A_PLACE(an_empty_file_has_no_entries),
		AT_A_PLACE(what_is_wrong_is_refused_with_its_line),
		AT_A_PLACE(keys_of_built_in_providers_are_checked),
		AT_A_PLACE(a_section_of_a_provider_that_others_have_is_left_alone),
		AT_A_PLACE(what_is_no_text_is_refused),
		AT_A_PLACE(a_long_line_is_refused_and_not_cut),
		AT_A_PLACE(the_variable_names_the_first_file),
		AT_A_PLACE(the_home_directory_is_looked_into_next),
		AT_A_PLACE(the_null_device_is_an_empty_file),
		AT_A_PLACE(a_named_file_has_to_exist),
		AT_A_PLACE(what_is_no_file_is_refused),
		AT_A_PLACE(a_path_without_end_is_refused),
		AT_A_PLACE(a_file_that_may_not_be_read_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
