/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One session's protocol: whatever frames come, and whatever its plugin answers.
 *
 * The input is a role and steps; each step that something is waited for takes what it needs from
 * the rest: an answer of the plugin, an outcome of connecting, a frame, a broken transport.
 */
#include <stdlib.h>
#include <string.h>

#include "dialogue.h"
#include "fuzz.h"
#include "agree.h"

enum { MESSAGE = 600, ROUNDS = 8, HISTORY = 4, STEPS = 200 };

static const uint8_t *input;
static size_t left;

static uint8_t take_byte(void)
{
	if (left == 0)
		return 0;
	left--;
	return *input++;
}

/* ---- a plugin that does what the input says ---- */

/* One that would do, but for what is odd about it. */
static void describe(struct ndx_peer_description *d)
{
	const uint8_t how = take_byte();
	const uint8_t odd = take_byte();

	memset(d, 0, sizeof(*d));
	d->kind = how & 3u;
	d->inbound_read_limit = how >> 2;
	d->outbound_read_limit = odd;
	d->qpn = (odd & 1u) != 0 ? (odd & 2u) << 23 : 7;
	d->psn = (odd & 4u) != 0 ? 1u << 24 : 9;
	d->mtu = (odd & 8u) != 0 ? 100u * how : 256u << (how >> 6);
	d->lid = (odd & 16u) != 0;
	if ((how & 4u) != 0) /* of an IPv4 address */
		memset(d->gid + 10, 0xff, 2);
	else
		d->gid[0] = (odd & 32u) == 0;
	d->cookie[0] = (odd & 64u) == 0;
	memset(d->stack, 'x', (odd & 128u) != 0 ? (how & 31u) % 17u : 3);
	d->memory.length = (how & 32u) != 0 ? UINT64_MAX : how & 16u;
	d->memory.address = odd;
	d->mailbox_rkey = how & 64u;
	d->policy = (odd & 2u) != 0 ? how >> 3 : 0;
}

static enum ndx_status talk(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	const uint8_t how = take_byte();
	const uint8_t *bytes = peer;
	volatile uint8_t sum = 0;

	(void)session;
	for (size_t i = 0; bytes != NULL && i < peer_length; i++)
		sum = (uint8_t)(sum + bytes[i]);
	FUZZ_HOLDS((peer == NULL) == (x->round == 0));
	FUZZ_HOLDS(reply->room <= MESSAGE && x->round < ROUNDS);
	if (x->stage == NDX_STAGE_INFO)
		describe(x->peer);
	if ((how & 7u) == 7) {
		memset(reply->text, 'x', sizeof(reply->text));
		reply->error = (enum ndx_plugin_error)(how >> 3 & 7u);
		return (how & 64u) != 0 ? NDX_E_REMOTE_ERROR : NDX_PENDING;
	}
	reply->length = (how & 7u) == 6 ? reply->room + 1 : how >> 3;
	if (reply->length <= reply->room)
		memset(reply->data, how, reply->length);
	reply->completed = (how & 1u) != 0;
	return NDX_OK;
}

static enum ndx_status begin_session(void *instance, const struct ndx_exchange *x, void **session,
                                     struct ndx_exchange_reply *reply)
{
	(void)instance;
	(void)x;
	*session = malloc(1);
	if (take_byte() != 255)
		return NDX_OK;
	free(*session);
	reply->error = NDX_PLUGIN_RESOURCES;
	return NDX_E_NO_MEMORY;
}

static void end(void *session)
{
	free(session);
}

