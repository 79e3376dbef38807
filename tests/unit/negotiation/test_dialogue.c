/* SPDX-License-Identifier: BSD-2-Clause */
/* Two dialogues, and a wire between them that the test holds in its hands. */
#include "says.h"

#include <ndx/spi/system.h>
#include "dialogue.h"

enum { MESSAGE = 1024, ROUNDS = 8 };

/* What the plugins of a test do; one for each side. */
struct script {
	uint32_t rounds;       /* completes in this round of each stage */
	bool never;            /* never completes */
	bool long_reply;       /* says more than there is room for */
	enum ndx_status fails; /* in stage info, round 1 */
	bool other_cookie;     /* takes the peer for another one */
	uint32_t mtu;
	uint32_t calls;
	uint32_t resets;
	bool ended;
	uint32_t heard; /* of the peer's latest message */
};

static enum ndx_status begin_session(void *instance, const struct ndx_exchange *exchange,
                                     void **session, struct ndx_exchange_reply *reply)
{
	struct script **both = instance;

	(void)reply;
	*session = both[exchange->role];
	return NDX_OK;
}

static void end(void *session)
{
	((struct script *)session)->ended = true;
}

static enum ndx_status reset(void *session, enum ndx_stage stage)
{
	(void)stage;
	((struct script *)session)->resets++;
	return NDX_OK;
}

/* Tells its number of calls, and as which end it wants to be known. */
static enum ndx_status talk(void *session, const struct ndx_exchange *exchange, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	struct script *s = session;
	uint32_t said[2];

	s->calls++;
	assert_int_equal(peer == NULL, exchange->round == 0);
	if (peer != NULL) {
		assert_int_equal(peer_length, sizeof(said));
		memcpy(said, peer, sizeof(said));
		s->heard = said[0];
		if (exchange->stage == NDX_STAGE_INFO) {
			exchange->peer->kind = NDX_DESCRIPTION_RENDEZVOUS;
			exchange->peer->mtu = said[1];
			exchange->peer->inbound_read_limit = said[1] / 256;
			exchange->peer->outbound_read_limit = 4;
			exchange->peer->cookie[0] = (uint8_t)(said[1] >> 8);
			exchange->peer->cookie[1] = s->other_cookie ? 9 : 1;
			(void)snprintf(exchange->peer->stack, sizeof(exchange->peer->stack),
			               "test");
		}
	}
	if (s->fails != NDX_OK && exchange->round == 1) {
		reply->error = NDX_PLUGIN_PEER_DATA;
		(void)snprintf(reply->text, sizeof(reply->text), "the moon is not full");
		return s->fails;
	}
	said[0] = s->calls;
	said[1] = s->mtu;
	memcpy(reply->data, said, sizeof(said));
	reply->length = s->long_reply ? reply->room + 1 : sizeof(said);
	reply->completed = !s->never && exchange->round >= s->rounds;
	return NDX_OK;
}

static const struct ndx_variant_ops ops = {.begin = begin_session,
                                           .end = end,
                                           .info = talk,
                                           .ready = talk,
                                           .done = talk,
                                           .reset = reset};
static enum ndx_status create(void *plugin, const struct ndx_plugin_variant *variant,
                              const struct ndx_plugin_value *values, void **instance, char *why,
                              size_t room);
static void destroy(void *instance);
static struct ndx_variant_ops made; /* `ops` with create */
static struct ndx_plugin_variant list[] = {{.name = "two", .help = "", .ops = &made}};
static struct script scripts[2];
static struct script *both[2] = {&scripts[0], &scripts[1]};

static enum ndx_status create(void *plugin, const struct ndx_plugin_variant *variant,
                              const struct ndx_plugin_value *values, void **instance, char *why,
                              size_t room)
{
	(void)plugin;
	(void)variant;
	(void)values;
	(void)why;
	(void)room;
	*instance = both;
	return NDX_OK;
}

static void destroy(void *instance)
{
	(void)instance;
}

struct rig {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct history history[2];
	struct dialogue d[2];
};

