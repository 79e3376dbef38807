/* SPDX-License-Identifier: BSD-2-Clause */
/* disconnect.*: what ends while the control thread is busy, what is asked for in a callback, and
 * what closing the adapter waits for. */
#include <dirent.h>
#include <poll.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include <ndx/stats.h>

#include "cases.h"
#include "probe.h"
#include "traffic.h"
#include "window.h"

enum { SENDS = 2, MESSAGE = 64, DRAIN_MS = 1500, SHORT_DRAIN_MS = 200, EXIT_MS = 500 };

/* A callback keeps the control thread. */
struct hold {
	struct probe probe;
	struct ndx_mr *mr;
	uint8_t memory[64];
	sem_t entered;
	sem_t released;
};

static void stay(struct probe *probe)
{
	struct hold *h = probe->arg;

	(void)sem_post(&h->entered);
	while (sem_wait(&h->released) != 0)
		continue;
}

static void hold_init(struct hold *h)
{
	memset(h, 0, sizeof(*h));
	(void)sem_init(&h->entered, 0, 0);
	(void)sem_init(&h->released, 0, 0);
}

static bool is_held(struct hold *h, struct check *c)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAIT_MS / 1000;
	return check_that(c, sem_timedwait(&h->entered, &until) == 0, "no callback");
}

static bool hold_begin(struct hold *h, struct check *c, struct ndx_adapter *adapter)
{
	hold_init(h);
	if (!check_status(c, ndx_mr_create(adapter, &h->mr), NDX_OK, "mr_create"))
		return false;
	if (!probe_begin_then(&h->probe, c, stay, h)) {
		ndx_mr_close(h->mr);
		return false;
	}
	return check_status(c,
	                    ndx_mr_register(h->mr, h->memory, sizeof(h->memory), 0, &h->probe.ov),
	                    NDX_PENDING, "register") &&
	       is_held(h, c);
}

/*
 * The same in a callback for a message to A. What a control thread finds next, having been woken
 * for that by its stack, are its time-outs: descriptors that became readable since then come later.
 */
static bool hold_by_message(struct hold *h, struct pair *p)
{
	struct check *c = p->c;

	hold_init(h);
	if (!receive_ok(&p->a, 0, 0, MESSAGE) || !probe_begin_then(&h->probe, c, stay, h) ||
	    !check_status(c, ndx_cq_notify(p->a.cq, NDX_CQ_NOTIFY_ANY, &h->probe.ov), NDX_PENDING,
	                  "cq_notify"))
		return false;
	if (send_ok(&p->b, 0, 0, MESSAGE, 0) && is_held(h, c))
		return true;
	/* the callback comes with the end of the queue at the latest, and must not stay then */
	(void)sem_post(&h->released);
	(void)ndx_cq_cancel(p->a.cq);
	probe_called(&h->probe, 1, "callback");
	return false;
}

static void hold_end(struct hold *h)
{
	(void)sem_post(&h->released);
	probe_called(&h->probe, 1, "callback");
	ndx_mr_close(h->mr);
	probe_end(&h->probe);
	(void)sem_destroy(&h->entered);
	(void)sem_destroy(&h->released);
}

/* The connection gets into this state by itself. */
static bool gets_to(struct side *s, const char *state)
{
	const uint64_t end = now_ms() + WAIT_MS;
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t count = 0;

	while (!check_over(s->c) && now_ms() < end) {
		count = NDX_HISTORY_MAX;
		if (ndx_connector_get_history(s->conn, list, &count, NULL) == NDX_OK && count > 0 &&
		    strcmp(list[count - 1].to, state) == 0)
			return true;
		(void)poll(NULL, 0, 1);
	}
	return check_that(s->c, false, "%s does not get to %s", s->name, state);
}

struct seen {
	size_t sent;     /* results at A */
	size_t received; /* and at B */
};

/* Poll at both sides until the message has come, at A no longer than that: its result stays where
 * it is. A stack that sends only by its thread does not get there. */
static struct seen poll_until_received(struct pair *p, uint64_t until)
{
	struct ndx_result result;
	struct seen seen = {0};

	while (seen.received == 0 && now_ms() < until) {
		if (ndx_cq_get_results(p->a.cq, &result, 1) > 0)
			result_is(&p->a, &result, NDX_REQUEST_SEND, seen.sent++, NDX_OK);
		if (ndx_cq_get_results(p->b.cq, &result, 1) > 0)
			result_is(&p->b, &result, NDX_REQUEST_RECEIVE, seen.received++, NDX_OK);
	}
	return seen;
}

