/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpcrdma.h"

#include <stddef.h>

#include <ndx/spi/byteorder.h>

#define RPC_CALL 0
#define RPC_REPLY 1
#define RPC_VERSION 2
#define ERROR_VERSION 1
#define ERROR_CHUNK 2

/* A reader of 32-bit words; `ended` is set by reading past the end. */
struct words {
	const uint8_t *at;
	uint32_t left;
	bool ended;
};

static uint32_t word(struct words *w)
{
	uint32_t value;

	if (w->left < 4) {
		w->ended = true;
		return 0;
	}
	value = ndxp_get_be32(w->at);
	w->at += 4;
	w->left -= 4;
	return value;
}

/* A boolean is 0 or 1; with any other value the message is not RPC-over-RDMA. */
static bool flag(struct words *w, bool *bad)
{
	uint32_t value = word(w);

	if (value > 1)
		*bad = true;
	return value == 1;
}

static bool segment(struct words *w, struct rpcrdma_header *h, uint32_t *count, uint32_t chunk,
                    uint32_t position)
{
	uint32_t used = h->reads + h->writes + h->replies;
	struct rpcrdma_segment *s = &h->segments[used];

	if (used == RPCRDMA_SEGMENTS)
		return false;
	s->handle = word(w);
	s->length = word(w);
	s->offset = (uint64_t)word(w) << 32;
	s->offset |= word(w);
	s->position = position;
	s->chunk = chunk;
	if (!w->ended)
		(*count)++;
	return true;
}

/* An array of segments, preceded by its count. */
static bool counted(struct words *w, struct rpcrdma_header *h, uint32_t *count, uint32_t chunk)
{
	uint32_t n = word(w);

	if (n > RPCRDMA_SEGMENTS)
		return false;
	for (uint32_t i = 0; i < n && !w->ended; i++) {
		if (!segment(w, h, count, chunk, 0))
			return false;
	}
	return true;
}

/* The three chunk lists. False if they are invalid. */
static bool lists(struct words *w, struct rpcrdma_header *h)
{
	bool bad = false;

	while (flag(w, &bad)) {
		uint32_t position = word(w);

		if (!segment(w, h, &h->reads, 0, position))
			return false;
	}
	while (!bad && flag(w, &bad)) {
		if (!counted(w, h, &h->writes, h->write_chunks))
			return false;
		h->write_chunks++;
		/* Empty chunks take a word each, so limit their number, too. */
		if (h->write_chunks > RPCRDMA_SEGMENTS)
			return false;
	}
	if (!bad && flag(w, &bad)) {
		h->has_reply = true;
		if (!counted(w, h, &h->replies, 0))
			return false;
	}
	return !bad;
}

static bool rpc(struct words *w, struct rpcrdma_header *h)
{
	uint32_t xid = word(w), direction = word(w);

	if (w->ended)
		return true; /* truncated: the direction is unknown */
	if (xid != h->xid || direction > RPC_REPLY)
		return false;
	h->is_reply = direction == RPC_REPLY;
	if (h->is_reply)
		return true;
	h->is_call = true;
	if (word(w) != RPC_VERSION && !w->ended)
		return false;
	h->program = word(w);
	h->program_version = word(w);
	h->procedure = word(w);
	return true;
}

static bool error(struct words *w, struct rpcrdma_header *h)
{
	h->error_code = word(w);
	if (h->error_code == ERROR_VERSION) {
		h->error_low = word(w);
		h->error_high = word(w);
	}
	return w->ended || h->error_code == ERROR_VERSION || h->error_code == ERROR_CHUNK;
}

/* The part after the four fixed words; false if it is invalid. */
static bool body(struct words *w, struct rpcrdma_header *h, const uint8_t *bytes, bool whole)
{
	struct words rest;
	bool good = true;

	switch ((enum rpcrdma_type)h->type) {
	case RPCRDMA_MSGP:
		(void)word(w); /* alignment */
		(void)word(w); /* threshold */
			       /* fall through */
	case RPCRDMA_MSG:
	case RPCRDMA_NOMSG:
		good = lists(w, h);
		break;
	case RPCRDMA_ERROR:
		good = error(w, h);
		break;
	case RPCRDMA_DONE:
		break;
	}
	if (!good || (w->ended && whole))
		return false;
	h->cut = w->ended;
	h->size = (uint32_t)(w->at - bytes);
	rest = *w;
	if (h->type == RPCRDMA_MSG || h->type == RPCRDMA_MSGP) {
		good = h->cut || rpc(&rest, h);
	} else if (h->type == RPCRDMA_NOMSG) {
		h->is_call = h->reads > 0;
		h->is_reply = h->reads == 0 && h->has_reply;
		good = h->cut || h->is_call || h->is_reply;
	}
	return good && !(rest.ended && whole);
}

enum rpcrdma_verdict rpcrdma_parse(const uint8_t *bytes, uint32_t length, uint32_t original,
                                   struct rpcrdma_header *out)
{
	struct words w = {bytes, length, false};

	/* Do not clear the segments: there are many, and only counted ones are read. */
	out->xid = word(&w);
	out->version = word(&w);
	out->credits = word(&w);
	out->type = word(&w);
	out->reads = out->writes = out->write_chunks = out->replies = 0;
	out->has_reply = out->cut = out->is_call = out->is_reply = false;
	out->error_code = out->error_low = out->error_high = 0;
	out->program = out->program_version = out->procedure = 0;
	out->size = 0;
	if (w.ended)
		return RPCRDMA_NO;
	if (out->version == 2 && out->type <= 6) {
		out->size = 16;
		return RPCRDMA_V2;
	}
	if (out->version != 1 || out->type > RPCRDMA_ERROR)
		return RPCRDMA_NO;
	return body(&w, out, bytes, length >= original) ? RPCRDMA_YES : RPCRDMA_NO;
}
