/* SPDX-License-Identifier: BSD-2-Clause */
/* data.*: many requests, many queue pairs, many threads; inline. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "traffic.h"

enum { SLOT = 256, DEPTH = 64, MOMENT_MS = 5 };

/* One message at a time is outstanding, many in a row. */
void case_data_many_sends_one_at_a_time(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	for (size_t i = 0; p && i < 500; i++) {
		if (!message_passes(&p->a, &p->b, 1 + i % 200))
			return;
	}
}

/* Keep both queues full until `count` messages have passed. */
static void pipeline(struct pair *p, size_t count, uint32_t flags)
{
	struct side *a = &p->a;
	struct side *b = &p->b;
	size_t sent = 0;
	size_t done = 0;
	size_t got = 0;
	struct ndx_result results[16];
	uint64_t until = now_ms() + 6 * (uint64_t)WAIT_MS;

	receives_ok(b, 0, DEPTH, 0, SLOT);
	while (got < count && !check_over(p->c)) {
		while (sent < count && sent - done < DEPTH) {
			memcpy(a->buf + sent % DEPTH * SLOT, &sent, sizeof(sent));
			if (!send_ok(a, sent, sent % DEPTH * SLOT, SLOT, flags))
				return;
			sent++;
		}
		for (size_t n = ndx_cq_get_results(a->cq, results, 16), i = 0; i < n; i++)
			result_is(a, &results[i], NDX_REQUEST_SEND, done++, NDX_OK);
		for (size_t n = ndx_cq_get_results(b->cq, results, 16), i = 0; i < n; i++) {
			result_is(b, &results[i], NDX_REQUEST_RECEIVE, got, NDX_OK);
			check_that(p->c,
			           memcmp(b->buf + got % DEPTH * SLOT, &got, sizeof(got)) == 0,
			           "message %zu carries another number", got);
			receive_ok(b, got + DEPTH, got % DEPTH * SLOT, SLOT);
			got++;
		}
		check_that(p->c, now_ms() < until, "%zu of %zu messages in time", got, count);
	}
	while (done < sent && expect(a, NDX_REQUEST_SEND, done, NDX_OK))
		done++;
}

void case_data_deep_pipeline_keeps_order(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (p)
		pipeline(p, 5000, 0);
}

struct stream {
	struct side *s;
	size_t count;
	uint64_t key;
	uint64_t lengths;
	size_t sent;
	size_t done;
	size_t got;
};

/* Post as many sends as may be outstanding, each of random length. */
static bool stream_post(struct stream *t)
{
	struct side *s = t->s;

	while (t->sent < t->count && t->sent - t->done < DEPTH) {
		const size_t at = t->sent % DEPTH * SLOT;
		const size_t length = 8 + random_next(&t->lengths) % (SLOT - 7);

		pattern_fill(s->buf + at, length, t->key + t->sent);
		if (!send_ok(s, t->sent, at, length, 0))
			return false;
		t->sent++;
	}
	return true;
}

/* Take what one of the two queues has, after `ms` at most; how many results that was. */
static size_t stream_take(struct stream *t, struct ndx_cq *cq, uint32_t ms)
{
	struct side *s = t->s;
	struct ndx_result results[16];
	size_t n = 0;

	(void)ndx_cq_wait_results(cq, results, 16, ms, &n);
	for (size_t i = 0; i < n && cq == s->cq; i++)
		result_is(s, &results[i], NDX_REQUEST_SEND, t->done++, NDX_OK);
	for (size_t i = 0; i < n && cq == s->rcq; i++) {
		const size_t at = (DEPTH + t->got % DEPTH) * SLOT;

		result_is(s, &results[i], NDX_REQUEST_RECEIVE, t->got, NDX_OK);
		pattern_there(s->c, s->buf + at, results[i].bytes_transferred, t->key + t->got,
		              "message of the stream");
		receive_ok(s, t->got + DEPTH, at, SLOT);
		t->got++;
	}
	return n;
}

