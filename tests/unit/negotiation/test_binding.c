/* SPDX-License-Identifier: BSD-2-Clause */
/* The MAC of VALIDATE: its bytes, and dialogues over channels that are not the same. */
#include "dialogue_rig.h"

#include "binding.h"

/* Computed by Python's hashlib and hmac from docs/negotiation-protocol.md. */
static void the_mac_is_as_the_protocol_says(void **state)
{
	static const uint8_t expected[FRAME_MAC_SIZE] = {
		0x5f, 0x5b, 0x9f, 0xf0, 0xfb, 0x4b, 0xcf, 0x1d, 0x5f, 0x5a, 0x0e,
		0x2e, 0x33, 0xf7, 0x24, 0x9c, 0x75, 0x21, 0x34, 0x44, 0x2b, 0xe9,
		0xc9, 0x48, 0x9e, 0x9a, 0xed, 0xeb, 0xfb, 0x61, 0x7e, 0xbd};
	struct binding b = {.bound = true};
	struct frame f = {.type = FRAME_VALIDATE,
	                  .stage = NDX_STAGE_VALIDATE,
	                  .flags = FRAME_PROVES,
	                  .length = FRAME_VALIDATE_SIZE};
	uint8_t payload[FRAME_VALIDATE_SIZE + FRAME_MAC_SIZE];

	(void)state;
	for (unsigned i = 0; i < BINDING_KEY; i++)
		b.key[i] = (uint8_t)i;
	for (unsigned i = 0; i < FRAME_VALIDATE_SIZE; i++)
		payload[i] = (uint8_t)(100 + i);
	binding_begin(&b);
	binding_add(&b, NDX_ROLE_CLIENT, "one", 3);
	binding_add(&b, NDX_ROLE_SERVER, "two", 3);
	binding_add(&b, NDX_ROLE_CLIENT, "", 0);
	assert_true(binding_seal(&b, NDX_ROLE_CLIENT, &f, payload));
	assert_int_equal(f.flags, FRAME_PROVES | FRAME_BOUND);
	assert_int_equal(f.length, sizeof(payload));
	assert_memory_equal(payload + FRAME_VALIDATE_SIZE, expected, sizeof(expected));
	f.payload = payload;
	assert_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
	assert_non_null(binding_find_fault(&b, NDX_ROLE_SERVER, &f));
	f.flags = FRAME_BOUND;
	assert_non_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
	f.flags = FRAME_PROVES | FRAME_BOUND;
	for (size_t i = 0; i < sizeof(payload); i++) {
		payload[i] ^= 1;
		assert_non_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
		payload[i] ^= 1;
	}
	for (unsigned i = 0; i < 2; i++) {
		b.said[i][31] ^= 1;
		assert_non_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
		b.said[i][31] ^= 1;
	}
	assert_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
	binding_forget(&b);
	assert_int_equal(b.key[1], 0);
}

/* The same of one of several queue pairs: computed so, too. */
static void the_mac_of_one_of_several_covers_its_number(void **state)
{
	static const uint8_t expected[FRAME_MAC_SIZE] = {
		0x3f, 0x1c, 0xdb, 0xb6, 0x5f, 0x70, 0xf2, 0x81, 0x28, 0xa5, 0xba,
		0xe7, 0xe7, 0x25, 0xa2, 0xe6, 0xb1, 0xf7, 0x5e, 0x07, 0xcc, 0x38,
		0x95, 0xb2, 0x6b, 0xbd, 0xa6, 0x3d, 0x5c, 0xc5, 0x83, 0xab};
	struct binding b = {.bound = true, .one_of_many = true, .queue_pair = 0x0102};
	struct frame f = {.type = FRAME_VALIDATE,
	                  .stage = NDX_STAGE_VALIDATE,
	                  .flags = FRAME_PROVES,
	                  .length = FRAME_VALIDATE_SIZE};
	uint8_t payload[FRAME_VALIDATE_SIZE + FRAME_MAC_SIZE];

	(void)state;
	for (unsigned i = 0; i < BINDING_KEY; i++)
		b.key[i] = (uint8_t)i;
	for (unsigned i = 0; i < FRAME_VALIDATE_SIZE; i++)
		payload[i] = (uint8_t)(100 + i);
	binding_begin(&b);
	binding_add(&b, NDX_ROLE_CLIENT, "one", 3);
	binding_add(&b, NDX_ROLE_SERVER, "two", 3);
	binding_add(&b, NDX_ROLE_CLIENT, "", 0);
	assert_true(binding_seal(&b, NDX_ROLE_CLIENT, &f, payload));
	assert_memory_equal(payload + FRAME_VALIDATE_SIZE, expected, sizeof(expected));
	f.payload = payload;
	assert_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
	b.queue_pair ^= 1;
	assert_non_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
	b.queue_pair ^= 0x0101;
	assert_non_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
	b.one_of_many = false;
	assert_non_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
}

