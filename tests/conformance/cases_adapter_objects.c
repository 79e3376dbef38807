/* SPDX-License-Identifier: BSD-2-Clause */
/* adapter.*: its objects, made and closed in every order and by many threads. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

enum { THREADS = 6, ROUNDS = 20, ORDERS = 24 };

/* One object of each kind; those that the adapter lacks stay NULL. */
struct kinds {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_srq *srq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_mw *mw;
	struct ndx_connector *conn;
	struct ndx_listener *listener;
	uint8_t memory[512];
};

static void make_queues(struct check *c, const struct place *place, struct kinds *k)
{
	struct ndx_qp_attr attr;

	check_status(c, ndx_cq_create_depth(k->adapter, 16, &k->cq), NDX_OK, "cq_create");
	if (place->info.capabilities & NDX_CAP_SRQ)
		check_status(c, make_srq(k->adapter, 8, 1, 0, &k->srq), NDX_OK, "srq_create");
	if (check_over(c))
		return;
	ndx_qp_attr_init(&attr);
	attr.receive_cq = k->cq;
	attr.initiator_cq = k->cq;
	attr.srq = k->srq;
	check_status(c, ndx_qp_create(k->adapter, &attr, &k->qp), NDX_OK, "qp_create");
}

static bool make_kinds(struct check *c, const struct place *place, struct kinds *k)
{
	struct sockaddr_storage address;
	struct ndx_sge one = {.buffer = k->memory, .length = 64};

	if (check_over(c))
		return false;
	make_queues(c, place, k);
	check_status(c,
	             ndx_mr_register_new(k->adapter, k->memory, sizeof(k->memory),
	                                 NDX_MR_ALLOW_REMOTE_WRITE, &k->mr),
	             NDX_OK, "mr_register_new");
	if (place->info.capabilities & NDX_CAP_MEMORY_WINDOW)
		check_status(c, ndx_mw_create(k->adapter, &k->mw), NDX_OK, "mw_create");
	check_status(c, ndx_connector_create(k->adapter, NULL, &k->conn), NDX_OK,
	             "connector_create");
	k->listener = listener_open(c, k->adapter, place_address(place, AF_UNSPEC), 0, &address);
	if (check_over(c))
		return false;
	one.token = ndx_mr_get_local_token(k->mr);
	if (k->srq)
		return check_status(c, ndx_srq_receive(k->srq, k, &one, 1), NDX_OK, "srq_receive");
	return check_status(c, ndx_qp_receive(k->qp, k, &one, 1), NDX_OK, "receive");
}

enum { KINDS = 8 };

static void close_kind(struct kinds *k, unsigned which)
{
	switch (which) {
	case 0:
		ndx_adapter_close(k->adapter);
		break;
	case 1:
		ndx_cq_close(k->cq);
		break;
	case 2:
		ndx_srq_close(k->srq);
		break;
	case 3:
		ndx_qp_close(k->qp);
		break;
	case 4:
		ndx_mr_close(k->mr);
		break;
	case 5:
		ndx_mw_close(k->mw);
		break;
	case 6:
		ndx_connector_close(k->conn);
		break;
	default:
		ndx_listener_close(k->listener);
		break;
	}
}

/* Close all; `keep_adapter`: it is not ours. */
static void close_shuffled(struct kinds *k, uint64_t *random, bool keep_adapter)
{
	unsigned order[KINDS];

	for (unsigned i = 0; i < KINDS; i++)
		order[i] = i;
	for (unsigned i = KINDS - 1; i > 0; i--) {
		unsigned j = (unsigned)(random_next(random) % (i + 1));
		unsigned kept = order[i];

		order[i] = order[j];
		order[j] = kept;
	}
	for (unsigned i = 0; i < KINDS; i++) {
		if (order[i] != 0 || !keep_adapter)
			close_kind(k, order[i]);
	}
}

struct worker {
	pthread_t thread;
	struct check *c;
	uint64_t random;
	bool own_adapter;
};

static void *make_and_close(void *arg)
{
	struct worker *w = arg;
	const struct place *place = &w->c->world->places[0];

	for (unsigned i = 0; i < ROUNDS && !check_over(w->c); i++) {
		struct kinds k = {.adapter = place->adapter};

		if (w->own_adapter &&
		    !check_status(w->c, ndx_adapter_open(place->uri, &k.adapter), NDX_OK, "open"))
			break;
		(void)make_kinds(w->c, place, &k);
		close_shuffled(&k, &w->random, !w->own_adapter);
	}
	return NULL;
}