/* Requests that have ended in time have ended, also if no thread has looked until it was over. */
void case_disconnect_counts_what_ended_in_time(struct check *c)
{
	struct side_attr attr;
	struct ndx_result result;
	struct hold hold;
	struct pair *other = pair_up(c, NULL);
	struct pair *p;
	struct seen seen;
	uint64_t until;

	side_attr_init(&attr);
	attr.drain_ms = DRAIN_MS;
	p = pair_up(c, &attr);
	if (!other || !p || !send_ok(&p->a, 0, 0, MESSAGE, 0) || !side_start_disconnect(&p->a) ||
	    !gets_to(&p->a, "DRAIN"))
		return;
	until = now_ms() + DRAIN_MS + 100;
	if (!hold_by_message(&hold, other))
		return;
	receive_ok(&p->b, 0, 0, MESSAGE);
	seen = poll_until_received(p, until);
	while (now_ms() < until)
		(void)poll(NULL, 0, 10);
	hold_end(&hold);
	check_ends(c, &p->a.disc, NDX_OK, "disconnect");
	if (seen.sent == 0 && take(&p->a, p->a.cq, &result))
		check_either(c, result.status, NDX_OK, seen.received > 0 ? NDX_OK : NDX_E_CANCELED,
		             "send");
}

/* What was begun is cancelled, not forgotten, also when the control thread has not seen it yet. */
static void end_and_cancel(struct probe *probe)
{
	struct pair *p = probe->arg;
	struct side *a = &p->a;

	check_status(probe->c, ndx_connector_notify_disconnect(a->conn, &a->notify), NDX_PENDING,
	             "notify_disconnect in a callback");
	check_status(probe->c, ndx_connector_disconnect(a->conn, &a->disc), NDX_PENDING,
	             "disconnect in a callback");
	check_status(probe->c, ndx_connector_cancel(a->conn), NDX_OK, "cancel in a callback");
}

void case_disconnect_cancelled_in_the_same_callback(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_mr *mr = NULL;
	struct probe probe;
	struct hold hold;
	uint8_t memory[64];
	bool held;

	if (!p || !side_start_notify(&p->b))
		return;
	/* B's answer would end the disconnect, with nothing left to cancel. */
	held = p->b.adapter != p->a.adapter;
	if (held && !hold_begin(&hold, c, p->b.adapter))
		return;
	if (check_status(c, ndx_mr_create(p->a.adapter, &mr), NDX_OK, "mr_create") &&
	    probe_begin_then(&probe, c, end_and_cancel, p)) {
		check_status(c, ndx_mr_register(mr, memory, sizeof(memory), 0, &probe.ov),
		             NDX_PENDING, "register");
		probe_called(&probe, 1, "callback");
		check_ends(c, &p->a.notify, NDX_E_CANCELED, "notify_disconnect");
		check_ends(c, &p->a.disc, NDX_E_CANCELED, "disconnect");
		ndx_mr_close(mr);
		probe_end(&probe);
	}
	if (held)
		hold_end(&hold);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->b, NDX_OK);
	side_disconnect(&p->a, NDX_OK);
}

static size_t count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	size_t count = 0;

	while (tasks && readdir(tasks))
		count++;
	if (tasks)
		(void)closedir(tasks);
	return count;
}

/* B says goodbye when its own sends have ended, which wait for receives that A never posts. A's
 * control thread has to stay until then, and is gone when the adapter is closed. */
void case_adapter_close_waits_for_goodbyes(struct check *c)
{
	const struct place *place = &c->world->places[0];
	struct ndx_adapter *own = NULL;
	struct side_attr a;
	struct side_attr b;
	struct pair *p;
	const size_t before = count_threads();
	uint64_t until;
	size_t after;

	if (!check_status(c, ndx_adapter_open(place->uri, &own), NDX_OK, "open"))
		return;
	side_attr_init(&a);
	side_attr_init(&b);
	a.adapter = own;
	b.drain_ms = DRAIN_MS;
	p = pair_up_with(c, &a, &b);
	if (p && sends_ok(&p->b, 0, SENDS, 0, MESSAGE)) {
		side_close_connector(&p->a);
		side_close_qp(&p->a);
		side_close_cqs(&p->a);
		side_close_mr(&p->a);
		ndx_adapter_close(own);
		own = NULL;
		/* The kernel shows a thread that was joined for a moment. */
		until = now_ms() + EXIT_MS;
		while ((after = count_threads()) > before && now_ms() < until)
			(void)poll(NULL, 0, 1);
		check_that(c, before > 0 && after <= before,
		           "%zu threads are left of a closed adapter", after - before);
	}
	pair_close_all(c);
	ndx_adapter_close(own);
}

