/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plugin to start from: copy this folder, and replace the example's ring of slots by what your
 * device needs. docs/writing-a-plugin.md explains the file from top to bottom.
 *
 * The plugin negotiates a ring of slots: each end proposes a number of slots and a slot size, and
 * both use the smaller of each. Stage info has three rounds of messages; both sides send the same
 * kind of message in the same round:
 *
 *     call 0:  sends hello                             (the own ring)
 *     call 1:  receives hello,   sends offer           (the own queue pair)
 *     call 2:  receives offer,   sends confirm         (what both rings result in)
 *     call 3:  receives confirm, completes the stage   (with nothing more to send)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/plugin.h>

#include "format.h"

/* The plugin: one per framework, between `initialize` and `finalize`. */
struct example {
	const struct ndx_plugin_host *host;
};

/* An instance: the variant with its parameters. Constant, because many sessions share it. */
struct instance {
	struct example *plugin;
	struct example_ring ring;
	char label[EXAMPLE_LABEL_MAX + 1];
};

/* One session. Its calls come one at a time, so it needs no lock. */
struct session {
	const struct instance *instance;
	struct example_ring agreed;
	char peer_label[EXAMPLE_LABEL_MAX + 1];
};

/* ---- the plugin ---- */

static enum ndx_status initialize(const struct ndx_plugin_host *host, void **state, char *why,
                                  size_t room)
{
	struct example *plugin = calloc(1, sizeof(*plugin));

	if (plugin == NULL) {
		(void)snprintf(why, room, "out of memory");
		return NDX_E_NO_MEMORY;
	}
	plugin->host = host;
	*state = plugin;
	return NDX_OK;
}

static void finalize(void *state)
{
	free(state);
}

/* ---- the variant's parameters; the framework checks them; in the order of this list ---- */

enum { PARAM_SLOTS, PARAM_SLOT_SIZE, PARAM_LABEL };

static const struct ndx_plugin_param params[] = {
	[PARAM_SLOTS] = {.name = "slots",
                         .type = NDX_PARAM_INT,
                         .least = 1,
                         .most = 65536,
                         .initial = "64",
                         .help = "slots of the ring, at most"},
	[PARAM_SLOT_SIZE] = {.name = "slot-size",
                             .type = NDX_PARAM_INT,
                             .least = 64,
                             .most = 1 << 20,
                             .initial = "4096",
                             .help = "bytes of a slot, at most"},
	[PARAM_LABEL] = {.name = "label",
                         .type = NDX_PARAM_STRING,
                         .least = 0,
                         .most = EXAMPLE_LABEL_MAX,
                         .initial = "",
                         .help = "what the peer's log calls this end"},
	{.name = NULL},
};

static enum ndx_status create(void *plugin, const struct ndx_plugin_variant *variant,
                              const struct ndx_plugin_value *values, void **out, char *why,
                              size_t room)
{
	const int64_t slots = values[PARAM_SLOTS].number;
	const int64_t slot_size = values[PARAM_SLOT_SIZE].number;
	struct instance *instance;

	(void)variant;
	/* The framework has checked each range. Only the plugin can check the combination. */
	if (slots * slot_size > INT64_C(1) << 32) {
		(void)snprintf(why, room, "slots x slot-size is above 4 GiB");
		return NDX_E_INVALID_CONFIG;
	}
	instance = calloc(1, sizeof(*instance));
	if (instance == NULL) {
		(void)snprintf(why, room, "out of memory");
		return NDX_E_NO_MEMORY;
	}
	instance->plugin = plugin;
	instance->ring = (struct example_ring){(uint32_t)slots, (uint32_t)slot_size};
	(void)snprintf(instance->label, sizeof(instance->label), "%s", values[PARAM_LABEL].text);
	*out = instance;
	return NDX_OK;
}

static void destroy(void *instance)
{
	free(instance);
}

/* ---- a session ---- */

/* Every failure ends here: its kind, and one line of text that both sides see. */
static enum ndx_status give_up(struct ndx_exchange_reply *reply, enum ndx_plugin_error error,
                               enum ndx_status status, const char *text)
{
	reply->error = error;
	(void)snprintf(reply->text, sizeof(reply->text), "%s", text);
	return status;
}

static enum ndx_status begin_session(void *instance, const struct ndx_exchange *x, void **out,
                                     struct ndx_exchange_reply *reply)
{
	struct session *s = calloc(1, sizeof(*s));

	(void)x;
	if (s == NULL)
		return give_up(reply, NDX_PLUGIN_RESOURCES, NDX_E_NO_MEMORY, "out of memory");
	s->instance = instance;
	*out = s;
	return NDX_OK;
}

static void end(void *session)
{
	free(session);
}

static enum ndx_status write_reply(const struct example_message *m,
                                   struct ndx_exchange_reply *reply)
{
	/* The application chooses the session's largest message. */
	if (reply->room < EXAMPLE_MESSAGE_MAX)
		return give_up(reply, NDX_PLUGIN_SERIALIZATION, NDX_E_BUFFER_OVERFLOW,
		               "messages of 128 bytes must be allowed");
	reply->length = example_write(reply->data, m);
	return NDX_OK;
}

/* Parse the peer's message; fail if it is malformed or of another step. */
static enum ndx_status read_peer(const void *peer, size_t length, enum example_step step,
                                 struct example_message *m, struct ndx_exchange_reply *reply)
{
	const char *why = "nothing";

