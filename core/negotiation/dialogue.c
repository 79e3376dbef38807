/* SPDX-License-Identifier: BSD-2-Clause */
/* The protocol of one session, without I/O. */
#include "dialogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include "base_log.h"

void dialogue_init(struct dialogue *x, struct ndx_variant *variant, enum ndx_role role,
                   uint64_t session, const struct dialogue_limits *limits, struct history *history)
{
	memset(x, 0, sizeof(*x));
	x->next = DIALOGUE_IDLE;
	x->limits = *limits;
	x->history = history;
	x->finished = -1;
	x->view.session = session;
	x->view.role = role;
	x->view.own = &x->own;
	x->view.peer = &x->peer;
	x->view.agreed = &x->agreed;
	x->view.queue_pair_count = 1;
	x->variant = variant;
	variant_get(variant);
}

void dialogue_fini(struct dialogue *x)
{
	const struct ndx_variant_ops *ops = x->variant->table->ops;

	if (x->begun && ops->end != NULL) {
		plugin_enter(x->variant->plugin);
		ops->end(x->session);
		plugin_leave(x->variant->plugin);
	}
	variant_put(x->variant);
	binding_forget(&x->binding);
	free(x->in);
	free(x->out);
}

void dialogue_limit(struct dialogue *x, uint32_t max_message)
{
	if (max_message < x->limits.max_message)
		x->limits.max_message = max_message;
}

size_t dialogue_error_frame(struct dialogue *x, uint8_t out[FRAME_HEADER + FRAME_ERROR_SIZE_MAX])
{
	struct frame_error e = {.layer = (uint8_t)x->error.layer,
	                        .plugin_error = (uint8_t)x->error.plugin_error,
	                        .status = x->error.status};
	struct frame f = {.type = FRAME_ERROR,
	                  .stage = x->error.stage,
	                  .round = x->error.round,
	                  .numbered = x->error.of_queue_pair != 0,
	                  .queue_pair = (uint16_t)x->error.queue_pair};

	(void)snprintf(e.text, sizeof(e.text), "%.200s", x->error.text);
	f.length = frame_write_error(out + FRAME_HEADER, &e);
	frame_write_header(out, &f);
	dialogue_record(x, NDX_HISTORY_SENT, (struct moved){.out = f.length}, x->error.status,
	                ndxp_now_ns(), frame_type_name(f.type));
	x->tell = false;
	return FRAME_HEADER + f.length;
}

static void drop_in(struct dialogue *x)
{
	free(x->in);
	x->in = NULL;
	x->in_length = 0;
}

/* Reset the stage's state. */
static void begin_stage(struct dialogue *x)
{
	x->view.round = 0;
	x->own_completed = false;
	x->peer_completed = false;
	x->peer_round = 0;
	drop_in(x); /* a message of the transport before, which the plugin has not seen */
	x->have_data = false;
	x->proving = false;
	x->unconnected = false;
	x->announcing = false;
	x->announced = false;
	x->peer_connects = false;
	x->stage_ns = ndxp_now_ns();
	if (x->view.stage == NDX_STAGE_INFO)
		binding_begin(&x->binding);
	x->next = x->view.stage == NDX_STAGE_VALIDATE ? DIALOGUE_CONNECT : DIALOGUE_CALL;
}

enum ndx_status dialogue_may_start(const struct dialogue *x, enum ndx_stage stage)
{
	const int wanted = x->finished + 1;

	if (x->next != DIALOGUE_IDLE)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0, "the session is not between two stages");
	if ((int)stage != wanted)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            wanted > NDX_STAGE_DONE ? "all stages are over"
		                                    : "stage %s cannot run now: stage %s is next",
		            frame_stage_name(stage), frame_stage_name((enum ndx_stage)wanted));
	return NDX_OK;
}

enum ndx_status dialogue_start(struct dialogue *x, enum ndx_stage stage)
{
	const enum ndx_status st = dialogue_may_start(x, stage);

	if (st != NDX_OK)
		return st;
	x->view.stage = stage;
	begin_stage(x);
	return NDX_OK;
}

enum ndx_status dialogue_restart(struct dialogue *x)
{
	const struct ndx_variant_ops *ops = x->variant->table->ops;
	enum ndx_status st = NDX_OK;