/*
 * Sends and receives `count` messages over a side with two queues. The side waits for a message for
 * a moment only: a side that waits for a message while its sends have completed does not send the
 * message that the peer waits for.
 */
static void *stream_run(void *arg)
{
	struct stream *t = arg;
	struct side *s = t->s;
	uint64_t until = now_ms() + WAIT_MS;

	while ((t->done < t->count || t->got < t->count) && !check_over(s->c)) {
		if (!stream_post(t))
			return NULL;
		if (stream_take(t, s->cq, 0) + stream_take(t, s->rcq, MOMENT_MS) != 0)
			until = now_ms() + WAIT_MS;
		check_that(s->c, now_ms() < until,
		           "%s: no result for %d ms: %zu sent, %zu of them completed, %zu received",
		           s->name, WAIT_MS, t->sent, t->done, t->got);
	}
	return NULL;
}

void case_data_streams_both_ways_from_threads(struct check *c)
{
	struct side_attr attr;
	struct stream streams[2];
	pthread_t thread;
	struct pair *p;

	side_attr_init(&attr);
	attr.separate_cqs = true;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->a, 0, DEPTH, (size_t)DEPTH * SLOT, SLOT);
	receives_ok(&p->b, 0, DEPTH, (size_t)DEPTH * SLOT, SLOT);
	for (size_t i = 0; i < 2; i++)
		streams[i] = (struct stream){
			.s = i ? &p->b : &p->a, .count = 2000, .key = c->seed, .lengths = c->seed};
	if (!check_that(c, pthread_create(&thread, NULL, stream_run, &streams[1]) == 0, "thread"))
		return;
	(void)stream_run(&streams[0]);
	(void)pthread_join(thread, NULL);
}

/* ---- many queue pairs that share the queues of two sides ---- */

enum { PAIRS = 100, MESSAGES = 1000, WINDOW = 4 };

struct crowd {
	struct check *c;
	struct ndx_cq *cqs[2]; /* of all sides A, of all sides B */
	struct pair *pairs[PAIRS];
	size_t posted[PAIRS];
	size_t got[2];
};

static bool crowd_open(struct crowd *crowd)
{
	struct check *c = crowd->c;
	struct side_attr attr[2];
	bool fine = true;

	for (size_t i = 0; i < 2; i++) {
		side_attr_init(&attr[i]);
		attr[i].receive_depth = WINDOW;
		attr[i].initiator_depth = WINDOW;
		attr[i].buffer = 4096;
		fine &= check_status(
			c, ndx_cq_create_depth(c->world->places[i].adapter, 256, &crowd->cqs[i]),
			NDX_OK, "cq_create");
		attr[i].cq = crowd->cqs[i];
	}
	fine = fine && pairs_open(c, crowd->pairs, PAIRS, &attr[0], &attr[1]);
	for (size_t i = 0; fine && i < PAIRS; i++)
		fine = pair_connect(crowd->pairs[i]) &&
		       receives_ok(&crowd->pairs[i]->b, 0, WINDOW, 0, 64);
	return fine;
}

static void crowd_take(struct crowd *crowd, size_t which)
{
	struct ndx_result results[64];
	size_t n = ndx_cq_get_results(crowd->cqs[which], results, 64);

	for (size_t i = 0; i < n; i++) {
		struct side *s = results[i].queue_pair_context;
		size_t number = (size_t)((char *)results[i].request_context - s->tags);

		check_status(crowd->c, results[i].status, NDX_OK, "a request of many");
		if (which == 1)
			receive_ok(s, number, 0, 64);
	}
	crowd->got[which] += n;
}

static void crowd_post(struct crowd *crowd)
{
	for (size_t i = 0; i < PAIRS; i++) {
		while (crowd->posted[i] < MESSAGES &&
		       send_raw(&crowd->pairs[i]->a, crowd->posted[i], 1024, 64, 0) == NDX_OK)
			crowd->posted[i]++;
	}
}

