/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include <ndx/negotiation.h>

static unsigned initialized;
static unsigned finalized;
static unsigned created;
static unsigned destroyed;

static enum ndx_status talk(void *session, const struct ndx_exchange *exchange, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)exchange;
	(void)peer;
	(void)peer_length;
	reply->completed = true;
	return NDX_OK;
}

static enum ndx_status initialize(const struct ndx_plugin_host *host, void **state, char *why,
                                  size_t room)
{
	(void)why;
	(void)room;
	assert_int_equal(host->abi, NDX_PLUGIN_ABI);
	initialized++;
	*state = &initialized;
	return NDX_OK;
}

static void finalize(void *state)
{
	assert_ptr_equal(state, &initialized);
	finalized++;
}

static enum ndx_status absent(void *plugin, const struct ndx_plugin_variant *variant, char *why,
                              size_t room)
{
	(void)plugin;
	(void)variant;
	(void)snprintf(why, room, "no card in slot 3");
	return NDX_E_DEVICE_NOT_READY;
}

static enum ndx_status create(void *plugin, const struct ndx_plugin_variant *variant,
                              const struct ndx_plugin_value *values, void **instance, char *why,
                              size_t room)
{
	(void)plugin;
	(void)variant;
	if (values[0].number == 13) {
		(void)snprintf(why, room, "13 brings bad luck");
		return NDX_E_INSUFFICIENT_RESOURCES;
	}
	created++;
	*instance = &created;
	return NDX_OK;
}

static void destroy(void *instance)
{
	assert_ptr_equal(instance, &created);
	destroyed++;
}

static const struct ndx_plugin_param params[] = {
	{.name = "depth", .type = NDX_PARAM_INT, .least = 1, .most = 64, .initial = "8"},
	{.name = NULL},
};
static const struct ndx_variant_ops plain = {.info = talk, .ready = talk};
static const struct ndx_variant_ops rich = {
	.info = talk, .ready = talk, .create = create, .destroy = destroy};
static const struct ndx_variant_ops missing = {.info = talk, .ready = talk, .available = absent};
static const struct ndx_plugin_variant variants[] = {
	{.name = "plain", .help = "has no parameters", .ops = &plain},
	{.name = "rich", .help = "has one", .params = params, .ops = &rich},
	{.name = "missing", .help = "never there", .ops = &missing},
};

/* It outlives its registration, which ends behind the test. */
static struct ndx_plugin table;

static const struct ndx_plugin *good(void)
{
	table = (struct ndx_plugin){.abi = NDX_PLUGIN_ABI,
	                            .size = sizeof(struct ndx_plugin),
	                            .name = "acme",
	                            .version = "1.2",
	                            .vendor = "ACME",
	                            .initialize = initialize,
	                            .finalize = finalize,
	                            .list = variants,
	                            .count = 3};
	return &table;
}

static int set_up(void **state)
{
	struct ndx_negotiation *n;

	initialized = finalized = created = destroyed = 0;
	if (ndx_negotiation_create(&n) != NDX_OK)
		return -1;
	*state = n;
	return 0;
}

static int end(void **state)
{
	return ndx_negotiation_close(*state) == NDX_OK ? 0 : -1;
}

static enum ndx_status get(struct ndx_negotiation *n, const char *plugin, const char *variant,
                           const char *depth, struct ndx_variant **out)
{
	const struct ndx_setting setting = {"depth", depth};

	return ndx_negotiation_get_variant(n, plugin, variant, &setting, depth != NULL, out);
}

static void a_plugin_lives_from_register_to_unregister(void **state)
{
	struct ndx_variant *v;

	assert_int_equal(ndx_negotiation_register(*state, good()), NDX_OK);
	assert_int_equal(initialized, 1);
	assert_int_equal(get(*state, "acme", "rich", "0x10", &v), NDX_OK);
	assert_string_equal(ndx_variant_plugin_name(v), "acme");
	assert_string_equal(ndx_variant_name(v), "rich");
	assert_string_equal(ndx_variant_setting(v, "depth"), "0x10");
	assert_null(ndx_variant_setting(v, "width"));
	assert_int_equal(ndx_negotiation_unregister(*state, "acme"), NDX_E_DEVICE_BUSY);
	says("plugin \"acme\" is in use: 1 of its variants");
	assert_int_equal(ndx_negotiation_close(*state), NDX_E_DEVICE_BUSY);
	ndx_variant_close(v);
	assert_int_equal(created, 1);
	assert_int_equal(destroyed, 1);
	assert_int_equal(finalized, 0);
	assert_int_equal(ndx_negotiation_unregister(*state, "acme"), NDX_OK);
	assert_int_equal(finalized, 1);
	assert_int_equal(ndx_negotiation_unregister(*state, "acme"), NDX_E_NOT_FOUND);
}

