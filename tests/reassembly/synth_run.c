/* SPDX-License-Identifier: BSD-2-Clause */
/* Spoiling captures, feeding them, comparing what comes out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synth.h"

void synth_shuffle(struct synth *synth, uint32_t window, uint32_t seed)
{
	for (size_t from = 0; from < synth->count; from += window) {
		size_t n = synth->count - from < window ? synth->count - from : window;

		for (size_t i = n; i > 1; i--) {
			size_t k = synth_random(&seed) % i;
			struct synth_packet swap = synth->packets[from + k];

			synth->packets[from + k] = synth->packets[from + i - 1];
			synth->packets[from + i - 1] = swap;
		}
	}
}

void synth_harm(struct synth *synth, size_t packet)
{
	if (synth->harmed == NULL)
		synth->harmed = calloc(synth->talks + 1, 1);
	synth->harmed[synth->packets[packet].talk] = 1;
}

void synth_heal(struct synth *synth)
{
	free(synth->harmed);
	synth->harmed = NULL;
}

static void take_away(struct synth *synth, size_t packet)
{
	synth_harm(synth, packet);
	free(synth->packets[packet].bytes);
}

void synth_skip(struct synth *synth, size_t packets)
{
	for (size_t i = 0; i < packets; i++)
		take_away(synth, i);
	synth->count -= packets;
	memmove(synth->packets, synth->packets + packets, synth->count * sizeof(*synth->packets));
}

void synth_drop(struct synth *synth, uint32_t of_10000, uint32_t seed)
{
	size_t kept = 0;

	for (size_t i = 0; i < synth->count; i++) {
		if (synth_random(&seed) % 10000 < of_10000)
			take_away(synth, i);
		else
			synth->packets[kept++] = synth->packets[i];
	}
	synth->count = kept;
}

void synth_double(struct synth *synth, uint32_t of_10000, uint32_t seed)
{
	size_t old = synth->count, at = 0;
	struct synth_packet *packets = calloc(old * 2, sizeof(*packets));
	struct synth_packet later = {0};
	uint32_t wait = 0;

	for (size_t i = 0; i < old; i++) {
		packets[at++] = synth->packets[i];
		if (later.bytes != NULL && wait-- == 0) {
			packets[at++] = later;
			later.bytes = NULL;
		} else if (later.bytes == NULL && synth_random(&seed) % 10000 < of_10000) {
			later = synth->packets[i];
			later.bytes = malloc(later.captured);
			memcpy(later.bytes, synth->packets[i].bytes, later.captured);
			wait = synth_random(&seed) % 20;
		}
	}
	free(later.bytes);
	free(synth->packets);
	synth->packets = packets;
	synth->count = at;
	synth->room = old * 2;
}

void synth_echo(struct synth *synth, uint32_t behind)
{
	size_t old = synth->count;
	size_t at = 0;
	struct synth_packet *packets = calloc(old * 2, sizeof(*packets));

	for (size_t i = 0; i < old + behind; i++) {
		struct synth_packet *copy;

		if (i < old)
			packets[at++] = synth->packets[i];
		if (i < behind)
			continue;
		copy = &packets[at++];
		*copy = synth->packets[i - behind];
		copy->bytes = malloc(copy->captured);
		memcpy(copy->bytes, synth->packets[i - behind].bytes, copy->captured);
	}
	free(synth->packets);
	synth->packets = packets;
	synth->count = at;
	synth->room = old * 2;
}

void synth_cut(struct synth *synth, uint32_t snapshot)
{
	for (size_t i = 0; i < synth->count; i++) {
		if (synth->packets[i].captured > snapshot) {
			synth->packets[i].captured = snapshot;
			synth_harm(synth, i);
		}
	}
}

static void write_out(const struct synth_messages *messages, const struct ndx_piece *pieces,
                      size_t count)
{
	char path[4096];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s%zu", messages->prefix, messages->count);
	file = fopen(path, "wb");
	if (file == NULL)
		return;
	for (size_t i = 0; i < count; i++)
		(void)fwrite(pieces[i].bytes, 1, pieces[i].length, file);
	(void)fclose(file);
}

void synth_note(struct synth_messages *messages, uint32_t talk, const struct ndx_piece *pieces,
                size_t count)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < pieces[i].length; k++)
			hash = (hash ^ pieces[i].bytes[k]) * UINT64_C(0x100000001b3);
	}
	if (messages->prefix != NULL)
		write_out(messages, pieces, count);
	if (messages->count == messages->room) {
		messages->room = messages->room == 0 ? 256 : messages->room * 2;
		messages->at = realloc(messages->at, messages->room * sizeof(*messages->at));
	}
	messages->at[messages->count++] = (struct synth_message){hash, talk};
}

static void on_event(void *context, const struct ndx_reassembly_event *event)
{
	struct synth_result *result = context;

	result->events[event->type]++;
	if (event->type == NDX_REASSEMBLY_CALL)
		synth_note(&result->calls, 0, event->rpc.pieces, event->rpc.piece_count);
	else if (event->type == NDX_REASSEMBLY_REPLY && event->rpc.call_known)
		synth_note(&result->replies, 0, event->rpc.pieces, event->rpc.piece_count);
}

void synth_run(const struct synth *synth, const struct ndx_reassembly_attr *attr,
               struct synth_result *result)
{
	struct ndx_reassembly_attr mine;
	struct ndx_reassembly *r;

	ndx_reassembly_attr_init(&mine);
	if (attr != NULL)
		mine = *attr;
	*result = (struct synth_result){.calls = {0}};
	mine.on_event = on_event;
	mine.context = result;
	if (ndx_reassembly_create(&mine, &r) != NDX_OK)
		return;
	for (size_t i = 0; i < synth->count; i++) {
		const struct synth_packet *p = &synth->packets[i];
		/* A copy of exactly that size: an address sanitizer sees what is read beyond. */
		uint8_t *bytes = p->captured < p->original ? malloc(p->captured) : p->bytes;
		struct ndx_packet packet = {bytes, p->time_ns, p->captured, p->original,
		                            synth->link_type};

		if (bytes != p->bytes && bytes != NULL)
			memcpy(bytes, p->bytes, p->captured);
		(void)ndx_reassembly_feed(r, &packet);
		if (bytes != p->bytes)
			free(bytes);
	}
	ndx_reassembly_flush(r);
	result->stats.size = sizeof(result->stats);
	(void)ndx_reassembly_get_stats(r, &result->stats);
	ndx_reassembly_close(r);
}

