/* SPDX-License-Identifier: BSD-2-Clause */
/* Dialogues in stage validate: what both sides agree on, and the proof of the path. */
#include "dialogue_rig.h"

#include <ndx/spi/provider.h>
#include <ndx/spi/system.h>

static void sides_that_mean_different_ends_fail_in_validate(void **state)
{
	struct rig *r = *state;

	rig_scripts[0].other_cookie = true;
	rig_run(r, NDX_STAGE_INFO, 9);
	rig_run(r, NDX_STAGE_VALIDATE, 9);
	assert_int_equal(r->d[0].next, DIALOGUE_FAILED);
	assert_int_equal(r->d[1].next, DIALOGUE_FAILED);
	assert_string_equal(r->d[0].error.remote ? r->d[1].error.text : r->d[0].error.text,
	                    "the two sides do not agree on which queue pairs are connected");
}

/* Stage validate is without the plugin: a message of a plugin ends it neither before the queue pair
 * is connected nor in place of the peer's VALIDATE, whose MAC and settings would go with it. */
static void a_plugins_message_does_not_stand_for_validate(void **state)
{
	static const uint8_t flags[] = {0, FRAME_COMPLETED};
	static const uint8_t nothing[1];

	for (size_t i = 0; i < 2 * sizeof(flags); i++) {
		const struct frame data = {.type = FRAME_DATA,
		                           .stage = NDX_STAGE_VALIDATE,
		                           .flags = flags[i % 2],
		                           .payload = nothing};
		struct rig *r = rig_again(state);
		struct dialogue *d = &r->d[0];

		rig_run(r, NDX_STAGE_INFO, 9);
		assert_int_equal(dialogue_start(d, NDX_STAGE_VALIDATE), NDX_OK);
		if (i >= sizeof(flags)) {
			dialogue_connected(d, NDX_OK, "");
			dialogue_sent(d);
		}
		dialogue_receive(d, &data, ndxp_now_ns());
		assert_int_equal(d->next, DIALOGUE_FAILED);
		assert_int_equal(d->error.layer, NDX_LAYER_FRAMEWORK);
		assert_int_equal(d->error.status, NDX_E_REMOTE_ERROR);
		assert_int_equal(d->finished, NDX_STAGE_INFO);
	}
}

static void ready_to_prove(struct rig *r)
{
	for (int i = 0; i < 2; i++) {
		r->d[i].can_prove = true;
		r->d[i].own.kind = NDX_DESCRIPTION_VERBS_RC;
		r->d[i].peer.kind = NDX_DESCRIPTION_VERBS_RC;
		r->d[i].agreed.kind = NDX_DESCRIPTION_VERBS_RC;
		r->d[i].own.mailbox_rkey = 1;
		r->d[i].peer.mailbox_rkey = 1;
		rig_proofs[i] = (struct frame_proof){NDX_PROVED_WHOLE, NDX_PROVED_WHOLE, false};
	}
}

static unsigned count_proofs(struct rig *r)
{
	struct ndx_history_entry e[64];
	uint64_t total;
	size_t n = 64;
	unsigned found = 0;

	history_copy(&r->history[0], e, &n, &total);
	for (size_t i = 0; i < n; i++)
		found += e[i].kind == NDX_HISTORY_PROOF ? 1 : 0;
	return found;
}

static void a_path_that_passes_ends_validate(void **state)
{
	for (unsigned seed = 0; seed < 100; seed++) {
		struct rig *r = rig_again(state);

		rig_run(r, NDX_STAGE_INFO, seed);
		ready_to_prove(r);
		rig_run(r, NDX_STAGE_VALIDATE, seed);
		assert_int_equal(r->d[0].next, DIALOGUE_IDLE);
		assert_int_equal(r->d[1].next, DIALOGUE_IDLE);
		assert_int_equal(count_proofs(r), 1);
		rig_run(r, NDX_STAGE_READY, seed);
		assert_int_equal(r->d[0].next, DIALOGUE_IDLE);
	}
}

static void both_ends_give_the_same_verdict(void **state)
{
	for (unsigned seed = 0; seed < 100; seed++) {
		struct rig *r = rig_again(state);

		rig_run(r, NDX_STAGE_INFO, seed);
		ready_to_prove(r);
		rig_proofs[NDX_ROLE_CLIENT].written = NDX_PROVED_NOTHING;
		rig_proofs[NDX_ROLE_SERVER].written = NDX_PROVED_NOTHING;
		rig_proofs[NDX_ROLE_SERVER].seen = NDX_PROVED_NOTHING;
		rig_run(r, NDX_STAGE_VALIDATE, seed);
		for (int i = 0; i < 2; i++) {
			const struct ndx_session_error *e = &r->d[i].error;

			assert_int_equal(r->d[i].next, DIALOGUE_FAILED);
			assert_int_equal(e->layer, NDX_LAYER_PROVIDER);
			assert_int_equal(e->stage, NDX_STAGE_VALIDATE);
			assert_int_equal(e->status, NDX_E_HOST_UNREACHABLE);
			assert_false(e->remote);
			if (strstr(e->text, "do not pass from client to server: check the GIDs") ==
			    NULL)
				fail_msg("seed %u, side %d: \"%s\"", seed, i, e->text);
		}
	}
}

