/* SPDX-License-Identifier: BSD-2-Clause */
/* list.*: lists of which a part is refused or canceled, and lists from several threads. */
#include <string.h>

#include "cases.h"
#include "lists.h"
#include "shared.h"
#include "traffic.h"

enum { MESSAGE = 64, TWO = 2 };

/* Make the entry with the index 3 wrong: the three before it are posted, and nothing else. */
static void refuse_third(struct pair *p, struct list *list, size_t from, enum ndx_status want)
{
	receives_ok(&p->b, from, 3, 0, MESSAGE);
	posts(&p->a, list->requests, 6, want, 3);
	expect_run(&p->a, NDX_REQUEST_SEND, from, 3, NDX_OK);
	for (size_t i = 0; i < 3; i++)
		expect_received(&p->b, from + i, MESSAGE);
	expect_silence(&p->a);
}

void case_list_a_refused_request_ends_it(struct check *c)
{
	static struct list list;
	static struct ndx_sge many[300];
	const struct ndx_adapter_info *info = &c->world->places[0].info;
	struct pair *p = pair_up(c, NULL);

	if (!p || !check_that(c, info->max_initiator_sge < 300, "SGEs beyond the case"))
		return;
	list_sends(&list, &p->a, 0, 6, MESSAGE, 0);
	list.requests[3].type = (enum ndx_post)0;
	refuse_third(p, &list, 0, NDX_E_INVALID_PARAMETER);
	list_sends(&list, &p->a, 10, 6, MESSAGE, 0);
	list.requests[3].flags = NDX_OP_ALLOW_READ;
	refuse_third(p, &list, 10, NDX_E_INVALID_PARAMETER);
	for (size_t i = 0; i < 300; i++)
		many[i] = sge(&p->a, 0, 1);
	list_sends(&list, &p->a, 20, 6, MESSAGE, 0);
	list.requests[3].sge = many;
	list.requests[3].sge_count = (size_t)info->max_initiator_sge + 1;
	refuse_third(p, &list, 20, NDX_E_DATA_OVERRUN);
	list_sends(&list, &p->a, 30, 6, MESSAGE, 0);
	list.requests[3].flags = NDX_OP_INLINE;
	list.sges[3].length = info->max_inline_data_size + 1024;
	refuse_third(p, &list, 30, NDX_E_BUFFER_OVERFLOW);
	/* the queue pair goes on, and so do the requests that were refused */
	receives_ok(&p->b, 40, 3, 0, MESSAGE);
	list_sends(&list, &p->a, 40, 3, MESSAGE, 0);
	posts(&p->a, list.requests, 3, NDX_OK, 3);
	expect_run(&p->a, NDX_REQUEST_SEND, 40, 3, NDX_OK);
}

void case_list_a_refused_receive_ends_it(struct check *c)
{
	static struct list list;
	static struct ndx_sge many[300];
	const struct ndx_adapter_info *info = &c->world->places[1].info;
	struct pair *p = pair_up(c, NULL);

	if (!p || !check_that(c, info->max_receive_sge < 300, "SGEs beyond the case"))
		return;
	for (size_t i = 0; i < 300; i++)
		many[i] = sge(&p->b, 0, 1);
	list_receives(&list, &p->b, 0, 6, MESSAGE);
	list.receives[2].sge = many;
	list.receives[2].sge_count = (size_t)info->max_receive_sge + 1;
	receives(&p->b, list.receives, 6, NDX_E_DATA_OVERRUN, 2);
	sends_ok(&p->a, 0, 2, 0, MESSAGE);
	expect_received(&p->b, 0, MESSAGE);
	expect_received(&p->b, 1, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 2, NDX_OK);
	expect_silence(&p->b);
}

/* What fits is posted; the slots of results that were taken are free for the next list. */
void case_list_longer_than_the_queue(struct check *c)
{
	static struct list list;
	struct side_attr attr;
	struct pair *p;
	size_t taken;
	size_t sent;

	side_attr_init(&attr);
	attr.receive_depth = 8;
	attr.initiator_depth = 8;
	p = pair_up(c, &attr);
	if (!p)
		return;
	list_sends(&list, &p->a, 0, LIST_ROOM, 8, 0);
	/* RNR: nothing can complete */
	check_status(c, ndx_qp_post_list(p->a.qp, list.requests, LIST_ROOM, &sent),
	             NDX_E_NO_MORE_ENTRIES, "a list of sends that is too long");
	check_that(c, sent >= 8, "asked for 8 sends, %zu are posted", sent);
	posts(&p->a, &list.requests[sent], 1, NDX_E_NO_MORE_ENTRIES, 0);
	list_receives(&list, &p->b, 0, LIST_ROOM, 8);
	check_status(c, ndx_qp_receive_list(p->b.qp, list.receives, LIST_ROOM, &taken),
	             NDX_E_NO_MORE_ENTRIES, "a list of receives that is too long");
	check_that(c, taken >= 8, "asked for 8 receives, %zu are posted", taken);
	if (!check_that(c, sent == taken && sent < LIST_ROOM / 2, "%zu sends, %zu receives", sent,
	                taken))
		return;
	expect_run(&p->a, NDX_REQUEST_SEND, 0, sent, NDX_OK);
	for (size_t i = 0; i < taken; i++)
		expect_received(&p->b, i, 8);
	list_sends(&list, &p->a, sent, sent + 1, 8, 0);
	posts(&p->a, list.requests, sent + 1, NDX_E_NO_MORE_ENTRIES, sent);
	list_receives(&list, &p->b, taken, taken + 1, 8);
	receives(&p->b, list.receives, taken + 1, NDX_E_NO_MORE_ENTRIES, taken);
	expect_run(&p->a, NDX_REQUEST_SEND, sent, sent, NDX_OK);
	for (size_t i = 0; i < taken; i++)
		expect_received(&p->b, taken + i, 8);
}

