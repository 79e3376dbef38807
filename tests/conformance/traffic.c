/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting and taking results. */
#include <string.h>

#include "traffic.h"

void *tag(struct side *s, size_t number)
{
	return &s->tags[number % SIDE_TAGS];
}

struct ndx_sge sge(const struct side *s, size_t at, size_t length)
{
	struct ndx_sge one = {
		.buffer = s->buf + at,
		.length = (uint32_t)length,
		.token = ndx_mr_get_local_token(s->mr),
	};

	return one;
}

enum ndx_status send_raw(struct side *s, size_t number, size_t at, size_t length, uint32_t flags)
{
	struct ndx_sge one = sge(s, at, length);

	return ndx_qp_send(s->qp, tag(s, number), &one, 1, flags);
}

enum ndx_status receive_raw(struct side *s, size_t number, size_t at, size_t length)
{
	struct ndx_sge one = sge(s, at, length);

	return ndx_qp_receive(s->qp, tag(s, number), &one, 1);
}

static uint64_t remote_address(const struct side *peer, size_t at)
{
	return (uint64_t)(uintptr_t)(peer->buf + at);
}

enum ndx_status read_raw(struct side *s, size_t number, size_t at, size_t length,
                         const struct side *peer, size_t peer_at, uint32_t flags)
{
	struct ndx_sge one = sge(s, at, length);

	return ndx_qp_read(s->qp, tag(s, number), &one, 1, remote_address(peer, peer_at),
	                   ndx_mr_get_remote_token(peer->mr), flags);
}

enum ndx_status write_raw(struct side *s, size_t number, size_t at, size_t length,
                          const struct side *peer, size_t peer_at, uint32_t flags)
{
	struct ndx_sge one = sge(s, at, length);

	return ndx_qp_write(s->qp, tag(s, number), &one, 1, remote_address(peer, peer_at),
	                    ndx_mr_get_remote_token(peer->mr), flags);
}

static bool posted(struct side *s, enum ndx_status got, const char *what, size_t number)
{
	return check_that(s->c, got == NDX_OK, "%s: %s %zu was not accepted: %s", s->name, what,
	                  number, ndx_status_name(got));
}

bool send_ok(struct side *s, size_t number, size_t at, size_t length, uint32_t flags)
{
	return !check_over(s->c) &&
	       posted(s, send_raw(s, number, at, length, flags), "send", number);
}

bool receive_ok(struct side *s, size_t number, size_t at, size_t length)
{
	return !check_over(s->c) &&
	       posted(s, receive_raw(s, number, at, length), "receive", number);
}

bool read_ok(struct side *s, size_t number, size_t at, size_t length, const struct side *peer,
             size_t peer_at, uint32_t flags)
{
	return !check_over(s->c) &&
	       posted(s, read_raw(s, number, at, length, peer, peer_at, flags), "read", number);
}

bool write_ok(struct side *s, size_t number, size_t at, size_t length, const struct side *peer,
              size_t peer_at, uint32_t flags)
{
	return !check_over(s->c) &&
	       posted(s, write_raw(s, number, at, length, peer, peer_at, flags), "write", number);
}

bool receives_ok(struct side *s, size_t number, size_t count, size_t at, size_t length)
{
	bool fine = true;

	for (size_t i = 0; fine && i < count; i++)
		fine = receive_ok(s, number + i, at + i * length, length);
	return fine;
}

bool sends_ok(struct side *s, size_t number, size_t count, size_t at, size_t length)
{
	bool fine = true;

	for (size_t i = 0; fine && i < count; i++)
		fine = send_ok(s, number + i, at + i * length, length, 0);
	return fine;
}

size_t fill_sends(struct side *s, size_t length, uint32_t flags, size_t limit)
{
	enum ndx_status status = NDX_OK;
	size_t count = 0;

	if (check_over(s->c))
		return 0;
	while (count < limit && (status = send_raw(s, count, 0, length, flags)) == NDX_OK)
		count++;
	if (!check_that(s->c, status == NDX_E_NO_MORE_ENTRIES,
	                "%s: after %zu sends the queue says %s, not full", s->name, count,
	                ndx_status_name(status)))
		return 0;
	return count;
}

