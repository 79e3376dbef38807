/* SPDX-License-Identifier: BSD-2-Clause */
#include "says.h"

#include "registry.h"
#include "uri.h"

static struct seen seen;

static int listen_to_log(void **state)
{
	(void)state;
	ndx_log_set_sink(see, &seen, NDX_LOG_ERROR);
	return 0;
}

/* A table in which every operation is there. */
static void fill_table(struct ndx_provider_ops *ops)
{
	memset(ops, 0xff, sizeof(*ops));
}

static const struct ndx_spi_key keys[] = {
	{"iface", "network interface"}, {"trust", "lan|none"}, {NULL, NULL}};

static struct ndx_provider provider_with(const struct ndx_provider_ops *ops)
{
	return (struct ndx_provider){.abi = NDX_SPI_ABI,
	                             .size = sizeof(struct ndx_provider),
	                             .name = "test",
	                             .ops = ops,
	                             .ops_size = sizeof(*ops),
	                             .keys = keys,
	                             .devices = ""};
}

static void every_provider_of_this_build_passes_the_gate(void **state)
{
	const struct ndx_provider *p;
	size_t count = 0;

	(void)state;
	for (; (p = registry_get(count)) != NULL; count++) {
		assert_int_equal(registry_check(p, "this build"), NDX_OK);
		assert_ptr_equal(registry_find(p->name), p);
	}
	assert_null(registry_get(count + 1));
	assert_null(registry_get(SIZE_MAX));
	assert_null(registry_find("no-such"));
	assert_null(registry_find(""));
}

static void names_of_modules_are_names_of_providers(void **state)
{
	char name[16];
	size_t count = 0;
	size_t len;

	(void)state;
	for (; registry_module(count, &len) != NULL; count++) {
		(void)snprintf(name, sizeof(name), "%.*s", (int)len, registry_module(count, &len));
		assert_true(uri_name_valid(name));
		assert_true(registry_is_module(name));
	}
	assert_int_equal(count, 2);
	assert_null(registry_module(count + 7, &len));
	assert_false(registry_is_module("no-such"));
	assert_false(registry_is_module(""));
	assert_false(registry_is_module("verb"));
}

static void another_interface_is_refused_before_anything_else_is_read(void **state)
{
	const struct ndx_provider p = {.abi = NDX_SPI_ABI + 1};
	char versions[64];

	(void)state;
	(void)snprintf(versions, sizeof(versions),
	               "was built for interface %u, this library has %u", NDX_SPI_ABI + 1,
	               NDX_SPI_ABI);
	failed_with(&seen, registry_check(&p, "/some/file.so"), NDX_E_ABI_MISMATCH);
	says("/some/file.so");
	says(versions);
	says("build both from the same release");
}

static void a_structure_without_its_first_members_is_refused(void **state)
{
	struct ndx_provider_ops ops = {0};
	struct ndx_provider p;

	(void)state;
	fill_table(&ops);
	p = provider_with(&ops);
	p.size -= (uint32_t)sizeof(void *);
	failed_with(&seen, registry_check(&p, "here"), NDX_E_ABI_MISMATCH);
	says("set size to sizeof(struct ndx_provider)");
	p = provider_with(&ops);
	p.ops_size = offsetof(struct ndx_provider_ops, request_refuse);
	failed_with(&seen, registry_check(&p, "here"), NDX_E_ABI_MISMATCH);
	says("lacks operation request_refuse");
}

/* A provider that was built before the last operation existed. */
static void a_shorter_table_is_completed(void **state)
{
	struct {
		unsigned char table[offsetof(struct ndx_provider_ops, qp_query)];
		unsigned char behind[64];
	} old;
	struct ndx_provider_ops ops = {0};
	struct adopted own;
	struct ndx_provider p;

	(void)state;
	memset(&old, 0xff, sizeof(old));
	p = provider_with(&ops);
	p.ops = (const struct ndx_provider_ops *)(const void *)&old;
	p.ops_size = sizeof(old.table);
	assert_int_equal(registry_check(&p, "here"), NDX_OK);
	registry_adopt(&p, &own);
	assert_ptr_equal(own.provider.ops, &own.ops);
	assert_memory_equal(&own.ops, old.table, sizeof(old.table));
	assert_null(own.ops.qp_query);
	assert_null(own.ops.mr_register_dmabuf);
	assert_string_equal(own.provider.name, "test");
}

