/* SPDX-License-Identifier: BSD-2-Clause */
/* srq.*: several queue pairs on one queue, senders that wait for it, and closing. */
#include <string.h>

#include "cases.h"
#include "shared.h"
#include "traffic.h"

enum {
	SHARERS = 4,
	MESSAGE = 64,
	SLOTS = 32, /* receives, each of MESSAGE bytes in the first sharer's buffer */
	MESSAGES = 200,
	PATIENCE_MS = 50,
};

struct sharing {
	struct check *c;
	struct ndx_srq *srq;
	struct ndx_cq *cq; /* of all, or NULL: one each */
	struct pair *p[SHARERS];
	uint32_t next[SHARERS]; /* number of the next message expected */
	bool posted[SLOTS];
};

static bool sharing_begin(struct sharing *s, struct check *c, bool one_cq)
{
	bool fine;

	memset(s, 0, sizeof(*s));
	s->c = c;
	s->srq = shared_open(c, SLOTS, 0);
	fine = s->srq != NULL;
	if (fine && one_cq)
		fine = check_status(c,
		                    ndx_cq_create_depth(c->world->places[1].adapter, 256, &s->cq),
		                    NDX_OK, "cq_create");
	for (size_t i = 0; fine && i < SHARERS; i++) {
		s->p[i] = shared_pair_up(c, s->srq, s->cq);
		fine = s->p[i] != NULL;
	}
	return fine;
}

static void sharing_end(struct sharing *s)
{
	pair_close_all(s->c);
	ndx_srq_close(s->srq);
	ndx_cq_close(s->cq);
}

/* All memory is of the first sharer, whichever takes it. */
static void post_slot(struct sharing *s, size_t slot)
{
	check_that(s->c, !s->posted[slot], "receive %zu is posted", slot);
	s->posted[slot] = shared_ok(s->srq, &s->p[0]->b, slot, slot * MESSAGE, MESSAGE);
}

static void number_message(uint8_t *at, uint32_t sharer, uint32_t number)
{
	memset(at, 0, MESSAGE);
	memcpy(at, &sharer, 4);
	memcpy(at + 4, &number, 4);
}

/* A receive: used once, by the queue pair whose message is in it, and that in order. */
static void account(struct sharing *s, const struct ndx_result *r)
{
	struct side *owner = &s->p[0]->b;
	size_t slot = (size_t)((char *)r->request_context - owner->tags);
	uint32_t sharer;
	uint32_t number;

	if (!check_that(s->c,
	                r->status == NDX_OK && r->request_type == NDX_REQUEST_RECEIVE &&
	                        slot < SLOTS && s->posted[slot],
	                "%s of slot %zu with %s", request_name(r->request_type), slot,
	                ndx_status_name(r->status)))
		return;
	s->posted[slot] = false;
	memcpy(&sharer, owner->buf + slot * MESSAGE, 4);
	memcpy(&number, owner->buf + slot * MESSAGE + 4, 4);
	if (!check_that(s->c, sharer < SHARERS && r->bytes_transferred == MESSAGE,
	                "a message of %u bytes from %u", r->bytes_transferred, sharer))
		return;
	check_that(s->c, r->queue_pair_context == &s->p[sharer]->b,
	           "a message of %u has the context of another queue pair", sharer);
	check_that(s->c, number == s->next[sharer], "message %u of %u came, not %u", number, sharer,
	           s->next[sharer]);
	s->next[sharer]++;
}

static size_t receive_some(struct sharing *s, struct ndx_cq *cq)
{
	struct ndx_result results[8];
	size_t got = ndx_cq_get_results(cq, results, 8);

	for (size_t i = 0; i < got && !check_over(s->c); i++) {
		account(s, &results[i]);
		post_slot(s, (size_t)((char *)results[i].request_context - s->p[0]->b.tags));
	}
	return got;
}

/* Takes all there is of every sharer, posting each receive anew. */
static size_t receive_all(struct sharing *s)
{
	size_t got = 0;

	for (size_t i = 0; i < (s->cq ? 1 : SHARERS); i++)
		got += receive_some(s, s->p[i]->b.rcq);
	return got;
}

