/* SPDX-License-Identifier: BSD-2-Clause */
/* The load engine: schedule and account. */
#include <string.h>

#include "load.h"
#include "traffic.h"

enum {
	RING = 256,          /* initiator requests of a side that may be unaccounted for */
	RECEIVES = 64,       /* the same for receives */
	RECEIVE_TAGS = 1024, /* their contexts begin here */
	SHARED = 4096,       /* bytes that the peer reads, then as many that it writes */
	HEADER = 16,
	RNR_PERCENT = 5,    /* rounds with sends that find no receive, */
	RNR_DRAIN_MS = 300, /* and what their disconnects take */
	REST_MS = 500,
};

struct request {
	enum ndx_request_type type;
	uint32_t number; /* of a send: position in the stream of messages */
	uint32_t length;
	uint32_t peer_at; /* of a read */
	bool silent;
};

/* Rings: entries [done, posted), as positions that only grow. */
struct load_side {
	struct side *s;
	struct load_side *peer;
	uint64_t random;
	uint64_t key;     /* of the messages that it sends */
	uint32_t message; /* largest, in bytes; also the size of a slot */
	uint32_t receive_depth;
	uint32_t disconnect_at; /* turn, UINT32_MAX: only when the other side has */
	uint32_t turns;
	enum load_end end;
	enum ndx_status good_end; /* how a disconnect completes */
	bool polite;              /* sends only what a receive waits for */
	bool lazy;                /* hardly polls */
	struct request ring[RING];
	uint64_t posted;
	uint64_t done;
	uint64_t receives_posted; /* also read by the peer's thread */
	uint64_t receives_done;
	uint32_t sent;     /* messages posted */
	uint64_t sends_ok; /* messages that completed well */
	uint64_t received;
	uint64_t silent_run;
	bool cancelled; /* an initiator request was; none may succeed after it */
	bool receive_cancelled;
	bool parting; /* disconnect was called */
	bool parted;  /* and has completed, and everything is accounted for */
};

static uint32_t below(struct load_side *l, uint32_t limit)
{
	return (uint32_t)(random_next(&l->random) % limit);
}

static size_t send_slot(const struct load_side *l, uint64_t position)
{
	return (size_t)(2 * SHARED + (position % RING) * l->message);
}

static size_t receive_slot(const struct load_side *l, uint64_t position)
{
	return (size_t)(2 * SHARED + (RING + position % RECEIVES) * l->message);
}

/* What the memory that the peer reads is filled with; the peer may have overwritten it since. */
static uint8_t shared_byte(uint32_t at)
{
	return (uint8_t)(at * 7 + (at >> 8) + 1);
}

/* ---- the account ---- */

static void succeeded(struct load_side *l, const struct request *r, uint64_t position)
{
	struct side *s = l->s;

	check_that(s->c, !l->cancelled, "%s: a %s succeeded behind one that was cancelled", s->name,
	           request_name(r->type));
	if (r->type == NDX_REQUEST_SEND)
		l->sends_ok++;
	if (r->type != NDX_REQUEST_READ)
		return;
	for (uint32_t i = 0; i < r->length; i++) {
		if (s->buf[send_slot(l, position) + i] != shared_byte(r->peer_at + i)) {
			check_fail(s->c, "%s: a read of %u bytes brought wrong data", s->name,
			           r->length);
			return;
		}
	}
}

/* Silent requests in front of one that completed have succeeded. */
static void account_initiator(struct load_side *l, const struct ndx_result *result)
{
	struct side *s = l->s;
	struct request *r;

	for (; l->done < l->posted; l->done++) {
		r = &l->ring[l->done % RING];
		if (result->request_context == tag(s, l->done % RING))
			break;
		if (!check_that(s->c, r->silent, "%s: no result for a %s before that of a later %s",
		                s->name, request_name(r->type), request_name(result->request_type)))
			return;
		succeeded(l, r, l->done);
	}
	if (!check_that(s->c, l->done < l->posted, "%s: a %s completed that is not posted", s->name,
	                request_name(result->request_type)))
		return;
	r = &l->ring[l->done % RING];
	check_that(s->c, r->type == result->request_type, "%s: a %s completed as a %s", s->name,
	           request_name(r->type), request_name(result->request_type));
	if (result->status == NDX_OK) {
		check_that(s->c, !r->silent, "%s: a silent %s succeeded aloud", s->name,
		           request_name(r->type));
		succeeded(l, r, l->done);
	} else {
		check_status(s->c, result->status, NDX_E_CANCELED, "a request in the load");
		l->cancelled = true;
	}
	l->done++;
}

