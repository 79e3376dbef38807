/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole conversations: over every wire, in any order, with loss, doubled, cut. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synth.h"
#include "synth_packet.h"

/* Everything comes out as it was said, and nothing else. */
static void assert_all(struct synth *s, const struct ndx_reassembly_attr *attr, const char *what)
{
	struct synth_result result;

	synth_run(s, attr, &result);
	if (result.calls.count != s->calls.count || result.replies.count != s->replies.count ||
	    !synth_subset(&result.calls, &s->calls) || !synth_subset(&result.replies, &s->replies))
		fail_msg("%s: calls %zu of %zu, replies %zu of %zu, %llu holes", what,
		         result.calls.count, s->calls.count, result.replies.count, s->replies.count,
		         (unsigned long long)result.stats.holes);
	assert_int_equal(result.stats.holes, 0);
	assert_int_equal(result.stats.segments, 0);
	assert_int_equal(result.stats.errors, s->errors);
	assert_int_equal(result.stats.calls_unanswered, s->unanswered);
	synth_result_free(&result);
}

/* What comes out is right; if `rest`, all of it that nothing is missing of. Returns how many. */
static size_t assert_right(struct synth *s, const struct ndx_reassembly_attr *attr, bool rest,
                           struct ndx_reassembly_stats *stats)
{
	struct synth_result result;
	size_t count;

	synth_run(s, attr, &result);
	if (!synth_subset(&result.calls, &s->calls) || !synth_subset(&result.replies, &s->replies))
		fail_msg("wire %d, seed %u: a message that was never sent", s->options.wire,
		         s->options.seed);
	if (rest && (!synth_unharmed(s, &s->calls, &result.calls) ||
	             !synth_unharmed(s, &s->replies, &result.replies)))
		fail_msg("wire %d, seed %u: a message is not there of which nothing is missing",
		         s->options.wire, s->options.seed);
	count = result.calls.count + result.replies.count;
	if (stats != NULL)
		*stats = result.stats;
	synth_result_free(&result);
	return count;
}

static void every_wire_and_link_gives_all_messages(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		for (int link = SYNTH_ETHERNET; link < SYNTH_LINKS; link++) {
			struct synth_options o;
			struct synth *s;

			if (link == SYNTH_RAW && wire == SYNTH_ROCE1)
				continue;
			synth_defaults(&o);
			o.wire = (enum synth_wire)wire;
			o.link = (enum synth_link)link;
			s = synth_create(&o);
			assert_all(s, NULL, "wire and link");
			synth_free(s);
		}
	}
}

static void every_path_mtu_gives_all_messages(void **state)
{
	static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

	(void)state;
	for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		struct synth_options o;
		struct synth *s;

		synth_defaults(&o);
		o.mtu = mtus[i];
		o.chunk = 30000;
		s = synth_create(&o);
		assert_all(s, NULL, "path MTU");
		synth_free(s);
	}
}

static void sequence_numbers_may_wrap(void **state)
{
	(void)state;
	for (uint32_t psn = 0xffff00; psn < 0x1000000; psn += 16) {
		struct synth_options o;
		struct synth *s;

		synth_defaults(&o);
		o.psn = psn;
		o.calls = 12;
		s = synth_create(&o);
		assert_all(s, NULL, "PSN wrap");
		synth_free(s);
	}
	for (uint32_t i = 0; i < 8; i++) {
		struct synth_options o;
		struct synth *s;

		synth_defaults(&o);
		o.wire = SYNTH_IWARP;
		o.psn = 0xffffff00u + i * 31;
		s = synth_create(&o);
		assert_all(s, NULL, "TCP wrap");
		synth_free(s);
	}
}

static void operations_may_begin_again_in_the_middle(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed < 10; seed++) {
		struct synth_options o;
		struct synth *s;

		synth_defaults(&o);
		o.seed = seed;
		o.retry = true;
		o.mtu = 512;
		s = synth_create(&o);
		assert_all(s, NULL, "retries");
		synth_shuffle(s, 8, seed);
		assert_all(s, NULL, "retries, shuffled");
		synth_free(s);
	}
}

