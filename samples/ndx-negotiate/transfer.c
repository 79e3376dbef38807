/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data over negotiated queue pairs; every byte is verified. One round: the client writes to the
 * server's memory and sends a message; the server verifies both, puts other data into that memory
 * and answers; the client verifies the answer and reads the memory.
 */
#include <stdio.h>
#include <string.h>

#include "negotiate.h"
#include "sample_options.h"
#include "sample_report.h"

/**
 * First part of every message. Both ends must have the same byte order; otherwise the check fails
 * at once.
 */
struct header {
	uint32_t magic;
	uint32_t round;
	uint32_t last;
	uint32_t reserved;
};

#define MAGIC 0x6e647831u

enum kind { KIND_MESSAGE = 1, KIND_ANSWER, KIND_WRITTEN, KIND_TO_READ };

static uint8_t *out(const struct end *end)
{
	return end->memory;
}

static uint8_t *in(const struct end *end)
{
	return end->memory + end->size;
}

static uint8_t *shared(const struct end *end)
{
	return end->memory + 2 * (size_t)end->size;
}

static uint8_t byte_at(enum kind kind, uint32_t round, size_t at)
{
	uint32_t x = (uint32_t)at * 2654435761u + round * 40503u + (uint32_t)kind * 97u;

	return (uint8_t)(x ^ x >> 8 ^ x >> 19);
}

static void fill_pattern(uint8_t *to, size_t from, size_t size, enum kind kind, uint32_t round)
{
	for (size_t i = from; i < size; i++)
		to[i] = byte_at(kind, round, i);
}

/* Compare, and report a difference. */
static bool same(struct end *end, const uint8_t *is, size_t from, enum kind kind, uint32_t round,
                 const char *what)
{
	for (size_t i = from; i < end->size; i++) {
		if (is[i] == byte_at(kind, round, i))
			continue;
		sample_progress_wipe(&end->progress);
		fprintf(stderr, "%s: round %u: %s: byte %zu is 0x%02x, not 0x%02x\n",
		        end->place->who, round, what, i, is[i], byte_at(kind, round, i));
		return false;
	}
	return true;
}

static void make_message(const struct end *end, enum kind kind, uint32_t round, bool last)
{
	const struct header h = {.magic = MAGIC, .round = round, .last = last};

	memcpy(out(end), &h, sizeof(h));
	fill_pattern(out(end), sizeof(h), end->size, kind, round);
}

static bool look_at_message(struct end *end, enum kind kind, uint32_t round, bool *last)
{
	struct header h;

	memcpy(&h, in(end), sizeof(h));
	*last = h.last != 0;
	if (h.magic != MAGIC || h.round != round) {
		sample_progress_wipe(&end->progress);
		fprintf(stderr, "%s: round %u: the message is of round %u\n", end->place->who,
		        round, h.round);
		return false;
	}
	return same(end, in(end), sizeof(h), kind, round, "the message");
}

static struct ndx_sge sge(const struct end *end, uint8_t *at)
{
	return (struct ndx_sge){
		.buffer = at, .length = end->size, .token = ndx_mr_get_local_token(end->mr)};
}

/* Wait for the next result, which must be of this kind. */
static int expect(struct end *end, enum ndx_request_type type, const char *what)
{
	const uint32_t timeout_ms = end->place->options->timeout_ms;
	struct ndx_result result;
	size_t count = 0;
	enum ndx_status st = NDX_PENDING;

	for (uint32_t left = timeout_ms; st == NDX_PENDING && left > 0 && !*stop_flag();) {
		const uint32_t slice = left < WAIT_SLICE_MS ? left : WAIT_SLICE_MS;

		st = ndx_cq_wait_results(end->cq, &result, 1, slice, &count);
		left -= slice;
	}
	if (st == NDX_OK && count == 1 && result.status == NDX_OK && result.request_type == type)
		return SAMPLE_EXIT_OK;
	sample_progress_wipe(&end->progress);
	if (st == NDX_PENDING && *stop_flag())
		fprintf(stderr, "%s: %s: stopped\n", end->place->who, what);
	else if (st == NDX_PENDING || count == 0)
		fprintf(stderr, "%s: %s: nothing in %u ms\n", end->place->who, what, timeout_ms);
	else {
		fprintf(stderr, "%s: %s: %s, native %d\n", end->place->who, what,
		        ndx_status_name(st != NDX_OK ? st : result.status), result.native);
		(void)sample_show_cause(end->connector);
	}
	return SAMPLE_EXIT_FAILED;
}

static int failed(struct end *end, enum ndx_status status, const char *what)
{
	sample_progress_wipe(&end->progress);
	return sample_failed(end->place->who, status, "%s", what);
}