/*
 * "To a peer that has said goodbye and has closed its queue pair: NDX_E_CANCELED, the
 * disconnect succeeds." A's control thread is kept from hearing of the goodbye before the write is
 * posted, which uses the window for the first time: the binding ended with B's queue pair.
 */
void case_disconnect_write_to_a_window_of_a_closed_queue_pair(struct check *c)
{
	struct side_attr attr[2];
	struct pair *p;
	struct ndx_mw *mw;
	struct ndx_sge sge;
	struct hold hold;

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[0].drain_ms = DRAIN_MS;
	attr[1].access = NDX_MR_ALLOW_LOCAL_WRITE;
	if (!check_status(c, ndx_adapter_open(c->world->places[0].uri, &attr[0].adapter), NDX_OK,
	                  "open"))
		return;
	p = pair_up_with(c, &attr[0], &attr[1]);
	mw = p ? window_open(&p->b) : NULL;
	if (mw && binds(&p->b, mw, 0, MESSAGE, WINDOW_BOTH) && hold_begin(&hold, c, p->a.adapter)) {
		memset(p->b.buf, 0xee, p->b.attr.buffer);
		side_close_qp(&p->b);
		sge = (struct ndx_sge){p->a.buf, MESSAGE, ndx_mr_get_local_token(p->a.mr)};
		check_status(c,
		             ndx_qp_write(p->a.qp, tag(&p->a, 1), &sge, 1, (uintptr_t)p->b.buf,
		                          ndx_mw_get_remote_token(mw), 0),
		             NDX_OK, "write");
		hold_end(&hold);
		expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_E_CANCELED);
		side_disconnect(&p->a, NDX_OK);
		bytes_are(c, p->b.buf, p->b.attr.buffer, 0xee, "the window's memory");
	}
	pair_close_all(c);
	ndx_mw_close(mw);
	ndx_adapter_close(attr[0].adapter);
}

struct unread {
	struct pair *p;
	enum ndx_status posted;
};

static void send_and_close(struct ndx_overlapped *ov)
{
	struct unread *u = ov->context;
	struct side *b = &u->p->b;
	const struct ndx_sge sge = {b->buf, MESSAGE, ndx_mr_get_local_token(b->mr)};

	u->posted = ndx_qp_send(b->qp, tag(b, 1), &sge, 1, 0);
	side_close_qp(&u->p->a);
}

/*
 * A closes its queue pair where nothing can be waited for, with a message before it that has not
 * been read. What B cannot deliver costs the connection; A learns of that from B's end, and not
 * only when its own time is over.
 */
void case_disconnect_close_before_a_message_is_read(struct check *c)
{
	struct unread u = {.posted = NDX_E_UNSUCCESSFUL};
	struct ndx_overlapped ask = {.callback = send_and_close, .context = &u};
	struct ndx_result result;
	struct side_attr attr[2];

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[0].disconnect_ms = 6 * WAIT_MS;
	attr[1].drain_ms = SHORT_DRAIN_MS;
	if (!check_status(c, ndx_adapter_open(c->world->places[1].uri, &attr[1].adapter), NDX_OK,
	                  "open"))
		return;
	u.p = pair_up_with(c, &attr[0], &attr[1]);
	if (u.p && receive_ok(&u.p->a, 0, 0, MESSAGE) && side_start_notify(&u.p->a)) {
		check_status(c, ndx_cq_notify(u.p->a.cq, NDX_CQ_NOTIFY_ANY, &ask), NDX_PENDING,
		             "cq_notify");
		check_status(c, ndx_cq_cancel(u.p->a.cq), NDX_OK, "cq_cancel"); /* it has run */
		check_status(c, u.posted, NDX_OK, "send");
		check_ends(c, &u.p->a.notify, NDX_OK, "notification");
		if (take(&u.p->b, u.p->b.cq, &result))
			result_is(&u.p->b, &result, NDX_REQUEST_SEND, 1,
			          result.status == NDX_OK ? NDX_OK : NDX_E_CANCELED);
	}
	pair_close_all(c);
	ndx_adapter_close(attr[1].adapter);
}