static void two_sites_with_equal_keys_are_kept_apart(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		struct synth_options o;
		struct synth *s;

		synth_defaults(&o);
		o.wire = (enum synth_wire)wire;
		o.connections = 3;
		o.equal_keys = true;
		s = synth_create(&o);
		assert_all(s, NULL, "equal keys");
		synth_shuffle(s, 32, 7);
		assert_all(s, NULL, "equal keys, shuffled");
		synth_free(s);
	}
}

static void connections_of_the_same_hosts_are_kept_apart(void **state)
{
	(void)state;
	for (int manager = 0; manager < 2; manager++) {
		struct synth_options o;
		struct synth *s;

		synth_defaults(&o);
		o.connections = 8;
		o.same_hosts = true;
		o.manager = manager != 0;
		s = synth_create(&o);
		assert_all(s, NULL, "same hosts");
		synth_free(s);
	}
}

static void a_handle_may_be_used_for_one_call_after_the_other(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire += SYNTH_IWARP) {
		struct synth_options o;
		struct synth *s;

		synth_defaults(&o);
		o.wire = (enum synth_wire)wire;
		o.reuse = true;
		s = synth_create(&o);
		assert_all(s, NULL, "one handle");
		synth_free(s);
	}
}

static void any_order_gives_the_same_messages(void **state)
{
	static const uint32_t windows[] = {2, 5, 16, 50, 128, 400};

	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
			struct synth_options o;
			struct synth *s;
			char what[64];

			if (wire >= SYNTH_IWARP && windows[i] > 128)
				continue; /* no TCP is that far out of order */
			synth_defaults(&o);
			o.wire = (enum synth_wire)wire;
			o.seed = 3 + (uint32_t)i;
			o.connections = 2;
			s = synth_create(&o);
			synth_shuffle(s, windows[i], 99 + (uint32_t)i);
			snprintf(what, sizeof(what), "wire %d, window %u", wire, windows[i]);
			assert_all(s, NULL, what);
			synth_free(s);
		}
	}
}

static void a_capture_that_begins_late_gives_what_it_has(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		for (uint32_t skip = 1; skip < 500; skip += 1 + skip / 16) {
			struct synth_options o;
			struct synth *s;

			synth_defaults(&o);
			o.wire = (enum synth_wire)wire;
			o.seed = skip;
			o.connections = 1 + skip % 2;
			o.same_hosts = skip % 3 == 0;
			o.pipelined = skip % 5 == 0;
			o.markers = skip % 2 == 0;
			o.crc = skip % 4 == 0;
			s = synth_create(&o);
			synth_skip(s, skip);
			(void)assert_right(s, NULL, true, NULL);
			synth_free(s);
		}
	}
}

/* Calls under way together, answered in any order, over connections of every kind. */
static void many_calls_at_a_time_are_kept_apart(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		for (uint32_t seed = 1; seed < 8; seed++) {
			struct synth_options o;
			struct synth *s;

			synth_defaults(&o);
			o.wire = (enum synth_wire)wire;
			o.seed = seed;
			o.pipelined = true;
			o.connections = 2;
			o.same_hosts = seed % 2 == 0;
			o.xrc = seed % 3 == 0;
			o.global = seed % 3 == 1;
			o.retry = seed % 4 == 0;
			s = synth_create(&o);
			assert_all(s, NULL, "many calls");
			synth_double(s, 500, seed);
			synth_shuffle(s, 20, seed);
			assert_all(s, NULL, "many calls, shuffled");
			synth_drop(s, 50, seed);
			(void)assert_right(s, NULL, true, NULL);
			synth_free(s);
		}
	}
}

/* One capture behind the other: the same hosts, queue pairs and ports, begun anew. */
static void what_is_connected_again_is_a_new_connection(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		for (uint32_t i = 0; i < 6; i++) {
			struct synth_options o;
			struct synth *s;

			synth_defaults(&o);
			o.wire = (enum synth_wire)wire;
			o.again = 1 + i; /* so many packets before where it began the first time */
			o.calls = 10;
			s = synth_create(&o);
			assert_all(s, NULL, "connected again");
			synth_free(s);
		}
	}
}

