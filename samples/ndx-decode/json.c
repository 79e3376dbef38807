/* SPDX-License-Identifier: BSD-2-Clause */
/* One JSON object per event, for programs. */
#include <inttypes.h>
#include <jansson.h>

#include "decode.h"

static void put_number(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

static void put_text(json_t *object, const char *name, const char *text)
{
	json_object_set_new(object, name, json_string(text));
}

static void put_hex(json_t *object, const char *name, uint32_t value)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "0x%08" PRIx32, value);
	put_text(object, name, text);
}

static void put_rpc(json_t *object, const struct ndx_rpc_message *m, bool call)
{
	static const char *const kinds[] = {
		[NDX_RPC_CHUNK_READ] = "read",
		[NDX_RPC_CHUNK_WRITE] = "write",
		[NDX_RPC_CHUNK_REPLY] = "reply",
	};
	json_t *chunks = json_array();

	put_hex(object, "xid", m->xid);
	put_number(object, "version", m->version);
	put_number(object, "header_type", m->header_type);
	put_number(object, "credits", m->credits);
	put_number(object, "program", m->program);
	put_number(object, "program_version", m->program_version);
	put_number(object, "procedure", m->procedure);
	put_number(object, "length", m->length);
	put_number(object, "inline", m->reduced_length);
	for (size_t i = 0; i < m->chunk_count; i++) {
		json_t *chunk = json_object();

		put_text(chunk, "kind", kinds[m->chunks[i].kind]);
		if (m->chunks[i].kind == NDX_RPC_CHUNK_READ)
			put_number(chunk, "position", m->chunks[i].position);
		put_number(chunk, "segments", m->chunks[i].segments);
		put_number(chunk, "length", m->chunks[i].length);
		json_array_append_new(chunks, chunk);
	}
	json_object_set_new(object, "chunks", chunks);
	if (!call) {
		json_object_set_new(object, "call_known", json_boolean(m->call_known));
		put_number(object, "call_packet", m->call_packet);
	}
}

static void put_send(json_t *object, const struct ndx_rdma_send *s)
{
	put_number(object, "length", s->original);
	put_number(object, "captured", s->length);
	put_number(object, "psn", s->psn);
	put_number(object, "packets", s->packets);
	put_number(object, "rpc_version", s->rpc_version);
	if (s->has_immediate)
		put_hex(object, "immediate", s->immediate);
	if (s->has_invalidate)
		put_hex(object, "invalidate", s->invalidate);
}

static void put_hole(json_t *object, const struct ndx_hole *h)
{
	put_text(object, "kind", hole_name(h->kind));
	put_hex(object, "xid", h->xid);
	put_hex(object, "handle", h->handle);
	put_number(object, "offset", h->offset);
	put_number(object, "length", h->length);
	if (h->has_psn) {
		put_number(object, "first_psn", h->first_psn);
		put_number(object, "last_psn", h->last_psn);
	}
}

static void put_connection(json_t *object, const struct ndx_rdma_connection *c)
{
	char text[DECODE_ENDPOINT];

	put_text(object, "transport", transport_name(c->transport));
	put_text(object, "side0", endpoint_text(c, 0, text));
	put_text(object, "side1", endpoint_text(c, 1, text));
}

static void put_rest(json_t *object, const struct ndx_reassembly_event *e)
{
	switch (e->type) {
	case NDX_REASSEMBLY_CONNECTION:
		if (e->connection != NULL)
			put_connection(object, e->connection);
		break;
	case NDX_REASSEMBLY_SEND:
		put_send(object, &e->send);
		break;
	case NDX_REASSEMBLY_CALL:
	case NDX_REASSEMBLY_REPLY:
		put_rpc(object, &e->rpc, e->type == NDX_REASSEMBLY_CALL);
		break;
	case NDX_REASSEMBLY_ERROR:
		put_hex(object, "xid", e->error.xid);
		put_number(object, "code", e->error.code);
		put_number(object, "low", e->error.low);
		put_number(object, "high", e->error.high);
		break;
	case NDX_REASSEMBLY_HOLE:
		put_hole(object, &e->hole);
		break;
	case NDX_REASSEMBLY_DUPLICATE:
		put_number(object, "psn", e->duplicate.psn);
		put_number(object, "opcode", e->duplicate.opcode);
		json_object_set_new(object, "send", json_boolean(e->duplicate.send));
		break;
	case NDX_REASSEMBLY_ORPHAN:
		put_text(object, "kind", orphan_name(e->orphan.kind));
		put_number(object, "psn", e->orphan.psn);
		put_hex(object, "handle", e->orphan.handle);
		put_hex(object, "xid", e->orphan.xid);
		put_number(object, "length", e->orphan.length);
		break;
	case NDX_REASSEMBLY_EVICTION:
		put_text(object, "reason", eviction_name(e->eviction.reason));
		put_hex(object, "xid", e->eviction.xid);
		put_number(object, "segments", e->eviction.segments);
		put_number(object, "bytes", e->eviction.bytes);
		break;
	case NDX_REASSEMBLY_BAD_CRC:
		break;
	}
}

