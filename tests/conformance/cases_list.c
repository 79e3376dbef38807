/* SPDX-License-Identifier: BSD-2-Clause */
/* list.*: several requests posted with one call. */
#include <string.h>

#include "cases.h"
#include "lists.h"
#include "traffic.h"

enum { MESSAGE = 64, MANY = 48, TWO = 2 };

/* Messages arrive in the order of the array, also in several lists and among single posts. */
void case_list_order_is_that_of_the_array(struct check *c)
{
	static struct list list;
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	pattern_fill(p->a.buf, (size_t)MANY * MESSAGE, 1);
	memset(p->b.buf, 0, (size_t)MANY * MESSAGE);
	list_receives(&list, &p->b, 0, MANY, MESSAGE);
	receives(&p->b, list.receives, MANY - 1, NDX_OK, MANY - 1);
	receive_ok(&p->b, MANY - 1, (size_t)(MANY - 1) * MESSAGE, MESSAGE);
	list_sends(&list, &p->a, 0, MANY, MESSAGE, 0);
	send_ok(&p->a, 0, 0, MESSAGE, 0);
	posts(&p->a, &list.requests[1], MANY - 10, NDX_OK, MANY - 10);
	send_ok(&p->a, MANY - 9, (size_t)(MANY - 9) * MESSAGE, MESSAGE, 0);
	posts(&p->a, &list.requests[MANY - 8], 8, NDX_OK, 8);
	for (size_t i = 0; i < MANY; i++)
		expect_received(&p->b, i, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, MANY, NDX_OK);
	pattern_there(c, p->b.buf, (size_t)MANY * MESSAGE, 1, "the messages of the lists");
	expect_silence(&p->a);
	expect_silence(&p->b);
}

void case_list_of_one_is_a_single_post(struct check *c)
{
	static struct list list;
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	for (size_t i = 0; i < 3; i++) {
		list_receives(&list, &p->b, i, 1, MESSAGE);
		receives(&p->b, list.receives, 1, NDX_OK, 1);
		list_sends(&list, &p->a, i, 1, MESSAGE, 0);
		posts(&p->a, list.requests, 1, NDX_OK, 1);
		expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
		expect_received(&p->b, i, MESSAGE);
	}
	expect_silence(&p->a);
	expect_silence(&p->b);
}

/* Lists of nothing, and calls without what they need. */
void case_list_empty_or_null(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	const struct ndx_request request = {.type = NDX_POST_SEND};
	const struct ndx_receive receive = {0};
	size_t posted = 7;

	if (!p)
		return;
	posts(&p->a, NULL, 0, NDX_OK, 0);
	receives(&p->a, NULL, 0, NDX_OK, 0);
	check_status(c, ndx_qp_post_list(p->a.qp, NULL, 1, &posted), NDX_E_INVALID_PARAMETER,
	             "post_list without a list");
	check_that(c, posted == 0, "a refused call says %zu posted", posted);
	check_status(c, ndx_qp_post_list(NULL, &request, 1, &posted), NDX_E_INVALID_PARAMETER,
	             "post_list without a queue pair");
	check_status(c, ndx_qp_post_list(p->a.qp, &request, 1, NULL), NDX_E_INVALID_PARAMETER,
	             "post_list without room for the number");
	check_status(c, ndx_qp_receive_list(p->a.qp, NULL, 1, &posted), NDX_E_INVALID_PARAMETER,
	             "receive_list without a list");
	check_status(c, ndx_qp_receive_list(p->a.qp, &receive, 1, NULL), NDX_E_INVALID_PARAMETER,
	             "receive_list without room for the number");
	expect_silence(&p->a);
	message_passes(&p->a, &p->b, MESSAGE);
}