/* Before a connection: receives are taken, requests are refused, all of them. */
void case_list_before_connecting(struct check *c)
{
	static struct list list;
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	list_sends(&list, &p->a, 0, 4, MESSAGE, 0);
	posts(&p->a, list.requests, 4, NDX_E_CONNECTION_INVALID, 0);
	list_receives(&list, &p->b, 0, 4, MESSAGE);
	receives(&p->b, list.receives, 4, NDX_OK, 4);
	if (!pair_connect(p))
		return;
	list_sends(&list, &p->a, 0, 4, MESSAGE, 0);
	posts(&p->a, list.requests, 4, NDX_OK, 4);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 4, NDX_OK);
	for (size_t i = 0; i < 4; i++)
		expect_received(&p->b, i, MESSAGE);
}

/* A disconnect finds a list whose sends wait for receives, and ends it; lists that are posted
 * afterwards are canceled, in order. */
void case_list_disconnect_ends_what_was_posted(struct check *c)
{
	static struct list list;
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.drain_ms = 300;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->b, 0, 3, 0, MESSAGE);
	list_sends(&list, &p->a, 0, 8, MESSAGE, 0);
	posts(&p->a, list.requests, 8, NDX_OK, 8);
	if (!side_start_disconnect(&p->a) || !side_start_disconnect(&p->b))
		return;
	list_sends(&list, &p->a, 8, 4, MESSAGE, 0);
	posts(&p->a, list.requests, 4, NDX_OK, 4);
	check_ends(c, &p->a.disc, NDX_OK, "A's disconnect");
	check_ends(c, &p->b.disc, NDX_OK, "B's disconnect");
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 3, NDX_OK);
	expect_run(&p->a, NDX_REQUEST_SEND, 3, 9, NDX_E_CANCELED);
	for (size_t i = 0; i < 3; i++)
		expect_received(&p->b, i, MESSAGE);
	list_sends(&list, &p->a, 20, 4, MESSAGE, NDX_OP_SILENT_SUCCESS);
	posts(&p->a, list.requests, 4, NDX_OK, 4);
	expect_run(&p->a, NDX_REQUEST_SEND, 20, 4, NDX_E_CANCELED);
	list_receives(&list, &p->a, 30, 4, MESSAGE);
	receives(&p->a, list.receives, 4, NDX_OK, 4);
	expect_run(&p->a, NDX_REQUEST_RECEIVE, 30, 4, NDX_E_CANCELED);
	expect_silence(&p->a);
	expect_silence(&p->b);
}

/* The entries of a program whose structures are longer than the library's. */
void case_list_entries_may_be_longer(struct check *c)
{
	struct {
		struct ndx_request request;
		uint64_t later;
	} sends[4];
	struct {
		struct ndx_receive receive;
		uint64_t later;
	} takes[4];
	static struct list list;
	struct pair *p = pair_up(c, NULL);
	size_t posted = 9;

	if (!p)
		return;
	memset(sends, 0, sizeof(sends));
	memset(takes, 0, sizeof(takes));
	list_receives(&list, &p->b, 0, 4, MESSAGE);
	for (size_t i = 0; i < 4; i++)
		takes[i].receive = list.receives[i];
	takes[3].later = 1;
	check_status(
		c,
		ndx_qp_receive_list_sized(p->b.qp, &takes[0].receive, sizeof(takes[0]), 4, &posted),
		NDX_E_INVALID_PARAMETER, "receives with an unknown member");
	check_that(c, posted == 0, "%zu receives posted", posted);
	takes[3].later = 0;
	check_status(
		c,
		ndx_qp_receive_list_sized(p->b.qp, &takes[0].receive, sizeof(takes[0]), 4, &posted),
		NDX_OK, "longer receives");
	check_that(c, posted == 4, "%zu of 4 receives posted", posted);
	list_sends(&list, &p->a, 0, 4, MESSAGE, 0);
	for (size_t i = 0; i < 4; i++)
		sends[i].request = list.requests[i];
	check_status(c,
	             ndx_qp_post_list_sized(p->a.qp, &sends[0].request, sizeof(sends[0]) - 16, 4,
	                                    &posted),
	             NDX_E_INVALID_PARAMETER, "requests that are too short");
	check_status(c,
	             ndx_qp_post_list_sized(p->a.qp, &sends[0].request, sizeof(sends[0]) - 1, 4,
	                                    &posted),
	             NDX_E_INVALID_PARAMETER, "requests that are not aligned");
	check_status(
		c, ndx_qp_post_list_sized(p->a.qp, &sends[0].request, sizeof(sends[0]), 4, &posted),
		NDX_OK, "longer requests");
	check_that(c, posted == 4, "%zu of 4 requests posted", posted);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 4, NDX_OK);
	for (size_t i = 0; i < 4; i++)
		expect_received(&p->b, i, MESSAGE);
}