static void account_message(struct load_side *l, const struct ndx_result *result)
{
	struct side *s = l->s;
	const uint8_t *at = s->buf + receive_slot(l, l->receives_done);
	uint64_t key;
	uint32_t number;
	uint32_t length;

	memcpy(&key, at, sizeof(key));
	memcpy(&number, at + 8, sizeof(number));
	memcpy(&length, at + 12, sizeof(length));
	check_that(s->c, key == l->peer->key, "%s: a message that nobody sent", s->name);
	check_that(s->c, number == l->received, "%s: message %u came where %u was due", s->name,
	           number, (unsigned)l->received);
	if (check_that(s->c, length == result->bytes_transferred && length <= l->message,
	               "%s: message %u of %u bytes came with %u", s->name, number, length,
	               result->bytes_transferred))
		pattern_there(s->c, at + HEADER, length - HEADER, key + number, "message");
	l->received++;
}

static void account_receive(struct load_side *l, const struct ndx_result *result)
{
	struct side *s = l->s;
	uint64_t position = l->receives_done;

	if (!check_that(s->c,
	                position < l->receives_posted &&
	                        result->request_context ==
	                                tag(s, RECEIVE_TAGS + position % RECEIVES),
	                "%s: a receive completed out of turn, or twice", s->name))
		return;
	if (result->status == NDX_OK) {
		check_that(s->c, !l->receive_cancelled, "%s: a message after a cancelled receive",
		           s->name);
		account_message(l, result);
	} else {
		check_status(s->c, result->status, NDX_E_CANCELED, "a receive in the load");
		l->receive_cancelled = true;
	}
	l->receives_done++;
}

/* Take up to `limit` results; how many there were. */
static size_t account(struct load_side *l, size_t limit)
{
	struct ndx_result results[32];
	size_t count = 0;
	size_t got;

	while (count < limit) {
		size_t room = limit - count < 32 ? limit - count : 32;

		got = ndx_cq_get_results(l->s->cq, results, room);
		for (size_t i = 0; i < got && !check_over(l->s->c); i++) {
			if (results[i].request_type == NDX_REQUEST_RECEIVE)
				account_receive(l, &results[i]);
			else
				account_initiator(l, &results[i]);
		}
		count += got;
		if (got < room)
			break;
	}
	return count;
}

/*
 * Where the memory begins that is not accessed any more. Behind a queue pair that was closed the
 * peer's reads and writes are served until the peer has said goodbye, too.
 */
static size_t own_memory(const struct load_side *l)
{
	return l->end == LOAD_CLOSE ? 2 * SHARED : 0;
}

/* The disconnect has completed: everything is there, and accounted for. */
static void close_the_books(struct load_side *l)
{
	struct side *s = l->s;

	(void)account(l, SIZE_MAX);
	for (; l->done < l->posted && !check_over(s->c); l->done++) {
		const struct request *r = &l->ring[l->done % RING];

		if (check_that(s->c, r->silent,
		               "%s: a %s has no result when the disconnect is done", s->name,
		               request_name(r->type)))
			succeeded(l, r, l->done);
	}
	check_that(s->c, l->receives_done == l->receives_posted,
	           "%s: %u receives have no result when the disconnect is done", s->name,
	           (unsigned)(l->receives_posted - l->receives_done));
	memset(s->buf + own_memory(l), 0xa5,
	       s->attr.buffer - own_memory(l)); /* it may not change any more */
	l->parted = true;
}

/* ---- the schedule ---- */

static void post_receives(struct load_side *l)
{
	uint32_t count = 1 + below(l, l->receive_depth);

	while (count-- > 0 && l->receives_posted - l->receives_done < l->receive_depth) {
		uint64_t position = l->receives_posted;

		if (!receive_ok(l->s, RECEIVE_TAGS + position % RECEIVES, receive_slot(l, position),
		                l->message))
			return;
		__atomic_store_n(&l->receives_posted, position + 1, __ATOMIC_RELEASE);
	}
}

static enum ndx_status post_message(struct load_side *l, uint32_t flags)
{
	struct request *r = &l->ring[l->posted % RING];
	uint8_t *at = l->s->buf + send_slot(l, l->posted);
	uint32_t small = l->message < 128 ? l->message : 128;
	uint32_t length = HEADER + below(l, (below(l, 4) ? small : l->message) - HEADER + 1);
	enum ndx_status status;