	if (peer != NULL && example_parse(peer, length, m, &why) && m->step == step)
		return NDX_OK;
	(void)snprintf(reply->text, sizeof(reply->text), "from the peer came %s",
	               why != NULL ? why : "a message of another step");
	reply->error = NDX_PLUGIN_PEER_DATA;
	return NDX_E_REMOTE_ERROR;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static enum ndx_status say_hello(const struct session *s, struct ndx_exchange_reply *reply)
{
	struct example_message m = {.step = EXAMPLE_HELLO, .ring = s->instance->ring};

	memcpy(m.label, s->instance->label, sizeof(m.label));
	return write_reply(&m, reply);
}

static enum ndx_status say_offer(struct session *s, const struct ndx_exchange *x,
                                 const struct example_message *hello,
                                 struct ndx_exchange_reply *reply)
{
	const struct example_ring *own = &s->instance->ring;
	const struct example_message m = {.step = EXAMPLE_OFFER, .description = *x->own};

	/* Both sides use the smaller of each, so both get the same ring. */
	s->agreed.slots = smaller(own->slots, hello->ring.slots);
	s->agreed.slot_size = smaller(own->slot_size, hello->ring.slot_size);
	memcpy(s->peer_label, hello->label, sizeof(s->peer_label));
	return write_reply(&m, reply);
}

static enum ndx_status say_confirm(const struct session *s, const struct ndx_exchange *x,
                                   const struct example_message *offer,
                                   struct ndx_exchange_reply *reply)
{
	const struct example_message m = {.step = EXAMPLE_CONFIRM, .ring = s->agreed};

	/* The framework needs the peer's description to connect the queue pairs. */
	*x->peer = offer->description;
	return write_reply(&m, reply);
}

/* A line in the application's log; the framework adds the plugin's name. */
static void log_ring(const struct session *s, const struct ndx_exchange *x)
{
	const struct ndx_plugin_host *host = s->instance->plugin->host;
	char text[160];

	(void)snprintf(text, sizeof(text), "session %llu: %u slots of %u bytes with \"%s\"",
	               (unsigned long long)x->session, s->agreed.slots, s->agreed.slot_size,
	               s->peer_label);
	host->log(host, NDX_LOG_INFO, text);
}

static enum ndx_status complete(const struct session *s, const struct ndx_exchange *x,
                                const struct example_message *confirm,
                                struct ndx_exchange_reply *reply)
{
	if (confirm->ring.slots != s->agreed.slots ||
	    confirm->ring.slot_size != s->agreed.slot_size)
		return give_up(reply, NDX_PLUGIN_PEER_DATA, NDX_E_REMOTE_ERROR,
		               "the peer makes another ring of both hellos");
	log_ring(s, x);
	reply->completed = true;
	return NDX_OK;
}

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	struct session *s = session;
	struct example_message m;
	enum ndx_status st;

	if (x->round == 0)
		return say_hello(s, reply);
	/* Round n receives what the peer sent in round n - 1. */
	st = read_peer(peer, peer_length, (enum example_step)x->round, &m, reply);
	if (st != NDX_OK)
		return st;
	switch (x->round) {
	case 1:
		return say_offer(s, x, &m, reply);
	case 2:
		return say_confirm(s, x, &m, reply);
	default:
		return complete(s, x, &m, reply);
	}
}

/*
 * The queue pairs are connected. A plugin for a device would arm the device here, and complete when
 * the device is armed: the peer sends nothing before both sides have completed. The example has
 * nothing to wait for.
 */
static enum ndx_status ready(void *session, const struct ndx_exchange *x, const void *peer,
                             size_t peer_length, struct ndx_exchange_reply *reply)
{
	(void)session;
	(void)x;
	(void)peer;
	(void)peer_length;
	reply->completed = true;
	return NDX_OK;
}

/* The transfers are over: release what was armed for them. */
static enum ndx_status done(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t peer_length, struct ndx_exchange_reply *reply)
{
	return ready(session, x, peer, peer_length, reply);
}

/*
 * The transport broke during a stage and was connected again; the stage starts again with round 0.
 */
static enum ndx_status reset(void *session, enum ndx_stage stage)
{
	struct session *s = session;

	if (stage == NDX_STAGE_INFO) {
		s->agreed = (struct example_ring){0, 0};
		s->peer_label[0] = '\0';
	}
	return NDX_OK;
}

static const struct ndx_variant_ops ops = {
	/* no `available`: the variant runs on every machine */
	.create = create, .destroy = destroy, .begin = begin_session, .end = end,
	.info = info,     .ready = ready,     .done = done,           .reset = reset,
};

static const struct ndx_plugin_variant variants[] = {
	{.name = "three-round",
         .help = "a ring of slots, agreed on in three rounds",
         .params = params,
         .ops = &ops},
};

/* The only exported symbol of the file, because of plugins/plugin.map. */
const struct ndx_plugin ndx_plugin = {
	.abi = NDX_PLUGIN_ABI,
	.size = sizeof(struct ndx_plugin),
	.name = "example",
	.version = "1.0",
	.vendor = "NDX",
	.flags = NDX_PLUGIN_MANY | NDX_PLUGIN_ADDS,
	.initialize = initialize,
	.finalize = finalize,
	.list = variants,
	.count = sizeof(variants) / sizeof(variants[0]),
};