static void share(struct check *c, bool one_cq)
{
	struct sharing s;
	uint32_t sent[SHARERS] = {0};
	size_t received = 0;
	size_t total = 0;
	uint64_t until = now_ms() + WAIT_MS;

	if (sharing_begin(&s, c, one_cq)) {
		for (size_t i = 0; i < SLOTS; i++)
			post_slot(&s, i);
		while (received < MESSAGES && !check_over(c)) {
			uint32_t who = check_below(c, SHARERS);
			struct side *a = &s.p[who]->a;
			size_t got = 0;

			if (total < MESSAGES && total - received < SLOTS) {
				number_message(a->buf, who, sent[who]);
				send_ok(a, sent[who], 0, MESSAGE, 0);
				expect(a, NDX_REQUEST_SEND, sent[who]++, NDX_OK);
				total++;
			}
			if (total == MESSAGES || check_chance(c, 30))
				got = receive_all(&s);
			received += got;
			until = got > 0 ? now_ms() + WAIT_MS : until;
			check_that(c, now_ms() < until, "%zu of %zu messages came", received,
			           total);
		}
	}
	sharing_end(&s);
}

void case_srq_serves_several_queue_pairs(struct check *c)
{
	share(c, false);
}

void case_srq_serves_several_queue_pairs_on_one_cq(struct check *c)
{
	share(c, true);
}

/* ---- threads ---- */

struct sender {
	pthread_t thread;
	struct side *a;
	uint32_t who;
};

static void *send_many(void *arg)
{
	struct sender *t = arg;

	for (uint32_t i = 0; i < MESSAGES && !check_over(t->a->c); i++) {
		number_message(t->a->buf, t->who, i);
		send_ok(t->a, i, 0, MESSAGE, 0);
		expect(t->a, NDX_REQUEST_SEND, i, NDX_OK);
	}
	return NULL;
}

void case_srq_serves_many_threads(struct check *c)
{
	struct sender senders[SHARERS];
	struct sharing s;
	unsigned started = 0;
	size_t received = 0;
	uint64_t until = now_ms() + WAIT_MS;

	if (sharing_begin(&s, c, true)) {
		for (size_t i = 0; i < SLOTS / 4; i++)
			post_slot(&s, i);
		for (; started < SHARERS; started++) {
			senders[started] = (struct sender){.a = &s.p[started]->a, .who = started};
			if (!check_that(c,
			                pthread_create(&senders[started].thread, NULL, send_many,
			                               &senders[started]) == 0,
			                "no thread"))
				break;
		}
		while (received < (size_t)SHARERS * MESSAGES && !check_over(c)) {
			const size_t got = receive_all(&s);

			received += got;
			until = got > 0 ? now_ms() + WAIT_MS : until;
			check_that(c, now_ms() < until, "%zu messages came", received);
		}
		for (unsigned i = 0; i < started; i++)
			(void)pthread_join(senders[i].thread, NULL);
	}
	sharing_end(&s);
}

/* ---- an empty queue ---- */

static struct pair *impatient_pair(struct check *c, struct ndx_srq *srq)
{
	struct side_attr attr[2];
	struct pair *p;

	side_attr_init(&attr[0]);
	attr[0].no_receive_timeout_ms = PATIENCE_MS;
	attr[0].drain_ms = PATIENCE_MS;
	attr[1] = attr[0];
	attr[1].srq = srq;
	p = pair_open(c, &attr[0], &attr[1]);
	return p && pair_connect(p) ? p : NULL;
}