size_t fill_receives(struct side *s, size_t length, size_t limit)
{
	enum ndx_status status = NDX_OK;
	size_t count = 0;

	if (check_over(s->c))
		return 0;
	while (count < limit && (status = receive_raw(s, count, 0, length)) == NDX_OK)
		count++;
	if (!check_that(s->c, status == NDX_E_NO_MORE_ENTRIES,
	                "%s: after %zu receives the queue says %s, not full", s->name, count,
	                ndx_status_name(status)))
		return 0;
	return count;
}

const char *request_name(enum ndx_request_type type)
{
	switch (type) {
	case NDX_REQUEST_RECEIVE:
		return "receive";
	case NDX_REQUEST_SEND:
		return "send";
	case NDX_REQUEST_BIND:
		return "bind";
	case NDX_REQUEST_INVALIDATE:
		return "invalidate";
	case NDX_REQUEST_READ:
		return "read";
	case NDX_REQUEST_WRITE:
		return "write";
	}
	return "unknown request";
}

/* Results are taken in batches, as programs do. The batch is of one queue only. */
static bool take_held(struct side *s, struct ndx_cq *cq, struct ndx_result *out)
{
	if (cq != s->cq || s->held_at == s->held_count)
		return false;
	*out = s->held[s->held_at++];
	return true;
}

bool take(struct side *s, struct ndx_cq *cq, struct ndx_result *out)
{
	enum ndx_status status;
	size_t got = 0;

	if (check_over(s->c))
		return false;
	if (take_held(s, cq, out))
		return true;
	if (cq != s->cq) {
		status = ndx_cq_wait_results(cq, out, 1, WAIT_MS, &got);
	} else {
		status = ndx_cq_wait_results(cq, s->held, sizeof(s->held) / sizeof(s->held[0]),
		                             WAIT_MS, &got);
		s->held_at = 0;
		s->held_count = got;
	}
	if (!check_that(s->c, status == NDX_OK && got > 0,
	                "%s: waited %d ms for a result: %s, %zu results", s->name, WAIT_MS,
	                ndx_status_name(status), got))
		return false;
	return cq != s->cq || take_held(s, cq, out);
}

bool result_is(struct side *s, const struct ndx_result *r, enum ndx_request_type type,
               size_t number, enum ndx_status status)
{
	const char *context = r->request_context;
	bool ours = context >= s->tags && context < s->tags + SIDE_TAGS;
	size_t got = ours ? (size_t)(context - s->tags) : SIZE_MAX;

	return check_that(s->c,
	                  r->status == status && r->request_type == type &&
	                          r->queue_pair_context == s && got == number % SIDE_TAGS,
	                  "%s: expected %s %zu with %s, got %s %zu with %s (native %d)%s", s->name,
	                  request_name(type), number, ndx_status_name(status),
	                  request_name(r->request_type), got, ndx_status_name(r->status),
	                  (int)r->native,
	                  r->queue_pair_context == s ? "" : " of another queue pair");
}

static struct ndx_cq *queue_of(struct side *s, enum ndx_request_type type)
{
	return type == NDX_REQUEST_RECEIVE ? s->rcq : s->cq;
}

bool expect(struct side *s, enum ndx_request_type type, size_t number, enum ndx_status status)
{
	struct ndx_result result = {.status = NDX_PENDING};

	if (check_over(s->c))
		return false;
	check_note(s->c, "%s awaits %s %zu with %s", s->name, request_name(type), number,
	           ndx_status_name(status));
	return take(s, queue_of(s, type), &result) && result_is(s, &result, type, number, status);
}

bool expect_received(struct side *s, size_t number, size_t bytes)
{
	struct ndx_result result = {.status = NDX_PENDING};

	if (check_over(s->c))
		return false;
	check_note(s->c, "%s awaits receive %zu of %zu bytes", s->name, number, bytes);
	return take(s, s->rcq, &result) &&
	       result_is(s, &result, NDX_REQUEST_RECEIVE, number, NDX_OK) &&
	       check_that(s->c, result.bytes_transferred == bytes,
	                  "%s: receive %zu says %u bytes, not %zu", s->name, number,
	                  result.bytes_transferred, bytes);
}

bool expect_run(struct side *s, enum ndx_request_type type, size_t number, size_t count,
                enum ndx_status status)
{
	bool fine = true;

	for (size_t i = 0; fine && i < count; i++)
		fine = expect(s, type, number + i, status);
	return fine;
}