static int post_receive(struct end *end)
{
	const struct ndx_sge list = sge(end, in(end));
	enum ndx_status st = ndx_qp_receive(end->qp, end, &list, 1);

	return st == NDX_OK ? SAMPLE_EXIT_OK : failed(end, st, "post a receive");
}

static int send_message(struct end *end)
{
	const struct ndx_sge list = sge(end, out(end));
	enum ndx_status st = ndx_qp_send(end->qp, end, &list, 1, 0);

	if (st != NDX_OK)
		return failed(end, st, "send");
	return expect(end, NDX_REQUEST_SEND, "send a message");
}

static int write_shared(struct end *end, const struct ndx_memory_description *peer, uint32_t round)
{
	const struct ndx_sge list = sge(end, out(end));
	enum ndx_status st;

	fill_pattern(out(end), 0, end->size, KIND_WRITTEN, round);
	st = ndx_qp_write(end->qp, end, &list, 1, peer->address, peer->token, 0);
	if (st != NDX_OK)
		return failed(end, st, "write");
	return expect(end, NDX_REQUEST_WRITE, "write to the server's memory");
}

static int read_shared(struct end *end, const struct ndx_memory_description *peer, uint32_t round,
                       struct tally *tally)
{
	const struct ndx_sge list = sge(end, in(end));
	enum ndx_status st = ndx_qp_read(end->qp, end, &list, 1, peer->address, peer->token, 0);
	int rc;

	if (st != NDX_OK)
		return failed(end, st, "read");
	rc = expect(end, NDX_REQUEST_READ, "read the server's memory");
	if (rc == SAMPLE_EXIT_OK && !same(end, in(end), 0, KIND_TO_READ, round, "what was read"))
		tally->wrong++;
	tally->reads++;
	return rc;
}

static int client_round(struct end *end, const struct ndx_memory_description *peer, uint32_t round,
                        struct tally *tally)
{
	const bool last = round + 1 == end->place->options->messages;
	const bool remote = peer->length >= end->size;
	bool ignored;
	int rc = SAMPLE_EXIT_OK;

	if (remote) {
		rc = write_shared(end, peer, round);
		tally->writes++;
	}
	make_message(end, KIND_MESSAGE, round, last);
	if (rc == SAMPLE_EXIT_OK)
		rc = post_receive(end);
	if (rc == SAMPLE_EXIT_OK)
		rc = send_message(end);
	if (rc == SAMPLE_EXIT_OK)
		rc = expect(end, NDX_REQUEST_RECEIVE, "wait for the answer");
	if (rc != SAMPLE_EXIT_OK)
		return rc;
	tally->messages++;
	if (!look_at_message(end, KIND_ANSWER, round, &ignored))
		tally->wrong++;
	return remote ? read_shared(end, peer, round, tally) : SAMPLE_EXIT_OK;
}

int transfer_as_client(struct end *end, const struct ndx_memory_description *peer,
                       struct tally *tally)
{
	const uint32_t messages = end->place->options->messages;
	int rc = SAMPLE_EXIT_OK;

	if (messages > 0)
		sample_progress_begin(&end->progress, end->place->who, "messages", messages, true);
	for (uint32_t i = 0; i < messages && rc == SAMPLE_EXIT_OK; i++) {
		rc = client_round(end, peer, i, tally);
		sample_progress_show(&end->progress, i + 1);
	}
	sample_progress_wipe(&end->progress);
	return rc == SAMPLE_EXIT_OK && tally->wrong > 0 ? SAMPLE_EXIT_FAILED : rc;
}

int transfer_prepare(struct end *end)
{
	return post_receive(end);
}

int transfer_as_server(struct end *end, struct tally *tally)
{
	bool last = false;
	int rc = SAMPLE_EXIT_OK;

	for (uint32_t i = 0; !last && rc == SAMPLE_EXIT_OK; i++) {
		rc = expect(end, NDX_REQUEST_RECEIVE, "wait for a message");
		if (rc != SAMPLE_EXIT_OK)
			break;
		tally->messages++;
		tally->writes++;
		if (!look_at_message(end, KIND_MESSAGE, i, &last) ||
		    !same(end, shared(end), 0, KIND_WRITTEN, i, "what was written"))
			tally->wrong++;
		fill_pattern(shared(end), 0, end->size, KIND_TO_READ, i);
		make_message(end, KIND_ANSWER, i, last);
		if (!last)
			rc = post_receive(end);
		if (rc == SAMPLE_EXIT_OK)
			rc = send_message(end);
	}
	return rc == SAMPLE_EXIT_OK && tally->wrong > 0 ? SAMPLE_EXIT_FAILED : rc;
}
