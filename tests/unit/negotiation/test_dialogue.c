/* SPDX-License-Identifier: BSD-2-Clause */
/* Dialogues through all stages. */
#include "dialogue_rig.h"

#include <ndx/spi/system.h>

static void all_stages_in_any_order_of_events(void **state)
{
	for (unsigned seed = 0; seed < 200; seed++) {
		struct rig *r = rig_again(state);

		rig_scripts[0].rounds = 1 + seed % 3;
		rig_scripts[1].rounds = 1 + seed % 3;
		for (int stage = NDX_STAGE_INFO; stage <= NDX_STAGE_DONE; stage++) {
			rig_run(r, (enum ndx_stage)stage, seed);
			for (int i = 0; i < 2; i++)
				if (r->d[i].next != DIALOGUE_IDLE)
					fail_msg("seed %u, stage %d, side %d: %s", seed, stage, i,
					         r->d[i].error.text);
		}
		assert_memory_equal(&r->d[0].agreed, &r->d[1].agreed, sizeof(r->d[0].agreed));
		assert_int_equal(r->d[0].agreed.mtu, 1024);
		assert_int_equal(r->d[0].agreed.client_reads, 4);
		assert_int_equal(r->d[0].agreed.server_reads, 4);
	}
}

static void stages_keep_their_order(void **state)
{
	struct rig *r = *state;

	assert_int_equal(dialogue_start(&r->d[0], NDX_STAGE_READY), NDX_E_INVALID_DEVICE_STATE);
	says("stage ready cannot run now: stage info is next");
	rig_run(r, NDX_STAGE_INFO, 1);
	assert_int_equal(dialogue_start(&r->d[0], NDX_STAGE_INFO), NDX_E_INVALID_DEVICE_STATE);
	says("stage validate is next");
}