void case_list_entries_without_bytes(struct check *c)
{
	static struct list list;
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	list_receives(&list, &p->b, 0, 4, 0);
	list.receives[1] = (struct ndx_receive){.context = tag(&p->b, 1)};
	receives(&p->b, list.receives, 4, NDX_OK, 4);
	list_sends(&list, &p->a, 0, 4, 0, 0);
	list.requests[2].sge = NULL;
	list.requests[2].sge_count = 0;
	posts(&p->a, list.requests, 4, NDX_OK, 4);
	for (size_t i = 0; i < 4; i++)
		expect_received(&p->b, i, 0);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 4, NDX_OK);
	/* writes and reads of nothing need no memory of the peer */
	list_sends(&list, &p->a, 0, 2, 0, 0);
	list.requests[0].type = NDX_POST_WRITE;
	list.requests[1].type = NDX_POST_READ;
	list.requests[0].remote_address = list.requests[1].remote_address = (uintptr_t)p->b.buf;
	list.requests[0].remote_token = list.requests[1].remote_token =
		ndx_mr_get_remote_token(p->b.mr);
	posts(&p->a, list.requests, 2, NDX_OK, 2);
	expect(&p->a, NDX_REQUEST_WRITE, 0, NDX_OK);
	expect(&p->a, NDX_REQUEST_READ, 1, NDX_OK);
}

/* Each request has its own flags. */
void case_list_silent_success_in_the_middle(struct check *c)
{
	static struct list list;
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->b, 0, 16, 0, MESSAGE);
	list_sends(&list, &p->a, 0, 16, MESSAGE, NDX_OP_SILENT_SUCCESS);
	list.requests[0].flags = 0;
	list.requests[9].flags = NDX_OP_SOLICIT_EVENT;
	list.requests[15].flags = 0;
	posts(&p->a, list.requests, 16, NDX_OK, 16);
	expect(&p->a, NDX_REQUEST_SEND, 0, NDX_OK);
	expect(&p->a, NDX_REQUEST_SEND, 9, NDX_OK);
	expect(&p->a, NDX_REQUEST_SEND, 15, NDX_OK);
	for (size_t i = 0; i < 16; i++)
		expect_received(&p->b, i, MESSAGE);
	expect_silence(&p->a);
}

/* Requests with silent success free their slots by themselves: any number of them goes through a
 * small queue in lists. */
void case_list_of_silent_requests_needs_no_poll(struct check *c)
{
	static struct list list;
	struct side_attr attr;
	struct pair *p;
	size_t done = 0;
	size_t posted;

	side_attr_init(&attr);
	attr.initiator_depth = 8;
	p = pair_up(c, &attr);
	if (!p)
		return;
	pattern_fill(p->a.buf, MESSAGE, 3);
	list_sends(&list, &p->a, 0, 200, MESSAGE, NDX_OP_SILENT_SUCCESS);
	for (size_t i = 0; i < 200; i++) {
		list.sges[i] = sge(&p->a, 0, MESSAGE);
		list.requests[i].type = NDX_POST_WRITE;
		list.requests[i].remote_address = (uintptr_t)p->b.buf + i * MESSAGE;
		list.requests[i].remote_token = ndx_mr_get_remote_token(p->b.mr);
	}
	while (done < 200 && !check_over(c)) {
		const enum ndx_status st =
			ndx_qp_post_list(p->a.qp, &list.requests[done], 200 - done, &posted);

		check_either(c, st, NDX_OK, NDX_E_NO_MORE_ENTRIES, "a list of silent writes");
		done += posted;
		/* without results: this lets a stack progress whose native queue is full */
		check_that(c, ndx_cq_get_results(p->a.cq, &(struct ndx_result){0}, 1) == 0,
		           "a silent write has a result");
	}
	list_sends(&list, &p->a, 7, 1, MESSAGE, 0);
	receive_ok(&p->b, 0, (size_t)200 * MESSAGE, MESSAGE);
	do {
		posted = 1;
		if (ndx_qp_post_list(p->a.qp, list.requests, 1, &posted) == NDX_OK)
			break;
		check_that(c, ndx_cq_get_results(p->a.cq, &(struct ndx_result){0}, 1) == 0,
		           "a silent write has a result");
	} while (!check_over(c));
	expect(&p->a, NDX_REQUEST_SEND, 7, NDX_OK);
	expect_received(&p->b, 0, MESSAGE);
	for (size_t i = 0; i < 200; i++)
		pattern_there(c, p->b.buf + i * MESSAGE, MESSAGE, 3, "a silent write");
}