void case_data_many_queue_pairs_on_two_queues(struct check *c)
{
	uint64_t until = now_ms() + 6 * (uint64_t)WAIT_MS;
	struct crowd crowd = {.c = c};

	if (crowd_open(&crowd)) {
		while (!check_over(c) && (crowd.got[0] < (size_t)PAIRS * MESSAGES ||
		                          crowd.got[1] < (size_t)PAIRS * MESSAGES)) {
			crowd_post(&crowd);
			crowd_take(&crowd, 0);
			crowd_take(&crowd, 1);
			check_that(c, now_ms() < until, "%zu messages in time", crowd.got[1]);
		}
	}
	pair_close_all(c);
	ndx_cq_close(crowd.cqs[0]);
	ndx_cq_close(crowd.cqs[1]);
}

/* ---- several threads on one queue pair and its queues ---- */

enum { WORKERS = 3, WORK = 1500 };

struct workers {
	struct pair *p;
	size_t posted; /* all under __atomic */
	size_t sent;   /* results */
	size_t received;
};

static bool work_left(const struct workers *w)
{
	return !check_over(w->p->c) && (__atomic_load_n(&w->sent, __ATOMIC_RELAXED) < WORK ||
	                                __atomic_load_n(&w->received, __ATOMIC_RELAXED) < WORK);
}

static void take_some(struct workers *w, struct side *s)
{
	struct ndx_result results[4];
	size_t n = ndx_cq_get_results(s->cq, results, 4);

	for (size_t i = 0; i < n; i++) {
		check_status(s->c, results[i].status, NDX_OK, "a request of several threads");
		if (results[i].request_type == NDX_REQUEST_RECEIVE) {
			(void)__atomic_add_fetch(&w->received, 1, __ATOMIC_RELAXED);
			receive_ok(s, 0, 0, SLOT);
		} else {
			(void)__atomic_add_fetch(&w->sent, 1, __ATOMIC_RELAXED);
		}
	}
}

static void *work(void *arg)
{
	struct workers *w = arg;
	uint64_t until = now_ms() + 6 * (uint64_t)WAIT_MS;

	while (work_left(w)) {
		if (__atomic_fetch_add(&w->posted, 1, __ATOMIC_RELAXED) >= WORK ||
		    send_raw(&w->p->a, 0, 8192, 64, 0) != NDX_OK)
			(void)__atomic_fetch_sub(&w->posted, 1, __ATOMIC_RELAXED);
		take_some(w, &w->p->a);
		take_some(w, &w->p->b);
		check_that(w->p->c, now_ms() < until, "%zu of %d messages in time",
		           __atomic_load_n(&w->received, __ATOMIC_RELAXED), WORK);
	}
	return NULL;
}