/* A provider that was built after members were appended. */
static void a_longer_provider_is_taken_without_its_tail(void **state)
{
	struct {
		struct ndx_provider_ops ops;
		void *later;
	} table;
	struct {
		struct ndx_provider provider;
		void *later;
	} new = {.later = &new};
	struct adopted own;

	(void)state;
	memset(&table, 0xff, sizeof(table));
	new.provider = provider_with(&table.ops);
	new.provider.size = sizeof(new);
	new.provider.ops_size = sizeof(table);
	assert_int_equal(registry_check(&new.provider, "here"), NDX_OK);
	registry_adopt(&new.provider, &own);
	assert_memory_equal(&own.ops, &table.ops, sizeof(own.ops));
	assert_int_equal(own.provider.size, sizeof(own.provider));
	assert_int_equal(own.provider.ops_size, sizeof(own.ops));
	assert_ptr_equal(own.provider.keys, keys);
}

static void a_provider_serves_one_library_at_a_time(void **state)
{
	static const struct ndx_spi_services former, present;
	struct ndx_spi_binding binding = {.services = &former};
	struct ndx_provider_ops ops = {0};
	struct ndx_provider p = provider_with(&ops);

	(void)state;
	assert_true(registry_bind(&p, &present)); /* the provider wants none */
	registry_unbind(&p);
	p.binding = &binding; /* `former` was unloaded */
	assert_true(registry_bind(&p, &present));
	assert_ptr_equal(binding.services, &present);
	assert_true(registry_bind(&p, &present));
	assert_false(registry_bind(&p, &former));
	registry_unbind(&p);
	assert_false(registry_bind(&p, &former));
	assert_ptr_equal(binding.services, &present);
	registry_unbind(&p);
	assert_true(registry_bind(&p, &former));
	assert_ptr_equal(binding.services, &former);
}

static void a_provider_has_a_proper_name(void **state)
{
	static const char *const wrong[] = {NULL, "", "../x", "Upper", "much-too-long-name"};
	struct ndx_provider_ops ops = {0};
	struct ndx_provider p;

	(void)state;
	fill_table(&ops);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		p = provider_with(&ops);
		p.name = wrong[i];
		failed_with(&seen, registry_check(&p, "here"), NDX_E_ABI_MISMATCH);
		says("provider in here has no name");
	}
}

static void a_provider_has_both_tables(void **state)
{
	struct ndx_provider_ops ops = {0};
	struct ndx_provider p;

	(void)state;
	fill_table(&ops);
	p = provider_with(NULL);
	failed_with(&seen, registry_check(&p, "here"), NDX_E_ABI_MISMATCH);
	says("lacks its table of operations");
	p = provider_with(&ops);
	p.keys = NULL;
	failed_with(&seen, registry_check(&p, "here"), NDX_E_ABI_MISMATCH);
	says("lacks its table of keys");
}

static void a_hole_where_something_must_be_is_named(void **state)
{
	struct ndx_provider_ops ops = {0};
	const struct ndx_provider p = provider_with(&ops);

	(void)state;
	fill_table(&ops);
	assert_int_equal(registry_check(&p, "here"), NDX_OK);
	ops.conn_finish = NULL;
	failed_with(&seen, registry_check(&p, "here"), NDX_E_ABI_MISMATCH);
	says("provider \"test\" in here lacks operation conn_finish");
}

static void what_may_be_missing_may_be_missing(void **state)
{
	struct ndx_provider_ops ops = {0};
	const struct ndx_provider p = provider_with(&ops);

	(void)state;
	fill_table(&ops);
	ops.cq_wake = NULL;
	ops.cq_resize = NULL;
	assert_int_equal(registry_check(&p, "here"), NDX_OK);
	ops.cq_affinity = NULL;
	ops.mw_create = NULL;
	ops.mw_destroy = NULL;
	assert_int_equal(registry_check(&p, "here"), NDX_OK);
	ops.srq_create = NULL;
	ops.srq_destroy = NULL;
	ops.srq_modify = NULL;
	ops.srq_notify = NULL;
	ops.srq_cancel = NULL;
	ops.srq_affinity = NULL;
	assert_int_equal(registry_check(&p, "here"), NDX_OK);
}

