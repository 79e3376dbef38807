/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ndx/spi/hash.h>

/* The values that the authors of FNV publish. */
static void texts_have_the_published_hashes(void **state)
{
	(void)state;
	assert_true(ndxp_hash_text("") == UINT64_C(0xcbf29ce484222325));
	assert_true(ndxp_hash_text("a") == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(ndxp_hash_text("foobar") == UINT64_C(0x85944171f73967e8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_have_the_published_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
