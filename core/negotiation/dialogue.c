/* SPDX-License-Identifier: BSD-2-Clause */
/* The protocol of one session, without I/O. */
#include "dialogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include "base_log.h"
#include <ndx/spi/provider.h>
#include "agree.h"
#include "proof.h"

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

void dialogue_fail(struct dialogue *x, enum ndx_error_layer layer, enum ndx_status status,
                   bool tell, const char *text)
{
	if (x->next == DIALOGUE_FAILED)
		return;
	x->error.status = status < 0 ? status : NDX_E_UNSUCCESSFUL;
	x->error.layer = layer;
	x->error.stage = x->view.stage;
	x->error.round = x->view.round;
	(void)snprintf(x->error.text, sizeof(x->error.text), "%s", text);
	x->tell = tell;
	x->next = DIALOGUE_FAILED;
	if (status == NDX_E_INTERNAL_ERROR)
		base_log_backtrace("unexpected failure");
}

static void fail_plugin(struct dialogue *x, enum ndx_plugin_error error, enum ndx_status status,
                        const char *text)
{
	char whole[256];

	(void)snprintf(whole, sizeof(whole), "plugin \"%s\", variant \"%s\": %.160s",
	               x->variant->plugin->name, x->variant->table->name, text);
	x->error.plugin_error = error;
	dialogue_fail(x, NDX_LAYER_PLUGIN, status, true, whole);
}

/* Bytes that were sent and received, or that the plugin returned and was given. */
struct moved {
	uint32_t out;
	uint32_t in;
};

static const struct moved none;

static void record(struct dialogue *x, enum ndx_history_kind kind, struct moved bytes,
                   enum ndx_status status, uint64_t since_ns, const char *text)
{
	const struct ndx_history_entry entry = {.kind = kind,
	                                        .stage = x->view.stage,
	                                        .round = x->view.round,
	                                        .bytes = bytes.out,
	                                        .bytes_in = bytes.in,
	                                        .status = status};
	char of_one[sizeof(entry.text)];

	if (x->one_of_many) {
		(void)snprintf(of_one, sizeof(of_one), "queue pair %u: %.70s", x->queue_pair, text);
		text = of_one;
	}
	history_add(x->history, &entry, since_ns, text);
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
	record(x, NDX_HISTORY_SENT, (struct moved){.out = f.length}, x->error.status, ndxp_now_ns(),
	       frame_type_name(f.type));
	x->tell = false;
	return FRAME_HEADER + f.length;
}

/* Reset the stage's state. */
static void begin_stage(struct dialogue *x)
{
	x->view.round = 0;
	x->own_completed = false;
	x->peer_completed = false;
	x->peer_round = 0;
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

enum ndx_status dialogue_start(struct dialogue *x, enum ndx_stage stage)
{
	const int wanted = x->finished + 1;

	if (x->next != DIALOGUE_IDLE)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0, "the session is not between two stages");
	if ((int)stage != wanted)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            wanted > NDX_STAGE_DONE ? "all stages are over"
		                                    : "stage %s cannot run now: stage %s is next",
		            frame_stage_name(stage), frame_stage_name((enum ndx_stage)wanted));
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
		record(x, NDX_HISTORY_CALL, none, st, since, "reset");
	}
	if (st == NDX_OK)
		begin_stage(x);
	return st;
}