void synth_result_free(struct synth_result *result)
{
	free(result->calls.at);
	free(result->replies.at);
	*result = (struct synth_result){.calls = {0}};
}

static int compare(const void *a, const void *b)
{
	const struct synth_message *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static void sort(struct synth_messages *messages)
{
	if (messages->count > 0)
		qsort(messages->at, messages->count, sizeof(*messages->at), compare);
}

/* `harmed` may be NULL: then all of `some` count. `again`: they may occur more often. */
static bool subset(struct synth_messages *some, struct synth_messages *all, const uint8_t *harmed,
                   bool again)
{
	size_t at = 0;

	sort(some);
	sort(all);
	for (size_t i = 0; i < some->count; i++) {
		if (harmed != NULL && harmed[some->at[i].talk] != 0)
			continue;
		while (at < all->count && all->at[at].hash < some->at[i].hash)
			at++;
		if (at == all->count || all->at[at].hash != some->at[i].hash)
			return false;
		at += !again;
	}
	return true;
}

bool synth_subset(struct synth_messages *some, struct synth_messages *all)
{
	return subset(some, all, NULL, false);
}

bool synth_among(struct synth_messages *some, struct synth_messages *all)
{
	return subset(some, all, NULL, true);
}

bool synth_unharmed(const struct synth *synth, struct synth_messages *some,
                    struct synth_messages *all)
{
	return subset(some, all, synth->harmed, false);
}
