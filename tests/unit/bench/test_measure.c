/* SPDX-License-Identifier: BSD-2-Clause */
/* Of what blocks a measurement consists: how many messages each has, and how many warm up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lane.h"
#include "measure.h"
#include "traffic.h"

/* ---- a traffic in which a message takes always as long ---- */

#define MESSAGE_NS 15625u /* 1024 of them: 16 ms */
#define MOST_BLOCKS 64u

struct traffic {
	struct traffic_block blocks[MOST_BLOCKS]; /* that were asked for */
	unsigned count;
};

uint64_t traffic_run(struct traffic *traffic, const struct traffic_block *block)
{
	assert_true(traffic->count < MOST_BLOCKS);
	traffic->blocks[traffic->count++] = *block;
	return block->count * MESSAGE_NS;
}

uint64_t traffic_now_ns(void)
{
	return 0;
}

static void close_lane(struct lane *lane)
{
	(void)lane;
}

static struct lane only = {.name = "only", .close = close_lane};

struct lane *lane_open_ndx(const struct lane_attr *attr)
{
	(void)attr;
	return &only;
}

/* There is nothing to compare with. */

struct lane *lane_open_verbs(const struct lane_attr *attr, const struct lane_below *below)
{
	(void)attr;
	(void)below;
	return NULL;
}

struct lane *lane_open_raw(const struct lane_attr *attr, const char *device,
                           const struct sockaddr *address, socklen_t len, bool same)
{
	(void)attr;
	(void)device;
	(void)address;
	(void)len;
	(void)same;
	return NULL;
}

struct lane *lane_open_tcp(const struct lane_attr *attr, const struct sockaddr *address,
                           socklen_t len)
{
	(void)attr;
	(void)address;
	(void)len;
	return NULL;
}

struct lane *lane_open_ucx(const struct lane_attr *attr, const struct sockaddr *address)
{
	(void)attr;
	(void)address;
	return NULL;
}

_Noreturn void lane_die(const char *what, const char *why)
{
	print_error("%s: %s\n", what, why);
	abort();
}

/* ---- tests ---- */

static void blocks_warm_up_as_long_as_asked(void **state)
{
	static const struct {
		unsigned ms;
		uint64_t messages;
	} asked[] = {{0, 8}, {5, 8 + 320}, {16, 8 + 1024}, {10000, 8 + 640000}};

	(void)state;
	for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		const struct measure_plan plan = {.uris = {"loop", "loop"},
		                                  .blocks = 6,
		                                  .block_ms = 16,
		                                  .warm_up_ms = asked[i].ms,
		                                  .tries = 1};
		struct measure_row row = {.test = TRAFFIC_STREAM, .size = 8, .depth = 1};
		struct traffic traffic = {.count = 0};

		measure_run(&plan, &traffic, &row);
		assert_true(traffic.count > plan.blocks); /* those before are for finding `count` */
		for (unsigned k = traffic.count - plan.blocks; k < traffic.count; k++) {
			assert_int_equal(traffic.blocks[k].count, 1024);
			assert_int_equal(traffic.blocks[k].warm, asked[i].messages);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_warm_up_as_long_as_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