static void what_is_not_there_is_suggested(void **state)
{
	struct ndx_variant *v = NULL;

	assert_int_equal(ndx_negotiation_register(*state, good()), NDX_OK);
	assert_int_equal(get(*state, "acne", "rich", NULL, &v), NDX_E_NOT_FOUND);
	says("no plugin \"acne\"; did you mean \"acme\"?");
	assert_int_equal(get(*state, "acme", "reich", NULL, &v), NDX_E_NOT_FOUND);
	says("plugin \"acme\" has no variant \"reich\"; did you mean \"rich\"?");
	assert_int_equal(get(*state, "acme", "missing", NULL, &v), NDX_E_NOT_SUPPORTED);
	says("not available: no card in slot 3");
	says("plain, rich");
	assert_int_equal(get(*state, "acme", "rich", "65", &v), NDX_E_INVALID_CONFIG);
	says("variant \"rich\" of plugin \"acme\": parameter \"depth\" is \"65\", it may be 1 to "
	     "64");
	assert_int_equal(get(*state, "acme", "plain", "1", &v), NDX_E_INVALID_CONFIG);
	says("it takes none");
	assert_int_equal(get(*state, "acme", "rich", "13", &v), NDX_E_INSUFFICIENT_RESOURCES);
	says("13 brings bad luck");
	assert_null(v);
}

/* Each odd table is refused with its reason, and the good one beside it stays usable. */
static void odd_tables_are_refused_and_harm_no_other(void **state)
{
	static const struct ndx_variant_ops no_ready = {.info = talk};
	static const struct ndx_variant_ops half = {.info = talk, .ready = talk, .create = create};
	static const struct ndx_plugin_variant lists[][2] = {
		{{.name = "v", .ops = &no_ready}, {.name = "w", .ops = &plain}},
		{{.name = "v", .ops = &half}, {.name = "w", .ops = &plain}},
		{{.name = "v", .ops = &plain}, {.name = "v", .ops = &plain}},
		{{.name = "V", .ops = &plain}, {.name = "w", .ops = &plain}},
		{{.name = "v", .ops = &plain, .transport = "bus"}, {.name = "w", .ops = &plain}},
		{{.name = "v"}, {.name = "w", .ops = &plain}},
	};
	static const char *const reasons[] = {
		"variant \"v\": required function ready is missing",
		"variant \"v\": create and destroy go together",
		"variant \"v\": there are two of that name",
		"the name of variant 0 is malformed",
		"variant \"v\": its transport is neither tcp nor one of the plugin's",
		"variant \"v\": it has no functions",
	};
	struct ndx_plugin p = *good();
	struct ndx_variant *v;

	assert_int_equal(ndx_negotiation_register(*state, good()), NDX_OK);
	p.name = "odd";
	p.count = 2;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		p.list = lists[i];
		assert_int_equal(ndx_negotiation_register(*state, &p), NDX_E_INVALID_CONFIG);
		says("plugin \"odd\" (registered) is refused: ");
		says(reasons[i]);
	}
	assert_int_equal(initialized, 1);
	p.list = NULL;
	assert_int_equal(ndx_negotiation_register(*state, &p), NDX_E_INVALID_CONFIG);
	says("it offers no variant");
	p = *good();
	p.name = "odd";
	p.abi = NDX_PLUGIN_ABI + 1;
	assert_int_equal(ndx_negotiation_register(*state, &p), NDX_E_ABI_MISMATCH);
	says("built for plugin interface 2, this library has 1");
	p = *good();
	p.name = "odd";
	p.size = 8;
	assert_int_equal(ndx_negotiation_register(*state, &p), NDX_E_ABI_MISMATCH);
	p = *good();
	assert_int_equal(ndx_negotiation_register(*state, &p), NDX_E_DEVICE_BUSY);
	says("plugin \"acme\" (registered) is refused: the name is taken by the plugin of "
	     "registered");
	assert_int_equal(get(*state, "acme", "plain", NULL, &v), NDX_OK);
	ndx_variant_close(v);
}