void case_srq_sends_wait_without_limit_for_an_empty_one(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 0);
	struct pair *p = srq ? impatient_pair(c, srq) : NULL;
	uint64_t until = now_ms() + 6 * (uint64_t)PATIENCE_MS;

	if (p) {
		pattern_fill(p->a.buf, (size_t)2 * MESSAGE, 8);
		sends_ok(&p->a, 1, 2, 0, MESSAGE);
		while (now_ms() < until && expect_silence(&p->a))
			continue;
		shared_run(srq, &p->b, 5, 2, 0, MESSAGE);
		expect_run(&p->a, NDX_REQUEST_SEND, 1, 2, NDX_OK);
		expect_received(&p->b, 5, MESSAGE);
		expect_received(&p->b, 6, MESSAGE);
		if (!check_over(c))
			pattern_there(c, p->b.buf, (size_t)2 * MESSAGE, 8, "messages that waited");
		pair_disconnect(p);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_waiting_senders_are_all_served(struct check *c)
{
	struct ndx_result result;
	struct sharing s;

	if (sharing_begin(&s, c, true)) {
		for (uint32_t i = 0; i < SHARERS; i++) {
			number_message(s.p[i]->a.buf, i, 0);
			send_ok(&s.p[i]->a, 1, 0, MESSAGE, 0);
		}
		for (size_t i = 0; i < SHARERS; i++)
			expect_silence(&s.p[i]->a);
		for (size_t i = 0; i < SHARERS; i++)
			post_slot(&s, i);
		for (size_t i = 0; i < SHARERS; i++)
			expect(&s.p[i]->a, NDX_REQUEST_SEND, 1, NDX_OK);
		for (size_t i = 0; i < SHARERS && take(&s.p[0]->b, s.cq, &result); i++)
			account(&s, &result);
		for (size_t i = 0; i < SHARERS && !check_over(c); i++)
			check_that(c, s.next[i] == 1, "sender %zu was served %u times", i,
			           s.next[i]);
	}
	sharing_end(&s);
}

void case_srq_disconnect_ends_a_send_that_waits(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 0);
	struct pair *p = srq ? impatient_pair(c, srq) : NULL;

	if (p) {
		send_ok(&p->a, 1, 0, MESSAGE, 0);
		expect_silence(&p->a);
		side_disconnect(&p->a, NDX_OK);
		expect(&p->a, NDX_REQUEST_SEND, 1, NDX_E_CANCELED);
		shared_ok(srq, &p->b, 2, 0, MESSAGE);
		expect_silence(&p->b);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

/* ---- the end of one of them ---- */

enum parting { PART_GRACEFULLY, PART_BY_FLUSH, PART_BY_CLOSE, PART_WITHOUT_GOODBYE, PARTINGS };

static void end_pair(struct pair *p, enum parting how)
{
	switch (how) {
	case PART_GRACEFULLY:
		pair_disconnect(p);
		break;
	case PART_BY_FLUSH:
		check_status(p->c, ndx_qp_flush(p->b.qp), NDX_OK, "flush");
		break;
	case PART_BY_CLOSE:
		side_close_qp(&p->b);
		side_close_connector(&p->b);
		break;
	case PART_WITHOUT_GOODBYE:
		check_status(p->c, ndx_qp_flush(p->a.qp), NDX_OK, "flush of the peer");
		side_start_notify(&p->b);
		side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
		break;
	case PARTINGS:
		break;
	}
}

static void one_ends(struct check *c, enum parting how)
{
	struct ndx_srq *srq = shared_open(c, 8, 0);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	struct pair *q = p ? shared_pair_up(c, srq, NULL) : NULL;

	if (q) {
		shared_run(srq, &q->b, 0, 8, 0, MESSAGE);
		check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 1), NULL, 0, 0), NDX_OK, "send");
		expect(&p->a, NDX_REQUEST_SEND, 1, NDX_OK);
		end_pair(p, how);
		check_that(c, check_over(c) || discard(&p->b) == 1,
		           "the queue pair that ended took more than its one receive");
		shared_taken(q, 7); /* all that are left */
		expect_silence(&p->b);
		shared_run(srq, &q->b, 0, 3, 0, MESSAGE);
		shared_taken(q, 3);
		pair_disconnect(q);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_end_of_a_queue_pair_leaves_the_receives(struct check *c)
{
	for (unsigned how = 0; how < PARTINGS; how++) {
		check_note(c, "parting %u", how);
		one_ends(c, (enum parting)how);
	}
}

/* A receive that cannot be used ends the queue pair that took it, and no other. */
static void bad_receive(struct check *c, struct ndx_srq *srq, const struct ndx_sge *bad,
                        enum ndx_status want)
{
	struct pair *p = shared_pair_up(c, srq, NULL);
	struct pair *q = p ? shared_pair_up(c, srq, NULL) : NULL;
	struct ndx_result result = {.status = NDX_PENDING};

	if (!q)
		return;
	check_status(c, ndx_srq_receive(srq, tag(&p->b, 1), bad, 1), NDX_OK, "srq_receive");
	send_ok(&p->a, 2, 0, MESSAGE, 0);
	expect(&p->b, NDX_REQUEST_RECEIVE, 1, want);
	if (take(&p->a, p->a.cq, &result))
		check_that(c, result.status < 0, "a send to a bad receive completed %s",
		           ndx_status_name(result.status));
	side_start_notify(&p->b);
	side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
	shared_run(srq, &q->b, 0, 2, 0, MESSAGE);
	shared_taken(q, 2);
	pair_close_all(c);
}

void case_srq_bad_receive_ends_the_queue_pair_that_takes_it(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 0);
	uint8_t memory[MESSAGE];
	struct ndx_sge unregistered = {.buffer = memory, .length = MESSAGE, .token = 0x12345};
	struct ndx_sge small = {.length = 0};

	memset(memory, 0xee, sizeof(memory));
	if (srq) {
		bad_receive(c, srq, &unregistered, NDX_E_ACCESS_VIOLATION);
		bad_receive(c, srq, &small, NDX_E_BUFFER_OVERFLOW);
		bytes_are(c, memory, MESSAGE, 0xee, "memory that is not registered");
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}

void case_srq_memory_of_another_adapter_is_refused(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 0);
	struct ndx_adapter *other = NULL;
	struct ndx_mr *mr = NULL;
	uint8_t memory[MESSAGE];
	struct ndx_sge foreign = {.buffer = memory, .length = MESSAGE};

	memset(memory, 0xee, sizeof(memory));
	if (srq &&
	    check_status(c, ndx_adapter_open(c->world->places[1].uri, &other), NDX_OK, "open")) {
		check_status(
			c,
			ndx_mr_register_new(other, memory, MESSAGE, NDX_MR_ALLOW_LOCAL_WRITE, &mr),
			NDX_OK, "mr_register_new");
		if (mr) {
			foreign.token = ndx_mr_get_local_token(mr);
			bad_receive(c, srq, &foreign, NDX_E_ACCESS_VIOLATION);
			bytes_are(c, memory, MESSAGE, 0xee, "memory of another adapter");
		}
	}
	pair_close_all(c);
	ndx_srq_close(srq);
	ndx_mr_close(mr);
	ndx_adapter_close(other);
}