static enum ndx_status reset(void *session, enum ndx_stage stage)
{
	(void)session;
	(void)stage;
	return take_byte() != 255 ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static const struct ndx_variant_ops full = {.begin = begin_session,
                                            .end = end,
                                            .info = talk,
                                            .ready = talk,
                                            .done = talk,
                                            .reset = reset};
static const struct ndx_variant_ops plain = {.info = talk, .ready = talk};
static const struct ndx_plugin table = {.name = "fuzz"};

/* ---- the other side ---- */

/* A frame as the parser would pass it on: its fields are in range, its payload is anything. */
static void receive_frame(struct dialogue *x)
{
	struct frame f = {.type = (enum frame_type)(1 + take_byte() % 12u),
	                  .stage = x->view.stage,
	                  .round = x->peer_round};
	const uint8_t odd = take_byte();
	uint8_t *payload;

	if ((odd & 1u) != 0)
		f.flags = FRAME_COMPLETED;
	if ((odd & 6u) == 6)
		f.stage = (enum ndx_stage)(odd >> 3 & 3u);
	if ((odd & 96u) == 96)
		f.round = odd;
	f.length = take_byte();
	if (f.length > left)
		f.length = (uint32_t)left;
	/* As long as it is, so that a byte too many is seen. */
	payload = malloc(f.length > 0 ? f.length : 1);
	FUZZ_HOLDS(payload != NULL);
	memcpy(payload, input, f.length);
	input += f.length;
	left -= f.length;
	f.payload = payload;
	dialogue_receive(x, &f, 0);
	free(payload);
}

static enum ndx_role peer_role(const struct dialogue *x)
{
	return x->view.role == NDX_ROLE_CLIENT ? NDX_ROLE_SERVER : NDX_ROLE_CLIENT;
}

/* The peer that has understood the same. */
static void hear_validate(struct dialogue *x)
{
	const struct ndx_agreement agreed = x->agreed;
	struct frame_validate v = {.agreed = agreed};
	struct frame f = {.type = FRAME_VALIDATE, .stage = NDX_STAGE_VALIDATE};
	uint8_t bytes[FRAME_VALIDATE_SIZE + FRAME_MAC_SIZE];
	const uint8_t odd = take_byte();

	agree_identity(&x->peer, v.own);
	agree_identity(&x->own, v.peer);
	f.length = frame_write_validate(bytes, &v);
	f.flags = odd >= 128 ? FRAME_PROVES : 0;
	if (odd != 127) /* a MAC is missing, if there has to be one */
		FUZZ_HOLDS(binding_seal(&x->binding, peer_role(x), &f, bytes));
	if (odd < f.length)
		bytes[odd] ^= 1;
	f.payload = bytes;
	dialogue_receive(x, &f, 0);
}

static void hear_proof(struct dialogue *x)
{
	const uint8_t odd = take_byte();
	uint8_t bytes[FRAME_PROOF_SIZE] = {odd & 3u, odd >> 2 & 3u, odd >> 4 & 3u, odd >> 7};
	const struct frame f = {.type = FRAME_PROOF,
	                        .stage = NDX_STAGE_VALIDATE,
	                        .payload = bytes,
	                        .length = sizeof(bytes)};

	dialogue_receive(x, &f, 0);
}

static void prove(struct dialogue *x)
{
	const uint8_t odd = take_byte();
	const struct frame_proof proof = {odd % 3u, odd / 3u % 3u, odd >= 128};

	dialogue_proved(x, odd != 255 ? NDX_OK : NDX_E_CANCELED, &proof, "no");
}

/* What is said of a dialogue that has failed changes nothing. */
static void gone(struct dialogue *x)
{
	dialogue_fail(x, NDX_LAYER_TRANSPORT, NDX_E_CONNECTION_ABORTED, false, "gone");
	dialogue_fail(x, NDX_LAYER_PLUGIN, NDX_E_INTERNAL_ERROR, true, "again");
	FUZZ_HOLDS(x->error.layer == NDX_LAYER_TRANSPORT && !x->tell);
}

static void receive(struct dialogue *x)
{
	const uint8_t how = take_byte();

	if (how == 255)
		gone(x);
	else if (how == 254 && dialogue_restart(x) != NDX_OK)
		dialogue_fail(x, NDX_LAYER_PLUGIN, NDX_E_NOT_SUPPORTED, true, "cannot");
	else if (x->proving && how < 254 && how >= 100)
		hear_proof(x);
	else if (how < 254 && how >= 200 && x->view.stage == NDX_STAGE_VALIDATE)
		hear_validate(x);
	else if (how < 200)
		receive_frame(x);
}

static bool failed(struct dialogue *x)
{
	uint8_t bytes[FRAME_HEADER + FRAME_ERROR_SIZE_MAX];

	FUZZ_HOLDS(x->error.status < 0 && x->error.layer != NDX_LAYER_NONE);
	FUZZ_HOLDS(strlen(x->error.text) < sizeof(x->error.text));
	if (x->tell)
		FUZZ_HOLDS(dialogue_error_frame(x, bytes) <= sizeof(bytes));
	return false;
}

static bool idle(struct dialogue *x)
{
	FUZZ_HOLDS(x->agreement_known == (x->finished >= NDX_STAGE_INFO));
	if (x->finished == NDX_STAGE_DONE)
		return false;
	FUZZ_HOLDS(dialogue_start(x, NDX_STAGE_DONE) == NDX_OK ||
	           dialogue_start(x, (enum ndx_stage)(x->finished + 1)) == NDX_OK);
	return true;
}

static void send_out(struct dialogue *x)
{
	FUZZ_HOLDS(x->out_length >= FRAME_HEADER &&
	           x->out_length <= FRAME_HEADER + x->limits.max_message);
	dialogue_sent(x);
}

static bool step(struct dialogue *x)
{
	FUZZ_HOLDS(x->finished <= NDX_STAGE_DONE && x->view.round < ROUNDS);
	switch (x->next) {
	case DIALOGUE_IDLE:
		return idle(x);
	case DIALOGUE_CALL:
		dialogue_call(x);
		return true;
	case DIALOGUE_CONNECT:
		dialogue_connected(x, take_byte() != 255 ? NDX_OK : NDX_E_CONNECTION_REFUSED, "no");
		return true;
	case DIALOGUE_PROVE:
		prove(x);
		return true;
	case DIALOGUE_SEND:
		send_out(x);
		return true;
	case DIALOGUE_RECEIVE:
		receive(x);
		return true;
	case DIALOGUE_FAILED:
		return failed(x);
	case DIALOGUE_CLOSED:
	default:
		return false;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct dialogue_limits limits = {MESSAGE, ROUNDS};
	struct plugin plugin = {.table = &table, .name = "fuzz"};
	struct ndx_plugin_variant v = {.name = "fuzz"};
	struct ndx_variant variant = {.plugin = &plugin, .table = &v, .refs = 1};
	struct history history;
	struct dialogue x;
	uint8_t how;

	input = data;
	left = size;
	how = take_byte();
	v.ops = (how & 1u) != 0 ? &full : &plain;
	if (history_init(&history, HISTORY) != NDX_OK)
		return 0;
	dialogue_init(&x, &variant, (how & 2u) != 0 ? NDX_ROLE_SERVER : NDX_ROLE_CLIENT, 1, &limits,
	              &history);
	describe(&x.own);
	x.can_prove = (how & 16u) != 0;
	x.binding.bound = (how & 32u) != 0;
	x.own.mailbox_rkey = 1;
	dialogue_limit(&x, (how & 4u) != 0 ? 512 : FRAME_PAYLOAD_MAX);
	/* A transport may break before the plugin was ever asked. */
	if ((how & 8u) != 0 && dialogue_start(&x, NDX_STAGE_INFO) == NDX_OK)
		(void)dialogue_restart(&x);
	for (int i = 0; i < STEPS && (left > 0 || x.next != DIALOGUE_RECEIVE); i++)
		if (!step(&x))
			break;
	dialogue_fini(&x);
	FUZZ_HOLDS(variant.refs == 1);
	history_fini(&history);
	return 0;
}