/* Nothing in the list refers to the plugin: its table and its texts are gone before the list. */
static void a_list_is_a_copy(void **state)
{
	struct ndx_plugin_param *own = calloc(2, sizeof(*own));
	struct ndx_plugin_variant own_variants[] = {variants[0], variants[1], variants[2]};
	struct ndx_plugin_entry *list = NULL;
	char *name = strdup("depth");
	struct ndx_plugin p = *good();
	size_t count = 99;

	assert_int_equal(ndx_negotiation_list(*state, &list, &count), NDX_OK);
	assert_int_equal(count, 0);
	ndx_negotiation_list_free(list);
	assert_non_null(own);
	assert_non_null(name);
	own[0] = params[0];
	own[0].name = name;
	own_variants[1].params = own;
	p.list = own_variants;
	assert_int_equal(ndx_negotiation_register(*state, &p), NDX_OK);
	assert_int_equal(ndx_negotiation_list(*state, &list, &count), NDX_OK);
	assert_int_equal(ndx_negotiation_unregister(*state, "acme"), NDX_OK);
	free(name);
	free(own);
	memset(own_variants, 0, sizeof(own_variants));
	assert_int_equal(count, 3);
	assert_string_equal(list[0].plugin, "acme");
	assert_string_equal(list[0].origin, "registered");
	assert_string_equal(list[0].variant, "plain");
	assert_null(list[0].params);
	assert_true(list[0].available);
	assert_null(list[0].reserved[0]);
	assert_null(list[0].reserved[3]);
	assert_string_equal(list[1].help, "has one");
	assert_non_null(list[1].params);
	assert_string_equal(list[1].params[0].name, "depth");
	assert_int_equal(list[1].params[0].most, 64);
	assert_string_equal(list[1].params[0].initial, "8");
	assert_null(list[1].params[0].choices);
	assert_null(list[1].params[1].name);
	assert_string_equal(list[2].variant, "missing");
	assert_false(list[2].available);
	ndx_negotiation_list_free(list);
	ndx_negotiation_list_free(NULL);
	assert_int_equal(ndx_negotiation_list(*state, NULL, &count), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_negotiation_list(*state, &list, NULL), NDX_E_INVALID_PARAMETER);
}

struct listed {
	unsigned ready;
	unsigned failed;
	unsigned available;
	char text[2048];
};

static void list(struct ndx_negotiation *n, struct listed *l)
{
	struct ndx_plugin_entry *entries = NULL;
	size_t count = 0;

	assert_int_equal(ndx_negotiation_list(n, &entries, &count), NDX_OK);
	for (size_t i = 0; i < count; i++) {
		const struct ndx_plugin_entry *entry = &entries[i];
		const size_t used = strlen(l->text);

		if (entry->state == NDX_PLUGIN_FAILED)
			l->failed++;
		else
			l->ready++;
		l->available += entry->available;
		(void)snprintf(l->text + used, sizeof(l->text) - used, "%s:%s:%s;", entry->plugin,
		               entry->variant != NULL ? entry->variant : "-", entry->text);
	}
	ndx_negotiation_list_free(entries);
}

static void a_directory_gives_what_is_good_and_why_the_rest_is_not(void **state)
{
	struct listed l = {0};
	size_t count = 99;
	struct ndx_variant *v;

	assert_int_equal(ndx_negotiation_discover(*state, TEST_PLUGINS "/mixed", &count), NDX_OK);
	assert_int_equal(count, 2);
	list(*state, &l);
	assert_int_equal(l.ready, 2);
	assert_int_equal(l.available, 2);
	assert_int_equal(l.failed, 4);
	assert_non_null(strstr(l.text, "good:only:;"));
	assert_non_null(strstr(l.text, "other:only:;"));
	assert_non_null(strstr(l.text, "broken:-:the card is on fire;"));
	assert_non_null(strstr(l.text, "hole:-:variant \"only\": required function ready"));
	assert_non_null(strstr(l.text, "has no symbol ndx_plugin"));
	assert_non_null(strstr(l.text, "built for plugin interface 99"));
	assert_int_equal(get(*state, "other", "only", NULL, &v), NDX_OK);
	ndx_variant_close(v);
	assert_int_equal(get(*state, "broken", "only", NULL, &v), NDX_E_NOT_FOUND);
	says("plugin \"broken\" was refused: the card is on fire");
}

static void paths_are_looked_at(void **state)
{
	assert_int_equal(ndx_negotiation_load(*state, "relative.so"), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_negotiation_load(*state, "/nowhere/ndx-plugin-x.so"),
	                 NDX_E_DEVICE_NOT_READY);
	assert_int_equal(ndx_negotiation_discover(*state, "/nowhere", NULL), NDX_E_NOT_FOUND);
	assert_int_equal(ndx_negotiation_discover(*state, "nowhere", NULL),
	                 NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_negotiation_load(*state, TEST_PLUGINS "/mixed/ndx-plugin-a-good.so"),
	                 NDX_OK);
	assert_int_equal(ndx_negotiation_load(*state, TEST_PLUGINS "/mixed/ndx-plugin-f-again.so"),
	                 NDX_E_DEVICE_BUSY);
}