static void in_threads(struct check *c, bool own_adapter)
{
	struct worker workers[THREADS];
	unsigned started = 0;

	for (; started < THREADS; started++) {
		struct worker *w = &workers[started];

		*w = (struct worker){.c = c, .random = check_random(c), .own_adapter = own_adapter};
		if (!check_that(c, pthread_create(&w->thread, NULL, make_and_close, w) == 0,
		                "no thread"))
			break;
	}
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(workers[i].thread, NULL);
}

void case_adapter_all_kinds_in_parallel_threads(struct check *c)
{
	in_threads(c, false);
}

void case_adapter_whole_adapters_in_parallel_threads(struct check *c)
{
	in_threads(c, true);
}

void case_adapter_closes_in_any_order(struct check *c)
{
	const struct place *place = &c->world->places[0];

	for (unsigned i = 0; i < ORDERS && !check_over(c); i++) {
		struct kinds k = {0};

		if (check_status(c, ndx_adapter_open(place->uri, &k.adapter), NDX_OK, "open"))
			(void)make_kinds(c, place, &k);
		close_shuffled(&k, &c->random, false);
	}
}

void case_adapter_closed_first_serves_its_objects(struct check *c)
{
	struct ndx_adapter *own[2] = {NULL, NULL};
	struct side_attr attr[2];
	struct pair *p;

	for (size_t i = 0; i < 2; i++) {
		side_attr_init(&attr[i]);
		check_status(c, ndx_adapter_open(c->world->places[i].uri, &own[i]), NDX_OK, "open");
		attr[i].adapter = own[i];
	}
	p = check_over(c) ? NULL : pair_open(c, &attr[0], &attr[1]);
	ndx_adapter_close(own[0]);
	ndx_adapter_close(own[1]);
	(void)(p && pair_connect(p) && message_passes(&p->a, &p->b, 100) && pair_disconnect(p));
}

void case_adapter_closed_cq_does_not_stop_its_queue_pair(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.separate_cqs = true;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->a, 0, 4, 0, 64);
	receives_ok(&p->b, 0, 4, 0, 64);
	side_close_cqs(&p->a);
	pattern_fill(p->a.buf + 1024, 256, 5);
	pattern_fill(p->b.buf + 1024, 256, 6);
	sends_ok(&p->a, 10, 4, 1024, 64);
	sends_ok(&p->b, 10, 4, 1024, 64);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 4, NDX_OK);
	expect_run(&p->b, NDX_REQUEST_SEND, 10, 4, NDX_OK);
	pattern_there(c, p->b.buf, 256, 5, "what A sent");
	side_start_notify(&p->b);
	side_disconnect(&p->a, NDX_OK);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	if (!check_over(c))
		pattern_there(c, p->a.buf, 256, 6, "what A received");
}

void case_adapter_cq_outlives_its_queue_pair(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 4, 0, 64);
	receives_ok(&p->b, 0, 1, 0, 64);
	send_ok(&p->a, 10, 0, 64, 0);
	expect_received(&p->b, 0, 64);
	side_close_connector(&p->a);
	side_close_qp(&p->a);
	/* results that were not taken can still be, with the context of the queue pair that was */
	expect(&p->a, NDX_REQUEST_SEND, 10, NDX_OK);
	expect_run(&p->a, NDX_REQUEST_RECEIVE, 0, 4, NDX_E_CANCELED);
	side_new_qp(&p->a);
	receive_ok(&p->a, 20, 0, 64);
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush of a new queue pair");
	expect(&p->a, NDX_REQUEST_RECEIVE, 20, NDX_E_CANCELED);
	expect_silence(&p->a);
}

void case_adapter_closing_nothing_is_nothing(struct check *c)
{
	(void)c;
	ndx_adapter_close(NULL);
	ndx_cq_close(NULL);
	ndx_srq_close(NULL);
	ndx_qp_close(NULL);
	ndx_mr_close(NULL);
	ndx_mw_close(NULL);
	ndx_connector_close(NULL);
	ndx_listener_close(NULL);
	ndx_port_close(NULL);
}