bool expect_all_there(struct side *s, size_t count, enum ndx_status status)
{
	struct ndx_result results[64];
	size_t seen = s->held_count - s->held_at;
	size_t got;

	if (check_over(s->c))
		return false;
	for (size_t i = s->held_at; i < s->held_count; i++) {
		if (!check_that(s->c, s->held[i].status == status, "%s: a %s completed %s, not %s",
		                s->name, request_name(s->held[i].request_type),
		                ndx_status_name(s->held[i].status), ndx_status_name(status)))
			return false;
	}
	s->held_at = s->held_count;
	while ((got = ndx_cq_get_results(s->cq, results, 64)) > 0) {
		for (size_t i = 0; i < got; i++) {
			if (!check_that(s->c, results[i].status == status,
			                "%s: a %s completed %s, not %s", s->name,
			                request_name(results[i].request_type),
			                ndx_status_name(results[i].status),
			                ndx_status_name(status)))
				return false;
		}
		seen += got;
	}
	return check_that(s->c, seen == count, "%s: %zu results were there, not %zu", s->name, seen,
	                  count);
}

bool expect_silence(struct side *s)
{
	struct ndx_result result = {.status = NDX_PENDING};
	size_t got = 0;

	if (check_over(s->c))
		return false;
	if (!take_held(s, s->cq, &result)) {
		(void)ndx_cq_wait_results(s->cq, &result, 1, QUIET_MS, &got);
		if (got == 0 && s->rcq != s->cq)
			got = ndx_cq_get_results(s->rcq, &result, 1);
		if (got == 0)
			return true;
	}
	return check_that(s->c, false, "%s: nothing should complete, a %s did, with %s", s->name,
	                  request_name(result.request_type), ndx_status_name(result.status));
}

size_t discard(struct side *s)
{
	struct ndx_result results[64];
	size_t count = s->held_count - s->held_at;
	size_t got;

	s->held_at = s->held_count;
	while ((got = ndx_cq_get_results(s->cq, results, 64)) > 0)
		count += got;
	while (s->rcq != s->cq && (got = ndx_cq_get_results(s->rcq, results, 64)) > 0)
		count += got;
	return count;
}

void pattern_fill(uint8_t *at, size_t length, uint64_t key)
{
	uint64_t state = key;
	size_t i = 0;

	for (; i + 8 <= length; i += 8) {
		uint64_t word = random_next(&state);

		memcpy(at + i, &word, 8);
	}
	for (; i < length; i++)
		at[i] = (uint8_t)(random_next(&state) >> 32);
}

bool pattern_there(struct check *c, const uint8_t *at, size_t length, uint64_t key,
                   const char *what)
{
	uint64_t state = key;
	size_t i = 0;

	for (; i + 8 <= length; i += 8) {
		uint64_t word = random_next(&state);

		if (memcmp(at + i, &word, 8) != 0)
			return check_that(c, false, "%s: wrong data at byte %zu of %zu", what, i,
			                  length);
	}
	for (; i < length; i++) {
		if (at[i] != (uint8_t)(random_next(&state) >> 32))
			return check_that(c, false, "%s: wrong data at byte %zu of %zu", what, i,
			                  length);
	}
	return !check_over(c);
}

enum ndx_status make_srq(struct ndx_adapter *adapter, uint32_t depth, uint32_t max_sge,
                         uint32_t threshold, struct ndx_srq **out)
{
	struct ndx_srq_attr attr;

	ndx_srq_attr_init(&attr);
	attr.depth = depth;
	attr.max_sge = max_sge;
	attr.threshold = threshold;
	return ndx_srq_create(adapter, &attr, out);
}

bool bytes_are(struct check *c, const uint8_t *at, size_t length, uint8_t value, const char *what)
{
	for (size_t i = 0; i < length; i++) {
		if (at[i] != value)
			return check_that(c, false, "%s: byte %zu of %zu was touched", what, i,
			                  length);
	}
	return !check_over(c);
}

bool message_passes(struct side *from, struct side *to, size_t length)
{
	uint64_t key = check_random(from->c);

	if (check_over(from->c))
		return false;
	pattern_fill(from->buf, length, key);
	return receive_ok(to, 1, 0, length) && send_ok(from, 2, 0, length, 0) &&
	       expect(from, NDX_REQUEST_SEND, 2, NDX_OK) && expect_received(to, 1, length) &&
	       pattern_there(from->c, to->buf, length, key, "message");
}
