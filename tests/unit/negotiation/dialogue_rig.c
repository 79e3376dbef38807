/* SPDX-License-Identifier: BSD-2-Clause */
#include "dialogue_rig.h"

#include <ndx/spi/system.h>

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
	assert_true(peer != NULL || peer_length == 0);
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
struct ndx_variant_ops rig_ops;
static struct ndx_plugin_variant list[] = {{.name = "two", .help = "", .ops = &rig_ops}};
struct script rig_scripts[2];
static struct script *both[2] = {&rig_scripts[0], &rig_scripts[1]};

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

int rig_begin(void **state)
{
	static struct ndx_plugin plugin;
	const struct dialogue_limits limits = {MESSAGE, ROUNDS};
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	rig_ops = ops;
	rig_ops.create = create;
	rig_ops.destroy = destroy;
	plugin = (struct ndx_plugin){.abi = NDX_PLUGIN_ABI,
	                             .size = sizeof(plugin),
	                             .name = "test",
	                             .version = "1",
	                             .vendor = "us",
	                             .list = list,
	                             .count = 1};
	for (int i = 0; i < 2; i++)
		rig_scripts[i] = (struct script){.rounds = 1, .mtu = i == 0 ? 1024 : 2048};
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
		r->d[i].own.mtu = rig_scripts[i].mtu;
		r->d[i].own.inbound_read_limit = rig_scripts[i].mtu / 256;
		r->d[i].own.outbound_read_limit = 4;
		r->d[i].own.cookie[0] = (uint8_t)(rig_scripts[i].mtu >> 8);
		r->d[i].own.cookie[1] = 1;
		(void)snprintf(r->d[i].own.stack, sizeof(r->d[i].own.stack), "test");
	}
	*state = r;
	return 0;
}

int rig_end(void **state)
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

static bool resting(const struct dialogue *d)
{
	return d->next == DIALOGUE_IDLE || d->next == DIALOGUE_FAILED || d->next == DIALOGUE_CLOSED;
}

void rig_deliver(struct dialogue *d, struct pipe *w)
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

struct frame_proof rig_proofs[2];
bool rig_unconnected[2];

bool rig_step(struct dialogue *d, struct pipe *to, struct pipe *from)
{
	switch (d->next) {
	case DIALOGUE_CALL:
		dialogue_call(d);
		return true;
	case DIALOGUE_CONNECT:
		if (rig_unconnected[d->view.role])
			dialogue_unconnected(d, &rig_proofs[d->view.role]);
		else
			dialogue_connected(d, NDX_OK, "");
		return true;
	case DIALOGUE_PROVE:
		dialogue_proved(d, NDX_OK, &rig_proofs[d->view.role], "");
		return true;
	case DIALOGUE_SEND:
		assert_true(d->out_length <= sizeof(to->bytes[0]));
		memcpy(to->bytes[to->in++ % 8], d->out, d->out_length);
		dialogue_sent(d);
		return true;
	case DIALOGUE_RECEIVE:
		if (from->out == from->in)
			return false;
		rig_deliver(d, from);
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

void rig_run(struct rig *r, enum ndx_stage stage, unsigned seed)
{
	struct pipe wires[2] = {0};
	unsigned stuck = 0;

	for (int i = 0; i < 2; i++)
		assert_int_equal(dialogue_start(&r->d[i], stage), NDX_OK);
	while (stuck < 64) {
		const unsigned side = (seed = seed * 1103515245u + 12345u) >> 16 & 1;

		if (rig_step(&r->d[side], &wires[side], &wires[1 - side]))
			stuck = 0;
		else
			stuck++;
	}
	assert_true(resting(&r->d[0]) && resting(&r->d[1]));
}

struct rig *rig_again(void **state)
{
	(void)rig_end(state);
	(void)rig_begin(state);
	return *state;
}