/* A server aborted when it saw a request again (chimera-nas/chimera#1368): here all come again. */
static void every_packet_again_changes_nothing(void **state)
{
	static const uint32_t behind[] = {0, 1, 3, 16};

	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		for (size_t i = 0; i < 2 * sizeof(behind) / sizeof(behind[0]); i++) {
			struct synth_options o;
			struct synth *s;
			char what[64];

			synth_defaults(&o);
			o.wire = (enum synth_wire)wire;
			o.seed = 11 + (uint32_t)i;
			o.connections = 2;
			o.pipelined = i % 2 == 1;
			o.manager = i % 3 == 0;
			o.psn = 0xfffff0; /* also where the numbers wrap */
			s = synth_create(&o);
			synth_echo(s, behind[i / 2]);
			snprintf(what, sizeof(what), "wire %d, again behind %u", wire,
			         behind[i / 2]);
			assert_all(s, NULL, what);
			synth_shuffle(s, 20, 9);
			assert_all(s, NULL, what);
			synth_free(s);
		}
	}
}

static void doubled_packets_change_nothing(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		struct synth_options o;
		struct synth *s;

		synth_defaults(&o);
		o.wire = (enum synth_wire)wire;
		o.connections = 2;
		s = synth_create(&o);
		synth_double(s, 2000, 5);
		assert_all(s, NULL, "doubled");
		synth_shuffle(s, 20, 9);
		assert_all(s, NULL, "doubled and shuffled");
		synth_free(s);
	}
}

static void lost_packets_are_holes_and_the_rest_is_right(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		for (uint32_t seed = 1; seed < 12; seed++) {
			struct ndx_reassembly_stats stats;
			struct synth_options o;
			struct synth *s;
			size_t count;

			synth_defaults(&o);
			o.wire = (enum synth_wire)wire;
			o.seed = seed;
			o.pipelined = seed % 2 == 0;
			o.markers = seed % 3 == 0;
			o.calls = 80;
			s = synth_create(&o);
			synth_drop(s, 100, seed * 7919);
			count = assert_right(s, NULL, true, &stats);
			if (wire < SYNTH_IWARP) {
				assert_true(count > o.calls);
				assert_true(stats.holes + stats.orphans > 0);
			} else {
				assert_true(count > o.calls / 2);
				assert_true(stats.holes > 0);
			}
			assert_int_equal(stats.segments, 0);
			synth_free(s);
		}
	}
}

static void a_snapshot_length_costs_only_what_it_cuts(void **state)
{
	static const uint32_t lengths[] = {60, 96, 128, 200, 400, 1000};

	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct synth_options o;
			struct synth *s;

			synth_defaults(&o);
			o.wire = (enum synth_wire)wire;
			s = synth_create(&o);
			synth_cut(s, lengths[i]);
			(void)assert_right(s, NULL, true, NULL);
			synth_free(s);
		}
	}
}

static void a_packet_may_be_cut_anywhere(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		struct synth_options o;
		struct synth *s;

		synth_defaults(&o);
		o.wire = (enum synth_wire)wire;
		o.calls = 7;
		o.chunk = 600;
		o.mtu = 256;
		s = synth_create(&o);
		for (size_t i = 0; i < s->count; i++) {
			synth_harm(s, i);
			for (uint32_t cut = 0; cut < s->packets[i].original; cut += 1 + cut / 128) {
				s->packets[i].captured = cut;
				(void)assert_right(s, NULL, true, NULL);
			}
			s->packets[i].captured = s->packets[i].original;
			synth_heal(s);
		}
		synth_free(s);
	}
}