	if (x->view.stage == NDX_STAGE_VALIDATE || ops->reset == NULL)
		return NDX_E_NOT_SUPPORTED;
	if (x->begun) {
		const uint64_t since = ndxp_now_ns();

		plugin_enter(x->variant->plugin);
		st = ops->reset(x->session, x->view.stage);
		plugin_leave(x->variant->plugin);
		dialogue_record(x, NDX_HISTORY_CALL, dialogue_none, st, since, "reset");
	}
	if (st == NDX_OK)
		begin_stage(x);
	return st;
}

static enum ndx_status begin_session(struct dialogue *x, struct ndx_exchange_reply *reply)
{
	const struct ndx_variant_ops *ops = x->variant->table->ops;
	enum ndx_status st = NDX_OK;

	if (x->begun)
		return NDX_OK;
	x->session = x->variant->instance;
	if (ops->begin != NULL) {
		const uint64_t since = ndxp_now_ns();

		st = ops->begin(x->variant->instance, &x->view, &x->session, reply);
		dialogue_record(x, NDX_HISTORY_CALL, dialogue_none, st, since, "begin");
	}
	x->begun = st == NDX_OK;
	return st;
}

static enum ndx_status call_stage(struct dialogue *x, struct ndx_exchange_reply *reply)
{
	const struct ndx_variant_ops *ops = x->variant->table->ops;
	const void *peer = x->have_data ? x->in : NULL;

	switch (x->view.stage) {
	case NDX_STAGE_INFO:
		return ops->info(x->session, &x->view, peer, x->in_length, reply);
	case NDX_STAGE_READY:
		return ops->ready(x->session, &x->view, peer, x->in_length, reply);
	case NDX_STAGE_DONE:
		if (ops->done != NULL)
			return ops->done(x->session, &x->view, peer, x->in_length, reply);
		reply->completed = true;
		return NDX_OK;
	case NDX_STAGE_VALIDATE:
	default:
		return NDX_E_INTERNAL_ERROR;
	}
}

/* Many messages of one session may wait at the same time. */
static void shrink_out(struct dialogue *x)
{
	uint8_t *shrunk = x->one_of_many ? realloc(x->out, x->out_length) : NULL;

	if (shrunk != NULL)
		x->out = shrunk;
}

/* Check the plugin's reply like any input from outside. */
static void take_reply(struct dialogue *x, enum ndx_status st, struct ndx_exchange_reply *reply)
{
	struct frame f = {.type = FRAME_DATA, .stage = x->view.stage, .round = x->view.round};
	char why[120];

	reply->text[sizeof(reply->text) - 1] = '\0';
	if (st != NDX_OK) {
		dialogue_fail_plugin(
			x, reply->error == NDX_PLUGIN_OK ? NDX_PLUGIN_VENDOR : reply->error, st,
			reply->text[0] != '\0' ? reply->text : ndx_status_text(st));
		return;
	}
	if (reply->length > x->limits.max_message) {
		(void)snprintf(why, sizeof(why), "it returned %zu bytes, %u are allowed",
		               reply->length, x->limits.max_message);
		dialogue_fail_plugin(x, NDX_PLUGIN_SERIALIZATION, NDX_E_BUFFER_OVERFLOW, why);
		return;
	}
	if (!reply->completed && x->peer_completed) {
		dialogue_fail_plugin(
			x, NDX_PLUGIN_PEER_DATA, NDX_E_REMOTE_ERROR,
			"the peer has completed the stage, this side wants more of it");
		return;
	}
	if (x->view.stage == NDX_STAGE_INFO)
		binding_add(&x->binding, x->view.role, x->out + FRAME_HEADER, reply->length);
	x->no_proof = x->no_proof || reply->no_proof;
	x->own_completed = reply->completed;
	f.flags = reply->completed ? FRAME_COMPLETED : 0;
	f.length = (uint32_t)reply->length;
	frame_write_header(x->out, &f);
	x->out_length = FRAME_HEADER + reply->length;
	x->next = DIALOGUE_SEND;
	shrink_out(x);
}

void dialogue_call(struct dialogue *x)
{
	struct ndx_exchange_reply reply = {.room = x->limits.max_message};
	uint64_t since = ndxp_now_ns();
	enum ndx_status st;

	if (!dialogue_make_out(x, reply.room))
		return;
	reply.data = x->out + FRAME_HEADER;
	plugin_enter(x->variant->plugin);
	st = begin_session(x, &reply);
	if (st == NDX_OK) {
		since = ndxp_now_ns();
		st = call_stage(x, &reply);
	}
	plugin_leave(x->variant->plugin);
	dialogue_record(x, NDX_HISTORY_CALL, (struct moved){(uint32_t)reply.length, x->in_length},
	                st, since, frame_stage_name(x->view.stage));
	drop_in(x);
	take_reply(x, st, &reply);
}