/* Both sides have completed the stage. */
static void end_stage(struct dialogue *x)
{
	char why[160];

	if (x->view.stage == NDX_STAGE_INFO) {
		enum ndx_status st = agree_check(&x->peer, why, sizeof(why));

		if (st != NDX_OK) {
			fail_plugin(x, NDX_PLUGIN_PEER_DATA, st, why);
			return;
		}
		st = agree_compute(x->view.role, &x->own, &x->peer, &x->agreed, why, sizeof(why));
		if (st != NDX_OK) {
			dialogue_fail(x, NDX_LAYER_FRAMEWORK, st, true, why);
			return;
		}
		x->agreement_known = true;
	}
	x->finished = (int)x->view.stage;
	x->next = DIALOGUE_IDLE;
	if (x->one_of_many)
		return;
	record(x, NDX_HISTORY_STAGE, none, NDX_OK, x->stage_ns, frame_stage_name(x->view.stage));
	log_debug("session %llu: stage %s has ended, %u rounds",
	          (unsigned long long)x->view.session, frame_stage_name(x->view.stage),
	          x->view.round + 1);
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
		record(x, NDX_HISTORY_CALL, none, st, since, "begin");
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

/* Allocated for each message, because idle sessions are many and need no buffer. */
static bool make_out(struct dialogue *x, size_t payload)
{
	free(x->out);
	x->out = malloc(FRAME_HEADER + payload);
	if (x->out == NULL)
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_NO_MEMORY, true, "out of memory");
	return x->out != NULL;
}

/* Many messages of one session may wait at the same time. */
static void shrink_out(struct dialogue *x)
{
	uint8_t *shrunk = x->one_of_many ? realloc(x->out, x->out_length) : NULL;

	if (shrunk != NULL)
		x->out = shrunk;
}

static void drop_in(struct dialogue *x)
{
	free(x->in);
	x->in = NULL;
	x->in_length = 0;
}

/* Check the plugin's reply like any input from outside. */
static void take_reply(struct dialogue *x, enum ndx_status st, struct ndx_exchange_reply *reply)
{
	struct frame f = {.type = FRAME_DATA, .stage = x->view.stage, .round = x->view.round};
	char why[120];

	reply->text[sizeof(reply->text) - 1] = '\0';
	if (st != NDX_OK) {
		fail_plugin(x, reply->error == NDX_PLUGIN_OK ? NDX_PLUGIN_VENDOR : reply->error, st,
		            reply->text[0] != '\0' ? reply->text : ndx_status_text(st));
		return;
	}
	if (reply->length > x->limits.max_message) {
		(void)snprintf(why, sizeof(why), "it returned %zu bytes, %u are allowed",
		               reply->length, x->limits.max_message);
		fail_plugin(x, NDX_PLUGIN_SERIALIZATION, NDX_E_BUFFER_OVERFLOW, why);
		return;
	}
	if (!reply->completed && x->peer_completed) {
		fail_plugin(x, NDX_PLUGIN_PEER_DATA, NDX_E_REMOTE_ERROR,
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

	if (!make_out(x, reply.room))
		return;
	reply.data = x->out + FRAME_HEADER;
	plugin_enter(x->variant->plugin);
	st = begin_session(x, &reply);
	if (st == NDX_OK) {
		since = ndxp_now_ns();
		st = call_stage(x, &reply);
	}
	plugin_leave(x->variant->plugin);
	record(x, NDX_HISTORY_CALL, (struct moved){(uint32_t)reply.length, x->in_length}, st, since,
	       frame_stage_name(x->view.stage));
	drop_in(x);
	take_reply(x, st, &reply);
}

/* Whether this end asks the peer to prove the path together. Without a connection manager each end
 * writes into the other's mailbox. */
static bool proves(const struct dialogue *x)
{
	return x->can_prove && !x->no_proof &&
	       ((x->own.policy | x->peer.policy) & NDX_PEER_NOT_WRITTEN) == 0 &&
	       (x->own.kind != NDX_DESCRIPTION_VERBS_RC ||
	        (x->own.mailbox_rkey != 0 && x->peer.mailbox_rkey != 0));
}

static enum ndx_role peer_role(const struct dialogue *x)
{
	return x->view.role == NDX_ROLE_CLIENT ? NDX_ROLE_SERVER : NDX_ROLE_CLIENT;
}

void dialogue_connected(struct dialogue *x, enum ndx_status status, const char *text)
{
	struct frame f = {.type = FRAME_VALIDATE, .stage = NDX_STAGE_VALIDATE};
	struct frame_validate v = {.agreed = x->agreed};

	if (status != NDX_OK) {
		dialogue_fail(x, NDX_LAYER_PROVIDER, status, true, text);
		return;
	}
	if (!make_out(x, FRAME_VALIDATE_SIZE + FRAME_MAC_SIZE))
		return;
	agree_identity(&x->own, v.own);
	agree_identity(&x->peer, v.peer);
	f.flags = proves(x) ? FRAME_PROVES : 0;
	f.length = frame_write_validate(x->out + FRAME_HEADER, &v);
	if (!binding_seal(&x->binding, x->view.role, &f, x->out + FRAME_HEADER)) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_INTERNAL_ERROR, true,
		              "the queue pair cannot be bound to the channel of TLS");
		return;
	}
	frame_write_header(x->out, &f);
	x->out_length = FRAME_HEADER + f.length;
	x->own_completed = true;
	x->next = DIALOGUE_SEND;
}

