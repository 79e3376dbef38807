/* SPDX-License-Identifier: BSD-2-Clause */
/* Text output: one line per event, the summary, the tables of --stats. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"

const char *transport_name(enum ndx_rdma_transport transport)
{
	switch (transport) {
	case NDX_RDMA_ROCE_V2:
		return "RoCEv2";
	case NDX_RDMA_ROCE_V1:
		return "RoCEv1";
	case NDX_RDMA_INFINIBAND:
		return "InfiniBand";
	case NDX_RDMA_IWARP:
		return "iWARP";
	}
	return "?";
}

const char *event_name(enum ndx_reassembly_event_type type)
{
	switch (type) {
	case NDX_REASSEMBLY_CONNECTION:
		return "connection";
	case NDX_REASSEMBLY_SEND:
		return "send";
	case NDX_REASSEMBLY_CALL:
		return "call";
	case NDX_REASSEMBLY_REPLY:
		return "reply";
	case NDX_REASSEMBLY_ERROR:
		return "error";
	case NDX_REASSEMBLY_HOLE:
		return "hole";
	case NDX_REASSEMBLY_DUPLICATE:
		return "duplicate";
	case NDX_REASSEMBLY_ORPHAN:
		return "orphan";
	case NDX_REASSEMBLY_EVICTION:
		return "eviction";
	case NDX_REASSEMBLY_BAD_CRC:
		return "bad-crc";
	}
	return "?";
}

const char *hole_name(enum ndx_hole_kind kind)
{
	switch (kind) {
	case NDX_HOLE_READ:
		return "read chunk";
	case NDX_HOLE_WRITE:
		return "write chunk";
	case NDX_HOLE_REPLY:
		return "reply chunk";
	case NDX_HOLE_SEND:
		return "send";
	case NDX_HOLE_STREAM:
		return "stream";
	}
	return "?";
}

const char *orphan_name(enum ndx_orphan_kind kind)
{
	switch (kind) {
	case NDX_ORPHAN_DATA:
		return "data for an unknown handle";
	case NDX_ORPHAN_RESPONSE:
		return "response without request";
	case NDX_ORPHAN_FRAGMENT:
		return "write without its first packet";
	case NDX_ORPHAN_REPLY:
		return "reply without call";
	case NDX_ORPHAN_IP_FRAGMENT:
		return "IP fragment";
	}
	return "?";
}

const char *eviction_name(enum ndx_eviction_reason reason)
{
	switch (reason) {
	case NDX_EVICTION_AGE:
		return "age";
	case NDX_EVICTION_BYTES:
		return "bytes";
	case NDX_EVICTION_SEGMENTS:
		return "segments";
	case NDX_EVICTION_CONNECTIONS:
		return "connections";
	case NDX_EVICTION_FRAGMENTS:
		return "fragments";
	}
	return "?";
}

const char *endpoint_text(const struct ndx_rdma_connection *connection, unsigned side,
                          char text[DECODE_ENDPOINT])
{
	const struct ndx_rdma_endpoint *e = &connection->side[side];
	char address[INET6_ADDRSTRLEN] = "?", number[16] = "?";

	switch (connection->family) {
	case NDX_RDMA_ADDRESS_IPV4:
		(void)inet_ntop(AF_INET, e->address + 12, address, sizeof(address));
		break;
	case NDX_RDMA_ADDRESS_IPV6:
	case NDX_RDMA_ADDRESS_GID:
		(void)inet_ntop(AF_INET6, e->address, address, sizeof(address));
		break;
	case NDX_RDMA_ADDRESS_LID:
		(void)snprintf(address, sizeof(address), "lid %u",
		               (unsigned)e->address[14] << 8 | e->address[15]);
		break;
	}
	if (e->number != NDX_RDMA_QPN_UNKNOWN)
		(void)snprintf(number, sizeof(number), "%" PRIu32, e->number);
	(void)snprintf(text, DECODE_ENDPOINT, strchr(address, ':') != NULL ? "[%s]:%s" : "%s:%s",
	               address, number);
	return text;
}

static void print_rpc(const struct ndx_rpc_message *m, bool call)
{
	static const char *const kinds[] = {
		[NDX_RPC_CHUNK_READ] = "read",
		[NDX_RPC_CHUNK_WRITE] = "write",
		[NDX_RPC_CHUNK_REPLY] = "reply",
	};

	printf("xid 0x%08" PRIx32, m->xid);
	if (m->program != 0)
		printf(" program %" PRIu32 " version %" PRIu32 " procedure %" PRIu32, m->program,
		       m->program_version, m->procedure);
	printf(" %" PRIu64 " bytes, %zu inline", m->length, m->reduced_length);
	for (size_t i = 0; i < m->chunk_count; i++) {
		const struct ndx_rpc_chunk *c = &m->chunks[i];

		printf(", %s chunk %" PRIu64, kinds[c->kind], c->length);
		if (c->kind == NDX_RPC_CHUNK_READ)
			printf(" at %" PRIu32, c->position);
		if (c->segments > 1)
			printf(" (%" PRIu32 " segments)", c->segments);
	}
	if (!call)
		printf(m->call_known ? ", call in packet %" PRIu64 : ", call not seen",
		       m->call_packet);
}

static void print_hole(const struct ndx_hole *h)
{
	printf("%s", hole_name(h->kind));
	if (h->xid != 0)
		printf(" xid 0x%08" PRIx32, h->xid);
	if (h->handle != 0)
		printf(" handle 0x%08" PRIx32, h->handle);
	if (h->length != 0)
		printf(" offset %" PRIu64 " length %" PRIu64, h->offset, h->length);
	if (h->has_psn)
		printf(" PSN %" PRIu32 "..%" PRIu32, h->first_psn, h->last_psn);
}

static void print_connection(const struct ndx_rdma_connection *c)
{
	char a[DECODE_ENDPOINT], b[DECODE_ENDPOINT];

	printf("%s %s - %s", transport_name(c->transport), endpoint_text(c, 0, a),
	       endpoint_text(c, 1, b));
}

static void print_send(const struct ndx_rdma_send *s)
{
	printf("%zu bytes, PSN %" PRIu32, s->original, s->psn);
	if (s->packets > 1)
		printf(", %" PRIu32 " packets", s->packets);
	if (s->rpc_version != 0)
		printf(", RPC-over-RDMA version %" PRIu32, s->rpc_version);
	if (s->has_immediate)
		printf(", immediate 0x%08" PRIx32, s->immediate);
	if (s->has_invalidate)
		printf(", invalidates 0x%08" PRIx32, s->invalidate);
}

void line_print(const struct ndx_reassembly_event *e)
{
	printf("%" PRIu64 " %" PRIu64 ".%09" PRIu64, e->packet, e->time_ns / 1000000000,
	       e->time_ns % 1000000000);
	if (e->connection != NULL)
		printf(" #%" PRIu64 "%c", e->connection->id, e->direction == 0 ? '>' : '<');
	printf(" %s ", event_name(e->type));
	switch (e->type) {
	case NDX_REASSEMBLY_CONNECTION:
		if (e->connection != NULL)
			print_connection(e->connection);
		break;
	case NDX_REASSEMBLY_SEND:
		print_send(&e->send);
		break;
	case NDX_REASSEMBLY_CALL:
		print_rpc(&e->rpc, true);
		break;
	case NDX_REASSEMBLY_REPLY:
		print_rpc(&e->rpc, false);
		break;
	case NDX_REASSEMBLY_ERROR:
		printf("xid 0x%08" PRIx32 " %s", e->error.xid,
		       e->error.code == 1 ? "version" : "chunk");
		break;
	case NDX_REASSEMBLY_HOLE:
		print_hole(&e->hole);
		break;
	case NDX_REASSEMBLY_DUPLICATE:
		printf("PSN %" PRIu32 " %s", e->duplicate.psn,
		       e->connection != NULL && e->connection->transport == NDX_RDMA_IWARP
		               ? "TCP"
		               : ndx_rdma_opcode_name(e->duplicate.opcode));
		break;
	case NDX_REASSEMBLY_ORPHAN:
		printf("%s, PSN %" PRIu32 ", %" PRIu64 " bytes", orphan_name(e->orphan.kind),
		       e->orphan.psn, e->orphan.length);
		break;
	case NDX_REASSEMBLY_EVICTION:
		printf("by %s, xid 0x%08" PRIx32 ", %" PRIu32 " segments, %" PRIu64 " bytes",
		       eviction_name(e->eviction.reason), e->eviction.xid, e->eviction.segments,
		       e->eviction.bytes);
		break;
	case NDX_REASSEMBLY_BAD_CRC:
		break;
	}
	putchar('\n');
}

void summary_print(const struct summary *summary)
{
	const struct ndx_reassembly_stats *s = &summary->stats;
	const struct {
		const char *name;
		uint64_t value;
	} lines[] = {
		{"packets", s->packets},
		{"bytes", s->bytes},
		{"rdma packets", s->rdma_packets},
		{"connections", s->connections},
		{"sends", s->sends},
		{"calls", s->calls},
		{"calls incomplete", s->calls_incomplete},
		{"calls unanswered", s->calls_unanswered},
		{"replies", s->replies},
		{"replies incomplete", s->replies_incomplete},
		{"replies unmatched", s->replies_unmatched},
		{"errors", s->errors},
		{"holes", s->holes},
		{"duplicates", s->duplicates},
		{"duplicate sends", s->duplicate_sends},
		{"orphans", s->orphans},
		{"evictions", s->evictions},
		{"malformed", s->malformed},
		{"truncated", s->truncated},
		{"ip fragments", s->ip_fragments},
		{"crc checked", s->crc_checked},
		{"crc bad", s->bad_crc},
		{"bytes held at most", s->bytes_peak},
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		printf("%s %" PRIu64 "\n", lines[i].name, lines[i].value);
	if (summary->digests[HASHER_CALLS][0] != '\0')
		printf("call digest %s\nreply digest %s\n", summary->digests[HASHER_CALLS],
		       summary->digests[HASHER_REPLIES]);
}

/* The tally of a connection; NULL if out of memory: then the connection is not counted. */
static struct tally *tally_of(struct tallies *t, const struct ndx_rdma_connection *c)
{
	size_t room = t->room == 0 ? 64 : t->room;
	struct tally *grown;

