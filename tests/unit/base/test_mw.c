/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ndx/spi/mw.h>

/* A request ends; whether the window is bound now. True: it was the last. */
static bool end_request(struct ndxp_mw *mw, bool bound)
{
	mw->bound = bound;
	return ndxp_mw_ended(mw);
}

static void the_request_posted_last_decides(void **state)
{
	struct ndxp_mw mw = {0};

	(void)state;
	ndxp_mw_posted(&mw, NDX_REQUEST_BIND);
	assert_true(mw.planned);
	ndxp_mw_posted(&mw, NDX_REQUEST_INVALIDATE);
	assert_false(mw.planned);
	assert_false(end_request(&mw, true));
	assert_false(mw.planned); /* the invalidate comes yet */
	assert_true(end_request(&mw, false));
	assert_false(mw.planned);
}

static void a_bind_behind_an_invalidate_is_planned(void **state)
{
	struct ndxp_mw mw = {.bound = true, .planned = true};

	(void)state;
	ndxp_mw_posted(&mw, NDX_REQUEST_INVALIDATE);
	ndxp_mw_posted(&mw, NDX_REQUEST_BIND);
	ndxp_mw_unbound(&mw);
	assert_true(mw.planned);
	assert_false(ndxp_mw_ended(&mw));
	assert_true(mw.planned);
	assert_true(end_request(&mw, true));
	assert_true(mw.planned);
}

static void a_failed_bind_is_not_planned_any_more(void **state)
{
	struct ndxp_mw mw = {0};

	(void)state;
	ndxp_mw_posted(&mw, NDX_REQUEST_BIND);
	assert_true(end_request(&mw, false));
	assert_false(mw.planned);
}

static void an_invalidate_that_did_not_run_changes_nothing(void **state)
{
	struct ndxp_mw mw = {.bound = true, .planned = true};

	(void)state;
	ndxp_mw_posted(&mw, NDX_REQUEST_INVALIDATE);
	assert_false(mw.planned);
	assert_true(ndxp_mw_ended(&mw));
	assert_true(mw.planned);
	ndxp_mw_unbound(&mw);
	assert_false(mw.bound);
	assert_false(mw.planned);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_request_posted_last_decides),
		cmocka_unit_test(a_bind_behind_an_invalidate_is_planned),
		cmocka_unit_test(a_failed_bind_is_not_planned_any_more),
		cmocka_unit_test(an_invalidate_that_did_not_run_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