static FILE *json_out;

void json_to(FILE *out)
{
	json_out = out;
}

static void print(json_t *object)
{
	(void)json_dumpf(object, json_out, JSON_COMPACT | JSON_PRESERVE_ORDER);
	fputc('\n', json_out);
	json_decref(object);
}

void json_print(const struct ndx_reassembly_event *event)
{
	json_t *object = json_object();

	put_text(object, "event", event_name(event->type));
	put_number(object, "packet", event->packet);
	put_number(object, "time_ns", event->time_ns);
	if (event->connection != NULL) {
		put_number(object, "connection", event->connection->id);
		put_number(object, "direction", event->direction);
	}
	put_rest(object, event);
	print(object);
}

void json_print_summary(const struct summary *summary)
{
	const struct ndx_reassembly_stats *s = &summary->stats;
	json_t *object = json_object();

	put_text(object, "event", "summary");
	put_number(object, "packets", s->packets);
	put_number(object, "bytes", s->bytes);
	put_number(object, "rdma_packets", s->rdma_packets);
	put_number(object, "connections", s->connections);
	put_number(object, "sends", s->sends);
	put_number(object, "calls", s->calls);
	put_number(object, "calls_incomplete", s->calls_incomplete);
	put_number(object, "calls_unanswered", s->calls_unanswered);
	put_number(object, "replies", s->replies);
	put_number(object, "replies_incomplete", s->replies_incomplete);
	put_number(object, "replies_unmatched", s->replies_unmatched);
	put_number(object, "errors", s->errors);
	put_number(object, "holes", s->holes);
	put_number(object, "duplicates", s->duplicates);
	put_number(object, "duplicate_sends", s->duplicate_sends);
	put_number(object, "orphans", s->orphans);
	put_number(object, "evictions", s->evictions);
	put_number(object, "malformed", s->malformed);
	put_number(object, "truncated", s->truncated);
	put_number(object, "ip_fragments", s->ip_fragments);
	put_number(object, "crc_checked", s->crc_checked);
	put_number(object, "crc_bad", s->bad_crc);
	put_number(object, "bytes_held_at_most", s->bytes_peak);
	if (summary->digests[HASHER_CALLS][0] != '\0') {
		put_text(object, "call_digest", summary->digests[HASHER_CALLS]);
		put_text(object, "reply_digest", summary->digests[HASHER_REPLIES]);
	}
	print(object);
}

static void put_tally(const struct tally *t)
{
	json_t *object = json_object();

	put_text(object, "event", "connection_stats");
	put_number(object, "connection", t->connection.id);
	put_connection(object, &t->connection);
	put_number(object, "sends", t->sends);
	put_number(object, "calls", t->calls);
	put_number(object, "call_bytes", t->call_bytes);
	put_number(object, "replies", t->replies);
	put_number(object, "reply_bytes", t->reply_bytes);
	put_number(object, "holes", t->holes);
	put_number(object, "duplicates", t->duplicates);
	put_number(object, "orphans", t->orphans);
	print(object);
}

void json_print_stats(const struct tallies *tallies, const struct ndx_reassembly_stats *stats)
{
	json_t *opcodes = json_object(), *rdmap = json_object(), *object = json_object();

	for (size_t i = 0; i < tallies->count; i++) {
		/* 0: turned out to be the other direction of another connection */
		if (tallies->at[i].connection.id != 0)
			put_tally(&tallies->at[i]);
	}
	for (unsigned i = 0; i < 256; i++) {
		if (stats->opcodes[i] > 0)
			put_number(opcodes, ndx_rdma_opcode_name((uint8_t)i), stats->opcodes[i]);
	}
	for (unsigned i = 0; i < 16; i++) {
		if (stats->rdmap[i] > 0)
			put_number(rdmap, ndx_rdmap_opcode_name((uint8_t)i), stats->rdmap[i]);
	}
	put_text(object, "event", "stats");
	json_object_set_new(object, "opcodes", opcodes);
	json_object_set_new(object, "rdmap", rdmap);
	print(object);
}