/* A batch that was given up and another one do not take each other's. */
static void the_mac_of_another_batch_is_refused(void **state)
{
	struct binding b = {.bound = true, .one_of_many = true, .queue_pair = 5, .batch = 2};
	struct frame f = {
		.type = FRAME_VALIDATE, .stage = NDX_STAGE_VALIDATE, .length = FRAME_VALIDATE_SIZE};
	uint8_t payload[FRAME_VALIDATE_SIZE + FRAME_MAC_SIZE] = {0};

	(void)state;
	binding_begin(&b);
	assert_true(binding_seal(&b, NDX_ROLE_CLIENT, &f, payload));
	f.payload = payload;
	assert_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
	for (uint32_t other = 0; other < 6; other++) {
		b.batch = other;
		if (other != 2)
			assert_non_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
	}
	b.batch = 2 + (1u << 24);
	assert_non_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
	b.batch = 2;
	assert_null(binding_find_fault(&b, NDX_ROLE_CLIENT, &f));
}

/* Dialogues whose ends have these keys, or none, go as far as stage validate. */
static struct rig *run_with(void **state, int client, int server, unsigned seed)
{
	struct rig *r = rig_again(state);
	const int keys[2] = {client, server};

	for (int i = 0; i < 2; i++) {
		r->d[i].binding.bound = keys[i] != 0;
		memset(r->d[i].binding.key, keys[i], BINDING_KEY);
	}
	rig_run(r, NDX_STAGE_INFO, seed);
	assert_int_equal(r->d[0].next, DIALOGUE_IDLE);
	rig_run(r, NDX_STAGE_VALIDATE, seed);
	return r;
}

static void ends_of_one_channel_agree(void **state)
{
	for (unsigned seed = 0; seed < 50; seed++) {
		struct rig *r = run_with(state, 7, 7, seed);

		assert_int_equal(r->d[0].next, DIALOGUE_IDLE);
		assert_int_equal(r->d[1].next, DIALOGUE_IDLE);
		r = run_with(state, 0, 0, seed);
		assert_int_equal(r->d[0].next, DIALOGUE_IDLE);
		assert_int_equal(r->d[1].next, DIALOGUE_IDLE);
	}
}

/* Each end finds it, unless the peer's ERROR comes first. */
static void ends_of_two_channels_do_not(void **state)
{
	static const struct {
		int keys[2];
		const char *texts[2];
	} pairs[] = {
		{{7, 8}, {"has a wrong MAC", "has a wrong MAC"}},
		{{7, 0}, {"has no MAC", "this channel is in plaintext"}},
		{{0, 7}, {"this channel is in plaintext", "has no MAC"}},
	};
	unsigned found[3][2] = {{0}};

	for (unsigned i = 0; i < 150; i++) {
		const unsigned at = i % 3;
		struct rig *r = run_with(state, pairs[at].keys[0], pairs[at].keys[1], i);

		for (int side = 0; side < 2; side++) {
			const struct ndx_session_error *e = &r->d[side].error;

			assert_int_equal(r->d[side].next, DIALOGUE_FAILED);
			if (e->remote)
				continue;
			found[at][side]++;
			assert_int_equal(e->status, NDX_E_CONNECTION_REFUSED);
			if (strstr(e->text, pairs[at].texts[side]) == NULL)
				fail_msg("side %d: \"%s\"", side, e->text);
		}
	}
	for (unsigned at = 0; at < 3; at++)
		assert_true(found[at][0] > 0 && found[at][1] > 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)
	const struct CMUnitTest tests[] = {
		T(the_mac_is_as_the_protocol_says),
		T(the_mac_of_one_of_several_covers_its_number),
		T(the_mac_of_another_batch_is_refused),
		T(ends_of_one_channel_agree),
		T(ends_of_two_channels_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