/* ---- closing ---- */

enum part_of { PART_SRQ, PART_QP, PART_CONNECTOR, PART_CQ, PART_MR, PARTS };

static void close_part(struct side *s, struct ndx_srq *srq, unsigned which)
{
	switch (which) {
	case PART_SRQ:
		ndx_srq_close(srq);
		break;
	case PART_QP:
		side_close_qp(s);
		break;
	case PART_CONNECTOR:
		side_close_connector(s);
		break;
	case PART_CQ:
		side_close_cqs(s);
		break;
	default:
		side_close_mr(s);
		break;
	}
}

/* The n-th permutation of the parts. */
static void permutation(unsigned n, unsigned order[PARTS])
{
	for (unsigned i = 0; i < PARTS; i++)
		order[i] = i;
	for (unsigned i = PARTS - 1; i > 0; i--) {
		unsigned j = n % (i + 1);
		unsigned kept = order[i];

		n /= i + 1;
		order[i] = order[j];
		order[j] = kept;
	}
}

/* One closed in every order, the receive queue in use; the peer sees it end each time. */
static void close_in_order(struct check *c, unsigned n, bool waiting)
{
	struct ndx_srq *srq = shared_open(c, 8, 2);
	struct pair *p = srq ? impatient_pair(c, srq) : NULL;
	struct ndx_overlapped ov;
	unsigned order[PARTS];

	ndx_overlapped_init(&ov);
	if (!p) {
		pair_close_all(c);
		ndx_srq_close(srq);
		return;
	}
	if (waiting) {
		send_ok(&p->a, 1, 0, MESSAGE, 0);
	} else {
		shared_run(srq, &p->b, 0, 6, 0, MESSAGE);
		check_status(c, ndx_srq_notify(srq, &ov), NDX_PENDING, "srq_notify");
		shared_taken(p, 2);
	}
	side_start_notify(&p->a);
	permutation(n, order);
	for (unsigned i = 0; i < PARTS; i++)
		close_part(&p->b, srq, order[i]);
	check_ends(c, &p->a.notify, NDX_OK, "notify_disconnect of the peer");
	if (!waiting)
		check_status(c, ndx_overlapped_status(&ov), NDX_E_CANCELED, "srq_notify");
	pair_close_all(c);
}

void case_srq_closed_in_every_order(struct check *c)
{
	for (unsigned n = 0; n < 120 && !check_over(c); n++)
		close_in_order(c, n, false);
}

void case_srq_closed_in_every_order_while_a_send_waits(struct check *c)
{
	for (unsigned n = 0; n < 120 && !check_over(c); n += 7)
		close_in_order(c, n, true);
}

void case_srq_closed_goes_on_for_its_queue_pairs(struct check *c)
{
	struct ndx_srq *srq = shared_open(c, 8, 0);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;

	if (p) {
		shared_run(srq, &p->b, 0, 4, 0, MESSAGE);
		ndx_srq_close(srq);
		srq = NULL;
		pattern_fill(p->a.buf, MESSAGE, 4);
		send_ok(&p->a, 1, 0, MESSAGE, 0);
		expect(&p->a, NDX_REQUEST_SEND, 1, NDX_OK);
		expect_received(&p->b, 0, MESSAGE);
		if (!check_over(c))
			pattern_there(c, p->b.buf, MESSAGE, 4, "message into a closed queue");
		pair_disconnect(p);
		side_close_connector(&p->b);
		side_close_qp(&p->b);
		expect_silence(&p->b); /* the three that were not taken have no result */
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}