/* Both ends have to, and each end has to know where to write. */
static void one_end_alone_proves_nothing(void **state)
{
	for (int without = 0; without < 6; without++) {
		struct rig *r = rig_again(state);

		rig_run(r, NDX_STAGE_INFO, 1);
		ready_to_prove(r);
		if (without == 0)
			r->d[0].can_prove = false;
		else if (without == 1)
			r->d[1].no_proof = true;
		else if (without == 2)
			r->d[1].own.mailbox_rkey = 0;
		else if (without == 3)
			r->d[0].peer.mailbox_rkey = 0;
		else if (without == 4)
			r->d[0].peer.policy = NDX_PEER_NOT_WRITTEN;
		else
			r->d[1].own.policy = NDX_PEER_DEVICE;
		rig_run(r, NDX_STAGE_VALIDATE, 1);
		assert_int_equal(r->d[0].next, DIALOGUE_IDLE);
		assert_int_equal(r->d[1].next, DIALOGUE_IDLE);
		assert_int_equal(count_proofs(r), 0);
	}
}

/* A peer that answers VALIDATE, and then sends `wrong` in place of its proof. */
static void refuses_as_proof(struct rig *r, const struct frame *wrong, const char *text)
{
	struct pipe wires[2] = {0};

	rig_run(r, NDX_STAGE_INFO, 1);
	ready_to_prove(r);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(dialogue_start(&r->d[i], NDX_STAGE_VALIDATE), NDX_OK);
		while (r->d[i].next != DIALOGUE_RECEIVE)
			assert_true(rig_step(&r->d[i], &wires[i], &wires[1 - i]));
	}
	rig_deliver(&r->d[0], &wires[1]);
	while (r->d[0].next != DIALOGUE_RECEIVE)
		assert_true(rig_step(&r->d[0], &wires[0], &wires[1]));
	dialogue_receive(&r->d[0], wrong, ndxp_now_ns());
	assert_int_equal(r->d[0].next, DIALOGUE_FAILED);
	assert_int_equal(r->d[0].error.layer, NDX_LAYER_FRAMEWORK);
	assert_int_equal(r->d[0].error.status, NDX_E_REMOTE_ERROR);
	if (strstr(r->d[0].error.text, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", r->d[0].error.text, text);
}

static void a_bad_proof_is_refused(void **state)
{
	static const uint8_t bad[][FRAME_PROOF_SIZE] = {
		{3, 0, 0, 0}, {0, 4, 0, 0}, {2, 2, 2, 0}, {2, 2, 0, 1}};
	static const uint8_t validate[FRAME_VALIDATE_SIZE];
	struct frame wrong = {.type = FRAME_PROOF, .stage = NDX_STAGE_VALIDATE};

	wrong.payload = bad[0];
	wrong.length = FRAME_PROOF_SIZE - 1;
	refuses_as_proof(*state, &wrong, "length");
	wrong.length = FRAME_PROOF_SIZE;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		wrong.payload = bad[i];
		refuses_as_proof(rig_again(state), &wrong,
		                 "a proof of the path with unknown values");
	}
	wrong = (struct frame){.type = FRAME_VALIDATE,
	                       .stage = NDX_STAGE_VALIDATE,
	                       .payload = validate,
	                       .length = sizeof(validate)};
	refuses_as_proof(rig_again(state), &wrong, "the peer validates at the wrong time");
}

/* How far connecting came, as each end says, and which ends have become connected. */
static const struct {
	bool unconnected[2];
	uint8_t seen[2];
	const char *text;
} attempts[] = {
	{{true, true}, {0, 0}, "RDMA packets do not pass from client to server"},
	{{true, true}, {0, 1}, "RDMA packets do not pass from server to client"},
	{{true, true}, {1, 1}, "packets of the path MTU do not pass from client to server"},
	{{true, false}, {1, 2}, "packets of the path MTU do not pass from server to client"},
	{{false, true}, {2, 1}, "packets of the path MTU do not pass from client to server"},
	{{true, true}, {2, 2}, "do not get connected, although packets pass in both directions"},
	{{true, false}, {2, 2}, "do not get connected, although packets pass in both directions"},
};

static void an_end_that_is_not_connected_fails_both(void **state)
{
	for (unsigned i = 0; i < 20 * sizeof(attempts) / sizeof(attempts[0]); i++) {
		const size_t at = i / 20;
		struct rig *r = rig_again(state);

		rig_run(r, NDX_STAGE_INFO, i);
		for (int side = 0; side < 2; side++) {
			r->d[side].can_prove = true;
			rig_unconnected[side] = attempts[at].unconnected[side];
			rig_proofs[side] = (struct frame_proof){.seen = attempts[at].seen[side]};
		}
		rig_run(r, NDX_STAGE_VALIDATE, i);
		rig_unconnected[0] = rig_unconnected[1] = false;
		for (int side = 0; side < 2; side++) {
			const char *text = r->d[side].error.text;

			assert_int_equal(r->d[side].next, DIALOGUE_FAILED);
			assert_int_equal(r->d[side].error.stage, NDX_STAGE_VALIDATE);
			if (strstr(text, attempts[at].text) == NULL)
				fail_msg("attempt %zu, side %d: \"%s\"", at, side, text);
		}
	}
}

/* Both ends have said that they are connected. */
static void unconnected_has_no_place_behind_validate(void **state)
{
	static const uint8_t whole[FRAME_PROOF_SIZE] = {2, 2, 0, 0};
	const struct frame wrong = {.type = FRAME_PROOF,
	                            .stage = NDX_STAGE_VALIDATE,
	                            .flags = FRAME_UNCONNECTED,
	                            .payload = whole,
	                            .length = sizeof(whole)};

	refuses_as_proof(*state, &wrong, "the peer proves the path at the wrong time");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(sides_that_mean_different_ends_fail_in_validate),
		T(a_plugins_message_does_not_stand_for_validate),
		T(a_path_that_passes_ends_validate),
		T(both_ends_give_the_same_verdict),
		T(one_end_alone_proves_nothing),
		T(a_bad_proof_is_refused),
		T(an_end_that_is_not_connected_fails_both),
		T(unconnected_has_no_place_behind_validate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
