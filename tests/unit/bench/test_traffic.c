/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What moves in a block, and which part of it is measured. The lane only counts, and the clock, in
 * place of the C library's, tells how many messages have moved: a message takes a nanosecond.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "lane.h"
#include "traffic.h"

struct counter {
	struct end end;
	const uint64_t *peer;
	uint64_t posted; /* atomic */
};

static struct counter counters[2];

int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
	(void)id;
	now->tv_sec = 0;
	now->tv_nsec = (long)(__atomic_load_n(&counters[0].posted, __ATOMIC_SEQ_CST) +
	                      __atomic_load_n(&counters[1].posted, __ATOMIC_SEQ_CST));
	return 0;
}

_Noreturn void lane_die(const char *what, const char *why)
{
	print_error("%s: %s\n", what, why);
	abort();
}

static void receive(struct end *end)
{
	(void)end;
}

static bool send_one(struct end *end)
{
	struct counter *c = (struct counter *)end;

	end->sent++;
	__atomic_add_fetch(&c->posted, 1, __ATOMIC_SEQ_CST);
	return true;
}

static void count_received(struct end *end)
{
	const struct counter *c = (const struct counter *)end;
	const uint64_t before = end->received;

	end->received = __atomic_load_n(c->peer, __ATOMIC_SEQ_CST);
	if (end->received == before)
		(void)sched_yield();
}

static const struct end_ops ops = {
	.receive = receive, .send = send_one, .poll = count_received, .wait = count_received};

static void only_what_follows_the_warm_up_is_measured(void **state)
{
	const struct lane lane = {.name = "counts", .ends = {&counters[0].end, &counters[1].end}};

	(void)state;
	for (unsigned threads = 1; threads <= 2; threads++) {
		struct traffic *traffic = traffic_start(threads);

		for (int test = 0; test < TRAFFIC_TESTS; test++) {
			const bool stream = test == TRAFFIC_STREAM;
			/* With two threads a stream ends with an answer, both times. */
			const uint64_t answers = stream ? threads - 1 : 0;
			struct traffic_block block = {.lane = &lane,
			                              .test = (enum traffic_test)test,
			                              .wait = threads == 2,
			                              .count = 10,
			                              .warm = 7};

			for (unsigned i = 0; i < 2; i++)
				counters[i] = (struct counter){.end = {.ops = &ops},
				                               .peer = &counters[1 - i].posted};
			assert_int_equal(traffic_run(traffic, &block), stream ? 10 + answers : 20);
			assert_int_equal(counters[0].posted, 17);
			assert_int_equal(counters[1].posted, stream ? 2 * answers : 17);
		}
		traffic_stop(traffic);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_follows_the_warm_up_is_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