static int rig_begin(void **state)
{
	static struct ndx_plugin plugin;
	const struct dialogue_limits limits = {MESSAGE, ROUNDS};
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	made = ops;
	made.create = create;
	made.destroy = destroy;
	plugin = (struct ndx_plugin){.abi = NDX_PLUGIN_ABI,
	                             .size = sizeof(plugin),
	                             .name = "test",
	                             .version = "1",
	                             .vendor = "us",
	                             .list = list,
	                             .count = 1};
	for (int i = 0; i < 2; i++)
		scripts[i] = (struct script){.rounds = 1, .mtu = i == 0 ? 1024 : 2048};
	assert_int_equal(ndx_negotiation_create(&r->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(r->negotiation, &plugin), NDX_OK);
	assert_int_equal(
		ndx_negotiation_get_variant(r->negotiation, "test", "two", NULL, 0, &r->variant),
		NDX_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(history_init(&r->history[i], 64), NDX_OK);
		dialogue_init(&r->d[i], r->variant, (enum ndx_role)i, (uint64_t)i + 1, &limits,
		              &r->history[i]);
		r->d[i].own.kind = NDX_DESCRIPTION_RENDEZVOUS;
		r->d[i].own.mtu = scripts[i].mtu;
		r->d[i].own.inbound_read_limit = scripts[i].mtu / 256;
		r->d[i].own.outbound_read_limit = 4;
		r->d[i].own.cookie[0] = (uint8_t)(scripts[i].mtu >> 8);
		r->d[i].own.cookie[1] = 1;
		(void)snprintf(r->d[i].own.stack, sizeof(r->d[i].own.stack), "test");
	}
	*state = r;
	return 0;
}

static int rig_end(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 2; i++) {
		dialogue_fini(&r->d[i]);
		history_fini(&r->history[i]);
	}
	ndx_variant_close(r->variant);
	assert_int_equal(ndx_negotiation_close(r->negotiation), NDX_OK);
	free(r);
	return 0;
}

/* What one side sent and the other has not read. */
struct pipe {
	uint8_t bytes[8][FRAME_HEADER + MESSAGE];
	unsigned in;
	unsigned out;
};

static bool resting(const struct dialogue *d)
{
	return d->next == DIALOGUE_IDLE || d->next == DIALOGUE_FAILED || d->next == DIALOGUE_CLOSED;
}

static void deliver(struct dialogue *d, struct pipe *w)
{
	const char *why;
	struct frame f;
	size_t used;

	assert_int_equal(
		frame_parse(w->bytes[w->out % 8], FRAME_HEADER + MESSAGE, MESSAGE, &f, &used, &why),
		FRAME_WHOLE);
	w->out++;
	dialogue_receive(d, &f, ndxp_now_ns());
}

/* One step of a side; false if it can do nothing now. */
static bool step(struct dialogue *d, struct pipe *to, struct pipe *from)
{
	switch (d->next) {
	case DIALOGUE_CALL:
		dialogue_call(d);
		return true;
	case DIALOGUE_CONNECT:
		dialogue_connected(d, NDX_OK, "");
		return true;
	case DIALOGUE_SEND:
		assert_true(d->out_length <= sizeof(to->bytes[0]));
		memcpy(to->bytes[to->in++ % 8], d->out, d->out_length);
		dialogue_sent(d);
		return true;
	case DIALOGUE_RECEIVE:
		if (from->out == from->in)
			return false;
		deliver(d, from);
		return true;
	case DIALOGUE_FAILED:
		if (!d->tell)
			return false;
		(void)dialogue_error_frame(d, to->bytes[to->in++ % 8]);
		return true;
	case DIALOGUE_IDLE:
	case DIALOGUE_CLOSED:
	default:
		return false;
	}
}

/* Both sides go through a stage, in an order that `seed` says. */
static void run(struct rig *r, enum ndx_stage stage, unsigned seed)
{
	struct pipe wires[2] = {0};
	unsigned stuck = 0;

	for (int i = 0; i < 2; i++)
		assert_int_equal(dialogue_start(&r->d[i], stage), NDX_OK);
	while (stuck < 64) {
		const unsigned side = (seed = seed * 1103515245u + 12345u) >> 16 & 1;

		if (step(&r->d[side], &wires[side], &wires[1 - side]))
			stuck = 0;
		else
			stuck++;
	}
	assert_true(resting(&r->d[0]) && resting(&r->d[1]));
}