	while (room < c->id)
		room *= 2;
	if (room > t->room) {
		grown = realloc(t->at, room * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		memset(grown + t->room, 0, (room - t->room) * sizeof(*grown));
		t->at = grown;
		t->room = room;
	}
	if (t->count < c->id)
		t->count = (size_t)c->id;
	t->at[c->id - 1].connection = *c;
	return &t->at[c->id - 1];
}

void tallies_note(struct tallies *tallies, const struct ndx_reassembly_event *event)
{
	struct tally *t;

	if (event->connection == NULL)
		return;
	t = tally_of(tallies, event->connection);
	if (t == NULL)
		return;
	t->sends += event->type == NDX_REASSEMBLY_SEND;
	t->holes += event->type == NDX_REASSEMBLY_HOLE;
	t->duplicates += event->type == NDX_REASSEMBLY_DUPLICATE;
	t->orphans += event->type == NDX_REASSEMBLY_ORPHAN;
	if (event->type == NDX_REASSEMBLY_CALL) {
		t->calls++;
		t->call_bytes += event->rpc.length;
	} else if (event->type == NDX_REASSEMBLY_REPLY) {
		t->replies++;
		t->reply_bytes += event->rpc.length;
	}
}

void tallies_print(const struct tallies *tallies, const struct ndx_reassembly_stats *stats)
{
	for (unsigned i = 0; i < 256; i++) {
		if (stats->opcodes[i] > 0)
			printf("opcode 0x%02x %-28s %" PRIu64 "\n", i,
			       ndx_rdma_opcode_name((uint8_t)i), stats->opcodes[i]);
	}
	for (unsigned i = 0; i < 16; i++) {
		if (stats->rdmap[i] > 0)
			printf("rdmap  0x%02x %-28s %" PRIu64 "\n", i,
			       ndx_rdmap_opcode_name((uint8_t)i), stats->rdmap[i]);
	}
	for (size_t i = 0; i < tallies->count; i++) {
		const struct tally *t = &tallies->at[i];

		if (t->connection.id == 0)
			continue; /* turned out to be the other direction of another connection */
		printf("connection #%" PRIu64 " ", t->connection.id);
		print_connection(&t->connection);
		printf(": sends %" PRIu64 ", calls %" PRIu64 " (%" PRIu64
		       " bytes), replies %" PRIu64 " (%" PRIu64 " bytes), holes %" PRIu64
		       ", duplicates %" PRIu64 ", orphans %" PRIu64 "\n",
		       t->sends, t->calls, t->call_bytes, t->replies, t->reply_bytes, t->holes,
		       t->duplicates, t->orphans);
	}
}
