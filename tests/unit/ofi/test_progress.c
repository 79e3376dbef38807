/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A consumer that has just stopped polling. The control thread takes the queue over at some moment;
 * a receive that the consumer posts at that moment must be served.
 */
#include "pair.h"

#include <poll.h>
#include <stdlib.h>

#define ROUNDS 500

static unsigned rounds(void)
{
	const char *text = getenv("PAIR_ROUNDS"); /* more rounds find rare faults */

	return text != NULL ? (unsigned)strtoul(text, NULL, 10) : ROUNDS;
}

/* Poll without waiting: a wait would wake the control thread. */
static void poll_until(struct pair_side *side)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_result result = {.status = NDX_PENDING};
	size_t got = 0;

	while (got == 0 && pair_now() < end)
		got = ndx_cq_get_results(side->cq, &result, 1);
	assert_int_equal(got, 1);
	assert_int_equal(result.status, NDX_OK);
}

/* b polls, pauses, posts a receive and makes no further call. */
static void a_receive_is_reported_when_its_owner_is_silent(void **state)
{
	struct pair *p = *state;
	const unsigned count = rounds();

	p->attr.receive_depth = 4;
	pair_make(p);
	pair_connect(p);
	for (unsigned i = 0; i < count; i++) {
		pair_receive(&p->b, i, 0, 64);
		pair_send(&p->a, i, 0, 64, 0);
		poll_until(&p->b);
		pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
		if (i % 4 != 0)
			(void)poll(NULL, 0, (int)(i % 4));
		pair_receive(&p->b, i, 0, 64);
		pair_send(&p->a, i, 0, 64, 0);
		pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
		poll_until(&p->b);
	}
	pair_disconnect(p);
	pair_drop(p);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_receive_is_reported_when_its_owner_is_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
