/* SPDX-License-Identifier: BSD-2-Clause */
/* What concerns no adapter. */
#include "walk.h"

static enum ndx_status call_disconnect_outcome_name(struct scene *s)
{
	(void)s;
	return ndx_disconnect_outcome_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_disconnect_reason_name(struct scene *s)
{
	(void)s;
	return ndx_disconnect_reason_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_error_layer_name(struct scene *s)
{
	(void)s;
	return ndx_error_layer_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_history_kind_name(struct scene *s)
{
	(void)s;
	return ndx_history_kind_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_log_level_name(struct scene *s)
{
	(void)s;
	return ndx_log_level_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_plugin_error_name(struct scene *s)
{
	(void)s;
	return ndx_plugin_error_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_receiver_end_name(struct scene *s)
{
	(void)s;
	return ndx_receiver_end_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_receiver_state_name(struct scene *s)
{
	(void)s;
	return ndx_receiver_state_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_managed_state_name(struct scene *s)
{
	(void)s;
	return ndx_managed_state_name(NDX_MANAGED_UP) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_managed_event_name(struct scene *s)
{
	(void)s;
	return ndx_managed_event_name(NDX_MANAGED_EVENT_UP) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_session_state_name(struct scene *s)
{
	(void)s;
	return ndx_session_state_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_stage_name(struct scene *s)
{
	(void)s;
	return ndx_stage_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_status_name(struct scene *s)
{
	(void)s;
	return ndx_status_name(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_status_text(struct scene *s)
{
	(void)s;
	return ndx_status_text(0) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_capability_name(struct scene *s)
{
	(void)s;
	return ndx_capability_name(NDX_CAP_SRQ) ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_rdma_opcode_name(struct scene *s)
{
	(void)s;
	(void)ndx_rdma_opcode_name(0);
	return NDX_OK;
}

static enum ndx_status call_rdmap_opcode_name(struct scene *s)
{
	(void)s;
	(void)ndx_rdmap_opcode_name(0);
	return NDX_OK;
}

static enum ndx_status call_history_entry_text(struct scene *s)
{
	const struct ndx_history_entry entry = {0};
	char text[256];

	(void)s;
	(void)ndx_history_entry_text(&entry, text, sizeof(text));
	return NDX_OK;
}

static enum ndx_status call_last_error(struct scene *s)
{
	(void)s;
	return ndx_last_error() ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_version(struct scene *s)
{
	(void)s;
	return ndx_version() ? NDX_OK : NDX_E_UNSUCCESSFUL;
}

static enum ndx_status call_log_set_sink(struct scene *s)
{
	(void)s;
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	return NDX_OK;
}

static enum ndx_status call_log_to_stderr(struct scene *s)
{
	(void)s;
	ndx_log_to_stderr(NDX_LOG_ERROR); /* shows the failures of the rows behind */
	return NDX_OK;
}

static enum ndx_status call_piece_copy(struct scene *s)
{
	(void)ndx_piece_copy(NULL, 0, s->memory, BYTES);
	return NDX_OK;
}

static enum ndx_status call_reassembly_attr_init(struct scene *s)
{
	struct ndx_reassembly_attr attr;

	(void)s;
	ndx_reassembly_attr_init(&attr);
	return NDX_OK;
}

static enum ndx_status call_reassembly_create(struct scene *s)
{
	struct ndx_reassembly_attr attr;
	struct ndx_reassembly *out = NULL;
	enum ndx_status st;

	(void)s;
	reassembly_attr(&attr);
	st = ndx_reassembly_create(&attr, &out);
	ndx_reassembly_close(out);
	return st;
}

static enum ndx_status call_reassembly_close(struct scene *s)
{
	ndx_reassembly_close(s->reassembly);
	s->reassembly = NULL;
	return NDX_OK;
}

static enum ndx_status call_reassembly_feed(struct scene *s)
{
	const struct ndx_packet packet = {0};

	return ndx_reassembly_feed(s->reassembly, &packet);
}

static enum ndx_status call_reassembly_flush(struct scene *s)
{
	ndx_reassembly_flush(s->reassembly);
	return NDX_OK;
}

static enum ndx_status call_reassembly_get_stats(struct scene *s)
{
	struct ndx_reassembly_stats stats = {.size = sizeof(stats)};

	return ndx_reassembly_get_stats(s->reassembly, &stats);
}

static enum ndx_status call_reassembly_reset(struct scene *s)
{
	ndx_reassembly_reset(s->reassembly);
	return NDX_OK;
}

static enum ndx_status call_reassembly_size(struct scene *s)
{
	(void)ndx_reassembly_size(s->reassembly);
	return NDX_OK;
}

static enum ndx_status call_reassembly_feed_transport(struct scene *s)
{
	const struct ndx_transport_packet packet = {.size = sizeof(packet),
	                                            .transport = NDX_RDMA_IWARP,
	                                            .family = NDX_RDMA_ADDRESS_IPV4};

	return ndx_reassembly_feed_transport(s->reassembly, &packet);
}

static enum ndx_status call_reassembly_feed_operation(struct scene *s)
{
	const struct ndx_rdma_operation operation = {.size = sizeof(operation),
	                                             .transport = NDX_RDMA_IWARP,
	                                             .family = NDX_RDMA_ADDRESS_IPV4,
	                                             .kind = NDX_RDMA_OPERATION_WRITE};

	return ndx_reassembly_feed_operation(s->reassembly, &operation);
}

/* The calls of a segment need nothing of the scene: one row stands for all of them. */
static enum ndx_status call_rdma_segment(struct scene *s)
{
	struct ndx_rdma_segment *segment = NULL;
	enum ndx_status st = ndx_rdma_segment_create(0, BYTES, 1 << 20, &segment);

	if (st == NDX_OK)
		st = ndx_rdma_segment_add_operation(segment, 0, 0, BYTES, 0);
	if (st == NDX_OK)
		st = ndx_rdma_segment_add_request(segment, 1, 0, 0, BYTES);
	if (st == NDX_OK && !ndx_rdma_segment_valid_psn(segment, 0))
		st = NDX_E_UNSUCCESSFUL;
	if (st == NDX_OK)
		st = ndx_rdma_segment_add_packet(segment, 0, true, s->memory, BYTES);
	if (st == NDX_OK)
		st = ndx_rdma_segment_add_response(segment, 1, 0, s->memory, BYTES);
	if (st == NDX_OK)
		st = ndx_rdma_segment_add_data(segment, 0, s->memory, BYTES);
	if (st == NDX_OK && (ndx_rdma_segment_gap(segment, 0, NULL, NULL) ||
	                     ndx_rdma_segment_size(segment) != BYTES ||
	                     ndx_rdma_segment_get_data(segment, false, NULL, 0) != BYTES))
		st = NDX_E_UNSUCCESSFUL;
	ndx_rdma_segment_close(segment);
	return st;
}

static enum ndx_status call_adapter_get_event(struct scene *s)
{
	static struct ndx_adapter_event event = {.size = sizeof(event)};

	return ndx_adapter_get_event(s->own, &event, &s->ov);
}

static enum ndx_status call_adapter_cancel(struct scene *s)
{
	return ndx_adapter_cancel(s->own);
}

static enum ndx_status call_adapter_event_name(struct scene *s)
{
	(void)s;
	return ndx_adapter_event_name(NDX_ADAPTER_EVENT_PORT_UP)[0] != '?' ? NDX_OK
	                                                                   : NDX_E_UNSUCCESSFUL;
}

const struct row plain_rows[] = {
	{"ndx_adapter_get_event", call_adapter_get_event, NDX_E_NOT_SUPPORTED, NDX_PENDING},
	{"ndx_adapter_cancel", call_adapter_cancel, NDX_OK, NDX_OK},
	{"ndx_adapter_event_name", call_adapter_event_name, NDX_OK, NDX_OK},
	{"ndx_disconnect_outcome_name", call_disconnect_outcome_name, NDX_OK, NDX_OK},
	{"ndx_disconnect_reason_name", call_disconnect_reason_name, NDX_OK, NDX_OK},
	{"ndx_error_layer_name", call_error_layer_name, NDX_OK, NDX_OK},
	{"ndx_history_kind_name", call_history_kind_name, NDX_OK, NDX_OK},
	{"ndx_log_level_name", call_log_level_name, NDX_OK, NDX_OK},
	{"ndx_managed_event_name", call_managed_event_name, NDX_OK, NDX_OK},
	{"ndx_managed_state_name", call_managed_state_name, NDX_OK, NDX_OK},
	{"ndx_plugin_error_name", call_plugin_error_name, NDX_OK, NDX_OK},
	{"ndx_receiver_end_name", call_receiver_end_name, NDX_OK, NDX_OK},
	{"ndx_receiver_state_name", call_receiver_state_name, NDX_OK, NDX_OK},
	{"ndx_session_state_name", call_session_state_name, NDX_OK, NDX_OK},
	{"ndx_stage_name", call_stage_name, NDX_OK, NDX_OK},
	{"ndx_status_name", call_status_name, NDX_OK, NDX_OK},
	{"ndx_status_text", call_status_text, NDX_OK, NDX_OK},
	{"ndx_capability_name", call_capability_name, NDX_OK, NDX_OK},
	{"ndx_rdma_opcode_name", call_rdma_opcode_name, NDX_OK, NDX_OK},
	{"ndx_rdmap_opcode_name", call_rdmap_opcode_name, NDX_OK, NDX_OK},
	{"ndx_history_entry_text", call_history_entry_text, NDX_OK, NDX_OK},
	{"ndx_last_error", call_last_error, NDX_OK, NDX_OK},
	{"ndx_version", call_version, NDX_OK, NDX_OK},
	{"ndx_log_set_sink", call_log_set_sink, NDX_OK, NDX_OK},
	{"ndx_log_to_stderr", call_log_to_stderr, NDX_OK, NDX_OK},
	{"ndx_piece_copy", call_piece_copy, NDX_OK, NDX_OK},
	{"ndx_reassembly_attr_init_sized", call_reassembly_attr_init, NDX_OK, NDX_OK},
	{"ndx_reassembly_create", call_reassembly_create, NDX_OK, NDX_OK},
	{"ndx_reassembly_close", call_reassembly_close, NDX_OK, NDX_OK},
	{"ndx_reassembly_feed", call_reassembly_feed, NDX_OK, NDX_OK},
	{"ndx_reassembly_flush", call_reassembly_flush, NDX_OK, NDX_OK},
	{"ndx_reassembly_get_stats", call_reassembly_get_stats, NDX_OK, NDX_OK},
	{"ndx_reassembly_reset", call_reassembly_reset, NDX_OK, NDX_OK},
	{"ndx_reassembly_size", call_reassembly_size, NDX_OK, NDX_OK},
	{"ndx_reassembly_feed_transport", call_reassembly_feed_transport, NDX_OK, NDX_OK},
	{"ndx_reassembly_feed_operation", call_reassembly_feed_operation, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_add_data", call_rdma_segment, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_add_operation", call_rdma_segment, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_add_packet", call_rdma_segment, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_add_request", call_rdma_segment, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_add_response", call_rdma_segment, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_close", call_rdma_segment, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_create", call_rdma_segment, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_gap", call_rdma_segment, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_get_data", call_rdma_segment, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_size", call_rdma_segment, NDX_OK, NDX_OK},
	{"ndx_rdma_segment_valid_psn", call_rdma_segment, NDX_OK, NDX_OK},
};
const size_t plain_row_count = sizeof(plain_rows) / sizeof(plain_rows[0]);
