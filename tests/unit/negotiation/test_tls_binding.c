/* SPDX-License-Identifier: BSD-2-Clause */
/* A server with TLS, and a client whose VALIDATE is of this channel, or is not. */
#include "tls_raw.h"

enum lie {
	TRUTH,
	NO_MAC,
	WRONG_MAC,
	SHORT_MAC,
	OF_THE_SERVER, /* the server's own MAC, sent back */
	OF_ANOTHER_CHANNEL,
	OF_OTHER_MESSAGES, /* by this channel's key */
};

/* VALIDATE of a client that has understood the same. `other`: the key of another channel. */
static void validate(struct raw *r, enum lie lie, const uint8_t other[32])
{
	struct frame mine = {
		.type = FRAME_VALIDATE, .stage = NDX_STAGE_VALIDATE, .flags = FRAME_BOUND};
	uint8_t payload[FRAME_VALIDATE_SIZE + 32];
	uint8_t key[32];
	struct frame f;

	raw_await_validate(r, &f);
	memcpy(payload, f.payload, sizeof(payload));
	memcpy(payload + 16, f.payload + 32, 16);
	memcpy(payload + 32, f.payload + 16, 16);
	raw_key(r, key);
	if (lie == OF_OTHER_MESSAGES)
		r->said[NDX_ROLE_CLIENT][5] ^= 1;
	if (lie != OF_THE_SERVER)
		raw_mac(r, lie == OF_ANOTHER_CHANNEL ? other : key, NDX_ROLE_CLIENT, mine.flags,
		        payload, payload + FRAME_VALIDATE_SIZE);
	payload[FRAME_VALIDATE_SIZE + 31] ^= lie == WRONG_MAC;
	mine.flags = lie == NO_MAC ? 0 : FRAME_BOUND;
	mine.length = FRAME_VALIDATE_SIZE + (lie == NO_MAC ? 0 : lie == SHORT_MAC ? 31 : 32);
	mine.payload = payload;
	raw_send(r, &mine);
}

static const uint8_t cookie[16] = {1, 2, 3};

static void answers(struct raw *r, const struct host *h)
{
	struct frame f;

	raw_open(r, h, "client");
	assert_true(raw_greet(r, cookie, false, &f));
	assert_int_equal(f.type, FRAME_WELCOME);
	raw_inform(r);
}

/* The server is in stage ready. */
static void is_admitted(struct raw *r)
{
	struct frame f;

	assert_true(raw_receive(r, &f));
	assert_int_equal(f.type, FRAME_DATA);
	assert_int_equal(f.stage, NDX_STAGE_READY);
}

static void a_queue_pair_of_this_channel_is_admitted(void **state)
{
	const struct ndx_tls_attr server = tls_server();
	struct host h;
	struct raw r;

	host_open(&h, *state, &server, WAIT_MS);
	answers(&r, &h);
	validate(&r, TRUTH, NULL);
	is_admitted(&r);
	raw_close(&r);
	host_close(&h);
}

static void any_other_queue_pair_is_refused(void **state)
{
	static const struct {
		enum lie lie;
		const char *says;
	} lies[] = {
		{NO_MAC, "has no MAC"},
		{WRONG_MAC, "has a wrong MAC"},
		{SHORT_MAC, "payload of the wrong length"},
		{OF_THE_SERVER, "has a wrong MAC"},
		{OF_OTHER_MESSAGES, "has a wrong MAC"},
	};
	const struct ndx_tls_attr server = tls_server();
	struct ndx_negotiation_server_stats stats;
	struct host h;
	struct raw r;

	host_open(&h, *state, &server, WAIT_MS);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		log_begin();
		answers(&r, &h);
		validate(&r, lies[i].lie, NULL);
		raw_is_refused(&r, lies[i].says);
		raw_close(&r);
		log_says(" of 127.0.0.1:", lies[i].says);
		log_end();
		host_await_empty(&h);
	}
	host_stats(&h, &stats);
	assert_int_equal(stats.completed, 0);
	assert_int_equal(stats.failed, sizeof(lies) / sizeof(lies[0]));
	host_close(&h);
}

/* The session goes on over a second channel, which has a key of its own. */
static void a_session_that_goes_on_has_the_new_key(void **state)
{
	const struct ndx_tls_attr server = tls_server();

	for (int old = 0; old < 2; old++) {
		uint8_t first[32];
		uint8_t second[32];
		struct frame f;
		struct host h;
		struct raw r;

		host_open(&h, *state, &server, WAIT_MS);
		log_begin();
		raw_open(&r, &h, "client");
		assert_true(raw_greet(&r, cookie, false, &f));
		raw_key(&r, first);
		raw_close(&r);
		log_says("its transport broke in stage info", "");
		raw_open(&r, &h, "client");
		assert_true(raw_greet(&r, cookie, true, &f));
		assert_int_equal(f.type, FRAME_WELCOME);
		assert_int_equal(f.flags, FRAME_RESUMED);
		raw_key(&r, second);
		assert_memory_not_equal(first, second, 32);
		raw_inform(&r);
		validate(&r, old == 1 ? OF_ANOTHER_CHANNEL : TRUTH, first);
		if (old == 1)
			raw_is_refused(&r, "has a wrong MAC");
		else
			is_admitted(&r);
		raw_close(&r);
		log_end();
		host_close(&h);
	}
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_begin_with_reset, rig_end)
	const struct CMUnitTest tests[] = {
		T(a_queue_pair_of_this_channel_is_admitted),
		T(any_other_queue_pair_is_refused),
		T(a_session_that_goes_on_has_the_new_key),
	};

	return cmocka_run_group_tests(tests, papers_make, papers_remove);
}