void dialogue_announce(struct dialogue *x)
{
	const struct frame f = {.type = FRAME_ALIVE, .stage = NDX_STAGE_VALIDATE};

	if (!make_out(x, 0))
		return;
	frame_write_header(x->out, &f);
	x->out_length = FRAME_HEADER;
	x->announcing = true;
	x->next = DIALOGUE_SEND;
}

static void send_proof(struct dialogue *x, const struct frame_proof *proof, uint8_t flags)
{
	struct frame f = {.type = FRAME_PROOF, .stage = NDX_STAGE_VALIDATE, .flags = flags};
	char said[80];

	x->proof = *proof;
	(void)snprintf(said, sizeof(said), "%swritten %u of 2, seen %u of 2%s",
	               x->unconnected ? "not connected, " : "", proof->written, proof->seen,
	               proof->denied ? ", access denied" : "");
	record(x, NDX_HISTORY_PROOF, none, NDX_OK, x->proof_ns, said);
	if (!make_out(x, FRAME_PROOF_SIZE))
		return;
	f.length = frame_write_proof(x->out + FRAME_HEADER, proof);
	frame_write_header(x->out, &f);
	x->out_length = FRAME_HEADER + f.length;
	x->own_completed = true;
	x->next = DIALOGUE_SEND;
}

void dialogue_proved(struct dialogue *x, enum ndx_status status, const struct frame_proof *proof,
                     const char *text)
{
	if (status != NDX_OK)
		dialogue_fail(x, NDX_LAYER_PROVIDER, status, true, text);
	else
		send_proof(x, proof, 0);
}

void dialogue_unconnected(struct dialogue *x, const struct frame_proof *proof)
{
	x->proving = true;
	x->unconnected = true;
	x->proof_ns = x->stage_ns;
	send_proof(x, proof, FRAME_UNCONNECTED);
}

void dialogue_sent(struct dialogue *x)
{
	record(x, NDX_HISTORY_SENT, (struct moved){.out = (uint32_t)(x->out_length - FRAME_HEADER)},
	       NDX_OK, ndxp_now_ns(), frame_type_name((enum frame_type)x->out[FRAME_TYPE_AT]));
	free(x->out);
	x->out = NULL;
	if (x->announcing) {
		x->announcing = false;
		x->announced = true;
		x->next = DIALOGUE_CONNECT;
		return;
	}
	if (x->own_completed && x->peer_completed)
		end_stage(x);
	else
		x->next = DIALOGUE_RECEIVE;
}

