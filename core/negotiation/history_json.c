/* SPDX-License-Identifier: BSD-2-Clause */
#include "history_json.h"

json_t *history_entry_json(struct base_json *j, const struct ndx_history_entry *e)
{
	json_t *to = json_object();

	base_json_number(j, to, "at_us", e->at_us);
	base_json_number(j, to, "duration_us", e->duration_us);
	base_json_text(j, to, "what", ndx_history_kind_name(e->kind));
	base_json_text(j, to, "stage", ndx_stage_name(e->stage));
	base_json_number(j, to, "round", e->round);
	base_json_number(j, to, "bytes", e->bytes);
	base_json_number(j, to, "bytes_in", e->bytes_in);
	base_json_text(j, to, "status", ndx_status_name(e->status));
	base_json_text(j, to, "text", e->text);
	return to;
}