	memcpy(at, &l->key, sizeof(l->key));
	memcpy(at + 8, &l->sent, sizeof(l->sent));
	memcpy(at + 12, &length, sizeof(length));
	pattern_fill(at + HEADER, length - HEADER, l->key + l->sent);
	status = send_raw(l->s, l->posted % RING, send_slot(l, l->posted), length, flags);
	if (status == NDX_OK) {
		r->type = NDX_REQUEST_SEND;
		r->length = length;
		r->number = l->sent++;
	}
	return status;
}

static enum ndx_status post_access(struct load_side *l, bool read, uint32_t flags)
{
	struct request *r = &l->ring[l->posted % RING];
	uint32_t most = l->message < SHARED ? l->message : SHARED;
	uint32_t length = below(l, most + 1);
	uint32_t peer_at = below(l, SHARED - length + 1);
	size_t at = send_slot(l, l->posted);
	enum ndx_status status;

	if (read)
		status = read_raw(l->s, l->posted % RING, at, length, l->peer->s, peer_at, flags);
	else
		status = write_raw(l->s, l->posted % RING, at, length, l->peer->s, SHARED + peer_at,
		                   flags);
	if (status == NDX_OK) {
		r->type = read ? NDX_REQUEST_READ : NDX_REQUEST_WRITE;
		r->length = length;
		r->peer_at = peer_at;
	}
	return status;
}

static bool receive_waits(const struct load_side *l)
{
	return __atomic_load_n(&l->peer->receives_posted, __ATOMIC_ACQUIRE) > l->sent;
}

/* Post one request; false if that is enough for this turn. */
static bool post_one(struct load_side *l)
{
	struct request *r = &l->ring[l->posted % RING];
	uint32_t kind = below(l, 10);
	bool silent = below(l, 4) == 0 && l->silent_run < 32;
	uint32_t flags = silent ? NDX_OP_SILENT_SUCCESS : 0;
	enum ndx_status status;

	if (l->posted - l->done >= RING - 1)
		return false;
	if (kind < 2)
		status = post_access(l, kind == 0, flags);
	else if (!l->polite || receive_waits(l))
		status = post_message(l, flags);
	else
		return false;
	if (status == NDX_E_NO_MORE_ENTRIES)
		return false;
	if (!check_status(l->s->c, status, NDX_OK, "post in the load"))
		return false;
	r->silent = silent;
	l->silent_run = silent ? l->silent_run + 1 : 0;
	l->posted++;
	return true;
}

static void end_side(struct load_side *l)
{
	if (l->end == LOAD_CLOSE) {
		side_close_qp(l->s);
		close_the_books(l);
		return;
	}
	if (l->end == LOAD_FLUSH)
		check_status(l->s->c, ndx_qp_flush(l->s->qp), NDX_OK, "flush under load");
	if (side_start_disconnect(l->s))
		l->parting = true;
}

/* What one side does when it is its turn. */
static void turn(struct load_side *l, uint32_t now)
{
	uint32_t dice = below(l, 100);
	uint32_t burst = 1 + below(l, 8);

	if (l->parted)
		return;
	if (l->parting && ndx_overlapped_status(&l->s->disc) != NDX_PENDING) {
		check_ends(l->s->c, &l->s->disc, l->good_end, "disconnect under load");
		close_the_books(l);
		return;
	}
	if (now >= l->disconnect_at && !l->parting)
		end_side(l);
	else if (dice < (l->lazy ? 2u : 40u))
		(void)account(l, 1 + below(l, 32));
	else if (dice < 65 && !l->parting)
		post_receives(l);
	else
		while (burst-- > 0 && post_one(l))
			continue;
}

/* See the end of this side's disconnect; starts it if it has not been. */
static void finish(struct load_side *l)
{
	if (check_over(l->s->c) || l->parted)
		return;
	if (!l->parting)
		end_side(l);
	if (!l->parted && check_ends(l->s->c, &l->s->disc, l->good_end, "disconnect under load"))
		close_the_books(l);
}

static void *run_side(void *arg)
{
	struct load_side *l = arg;

	for (uint32_t now = 0; now < l->turns && !l->parted && !check_over(l->s->c); now++)
		turn(l, now);
	finish(l);
	return NULL;
}

static void run_in_turns(struct check *c, struct load_side sides[2])
{
	uint32_t turns = sides[0].turns + sides[1].turns;
	struct load_side *last = &sides[1];

	for (uint32_t now = 0; now < turns && !check_over(c); now++) {
		uint32_t which = check_below(c, 2);

		turn(&sides[which], now / 2);
	}
	/* the one that has not called, or is to live with the other's end, comes last */
	if (sides[1].end != LOAD_DISCONNECT || (sides[1].parting && !sides[0].parting))
		last = &sides[0];
	finish(last->peer);
	finish(last);
}

