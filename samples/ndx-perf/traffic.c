/* SPDX-License-Identifier: BSD-2-Clause */
/* The loops of a worker: what is measured. */
#include <sched.h>

#include "sample_clock.h"
#include "side.h"

#define BATCH 16u
#define POLLS_PER_LOOK 128u /* between two looks at the clock */
#define SLEEP_MS 100u       /* how often a sleeping thread looks whether to stop */
#define END_MS 8000u        /* for own requests, once the program or the test is to end */
#define TURNS 8u            /* see struct link */

static bool is_stopping(const struct worker *worker)
{
	return atomic_load_explicit(&worker->side->stop, memory_order_relaxed);
}

static bool has_failed(const struct worker *worker)
{
	return atomic_load_explicit(&worker->failed, memory_order_relaxed);
}

static void fail(struct worker *worker, const char *what, enum ndx_status status, int32_t native)
{
	if (has_failed(worker))
		return;
	worker->what = what;
	worker->status = status;
	worker->native = native;
	worker->failed_ns = sample_now_ns();
	worker->failed = true;
}

/* Count up a figure that only this thread writes. */
static void count(_Atomic uint64_t *figure)
{
	atomic_store_explicit(figure, atomic_load_explicit(figure, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
}

/* ---- requests ---- */

bool traffic_needs_receives(const struct side *side)
{
	const struct perf_test *test = &side->test;

	if (test->op == PERF_WRITE || test->op == PERF_READ)
		return false;
	return !side->client || test->kind == PERF_LATENCY || test->both;
}

static struct ndx_sge piece(const struct side *side, uint8_t *base, unsigned turn)
{
	struct ndx_sge sge = {
		.buffer = base + (size_t)(turn % TURNS) * 8,
		.length = side->test.size,
		.token = ndx_mr_get_local_token(side->mr),
	};

	return sge;
}

enum ndx_status traffic_receive(const struct side *side, struct link *link)
{
	const struct ndx_sge sge = piece(side, link->rx, link->rx_turn++);

	return ndx_qp_receive(link->qp, NULL, &sge, side->test.op == PERF_SEND ? 1 : 0);
}

static enum ndx_status post(const struct side *side, struct link *link)
{
	const uint32_t token = side->peer.token;
	struct ndx_sge sge = piece(side, link->tx, link->tx_turn);
	enum ndx_status st;

	switch (side->test.op) {
	case PERF_WRITE:
		sge.buffer = link->tx; /* where the last byte is the number */
		st = ndx_qp_write(link->qp, NULL, &sge, 1, link->remote, token, 0);
		break;
	case PERF_WRITE_IMM:
		st = ndx_qp_write_immediate(link->qp, NULL, &sge, 1, link->remote, token, 0, 0);
		break;
	case PERF_READ:
		sge.buffer = link->rx;
		st = ndx_qp_read(link->qp, NULL, &sge, 1, link->remote, token, 0);
		break;
	case PERF_SEND:
	case PERF_OPS:
	default:
		st = ndx_qp_send(link->qp, NULL, &sge, 1, 0);
		break;
	}
	if (st == NDX_OK) {
		link->tx_turn++;
		link->in_flight++;
	}
	return st;
}

/* Post a request; false: not now, results have to be taken first. */
static bool request(struct worker *worker, struct link *link)
{
	const enum ndx_status st = post(worker->side, link);

	if (st != NDX_OK && st != NDX_E_NO_MORE_ENTRIES)
		fail(worker, "post a request", st, 0);
	return st == NDX_OK;
}

/* ---- results ---- */

/* There was no result: whether that is so for too long. */
static void note_quiet(struct worker *worker, bool due)
{
	const struct side *side = worker->side;
	uint32_t limit_ms = side->timeout_ms;
	uint64_t now;

	if (!side->test.wait) {
		if (++worker->empty % POLLS_PER_LOOK != 0)
			return;
		(void)sched_yield(); /* the peer may need this processor to answer */
	}
	if (!due) {
		worker->quiet_since = 0;
		return;
	}
	now = sample_now_ns();
	if (worker->quiet_since == 0)
		worker->quiet_since = now;
	/* Without an interruption the last answers may take as long as all others. */
	if ((side->quit || side->hurry) && (limit_ms == 0 || limit_ms > END_MS))
		limit_ms = END_MS;
	if (limit_ms == 0 || now - worker->quiet_since <= limit_ms * UINT64_C(1000000))
		return;
	worker->waited_ms = limit_ms;
	fail(worker, "wait for an answer", NDX_PENDING, 0);
}

/* Take results, sleeping up to `sleep_ms` if the test is about that. `due`: there have to be some.
 */
static size_t take_results(struct worker *worker, struct ndx_result results[BATCH],
                           uint32_t sleep_ms, bool due)
{
	enum ndx_status st;
	size_t n = 0;

	if (!worker->side->test.wait || sleep_ms == 0) {
		n = ndx_cq_get_results(worker->cq, results, BATCH);
	} else {
		st = ndx_cq_wait_results(worker->cq, results, BATCH, sleep_ms, &n);
		if (st != NDX_OK && st != NDX_PENDING)
			fail(worker, "wait for a result", st, 0);
	}
	if (n == 0)
		note_quiet(worker, due);
	else
		worker->quiet_since = 0;
	for (size_t i = 0; i < n; i++) {
		if (results[i].status != NDX_OK)
			fail(worker, "a request", results[i].status, results[i].native);
	}
	return has_failed(worker) ? 0 : n;
}

/* Account for one result. Returns whether a message arrived, and then posts the receive again. */
static bool account_for(struct worker *worker, const struct ndx_result *result)
{
	const struct side *side = worker->side;
	struct link *link = result->queue_pair_context;
	enum ndx_status st;

	if (result->request_type != NDX_REQUEST_RECEIVE) {
		link->in_flight--;
		count(&worker->sent);
		return false;
	}
	count(&worker->received);
	if (side->test.op == PERF_SEND && result->bytes_transferred != side->test.size)
		fail(worker, "a message has another length than agreed", NDX_E_UNSUCCESSFUL, 0);
	st = traffic_receive(side, link);
	if (st != NDX_OK)
		fail(worker, "post a receive", st, 0);
	return true;
}

static struct link *link_of(const struct worker *worker, uint32_t index)
{
	return index < worker->side->test.qps ? &worker->side->links[index] : NULL;
}

static uint32_t next_of(const struct worker *worker, uint32_t index)
{
	return index + worker->side->test.threads;
}

static uint64_t all_in_flight(const struct worker *worker)
{
	uint64_t sum = 0;
	const struct link *link;

	for (uint32_t i = worker->index; (link = link_of(worker, i)) != NULL;
	     i = next_of(worker, i))
		sum += link->in_flight;
	return sum;
}

/* ---- bandwidth: each link has `depth` requests in flight; the target only takes results ---- */

static void fill_queues(struct worker *worker)
{
	struct link *link;

	for (uint32_t i = worker->index; (link = link_of(worker, i)) != NULL;
	     i = next_of(worker, i)) {
		while (link->in_flight < worker->side->test.depth && request(worker, link))
			;
	}
}

static void stream(struct worker *worker, bool initiates)
{
	const struct side *side = worker->side;
	struct ndx_result results[BATCH];

	while (!has_failed(worker)) {
		size_t n;

		if (!is_stopping(worker)) {
			if (initiates)
				fill_queues(worker);
		} else if (all_in_flight(worker) == 0) {
			worker->drained = true;
			/* The peer may still send what needs receives. */
			if (!side->client || !side->test.both || side->quit)
				break;
		}
		n = take_results(worker, results, SLEEP_MS, initiates && !worker->drained);
		for (size_t i = 0; i < n; i++)
			(void)account_for(worker, &results[i]);
	}
}

/* ---- latency: requests, each with an answer ---- */

/* Answer, as far as the queue has room. */
static void answer(struct worker *worker)
{
	struct link *link;

	for (uint32_t i = worker->index; (link = link_of(worker, i)) != NULL;
	     i = next_of(worker, i)) {
		while (link->owed > 0 && request(worker, link))
			link->owed--;
	}
}

static void echo(struct worker *worker)
{
	struct ndx_result results[BATCH];

	while (!has_failed(worker) && !is_stopping(worker)) {
		const size_t n = take_results(worker, results, SLEEP_MS, false);

		for (size_t i = 0; i < n; i++) {
			struct link *link = results[i].queue_pair_context;

			link->owed += account_for(worker, &results[i]) ? 1 : 0;
		}
		if (n > 0)
			answer(worker);
	}
}

/* The schedule of the requests of a worker. */
struct pace {
	uint64_t due;    /* of the next request; only with a rate */
	uint64_t number; /* requests without an answer */
};

static void ask(struct worker *worker, struct link *link, struct pace *pace, uint64_t now)
{
	const struct side *side = worker->side;
	const uint32_t at = (link->first + link->pending) % side->test.depth;

	if (!request(worker, link))
		return;
	link->times[at] = (struct moment){side->interval_ns > 0 ? pace->due : now, now};
	link->pending++;
	pace->number++;
	pace->due += side->interval_ns;
}

/* Post what is due: without a rate one request for each link, else up to `depth`. */
static void ask_all(struct worker *worker, struct pace *pace, uint64_t now)
{
	const struct side *side = worker->side;
	const uint32_t window = side->interval_ns > 0 ? side->test.depth : 1;
	struct link *link;

	for (uint32_t i = worker->index; (link = link_of(worker, i)) != NULL;
	     i = next_of(worker, i)) {
		while (link->pending < window && (side->interval_ns == 0 || now >= pace->due)) {
			const uint64_t before = pace->number;

			ask(worker, link, pace, now);
			if (pace->number == before)
				break;
		}
	}
}

static void note_answer(struct worker *worker, struct link *link, struct pace *pace, uint64_t now)
{
	const struct moment *moment = &link->times[link->first];

	if (link->pending == 0) {
		fail(worker, "an answer without a request", NDX_E_UNSUCCESSFUL, 0);
		return;
	}
	if (atomic_load_explicit(&worker->side->measuring, memory_order_relaxed)) {
		count(&worker->measured);
		histogram_add(worker->latency, now - moment->due);
		if (worker->side->interval_ns > 0)
			histogram_add(worker->service, now - moment->posted);
	}
	link->first = (link->first + 1) % worker->side->test.depth;
	link->pending--;
	pace->number--;
}

/* How long a thread may sleep: until the next request is due. */
static uint32_t sleep_of(const struct worker *worker, const struct pace *pace, uint64_t now)
{
	uint64_t ms;

	if (worker->side->interval_ns == 0 || is_stopping(worker))
		return SLEEP_MS;
	ms = pace->due > now ? (pace->due - now) / 1000000 : 0;
	return ms < SLEEP_MS ? (uint32_t)ms : SLEEP_MS;
}

static void exchange(struct worker *worker)
{
	const bool one_sided = worker->side->test.op == PERF_READ;
	struct ndx_result results[BATCH];
	uint64_t now = sample_now_ns();
	struct pace pace = {.due = now};

	while (!has_failed(worker)) {
		size_t n;

		if (!is_stopping(worker))
			ask_all(worker, &pace, now);
		else if (pace.number == 0)
			break;
		n = take_results(worker, results, sleep_of(worker, &pace, now), pace.number > 0);
		if (n > 0 || worker->side->interval_ns > 0)
			now = sample_now_ns();
		for (size_t i = 0; i < n; i++) {
			if (account_for(worker, &results[i]) != one_sided)
				note_answer(worker, results[i].queue_pair_context, &pace, now);
		}
	}
}

/* ---- latency of writes: the last byte of a message is its number ---- */

static bool has_arrived(const struct side *side, const struct link *link, uint8_t number)
{
	return __atomic_load_n(&link->rx[side->test.size - 1], __ATOMIC_ACQUIRE) == number;
}

static void put_number(const struct side *side, struct link *link)
{
	link->number = (uint8_t)(link->number % 255 + 1);
	__atomic_store_n(&link->tx[side->test.size - 1], link->number, __ATOMIC_RELEASE);
}

/* Take the results of own writes, which also makes progress. */
static void reap(struct worker *worker, bool due)
{
	struct ndx_result results[BATCH];
	const size_t n = take_results(worker, results, 0, due);

	for (size_t i = 0; i < n; i++)
		(void)account_for(worker, &results[i]);
}

static void write_back(struct worker *worker)
{
	const struct side *side = worker->side;
	struct link *link;

	while (!has_failed(worker) && !is_stopping(worker)) {
		reap(worker, false);
		for (uint32_t i = worker->index; (link = link_of(worker, i)) != NULL;
		     i = next_of(worker, i)) {
			if (link->owed == 0 &&
			    has_arrived(side, link, (uint8_t)(link->number % 255 + 1))) {
				put_number(side, link);
				link->owed = 1;
				count(&worker->received);
			}
			if (link->owed > 0 && request(worker, link))
				link->owed = 0;
		}
	}
}

/* One round trip of each link at a time; false: it is over. */
static bool write_once(struct worker *worker, struct pace *pace, uint64_t *now)
{
	const struct side *side = worker->side;
	struct link *link;

	for (uint32_t i = worker->index; (link = link_of(worker, i)) != NULL;
	     i = next_of(worker, i)) {
		if (link->pending > 0 && has_arrived(side, link, link->number)) {
			*now = sample_now_ns();
			worker->quiet_since = 0;
			note_answer(worker, link, pace, *now);
		}
		if (link->pending > 0 || is_stopping(worker) ||
		    (side->interval_ns > 0 && *now < pace->due))
			continue;
		put_number(side, link);
		ask(worker, link, pace, *now);
		if (link->pending == 0) /* not posted: the same number again */
			link->number = (uint8_t)((link->number + 253) % 255 + 1);
	}
	return pace->number > 0 || !is_stopping(worker);
}

static void write_exchange(struct worker *worker)
{
	uint64_t now = sample_now_ns();
	struct pace pace = {.due = now};

	while (!has_failed(worker) && write_once(worker, &pace, &now)) {
		reap(worker, pace.number > 0);
		if (worker->side->interval_ns > 0)
			now = sample_now_ns();
	}
}

void *traffic_run(void *arg)
{
	struct worker *worker = arg;
	const struct side *side = worker->side;
	const struct perf_test *test = &side->test;

	if (test->kind == PERF_BANDWIDTH)
		stream(worker, side->client || test->both);
	else if (test->op == PERF_READ && !side->client)
		stream(worker, false);
	else if (test->op == PERF_WRITE && side->client)
		write_exchange(worker);
	else if (test->op == PERF_WRITE)
		write_back(worker);
	else if (side->client)
		exchange(worker);
	else
		echo(worker);
	worker->drained = true;
	return NULL;
}
