/* SPDX-License-Identifier: BSD-2-Clause */
/* What the stages of a dialogue share: its failure, its history, its next frame, a stage's end. */
#include "dialogue.h"

#include <stdio.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include "base_log.h"
#include "agree.h"

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

void dialogue_fail_plugin(struct dialogue *x, enum ndx_plugin_error error, enum ndx_status status,
                          const char *text)
{
	char whole[256];

	(void)snprintf(whole, sizeof(whole), "plugin \"%s\", variant \"%s\": %.160s",
	               x->variant->plugin->name, x->variant->table->name, text);
	x->error.plugin_error = error;
	dialogue_fail(x, NDX_LAYER_PLUGIN, status, true, whole);
}

const struct moved dialogue_none;

static void record(struct dialogue *x, const struct ndx_history_entry *entry, uint64_t since_ns,
                   const char *text)
{
	char of_one[sizeof(entry->text)];

	if (x->one_of_many) {
		(void)snprintf(of_one, sizeof(of_one), "queue pair %u: %.70s", x->queue_pair, text);
		text = of_one;
	}
	history_add(x->history, entry, since_ns, text);
}

void dialogue_record(struct dialogue *x, enum ndx_history_kind kind, struct moved bytes,
                     enum ndx_status status, uint64_t since_ns, const char *text)
{
	const struct ndx_history_entry entry = {.kind = kind,
	                                        .stage = x->view.stage,
	                                        .round = x->view.round,
	                                        .bytes = bytes.out,
	                                        .bytes_in = bytes.in,
	                                        .status = status};

	record(x, &entry, since_ns, text);
}

void dialogue_record_word(struct dialogue *x, enum ndx_history_kind kind, enum frame_type type,
                          enum ndx_status status)
{
	/* No round: a task that has the dialogue may change the round, and the stage never. */
	const struct ndx_history_entry entry = {
		.kind = kind, .stage = x->view.stage, .status = status};

	record(x, &entry, ndxp_now_ns(), frame_type_name(type));
}

enum ndx_role dialogue_peer_role(const struct dialogue *x)
{
	return x->view.role == NDX_ROLE_CLIENT ? NDX_ROLE_SERVER : NDX_ROLE_CLIENT;
}

/* Allocated for each message, because idle sessions are many and need no buffer. */
bool dialogue_make_out(struct dialogue *x, size_t payload)
{
	free(x->out);
	x->out = malloc(FRAME_HEADER + payload);
	if (x->out == NULL)
		dialogue_fail(x, NDX_LAYER_FRAMEWORK, NDX_E_NO_MEMORY, true, "out of memory");
	return x->out != NULL;
}

/* Both sides have completed the stage. */
void dialogue_end_stage(struct dialogue *x)
{
	char why[160];

	if (x->view.stage == NDX_STAGE_INFO) {
		enum ndx_status st = agree_check(&x->peer, why, sizeof(why));

		if (st != NDX_OK) {
			dialogue_fail_plugin(x, NDX_PLUGIN_PEER_DATA, st, why);
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
	dialogue_record(x, NDX_HISTORY_STAGE, dialogue_none, NDX_OK, x->stage_ns,
	                frame_stage_name(x->view.stage));
	log_debug("session %llu: stage %s has ended, %u rounds",
	          (unsigned long long)x->view.session, frame_stage_name(x->view.stage),
	          x->view.round + 1);
}