static void run_in_threads(struct check *c, struct load_side sides[2])
{
	pthread_t thread;

	if (!check_that(c, pthread_create(&thread, NULL, run_side, &sides[1]) == 0, "no thread"))
		return;
	(void)run_side(&sides[0]);
	(void)pthread_join(thread, NULL);
}

static void plan_side(struct check *c, struct load_side *l, struct side *s, struct load_side *peer,
                      bool rnr)
{
	memset(l, 0, sizeof(*l));
	l->s = s;
	l->peer = peer;
	l->random = check_random(c);
	l->key = check_random(c);
	l->message = (uint32_t)s->attr.buffer; /* set by the caller */
	l->receive_depth = s->attr.receive_depth;
	l->turns = 100 + check_below(c, 300);
	l->polite = !rnr || check_chance(c, 30);
	l->lazy = check_chance(c, 15);
	l->disconnect_at = check_below(c, l->turns);
}

/* A round that failed ends early: what has arrived and was not looked at counts as received. */
static void count_the_rest(struct load_side *l)
{
	struct ndx_result results[32];
	uint64_t outstanding = l->receives_posted - l->receives_done;
	size_t got = 0;

	while (outstanding > 0 &&
	       ndx_cq_wait_results(l->s->cq, results, 32, REST_MS, &got) == NDX_OK) {
		for (size_t i = 0; i < got; i++) {
			bool receive = results[i].request_type == NDX_REQUEST_RECEIVE;

			outstanding -= receive;
			l->received += receive && results[i].status == NDX_OK;
		}
	}
}

static void tally(struct check *c, const struct load_side *from, const struct load_side *to)
{
	uint64_t missing = from->sends_ok > to->received ? from->sends_ok - to->received : 0;

	c->totals.sends_ok += from->sends_ok;
	c->totals.received += to->received;
	c->totals.missing += missing;
	check_that(c, missing == 0, "%u sends of %s completed well, %s received %u",
	           (unsigned)from->sends_ok, from->s->name, to->s->name, (unsigned)to->received);
}

void load_round(struct check *c, const struct load_plan *plan)
{
	static const uint32_t messages[] = {256, 256, 1024, 1024, 8192};
	static const uint32_t depths[] = {2, 8, 64};
	uint32_t message = messages[check_below(c, 5)];
	uint32_t one_sided = check_below(c, 3); /* 0: A only, 1: B only, 2: both */
	bool rnr = check_chance(c, RNR_PERCENT);
	struct load_side sides[2];
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.receive_depth = plan->receive_depth;
	attr.initiator_depth = depths[check_below(c, 3)];
	attr.cq_depth = check_chance(c, 30) ? 2 : 0;
	attr.drain_ms = rnr ? RNR_DRAIN_MS : 0;
	attr.buffer = 2 * SHARED + (size_t)(RING + RECEIVES) * message;
	p = pair_up(c, &attr);
	if (!p)
		return;
	plan_side(c, &sides[0], &p->a, &sides[1], rnr);
	plan_side(c, &sides[1], &p->b, &sides[0], rnr);
	for (size_t i = 0; i < 2; i++) {
		sides[i].message = message;
		sides[i].good_end = plan->end == LOAD_FLUSH ? NDX_E_CONNECTION_ABORTED : NDX_OK;
		for (uint32_t at = 0; at < SHARED; at++)
			sides[i].s->buf[at] = shared_byte(at);
		if (one_sided == 1 - i && !plan->threads)
			sides[i].disconnect_at = UINT32_MAX;
		post_receives(&sides[i]);
	}
	if (plan->end != LOAD_DISCONNECT) { /* by one side, the other has to live with it */
		sides[one_sided % 2].end = plan->end;
		sides[1 - one_sided % 2].disconnect_at = UINT32_MAX;
	}
	if (plan->threads)
		run_in_threads(c, sides);
	else
		run_in_turns(c, sides);
	for (size_t i = 0; i < 2 && check_over(c); i++)
		count_the_rest(&sides[i]);
	tally(c, &sides[0], &sides[1]);
	tally(c, &sides[1], &sides[0]);
	for (size_t i = 0; i < 2 && !check_over(c); i++) {
		check_that(c, account(&sides[i], 1) == 0, "%s: a result after the disconnect",
		           sides[i].s->name);
		bytes_are(c, sides[i].s->buf + own_memory(&sides[i]),
		          attr.buffer - own_memory(&sides[i]), 0xa5, "memory after the disconnect");
	}
}
