/* SPDX-License-Identifier: BSD-2-Clause */
/* Causes of failures on their way from the inner provider to the core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fault.h"

static struct {
	unsigned calls;
	uint32_t bits;
	int32_t native;
	const char *cause;
} core;

static void see_report(struct ndx_spi_conn *conn, uint32_t bits, int32_t native, const char *cause)
{
	(void)conn;
	core.calls++;
	core.bits = bits;
	core.native = native;
	core.cause = cause;
}

/* A provider reports the cause first, and the failure that it belongs to by `connected`. The core
 * needs the cause by then, so it is not delayed. */
static void a_cause_without_bits_reaches_the_core(void **state)
{
	static const struct ndx_host host = {.report = see_report};
	struct fault_adapter fa = {.core = &host, .options = {.event_delay_ms = 1000}};
	struct ndx_spi_adapter native = {.host = &fa.host};
	struct ndx_spi_conn conn = {.native = &native};
	struct fault_conn *fc;

	(void)state;
	ndxp_list_init(&fa.conns);
	fault_events_init(&fa);
	fc = fault_events_new(&fa);
	assert_non_null(fc);
	fault_events_name(&fa, fc, &conn);
	fa.host.report(&conn, 0, 111, "no listener there");
	fault_events_drop(&fa, &conn);
	assert_int_equal(core.calls, 1);
	assert_int_equal(core.bits, 0);
	assert_int_equal(core.native, 111);
	assert_string_equal(core.cause, "no listener there");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cause_without_bits_reaches_the_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