/* Side 0 fails by itself with this; side 1 is told. */
static void fails(struct rig *r, enum ndx_error_layer layer, enum ndx_status status,
                  const char *text)
{
	rig_run(r, NDX_STAGE_INFO, 3);
	assert_int_equal(r->d[0].next, DIALOGUE_FAILED);
	assert_int_equal(r->d[0].error.layer, layer);
	assert_int_equal(r->d[0].error.status, status);
	assert_false(r->d[0].error.remote);
	if (strstr(r->d[0].error.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", r->d[0].error.text, text);
	assert_int_equal(r->d[1].next, DIALOGUE_FAILED);
	assert_true(r->d[1].error.remote);
	assert_int_equal(r->d[1].error.layer, layer);
	if (strstr(r->d[1].error.text, text) == NULL)
		fail_msg("the peer hears \"%s\", not \"%s\"", r->d[1].error.text, text);
}

static void a_plugins_failure_reaches_the_peer(void **state)
{
	rig_scripts[0].fails = NDX_E_NO_MEMORY;
	rig_scripts[1].rounds = 2;
	rig_scripts[0].rounds = 2;
	fails(*state, NDX_LAYER_PLUGIN, NDX_E_NO_MEMORY, "the moon is not full");
}

static void a_reply_too_long_is_refused(void **state)
{
	rig_scripts[0].long_reply = true;
	fails(*state, NDX_LAYER_PLUGIN, NDX_E_BUFFER_OVERFLOW,
	      "it returned 1025 bytes, 1024 are allowed");
}

static void plugins_that_never_end_are_stopped(void **state)
{
	struct rig *r = *state;

	rig_scripts[0].never = rig_scripts[1].never = true;
	rig_run(r, NDX_STAGE_INFO, 5);
	assert_int_equal(r->d[0].next, DIALOGUE_FAILED);
	assert_int_equal(r->d[1].next, DIALOGUE_FAILED);
	assert_int_equal(r->d[0].error.layer, NDX_LAYER_FRAMEWORK);
	assert_true(rig_scripts[0].calls <= ROUNDS);
}

static void a_peer_with_too_few_reads_fails_the_session(void **state)
{
	rig_scripts[0].never = true;
	fails(*state, NDX_LAYER_PLUGIN, NDX_E_REMOTE_ERROR,
	      "the peer has completed the stage, this side wants more of it");
}

static void ends_that_do_not_go_together_fail_in_info(void **state)
{
	struct rig *r = *state;

	(void)snprintf(r->d[0].own.stack, sizeof(r->d[0].own.stack), "other");
	rig_run(r, NDX_STAGE_INFO, 7);
	assert_int_equal(r->d[0].next, DIALOGUE_FAILED);
	assert_int_equal(r->d[0].error.status, NDX_E_INVALID_CONFIG);
	assert_string_equal(r->d[0].error.text, "the stacks differ: other here, test there");
}

static void frames_out_of_place_are_refused(void **state)
{
	static const struct frame wrong[] = {
		{.type = FRAME_DATA, .stage = NDX_STAGE_READY},
		{.type = FRAME_DATA, .stage = NDX_STAGE_INFO, .round = 1},
		{.type = FRAME_VALIDATE, .stage = NDX_STAGE_VALIDATE},
		{.type = FRAME_HELLO},
		{.type = FRAME_WELCOME},
		{.type = FRAME_GOODBYE},
		{.type = FRAME_ERROR, .length = 3},
		{.type = FRAME_PROOF, .stage = NDX_STAGE_VALIDATE},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct rig *r = rig_again(state);

		assert_int_equal(dialogue_start(&r->d[0], NDX_STAGE_INFO), NDX_OK);
		dialogue_call(&r->d[0]);
		dialogue_sent(&r->d[0]);
		dialogue_receive(&r->d[0], &wrong[i], ndxp_now_ns());
		assert_int_equal(r->d[0].next, DIALOGUE_FAILED);
		assert_int_equal(r->d[0].error.layer, NDX_LAYER_FRAMEWORK);
	}
}

static void a_stage_begins_anew_after_the_transport_broke(void **state)
{
	struct rig *r = *state;

	assert_int_equal(dialogue_start(&r->d[0], NDX_STAGE_INFO), NDX_OK);
	dialogue_call(&r->d[0]);
	dialogue_sent(&r->d[0]);
	assert_int_equal(r->d[0].next, DIALOGUE_RECEIVE);
	assert_int_equal(dialogue_restart(&r->d[0]), NDX_OK);
	assert_int_equal(rig_scripts[0].resets, 1);
	assert_int_equal(r->d[0].next, DIALOGUE_CALL);
	rig_ops.reset = NULL;
	assert_int_equal(dialogue_restart(&r->d[0]), NDX_E_NOT_SUPPORTED);
}

/* The transport breaks when the peer's message is there, and the plugin is to be called with it. */
static void a_stage_that_begins_anew_forgets_the_peers_message(void **state)
{
	static const uint8_t said[8];
	const struct frame f = {.type = FRAME_DATA,
	                        .stage = NDX_STAGE_INFO,
	                        .payload = said,
	                        .length = sizeof(said)};
	struct rig *r = *state;

	assert_int_equal(dialogue_start(&r->d[0], NDX_STAGE_INFO), NDX_OK);
	dialogue_call(&r->d[0]);
	dialogue_sent(&r->d[0]);
	dialogue_receive(&r->d[0], &f, ndxp_now_ns());
	assert_int_equal(r->d[0].next, DIALOGUE_CALL);
	assert_int_equal(dialogue_restart(&r->d[0]), NDX_OK);
	dialogue_call(&r->d[0]); /* the plugin gets no bytes of no message */
	assert_int_equal(r->d[0].next, DIALOGUE_SEND);
	assert_int_equal(rig_scripts[0].calls, 2);
}

static void the_history_tells_it_all(void **state)
{
	struct ndx_history_entry e[64];
	struct rig *r = *state;
	uint64_t total = 99;
	size_t n = 64;
	size_t one = 1;

	rig_run(r, NDX_STAGE_INFO, 1);
	history_copy(&r->history[0], e, &n, &total);
	assert_int_equal(total, n);
	assert_int_equal(e[0].kind, NDX_HISTORY_CALL);
	assert_string_equal(e[0].text, "begin");
	assert_int_equal(e[1].kind, NDX_HISTORY_CALL);
	assert_string_equal(e[1].text, "info");
	assert_int_equal(e[1].bytes, 8);
	assert_int_equal(e[1].bytes_in, 0);
	assert_int_equal(e[n - 1].kind, NDX_HISTORY_STAGE);
	assert_string_equal(e[n - 1].text, "info");
	for (size_t i = 1; i < n; i++)
		assert_true(e[i].kind == NDX_HISTORY_STAGE || e[i].kind == NDX_HISTORY_RECEIVED ||
		            e[i].at_us >= e[i - 1].at_us);
	/* Too little room: the latest. */
	history_copy(&r->history[0], e, &one, &total);
	assert_int_equal(one, 1);
	assert_int_equal(total, n);
	assert_int_equal(e[0].kind, NDX_HISTORY_STAGE);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(all_stages_in_any_order_of_events),
		T(stages_keep_their_order),
		T(a_plugins_failure_reaches_the_peer),
		T(a_reply_too_long_is_refused),
		T(plugins_that_never_end_are_stopped),
		T(a_peer_with_too_few_reads_fails_the_session),
		T(ends_that_do_not_go_together_fail_in_info),
		T(frames_out_of_place_are_refused),
		T(a_stage_begins_anew_after_the_transport_broke),
		T(a_stage_that_begins_anew_forgets_the_peers_message),
		T(the_history_tells_it_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