static void one_that_is_not_there_is_looked_for(void **state)
{
	struct ndx_variant *v = NULL;

	assert_int_equal(setenv("NDX_PLUGIN_PATH", TEST_PLUGINS "/named", 1), 0);
	assert_int_equal(get(*state, "late", "only", NULL, &v), NDX_E_NOT_FOUND);
	/* It has only to be spelt right: nothing was loaded. */
	says("no plugin \"late\"; did you mean \"later\"? There are: later; looked in /");
	says("$NDX_PLUGIN_PATH (" TEST_PLUGINS);
	says("set NDX_PLUGIN_PATH=DIRECTORY, absolute, to where ndx-plugin-late.so is");
	assert_int_equal(get(*state, "later", "only", NULL, &v), NDX_OK);
	ndx_variant_close(v);
	/* What is loaded and has a file is one plugin. */
	assert_int_equal(get(*state, "late", "only", NULL, &v), NDX_E_NOT_FOUND);
	says("There are: later; looked in");
	assert_int_equal(unsetenv("NDX_PLUGIN_PATH"), 0);
	assert_int_equal(get(*state, "late", "only", NULL, &v), NDX_E_NOT_FOUND);
	says("$NDX_PLUGIN_PATH (not set)");
}

static void every_plugin_of_the_path_is_suggested(void **state)
{
	struct ndx_variant *v = NULL;

	assert_int_equal(setenv("NDX_PLUGIN_PATH",
	                        TEST_PLUGINS "/named:" TEST_PLUGINS "/mixed:/nowhere:" TEST_PLUGINS
	                                     "/mixed:" TEST_PLUGINS "/guests",
	                        1),
	                 0);
	assert_int_equal(get(*state, "gueste", "only", NULL, &v), NDX_E_NOT_FOUND);
	says("did you mean \"guest\"? There are: later, a-good, b-old, c-hole, d-empty, e-broken, "
	     "f-again, g-other, bad, guest, lame, ");
	/* Nothing was loaded for that; a refused one is named as such. */
	assert_int_equal(get(*state, "e-broken", "only", NULL, &v), NDX_E_NOT_FOUND);
	assert_int_equal(get(*state, "brokenn", "only", NULL, &v), NDX_E_NOT_FOUND);
	says("There are: broken (refused), later, ");
	assert_int_equal(unsetenv("NDX_PLUGIN_PATH"), 0);
}

static void a_plugin_may_run_others(void **state)
{
	struct listed l = {0};
	size_t count;
	struct ndx_variant *v;

	assert_int_equal(ndx_negotiation_discover(*state, TEST_PLUGINS "/guests", &count), NDX_OK);
	assert_int_equal(count, 1);
	list(*state, &l);
	assert_non_null(strstr(l.text, "fake-host:-:;"));
	assert_non_null(strstr(l.text, "guest:only:;"));
	assert_non_null(strstr(l.text, "bad:-:plugin \"bad\" ("));
	assert_non_null(strstr(l.text, "a bad word"));
	assert_non_null(strstr(l.text, "lame:-:it limps;"));
	assert_non_null(strstr(l.text, "?:-:its name "));
	assert_non_null(strstr(l.text, "ndx-plugin-orphan.tale needs ndx-host-tale.so"));
	assert_int_equal(ndx_negotiation_unregister(*state, "fake-host"), NDX_E_DEVICE_BUSY);
	says("plugin \"fake-host\" runs 1 others");
	assert_int_equal(get(*state, "guest", "only", NULL, &v), NDX_OK);
	assert_int_equal(ndx_negotiation_unregister(*state, "guest"), NDX_E_DEVICE_BUSY);
	ndx_variant_close(v);
	assert_int_equal(ndx_negotiation_unregister(*state, "guest"), NDX_OK);
	assert_int_equal(ndx_negotiation_unregister(*state, "fake-host"), NDX_OK);
	/* The host comes back with its next guest; both go with the framework. */
	assert_int_equal(get(*state, "guest", "only", NULL, &v), NDX_E_NOT_FOUND);
	assert_int_equal(ndx_negotiation_load(*state, TEST_PLUGINS "/guests/ndx-plugin-guest.word"),
	                 NDX_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_plugin_lives_from_register_to_unregister, set_up,
	                                        end),
		cmocka_unit_test_setup_teardown(a_list_is_a_copy, set_up, end),
		cmocka_unit_test_setup_teardown(what_is_not_there_is_suggested, set_up, end),
		cmocka_unit_test_setup_teardown(odd_tables_are_refused_and_harm_no_other, set_up,
	                                        end),
		cmocka_unit_test_setup_teardown(
			a_directory_gives_what_is_good_and_why_the_rest_is_not, set_up, end),
		cmocka_unit_test_setup_teardown(paths_are_looked_at, set_up, end),
		cmocka_unit_test_setup_teardown(one_that_is_not_there_is_looked_for, set_up, end),
		cmocka_unit_test_setup_teardown(every_plugin_of_the_path_is_suggested, set_up, end),
		cmocka_unit_test_setup_teardown(a_plugin_may_run_others, set_up, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