void case_data_threads_share_queue_pair_and_queues(struct check *c)
{
	struct workers w = {.p = pair_up(c, NULL)};
	pthread_t threads[WORKERS];
	size_t started = 0;

	if (!w.p)
		return;
	receives_ok(&w.p->b, 0, 32, 0, SLOT);
	while (started < WORKERS && pthread_create(&threads[started], NULL, work, &w) == 0)
		started++;
	for (size_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	check_that(c, started == WORKERS, "no thread");
	check_that(c, w.sent == WORK && w.received == WORK, "%zu sent, %zu received of %d", w.sent,
	           w.received, WORK);
}

/* ---- inline ---- */

static struct pair *pair_with_inline(struct check *c, uint32_t *size)
{
	struct side_attr attr;
	struct pair *p;

	*size = c->world->places[0].info.max_inline_data_size;
	if (*size == 0) {
		check_skip(c, "the adapter has no inline data");
		return NULL;
	}
	if (*size > 16384)
		*size = 16384;
	side_attr_init(&attr);
	p = pair_open(c, &attr, NULL);
	if (!p)
		return NULL;
	p->a.attr.inline_size = *size;
	return side_new_qp(&p->a) && pair_connect(p) ? p : NULL;
}

void case_data_inline_buffer_is_free_after_the_post(struct check *c)
{
	uint32_t size;
	struct pair *p = pair_with_inline(c, &size);
	uint8_t *plain = calloc(1, 16384);
	struct ndx_sge one = {.buffer = plain, .length = 0, .token = 0};
	size_t lengths[3];

	if (!plain)
		check_fail(c, "no memory");
	if (!p || !plain)
		goto free_plain;
	lengths[0] = 1;
	lengths[1] = size / 2;
	lengths[2] = size;
	for (size_t i = 0; i < 3; i++) {
		one.length = (uint32_t)lengths[i];
		receive_ok(&p->b, 1, 0, 16384);
		pattern_fill(plain, lengths[i], 40 + i); /* not registered */
		check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 2), &one, 1, NDX_OP_INLINE), NDX_OK,
		             "inline send");
		memset(plain, 0xff, lengths[i]);
		expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
		expect_received(&p->b, 1, lengths[i]);
		pattern_there(c, p->b.buf, lengths[i], 40 + i, "inline message");
		pattern_fill(plain, lengths[i], 50 + i);
		check_status(c,
		             ndx_qp_write(p->a.qp, tag(&p->a, 3), &one, 1,
		                          (uint64_t)(uintptr_t)(p->b.buf + 20000),
		                          ndx_mr_get_remote_token(p->b.mr), NDX_OP_INLINE),
		             NDX_OK, "inline write");
		memset(plain, 0xff, lengths[i]);
		expect(&p->a, NDX_REQUEST_WRITE, 3, NDX_OK);
		pattern_there(c, p->b.buf + 20000, lengths[i], 50 + i, "inline write");
	}
free_plain:
	free(plain);
}

void case_data_inline_takes_any_number_of_sges(struct check *c)
{
	enum { MANY = 40 };
	uint32_t size;
	struct pair *p = pair_with_inline(c, &size);
	struct ndx_sge list[MANY];
	uint8_t bytes[MANY];

	if (!p)
		return;
	for (size_t i = 0; i < MANY; i++) {
		bytes[i] = (uint8_t)(i + 1);
		list[i] = (struct ndx_sge){
			.buffer = &bytes[i], .length = i < size ? 1 : 0, .token = 0};
	}
	receive_ok(&p->b, 1, 0, 64);
	check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 2), list, MANY, NDX_OP_INLINE), NDX_OK,
	             "inline send of 40 pieces");
	expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
	expect_received(&p->b, 1, size < MANY ? size : MANY);
	check_that(c, memcmp(p->b.buf, bytes, size < MANY ? size : MANY) == 0,
	           "the pieces were put together wrongly");
}

void case_data_inline_too_long_is_refused(struct check *c)
{
	uint32_t size;
	struct pair *p = pair_with_inline(c, &size);
	struct ndx_sge one;

	if (!p)
		return;
	/* more than asked for may have been granted, but not more than the adapter has */
	one = sge(&p->a, 0, (size_t)c->world->places[0].info.max_inline_data_size + 1);
	if (one.length > p->a.attr.buffer)
		one.length = (uint32_t)p->a.attr.buffer;
	check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 1), &one, 1, NDX_OP_INLINE),
	             NDX_E_BUFFER_OVERFLOW, "inline send that is too long");
	check_status(c,
	             ndx_qp_write(p->a.qp, tag(&p->a, 1), &one, 1, (uint64_t)(uintptr_t)p->b.buf,
	                          ndx_mr_get_remote_token(p->b.mr), NDX_OP_INLINE),
	             NDX_E_BUFFER_OVERFLOW, "inline write that is too long");
	one.length = 8;
	check_status(c,
	             ndx_qp_read(p->a.qp, tag(&p->a, 1), &one, 1, (uint64_t)(uintptr_t)p->b.buf,
	                         ndx_mr_get_remote_token(p->b.mr), NDX_OP_INLINE),
	             NDX_E_INVALID_PARAMETER, "inline read");
	message_passes(&p->a, &p->b, 64);
}
