/* SPDX-License-Identifier: BSD-2-Clause */
#include "awaits.h"

#include <poll.h>

#include <ndx/spi/system.h>
#include "says.h"

int ending;

/* Whether the flag is (or is not) the value in time. */
static bool becomes(const int *flag, int value, bool is)
{
	const uint64_t end = ndxp_deadline(AWAIT_MS);

	while (ndxp_now_ns() < end) {
		if ((__atomic_load_n(flag, __ATOMIC_SEQ_CST) == value) == is)
			return true;
		(void)poll(NULL, 0, 1);
	}
	return false;
}

void await(const int *flag)
{
	if (!becomes(flag, 0, false))
		fail_msg("what is waited for has not come after %d ms", AWAIT_MS);
}

void await_value(const int *flag, int value)
{
	if (!becomes(flag, value, true))
		fail_msg("a flag is not %d after %d ms", value, AWAIT_MS);
}

void stay_while(const int *flag)
{
	if (becomes(flag, 0, true))
		return;
	(void)fprintf(stderr, "no test has let a held function go in %d ms\n", AWAIT_MS);
	abort();
}

void stay_if_wanted(int *flag)
{
	int wanted = 1; /* never from 0, which the test may set at any time */

	if (__atomic_compare_exchange_n(flag, &wanted, 2, false, __ATOMIC_SEQ_CST,
	                                __ATOMIC_SEQ_CST) ||
	    wanted == 2)
		stay_while(flag);
}

enum ndx_status begin_session(void *instance, const struct ndx_exchange *x, void **session,
                              struct ndx_exchange_reply *reply)
{
	(void)x;
	(void)reply;
	*session = instance;
	return NDX_OK;
}

void end_session(void *session)
{
	int wanted = 1;

	(void)session;
	if (__atomic_compare_exchange_n(&ending, &wanted, 2, false, __ATOMIC_SEQ_CST,
	                                __ATOMIC_SEQ_CST))
		stay_while(&ending);
}
