/* SPDX-License-Identifier: BSD-2-Clause */
/* Stage validate of a dialogue: what both ends have connected, and whether its path passes. */
#include "dialogue.h"

#include <stdio.h>
#include <string.h>

#include <ndx/spi/provider.h>
#include <ndx/spi/system.h>
#include "agree.h"
#include "proof.h"

/* Whether this end asks the peer to prove the path together. Without a connection manager each end
 * writes into the other's mailbox. */
static bool proves(const struct dialogue *x)
{
	return x->can_prove && !x->no_proof &&
	       ((x->own.policy | x->peer.policy) & NDX_PEER_NOT_WRITTEN) == 0 &&
	       (x->own.kind != NDX_DESCRIPTION_VERBS_RC ||
	        (x->own.mailbox_rkey != 0 && x->peer.mailbox_rkey != 0));
}

void dialogue_connected(struct dialogue *x, enum ndx_status status, const char *text)
{
	struct frame f = {.type = FRAME_VALIDATE, .stage = NDX_STAGE_VALIDATE};
	struct frame_validate v = {.agreed = x->agreed};

	if (status != NDX_OK) {
		dialogue_fail(x, NDX_LAYER_PROVIDER, status, true, text);
		return;
	}
	if (!dialogue_make_out(x, FRAME_VALIDATE_SIZE + FRAME_MAC_SIZE))
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

	if (!dialogue_make_out(x, 0))
		return;
	frame_write_header(x->out, &f);
	x->out_length = FRAME_HEADER;
	x->announcing = true;
	x->next = DIALOGUE_SEND;
}

static void send_proof(struct dialogue *x, const struct frame_proof *proof, uint8_t flags)
{
	struct frame f = {.type = FRAME_PROOF, .stage = NDX_STAGE_VALIDATE, .flags = flags};
	const bool refused = proof->seen == NDX_PROVED_REFUSED;
	char said[112];

	x->proof = *proof;
	(void)snprintf(said, sizeof(said), "%swritten %u of 2, seen %u of 2%s%s",
	               x->unconnected ? "not connected, " : "", proof->written,
	               refused ? NDX_PROVED_NOTHING : proof->seen,
	               proof->denied ? ", access denied" : "",
	               refused ? ", own device refuses" : "");
	dialogue_record(x, NDX_HISTORY_PROOF, dialogue_none, NDX_OK, x->proof_ns, said);
	if (!dialogue_make_out(x, FRAME_PROOF_SIZE))
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
	dialogue_record(x, NDX_HISTORY_VERDICT, dialogue_none, st,
	                x->proof_ns != 0 ? x->proof_ns : x->stage_ns,
	                st == NDX_OK ? "packets of the path MTU pass in both directions" : why);
	if (st != NDX_OK) {
		dialogue_fail(x, NDX_LAYER_PROVIDER, st, true, why);
		return;
	}
	x->proving = false;
	x->peer_completed = true;
	dialogue_end_stage(x);
}

void dialogue_receive_validate(struct dialogue *x, const struct frame *f)
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
	why = binding_find_fault(&x->binding, dialogue_peer_role(x), f);
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
	dialogue_end_stage(x);
}

void dialogue_receive_proof(struct dialogue *x, const struct frame *f)
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