static void iwarp_frames_may_lie_anywhere_with_markers_and_crcs(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct ndx_reassembly_attr attr;
		struct synth_options o;
		struct synth *s;
		char what[64];

		synth_defaults(&o);
		ndx_reassembly_attr_init(&attr);
		attr.check_crc = true;
		o.wire = SYNTH_IWARP;
		o.crc = (i & 1) != 0;
		o.markers = (i & 2) != 0;
		o.unaligned = (i & 4) != 0;
		o.mtu = 1460;
		o.seed = i + 1;
		s = synth_create(&o);
		snprintf(what, sizeof(what), "crc %d markers %d unaligned %d", o.crc, o.markers,
		         o.unaligned);
		assert_all(s, &attr, what);
		synth_shuffle(s, 24, i + 3);
		assert_all(s, &attr, what);
		synth_free(s);
	}
}

static void checks_at_the_end_of_packets_are_verified(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		struct ndx_reassembly_stats stats;
		struct ndx_reassembly_attr attr;
		struct synth_options o;
		struct synth *s;
		struct synth_packet *p;

		ndx_reassembly_attr_init(&attr);
		attr.check_crc = true;
		synth_defaults(&o);
		o.wire = (enum synth_wire)wire;
		o.crc = true;
		s = synth_create(&o);
		assert_all(s, &attr, "checks");
		(void)assert_right(s, &attr, true, &stats);
		assert_int_equal(stats.bad_crc, 0);
		assert_true(stats.crc_checked > s->count / 2);
		p = &s->packets[s->count / 2];
		p->bytes[p->captured - 12] ^= 1;
		synth_harm(s, s->count / 2);
		(void)assert_right(s, &attr, true, &stats);
		assert_int_equal(stats.bad_crc, 1);
		synth_free(s);
	}
}

static void little_memory_is_never_exceeded(void **state)
{
	(void)state;
	for (int wire = SYNTH_ROCE2_IPV4; wire < SYNTH_WIRES; wire++) {
		struct ndx_reassembly_attr attr;
		struct ndx_reassembly_stats stats;
		struct synth_options o;
		struct synth *s;

		ndx_reassembly_attr_init(&attr);
		attr.max_bytes = 1 << 20;
		attr.max_segments = 40;
		attr.max_connections = 4;
		synth_defaults(&o);
		o.wire = (enum synth_wire)wire;
		o.connections = 12;
		o.chunk = 60000;
		s = synth_create(&o);
		synth_drop(s, 300, 11);
		(void)assert_right(s, &attr, false, &stats);
		assert_true(stats.bytes_peak <= attr.max_bytes);
		assert_true(stats.evictions > 0);
		synth_free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_wire_and_link_gives_all_messages),
		cmocka_unit_test(every_path_mtu_gives_all_messages),
		cmocka_unit_test(sequence_numbers_may_wrap),
		cmocka_unit_test(operations_may_begin_again_in_the_middle),
		cmocka_unit_test(two_sites_with_equal_keys_are_kept_apart),
		cmocka_unit_test(connections_of_the_same_hosts_are_kept_apart),
		cmocka_unit_test(a_handle_may_be_used_for_one_call_after_the_other),
		cmocka_unit_test(any_order_gives_the_same_messages),
		cmocka_unit_test(a_capture_that_begins_late_gives_what_it_has),
		cmocka_unit_test(many_calls_at_a_time_are_kept_apart),
		cmocka_unit_test(what_is_connected_again_is_a_new_connection),
		cmocka_unit_test(every_packet_again_changes_nothing),
		cmocka_unit_test(doubled_packets_change_nothing),
		cmocka_unit_test(lost_packets_are_holes_and_the_rest_is_right),
		cmocka_unit_test(a_snapshot_length_costs_only_what_it_cuts),
		cmocka_unit_test(a_packet_may_be_cut_anywhere),
		cmocka_unit_test(iwarp_frames_may_lie_anywhere_with_markers_and_crcs),
		cmocka_unit_test(checks_at_the_end_of_packets_are_verified),
		cmocka_unit_test(little_memory_is_never_exceeded),
	};

	return cmocka_run_group_tests_name("reassembly", tests, NULL, NULL);
}
