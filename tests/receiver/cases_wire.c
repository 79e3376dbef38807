/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire between two devices is cut, as program `wire` of tests/vm can; and healed. */
#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

#define FRAMES 10u
#define CUTS 2u

static bool wire(const char *verb)
{
	char name[] = "wire";
	char what[8];
	char *argv[] = {name, what, NULL};
	int status = -1;
	pid_t pid;

	(void)snprintf(what, sizeof(what), "%s", verb);
	if (posix_spawnp(&pid, name, NULL, NULL, argv, environ) != 0)
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int teardown(void **state)
{
	(void)wire("heal");
	return rig_teardown(state);
}

static void some_frames_come(struct rig *r, struct sink *sink, uint32_t first)
{
	for (uint32_t i = first; i < first + FRAMES; i++)
		assert_int_equal(rig_send(r, i, SLOT_SIZE), NDX_OK);
	assert_int_equal(ndx_sender_flush(r->sender, WAIT_MS), NDX_OK);
	sink_await(sink, first + FRAMES);
	assert_int_equal(__atomic_load_n(&sink->wrong, __ATOMIC_ACQUIRE), 0);
}

/* Twice, and frames that a consumer holds stay. */
static void cut_and_begin_anew(struct rig *r, enum ndx_receiver_end expected)
{
	struct sink sink = {.keep = 3};

	if (strcmp(rig_uris[0], rig_uris[1]) == 0 || !wire("heal"))
		skip();
	sink_attach(r, 0, &sink);
	assert_int_equal(ndx_receiver_create(&r->attr, &r->receiver), NDX_OK);
	assert_int_equal(ndx_sender_create(&r->sender_attr, &r->sender), NDX_OK);
	if (!rig_join_by_numbers(r))
		skip();
	for (uint32_t i = 0; i < CUTS; i++) {
		some_frames_come(r, &sink, FRAMES * i);
		assert_true(wire("cut"));
		rig_await(r, NDX_RECEIVER_FAILED);
		/* The device may give up on the probe before the receiver does. */
		if (rig_cause(r).end != NDX_RECEIVER_END_LOST)
			assert_int_equal(rig_cause(r).end, expected);
		assert_true(wire("heal"));
		assert_int_equal(ndx_receiver_reset(r->receiver), NDX_OK);
		assert_int_equal(ndx_sender_reset(r->sender), NDX_OK);
		assert_true(rig_join_by_numbers(r));
	}
	some_frames_come(r, &sink, FRAMES * CUTS);
	assert_int_equal(rig_stats(r).lost, 0);
	sink_release(&sink);
}

static void the_probe_notices_a_cut_and_it_begins_anew(void **state)
{
	struct rig *r = *state;

	r->attr.probe_ms = 100;
	r->attr.probe_timeout_ms = 500;
	cut_and_begin_anew(r, NDX_RECEIVER_END_PROBE);
}

static void silence_of_a_cut_ends_it_and_it_begins_anew(void **state)
{
	struct rig *r = *state;

	r->attr.idle_timeout_ms = 1000;
	cut_and_begin_anew(r, NDX_RECEIVER_END_IDLE);
}

#define WIRE_CASE(f) cmocka_unit_test_setup_teardown(f, rig_setup, teardown)

const struct CMUnitTest wire_cases[] = {
	WIRE_CASE(the_probe_notices_a_cut_and_it_begins_anew),
	WIRE_CASE(silence_of_a_cut_ends_it_and_it_begins_anew),
};
const size_t wire_case_count = sizeof(wire_cases) / sizeof(wire_cases[0]);