/* All types in one list. The read is fenced behind the write that it reads. */
void case_list_of_all_types(struct check *c)
{
	static struct list list;
	const uint32_t capabilities = NDX_CAP_SEND_IMMEDIATE | NDX_CAP_WRITE_IMMEDIATE;
	struct pair *p = pair_up(c, NULL);
	struct ndx_result result = {0};

	if (!p ||
	    !check_that(c, (c->world->places[0].info.capabilities & capabilities) == capabilities,
	                "the case ran without its capabilities"))
		return;
	for (size_t i = 0; i < 5; i++)
		pattern_fill(p->a.buf + i * MESSAGE, MESSAGE, i);
	receives_ok(&p->b, 0, 3, (size_t)10 * MESSAGE, MESSAGE);
	list_sends(&list, &p->a, 0, 5, MESSAGE, 0);
	for (size_t i = 0; i < 5; i++) {
		list.requests[i].remote_address = (uintptr_t)p->b.buf + i * MESSAGE;
		list.requests[i].remote_token = ndx_mr_get_remote_token(p->b.mr);
		list.requests[i].immediate = 0x11223344 + (uint32_t)i;
	}
	list.requests[1].type = NDX_POST_WRITE;
	list.requests[2].type = NDX_POST_SEND_IMMEDIATE;
	list.requests[3].type = NDX_POST_WRITE_IMMEDIATE;
	list.requests[4].type = NDX_POST_READ;
	list.requests[4].flags = NDX_OP_READ_FENCE;
	list.requests[4].remote_address = list.requests[1].remote_address;
	posts(&p->a, list.requests, 5, NDX_OK, 5);
	expect(&p->a, NDX_REQUEST_SEND, 0, NDX_OK);
	expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
	expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
	expect(&p->a, NDX_REQUEST_WRITE, 3, NDX_OK);
	expect(&p->a, NDX_REQUEST_READ, 4, NDX_OK);
	expect_received(&p->b, 0, MESSAGE);
	for (uint32_t i = 1; i < 3; i++) {
		if (take(&p->b, p->b.rcq, &result))
			check_that(c,
			           (result.flags & NDX_RESULT_IMMEDIATE) &&
			                   result.immediate == 0x11223345 + i,
			           "receive %u has immediate data %x", i, result.immediate);
	}
	pattern_there(c, p->b.buf + MESSAGE, MESSAGE, 1, "the write");
	pattern_there(c, p->b.buf + (size_t)3 * MESSAGE, MESSAGE, 3, "the write with immediate");
	pattern_there(c, p->a.buf + (size_t)4 * MESSAGE, MESSAGE, 1,
	              "the read of what was written");
	pattern_there(c, p->b.buf + (size_t)10 * MESSAGE, MESSAGE, 0, "the send");
	pattern_there(c, p->b.buf + (size_t)11 * MESSAGE, MESSAGE, 2, "the send with immediate");
}

/* The arrays and the data of inline requests may change as soon as the call has returned. */
void case_list_inline_copies_during_the_call(struct check *c)
{
	static struct list list;
	static struct ndx_sge halves[8][TWO];
	const uint32_t own = c->world->places[0].info.max_inline_data_size;
	const uint32_t peers = c->world->places[1].info.max_inline_data_size;
	uint8_t data[8][TWO][8];
	struct side_attr attr;
	struct pair *p;

	if (own < 16 || peers < 16) {
		check_skip(c, "inline requests of %u and %u bytes are too short", own, peers);
		return;
	}
	side_attr_init(&attr);
	attr.inline_size = 16;
	p = pair_up(c, &attr);
	if (!p)
		return;
	list_sends(&list, &p->a, 0, 8, 16, NDX_OP_INLINE);
	for (size_t i = 0; i < 8; i++) {
		pattern_fill(&data[i][0][0], 16, i);
		for (size_t half = 0; half < TWO; half++)
			halves[i][half] = (struct ndx_sge){.buffer = data[i][half], .length = 8};
		list.requests[i].sge = halves[i];
		list.requests[i].sge_count = TWO;
	}
	posts(&p->a, list.requests, 8, NDX_OK, 8);
	memset(data, 0xee, sizeof(data));
	memset(halves, 0xee, sizeof(halves));
	memset(&list, 0xee, sizeof(list));
	receives_ok(&p->b, 0, 8, 0, 16);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 8, NDX_OK);
	for (size_t i = 0; i < 8; i++) {
		expect_received(&p->b, i, 16);
		pattern_there(c, p->b.buf + i * 16, 16, i, "an inline message");
	}
}