static void receive_data(struct dialogue *x, const struct frame *f)
{
	if (f->stage != x->view.stage || f->round != x->peer_round || x->peer_completed) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true,
		              "the peer's message is not of this stage and round");
		return;
	}
	if (x->view.stage == NDX_STAGE_INFO)
		binding_add(&x->binding, peer_role(x), f->payload, f->length);
	x->peer_round++;
	x->peer_completed = (f->flags & FRAME_COMPLETED) != 0;
	if (x->own_completed) {
		/* The own plugin had asked for no more, so the peer's last message is not passed
		 * on. */
		if (x->peer_completed)
			end_stage(x);
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

/* An end that is connected has seen all messages of connecting. */
static const struct frame_proof connected = {.written = NDX_PROVED_WHOLE, .seen = NDX_PROVED_WHOLE};

static void judge(struct dialogue *x, const struct frame_proof *peer)
{
	const struct frame_proof *own =
		x->proving ? &x->proof : &connected; /* the peer alone has no connection */
	char why[PROOF_TEXT];
	enum ndx_status st = proof_judge(x->view.role, own, peer, &x->agreed, why);

	if (st == NDX_OK && (x->unconnected || !x->proving)) {
		(void)snprintf(
			why, sizeof(why),
			"the queue pairs do not get connected, although packets pass in both "
			"directions");
		st = NDX_E_IO_TIMEOUT;
	}
	record(x, NDX_HISTORY_VERDICT, none, st, x->proof_ns != 0 ? x->proof_ns : x->stage_ns,
	       st == NDX_OK ? "packets of the path MTU pass in both directions" : why);
	if (st != NDX_OK) {
		dialogue_fail(x, NDX_LAYER_PROVIDER, st, true, why);
		return;
	}
	x->proving = false;
	x->peer_completed = true;
	end_stage(x);
}

static void receive_validate(struct dialogue *x, const struct frame *f)
{
	struct frame_validate v;
	uint8_t own[16];
	uint8_t peer[16];
	const char *why;
	char text[128];

	if (x->unconnected) {
		judge(x, &connected);
		return;
	}
	if (x->view.stage != NDX_STAGE_VALIDATE || x->peer_completed || x->proving) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true,
		              "the peer validates at the wrong time");
		return;
	}
	if (!frame_parse_validate(f, &v, &why)) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true, why);
		return;
	}
	why = binding_find_fault(&x->binding, peer_role(x), f);
	if (why != NULL) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_CONNECTION_REFUSED, true, why);
		return;
	}
	agree_identity(&x->own, own);
	agree_identity(&x->peer, peer);
	why = agree_difference(&x->agreed, &v.agreed);
	if (why == NULL && (memcmp(v.own, peer, 16) != 0 || memcmp(v.peer, own, 16) != 0))
		why = "which queue pairs are connected";
	if (why != NULL) {
		(void)snprintf(text, sizeof(text), "the two sides do not agree on %s", why);
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_INVALID_CONFIG, true, text);
		return;
	}
	if (proves(x) && (f->flags & FRAME_PROVES) != 0) {
		x->own_completed = false; /* until the own proof is sent */
		x->proving = true;
		x->proof_ns = ndxp_now_ns();
		x->next = DIALOGUE_PROVE;
		return;
	}
	x->peer_completed = true;
	end_stage(x);
}

static void receive_proof(struct dialogue *x, const struct frame *f)
{
	const bool alone = (f->flags & FRAME_UNCONNECTED) != 0 &&
	                   x->view.stage == NDX_STAGE_VALIDATE && !x->proving;
	struct frame_proof proof;
	const char *bad;

	if ((!alone && (!x->proving || !x->own_completed)) ||
	    ((f->flags & FRAME_UNCONNECTED) != 0 && x->proving && !x->unconnected)) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true,
		              "the peer proves the path at the wrong time");
		return;
	}
	if (!frame_parse_proof(f, &proof, &bad)) {
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true, bad);
		return;
	}
	judge(x, &proof);
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
	record(x, NDX_HISTORY_RECEIVED, (struct moved){.in = f->length}, NDX_OK, since_ns,
	       frame_type_name(f->type));
	switch (f->type) {
	case FRAME_ALIVE:
		x->peer_connects = x->peer_connects || (f->stage == NDX_STAGE_VALIDATE &&
		                                        x->view.stage == NDX_STAGE_VALIDATE);
		return;
	case FRAME_DATA:
		receive_data(x, f);
		return;
	case FRAME_VALIDATE:
		receive_validate(x, f);
		return;
	case FRAME_PROOF:
		receive_proof(x, f);
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
	default:
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_REMOTE_ERROR, true,
		              "the peer sent a message that has no place here");
		return;
	}
}