static void all_stages_in_any_order_of_events(void **state)
{
	for (unsigned seed = 0; seed < 200; seed++) {
		struct rig *r;

		if (seed > 0) {
			(void)rig_end(state);
			(void)rig_begin(state);
		}
		r = *state;
		scripts[0].rounds = 1 + seed % 3;
		scripts[1].rounds = 1 + seed % 3;
		for (int stage = NDX_STAGE_INFO; stage <= NDX_STAGE_DONE; stage++) {
			run(r, (enum ndx_stage)stage, seed);
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
	run(r, NDX_STAGE_INFO, 1);
	assert_int_equal(dialogue_start(&r->d[0], NDX_STAGE_INFO), NDX_E_INVALID_DEVICE_STATE);
	says("stage validate is next");
}

/* Side 0 fails by itself with this; side 1 is told. */
static void fails(struct rig *r, enum ndx_error_layer layer, enum ndx_status status,
                  const char *text)
{
	run(r, NDX_STAGE_INFO, 3);
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
	scripts[0].fails = NDX_E_NO_MEMORY;
	scripts[1].rounds = 2;
	scripts[0].rounds = 2;
	fails(*state, NDX_LAYER_PLUGIN, NDX_E_NO_MEMORY, "the moon is not full");
}

static void a_reply_too_long_is_refused(void **state)
{
	scripts[0].long_reply = true;
	fails(*state, NDX_LAYER_PLUGIN, NDX_E_BUFFER_OVERFLOW,
	      "it returned 1025 bytes, 1024 are allowed");
}

static void plugins_that_never_end_are_stopped(void **state)
{
	struct rig *r = *state;

	scripts[0].never = scripts[1].never = true;
	run(r, NDX_STAGE_INFO, 5);
	assert_int_equal(r->d[0].next, DIALOGUE_FAILED);
	assert_int_equal(r->d[1].next, DIALOGUE_FAILED);
	assert_int_equal(r->d[0].error.layer, NDX_LAYER_FRAMEWORK);
	assert_true(scripts[0].calls <= ROUNDS);
}

static void a_peer_with_too_few_reads_fails_the_session(void **state)
{
	scripts[0].never = true;
	fails(*state, NDX_LAYER_PLUGIN, NDX_E_REMOTE_ERROR,
	      "the peer has completed the stage, this side wants more of it");
}

static void ends_that_do_not_go_together_fail_in_info(void **state)
{
	struct rig *r = *state;

	(void)snprintf(r->d[0].own.stack, sizeof(r->d[0].own.stack), "other");
	run(r, NDX_STAGE_INFO, 7);
	assert_int_equal(r->d[0].next, DIALOGUE_FAILED);
	assert_int_equal(r->d[0].error.status, NDX_E_INVALID_CONFIG);
	assert_string_equal(r->d[0].error.text, "the stacks differ: other here, test there");
}

static void sides_that_mean_different_ends_fail_in_validate(void **state)
{
	struct rig *r = *state;

	scripts[0].other_cookie = true;
	run(r, NDX_STAGE_INFO, 9);
	run(r, NDX_STAGE_VALIDATE, 9);
	assert_int_equal(r->d[0].next, DIALOGUE_FAILED);
	assert_int_equal(r->d[1].next, DIALOGUE_FAILED);
	assert_string_equal(r->d[0].error.remote ? r->d[1].error.text : r->d[0].error.text,
	                    "the two sides do not agree on which queue pairs are connected");
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
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct rig *r;

		if (i > 0) {
			(void)rig_end(state);
			(void)rig_begin(state);
		}
		r = *state;
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
	assert_int_equal(scripts[0].resets, 1);
	assert_int_equal(r->d[0].next, DIALOGUE_CALL);
	made.reset = NULL;
	assert_int_equal(dialogue_restart(&r->d[0]), NDX_E_NOT_SUPPORTED);
}

static void the_history_tells_it_all(void **state)
{
	struct ndx_history_entry e[64];
	struct rig *r = *state;
	uint64_t total = 99;
	size_t n = 64;
	size_t one = 1;

	run(r, NDX_STAGE_INFO, 1);
	history_copy(&r->history[0], e, &n, &total);
	assert_int_equal(total, n);
	assert_int_equal(e[0].kind, NDX_HISTORY_CALL);
	assert_int_equal(e[0].bytes, 8);
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
		T(sides_that_mean_different_ends_fail_in_validate),
		T(frames_out_of_place_are_refused),
		T(a_stage_begins_anew_after_the_transport_broke),
		T(the_history_tells_it_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