static void half_of_what_belongs_together_is_a_hole(void **state)
{
	struct ndx_provider_ops ops = {0};
	const struct ndx_provider p = provider_with(&ops);

	(void)state;
	fill_table(&ops);
	ops.mw_destroy = NULL;
	failed_with(&seen, registry_check(&p, "here"), NDX_E_ABI_MISMATCH);
	says("mw_destroy");
	fill_table(&ops);
	ops.srq_notify = NULL;
	failed_with(&seen, registry_check(&p, "here"), NDX_E_ABI_MISMATCH);
	says("srq_notify");
}

static void every_single_must_is_looked_for(void **state)
{
	struct ndx_provider_ops ops = {0};
	const struct ndx_provider p = provider_with(&ops);
	const size_t size = sizeof(ops.list);
	unsigned refused = 0;

	(void)state;
	for (size_t at = 0; at < sizeof(ops); at += size) {
		fill_table(&ops);
		memset((char *)&ops + at, 0, size);
		if (registry_check(&p, "here") != NDX_OK)
			refused++;
	}
	/* all but cq_wake, cq_resize, the two that know an affinity, mr_wait_idle,
	 * request_is_stale, the three that count, qp_query, mr_register_dmabuf and conn_prove */
	assert_int_equal(refused, sizeof(ops) / size - 12);
	seen.errors = 0;
}

static void an_unknown_key_gets_the_nearest_and_all_with_what_they_take(void **state)
{
	struct ndx_provider_ops ops = {0};
	const struct ndx_provider p = provider_with(&ops);

	(void)state;
	fill_table(&ops);
	assert_int_equal(registry_check_key(&p, "trust", "URI"), NDX_OK);
	failed_with(&seen, registry_check_key(&p, "ifcae", "/etc/x.ini:4"), NDX_E_INVALID_CONFIG);
	says("/etc/x.ini:4: provider \"test\" has no key \"ifcae\"; did you mean \"iface\"? "
	     "There are: iface (network interface), trust (lan|none), "
	     "thread (name of the control thread), cpus (its processors: 2-3,8)");
}

static void a_provider_without_keys_has_those_of_every_adapter(void **state)
{
	static const struct ndx_spi_key none[] = {{NULL, NULL}};
	struct ndx_provider_ops ops = {0};
	struct ndx_provider p = provider_with(&ops);

	(void)state;
	fill_table(&ops);
	p.keys = none;
	failed_with(&seen, registry_check_key(&p, "x", "URI"), NDX_E_INVALID_CONFIG);
	says("here are: thread (name of the control thread), cpus (its processors: 2-3,8)");
	assert_int_equal(registry_check_key(&p, "thread", "URI"), NDX_OK);
	assert_int_equal(registry_check_key(&p, "cpus", "URI"), NDX_OK);
}

static void a_provider_may_check_its_keys_itself(void **state)
{
	static const struct ndx_spi_key any[] = {{NDX_SPI_KEY_ANY, "whatever"}, {NULL, NULL}};
	struct ndx_provider_ops ops = {0};
	struct ndx_provider p = provider_with(&ops);

	(void)state;
	fill_table(&ops);
	p.keys = any;
	assert_int_equal(registry_check_key(&p, "x", "URI"), NDX_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_provider_of_this_build_passes_the_gate),
		cmocka_unit_test(names_of_modules_are_names_of_providers),
		cmocka_unit_test(a_structure_without_its_first_members_is_refused),
		cmocka_unit_test(a_shorter_table_is_completed),
		cmocka_unit_test(a_longer_provider_is_taken_without_its_tail),
		cmocka_unit_test(a_provider_serves_one_library_at_a_time),
		cmocka_unit_test(another_interface_is_refused_before_anything_else_is_read),
		cmocka_unit_test(a_provider_has_a_proper_name),
		cmocka_unit_test(a_provider_has_both_tables),
		cmocka_unit_test(a_hole_where_something_must_be_is_named),
		cmocka_unit_test(what_may_be_missing_may_be_missing),
		cmocka_unit_test(half_of_what_belongs_together_is_a_hole),
		cmocka_unit_test(every_single_must_is_looked_for),
		cmocka_unit_test(an_unknown_key_gets_the_nearest_and_all_with_what_they_take),
		cmocka_unit_test(a_provider_without_keys_has_those_of_every_adapter),
		cmocka_unit_test(a_provider_may_check_its_keys_itself),
	};

	return cmocka_run_group_tests(tests, listen_to_log, NULL);
}