void dialogue_sent(struct dialogue *x)
{
	dialogue_record(x, NDX_HISTORY_SENT,
	                (struct moved){.out = (uint32_t)(x->out_length - FRAME_HEADER)}, NDX_OK,
	                ndxp_now_ns(), frame_type_name((enum frame_type)x->out[FRAME_TYPE_AT]));
	free(x->out);
	x->out = NULL;
	if (x->announcing) {
		x->announcing = false;
		x->announced = true;
		x->next = DIALOGUE_CONNECT;
		return;
	}
	if (x->own_completed && x->peer_completed)
		dialogue_end_stage(x);
	else
		x->next = DIALOGUE_RECEIVE;
}

static void receive_data(struct dialogue *x, const struct frame *f)
{
	/* Stage validate has no messages of plugins: one would end it without VALIDATE. */
	if (f->stage == NDX_STAGE_VALIDATE || f->stage != x->view.stage ||
	    f->round != x->peer_round || x->peer_completed) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true,
		              "the peer's message is not of this stage and round");
		return;
	}
	if (x->view.stage == NDX_STAGE_INFO)
		binding_add(&x->binding, dialogue_peer_role(x), f->payload, f->length);
	x->peer_round++;
	x->peer_completed = (f->flags & FRAME_COMPLETED) != 0;
	if (x->own_completed) {
		/* The own plugin had asked for no more, so the peer's last message is not passed
		 * on. */
		if (x->peer_completed)
			dialogue_end_stage(x);
		return;
	}
	if (x->view.round + 1 >= x->limits.max_rounds) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_BUFFER_OVERFLOW, true,
		              "the stage has more rounds than allowed: the two plugins do not come "
		              "to an end");
		return;
	}
	free(x->in);
	x->in = malloc(f->length > 0 ? f->length : 1);
	if (x->in == NULL) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_NO_MEMORY, true, "out of memory");
		return;
	}
	memcpy(x->in, f->payload, f->length);
	x->in_length = f->length;
	x->have_data = true;
	x->view.round++;
	x->next = DIALOGUE_CALL;
}

static void receive_error(struct dialogue *x, const struct frame *f)
{
	struct frame_error e;
	const char *why;
	char text[256];

	if (!frame_parse_error(f, &e, &why)) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, false, why);
		return;
	}
	(void)snprintf(text, sizeof(text), "the peer gave up: %s", e.text);
	x->error.remote = true;
	x->error.of_queue_pair = f->numbered;
	x->error.queue_pair = f->queue_pair;
	if (e.plugin_error <= NDX_PLUGIN_CONFIGURATION)
		x->error.plugin_error = (enum ndx_plugin_error)e.plugin_error;
	dialogue_fail(x,
	              e.layer <= NDX_LAYER_PROVIDER && e.layer != NDX_LAYER_NONE
	                      ? (enum ndx_error_layer)e.layer
	                      : NDX_LAYER_FRAMEWORK,
	              NDX_E_REMOTE_ERROR, false, text);
}

void dialogue_receive(struct dialogue *x, const struct frame *f, uint64_t since_ns)
{
	if (f->type != FRAME_SESSION_END || !x->heard_end)
		dialogue_record(x, NDX_HISTORY_RECEIVED, (struct moved){.in = f->length}, NDX_OK,
		                since_ns, frame_type_name(f->type));
	switch (f->type) {
	case FRAME_ALIVE:
		x->peer_connects = x->peer_connects || (f->stage == NDX_STAGE_VALIDATE &&
		                                        x->view.stage == NDX_STAGE_VALIDATE);
		return;
	case FRAME_DATA:
		receive_data(x, f);
		return;
	case FRAME_VALIDATE:
		dialogue_receive_validate(x, f);
		return;
	case FRAME_PROOF:
		dialogue_receive_proof(x, f);
		return;
	case FRAME_ERROR:
		receive_error(x, f);
		return;
	case FRAME_SESSION_END:
		x->next = DIALOGUE_CLOSED;
		return;
	case FRAME_HELLO:
	case FRAME_WELCOME:
	case FRAME_GOODBYE:
	case FRAME_ADD:
	case FRAME_ABANDON:
	case FRAME_REMOVE:
	default:
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true,
		              "the peer sent a message that has no place here");
		return;
	}
}