/* Lists of two threads on one queue pair: each thread's requests stay in order. */
struct poster {
	struct side *s;
	struct list list;
	size_t first;
	pthread_t thread;
};

enum { LISTS = 10, EACH = 6 };

static void *post_lists(void *arg)
{
	struct poster *poster = arg;

	for (size_t n = 0; n < LISTS; n++) {
		size_t done = 0;

		while (done < EACH && !check_over(poster->s->c)) {
			size_t posted = 0;
			const enum ndx_status st = ndx_qp_post_list(
				poster->s->qp, &poster->list.requests[n * EACH + done], EACH - done,
				&posted);

			if (st != NDX_OK && st != NDX_E_NO_MORE_ENTRIES)
				check_fail(poster->s->c, "post_list: %s", ndx_status_name(st));
			done += posted;
		}
	}
	return NULL;
}

void case_list_of_two_threads(struct check *c)
{
	static struct poster posters[TWO];
	size_t next[TWO] = {0, (size_t)LISTS * EACH};
	struct side_attr attr;
	struct pair *p;
	struct ndx_result result;
	unsigned started = 0;

	side_attr_init(&attr);
	attr.receive_depth = TWO * LISTS * EACH;
	attr.initiator_depth = 16;
	p = pair_up(c, &attr);
	if (!p || !receives_ok(&p->b, 0, (size_t)TWO * LISTS * EACH, 0, 8))
		return;
	for (; started < TWO; started++) {
		struct poster *poster = &posters[started];

		poster->s = &p->a;
		list_sends(&poster->list, &p->a, next[started], (size_t)LISTS * EACH, 8, 0);
		if (!check_that(c, pthread_create(&poster->thread, NULL, post_lists, poster) == 0,
		                "thread"))
			break;
	}
	for (size_t i = 0; i < (size_t)TWO * LISTS * EACH && take(&p->a, p->a.cq, &result); i++) {
		const size_t number = (size_t)((char *)result.request_context - p->a.tags);
		const size_t whose = number >= (size_t)LISTS * EACH;

		check_that(c, result.status == NDX_OK && number == next[whose]++,
		           "request %zu of thread %zu out of order, with %s", number, whose,
		           ndx_status_name(result.status));
	}
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(posters[i].thread, NULL);
	for (size_t i = 0; i < (size_t)TWO * LISTS * EACH; i++)
		expect_received(&p->b, i, 8);
}

/* Receives of a shared queue: what fits is posted, for whichever queue pair needs one. */
void case_list_of_shared_receives(struct check *c)
{
	static struct list list;
	struct ndx_srq *srq = shared_open(c, 8, 0);
	struct pair *p = srq ? shared_pair_up(c, srq, NULL) : NULL;
	size_t posted = 9;

	if (p) {
		list_receives(&list, &p->b, 0, 12, MESSAGE);
		shared_receives(c, srq, NULL, 0, NDX_OK, 0);
		check_status(c, ndx_srq_receive_list(srq, NULL, 1, &posted),
		             NDX_E_INVALID_PARAMETER, "a missing list");
		list.receives[5].sge_count = 300;
		shared_receives(c, srq, list.receives, 12, NDX_E_DATA_OVERRUN, 5);
		list_receives(&list, &p->b, 5, 12, MESSAGE);
		shared_receives(c, srq, list.receives, 12, NDX_E_NO_MORE_ENTRIES, 3);
		sends_ok(&p->a, 0, 8, 0, MESSAGE);
		expect_run(&p->a, NDX_REQUEST_SEND, 0, 8, NDX_OK);
		for (size_t i = 0; i < 8; i++)
			expect_received(&p->b, i, MESSAGE);
		list_receives(&list, &p->b, 20, 8, MESSAGE);
		shared_receives(c, srq, list.receives, 8, NDX_OK, 8);
		sends_ok(&p->a, 8, 8, 0, MESSAGE);
		for (size_t i = 0; i < 8; i++)
			expect_received(&p->b, 20 + i, MESSAGE);
	}
	pair_close_all(c);
	ndx_srq_close(srq);
}
