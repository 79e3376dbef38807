/* SPDX-License-Identifier: BSD-2-Clause */
/* queue.*: queue pairs: limits, slots, posting rules, flush. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

enum { MESSAGE = 64, ENOUGH = 100000 };

static enum ndx_status create_with(struct side *s, const struct ndx_qp_attr *attr)
{
	struct ndx_qp *qp = NULL;
	enum ndx_status status = ndx_qp_create(s->adapter, attr, &qp);

	if (status != NDX_OK && qp)
		check_fail(s->c, "an output of a failed call was touched");
	ndx_qp_close(qp);
	return status;
}

static struct ndx_qp_attr attr_for(const struct side *s)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = s->rcq;
	attr.initiator_cq = s->cq;
	return attr;
}

void case_queue_limits_of_creation(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	const struct ndx_adapter_info *info = &c->world->places[0].info;
	struct ndx_qp_attr attr;

	if (!p)
		return;
	attr = attr_for(&p->a);
	check_that(c,
	           attr.receive_depth == 64 && attr.initiator_depth == 64 &&
	                   attr.no_receive_timeout_ms == 4000 && attr.keepalive_ms == 30000,
	           "the defaults are others than documented");
	attr.receive_depth = 1;
	attr.initiator_depth = 1;
	attr.max_receive_sge = 0;
	attr.max_initiator_sge = 0;
	check_status(c, create_with(&p->a, &attr), NDX_OK, "the smallest queue pair");
	attr.receive_depth = info->max_receive_queue_depth;
	attr.initiator_depth = info->max_initiator_queue_depth;
	attr.max_receive_sge = info->max_receive_sge;
	attr.max_initiator_sge = info->max_initiator_sge;
	attr.inline_size = info->max_inline_data_size;
	check_status(c, create_with(&p->a, &attr), NDX_OK, "the largest queue pair");
	attr = attr_for(&p->a);
	attr.receive_depth = 0;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER, "receive depth 0");
	attr.receive_depth = info->max_receive_queue_depth + 1;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER, "receive depth");
	attr = attr_for(&p->a);
	attr.initiator_depth = 0;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER, "initiator depth 0");
	attr.initiator_depth = info->max_initiator_queue_depth + 1;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER, "initiator depth");
	attr = attr_for(&p->a);
	attr.max_receive_sge = info->max_receive_sge + 1;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER, "receive SGEs");
	attr = attr_for(&p->a);
	attr.max_initiator_sge = info->max_initiator_sge + 1;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER, "initiator SGEs");
	attr = attr_for(&p->a);
	attr.inline_size = info->max_inline_data_size + 1;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER, "inline size");
}

void case_queue_foreign_or_missing_queues_are_refused(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_adapter *other = NULL;
	struct ndx_cq *foreign = NULL;
	struct ndx_qp_attr attr;

	if (!p)
		return;
	attr = attr_for(&p->a);
	attr.receive_cq = NULL;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER, "no receive queue");
	attr = attr_for(&p->a);
	attr.initiator_cq = NULL;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER, "no initiator queue");
	check_status(c, ndx_adapter_open(p->a.place->uri, &other), NDX_OK, "adapter_open");
	if (other)
		check_status(c, ndx_cq_create_depth(other, 16, &foreign), NDX_OK, "cq_create");
	attr = attr_for(&p->a);
	attr.receive_cq = foreign;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER,
	             "foreign receive queue");
	attr = attr_for(&p->a);
	attr.initiator_cq = foreign;
	check_status(c, create_with(&p->a, &attr), NDX_E_INVALID_PARAMETER,
	             "foreign initiator queue");
	ndx_cq_close(foreign);
	ndx_adapter_close(other);
}

/* All that was granted can be used, and comes back slot by slot. */
static void receive_slots_work(struct check *c, uint32_t depth)
{
	struct side_attr attr;
	struct pair *p;
	size_t granted;

	side_attr_init(&attr);
	attr.receive_depth = depth;
	p = pair_up(c, &attr);
	if (!p)
		return;
	granted = fill_receives(&p->b, MESSAGE, ENOUGH);
	check_that(c, granted >= depth, "asked for %u receives, got %zu", depth, granted);
	/* one message frees one slot, when its result was taken */
	send_ok(&p->a, 0, 0, MESSAGE, 0);
	expect(&p->a, NDX_REQUEST_SEND, 0, NDX_OK);
	expect_received(&p->b, 0, MESSAGE);
	receive_ok(&p->b, granted, 0, MESSAGE);
	check_status(c, receive_raw(&p->b, granted + 1, 0, MESSAGE), NDX_E_NO_MORE_ENTRIES,
	             "receive into a full queue");
	check_status(c, ndx_qp_flush(p->b.qp), NDX_OK, "flush");
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 1, granted, NDX_E_CANCELED);
	expect_silence(&p->b);
}

void case_queue_receive_queue_full_and_usable_again(struct check *c)
{
	receive_slots_work(c, 1);
	pair_close_all(c);
	receive_slots_work(c, 5);
	pair_close_all(c);
	receive_slots_work(c, 64);
}

void case_queue_send_queue_full_and_usable_again(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	struct ndx_result result;
	size_t granted;

	side_attr_init(&attr);
	attr.initiator_depth = 4;
	p = pair_up(c, &attr);
	if (!p)
		return;
	granted = fill_sends(&p->a, MESSAGE, 0, ENOUGH); /* RNR: nothing can complete */
	check_that(c, granted >= 4, "asked for 4 sends, got %zu", granted);
	for (size_t i = 0; i < granted && i < 60; i++)
		receive_ok(&p->b, i, 0, MESSAGE);
	for (size_t i = 0; i < 20 && !check_over(c); i++) {
		size_t got = 0;

		check_status(c, ndx_cq_wait_results(p->a.cq, &result, 1, WAIT_MS, &got), NDX_OK,
		             "result of a send");
		result_is(&p->a, &result, NDX_REQUEST_SEND, i, NDX_OK);
		send_ok(&p->a, granted + i, 0, MESSAGE, 0);
		check_status(c, send_raw(&p->a, 0, 0, MESSAGE, 0), NDX_E_NO_MORE_ENTRIES,
		             "send into a full queue");
		expect_received(&p->b, i, MESSAGE);
		receive_ok(&p->b, granted + i, 0, MESSAGE);
	}
}

void case_queue_requests_that_are_too_large_are_refused(struct check *c)
{
	const struct ndx_adapter_info *info = &c->world->places[0].info;
	struct pair *p = pair_up(c, NULL);
	struct ndx_sge list[2];
	struct ndx_sge many[300];
	size_t count = (size_t)info->max_initiator_sge + 1;
	size_t receive_count = (size_t)info->max_receive_sge + 1;
	uint64_t to;
	uint32_t token;

	if (!p || !check_that(c, count <= 300 && receive_count <= 300, "SGEs beyond the case"))
		return;
	to = (uint64_t)(uintptr_t)p->b.buf;
	token = ndx_mr_get_remote_token(p->b.mr);
	for (size_t i = 0; i < 300; i++)
		many[i] = sge(&p->a, 0, 1);
	check_status(c, ndx_qp_send(p->a.qp, NULL, many, count, 0), NDX_E_DATA_OVERRUN, "send");
	check_status(c, ndx_qp_write(p->a.qp, NULL, many, count, to, token, 0), NDX_E_DATA_OVERRUN,
	             "write");
	check_status(c, ndx_qp_read(p->a.qp, NULL, many, count, to, token, 0), NDX_E_DATA_OVERRUN,
	             "read");
	check_status(c, ndx_qp_receive(p->a.qp, NULL, many, receive_count), NDX_E_DATA_OVERRUN,
	             "receive");
	/* two pieces that are too much together, so that no sum of 32 bits hides it */
	list[0] = sge(&p->a, 0, info->max_transfer_length);
	list[1] = sge(&p->a, 0, UINT32_MAX);
	p->a.attr.initiator_sge = 2;
	p->a.attr.receive_sge = 2;
	side_new_connector(&p->a);
	side_new_connector(&p->b);
	side_new_qp(&p->a);
	side_new_qp(&p->b);
	if (!pair_connect(p))
		return;
	check_status(c, ndx_qp_send(p->a.qp, NULL, list, 2, 0), NDX_E_BUFFER_OVERFLOW, "send");
	check_status(c, ndx_qp_write(p->a.qp, NULL, list, 2, to, token, 0), NDX_E_BUFFER_OVERFLOW,
	             "write");
	check_status(c, ndx_qp_read(p->a.qp, NULL, list, 2, to, token, 0), NDX_E_BUFFER_OVERFLOW,
	             "read");
	check_status(c, ndx_qp_receive(p->a.qp, NULL, list, 2), NDX_E_BUFFER_OVERFLOW, "receive");
	message_passes(&p->a, &p->b, MESSAGE);
}

void case_queue_flags_that_a_request_does_not_take_are_refused(struct check *c)
{
	static const uint32_t bad_send[] = {NDX_OP_ALLOW_READ, NDX_OP_ALLOW_WRITE, 0x40,
	                                    0x80000000};
	static const uint32_t bad_write[] = {NDX_OP_ALLOW_READ, NDX_OP_SOLICIT_EVENT, 0x100};
	static const uint32_t bad_read[] = {NDX_OP_INLINE, NDX_OP_SOLICIT_EVENT,
	                                    NDX_OP_ALLOW_WRITE};
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	for (size_t i = 0; i < 4; i++)
		check_status(c, send_raw(&p->a, 1, 0, 8, bad_send[i]), NDX_E_INVALID_PARAMETER,
		             "send");
	for (size_t i = 0; i < 3; i++) {
		check_status(c, write_raw(&p->a, 1, 0, 8, &p->b, 0, bad_write[i]),
		             NDX_E_INVALID_PARAMETER, "write");
		check_status(c, read_raw(&p->a, 1, 0, 8, &p->b, 0, bad_read[i]),
		             NDX_E_INVALID_PARAMETER, "read");
	}
	message_passes(&p->a, &p->b, MESSAGE);
}

void case_queue_refused_posts_take_nothing(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	size_t granted;

	side_attr_init(&attr);
	attr.initiator_depth = 2;
	attr.drain_ms = 30; /* what fills the queue meets RNR */
	p = pair_up(c, &attr);
	if (!p)
		return;
	for (size_t i = 0; i < 100; i++)
		check_status(c, send_raw(&p->a, i, 0, 8, NDX_OP_ALLOW_READ),
		             NDX_E_INVALID_PARAMETER, "send with a wrong flag");
	granted = fill_sends(&p->a, 8, 0, ENOUGH);
	check_that(c, granted >= 2, "after refused posts there is room for %zu of 2", granted);
	expect_silence(&p->a);
}

void case_queue_posts_before_connecting(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	check_status(c, send_raw(&p->a, 1, 0, 8, 0), NDX_E_CONNECTION_INVALID, "send");
	check_status(c, read_raw(&p->a, 1, 0, 8, &p->b, 0, 0), NDX_E_CONNECTION_INVALID, "read");
	check_status(c, write_raw(&p->a, 1, 0, 8, &p->b, 0, 0), NDX_E_CONNECTION_INVALID, "write");
	receive_ok(&p->a, 1, 0, 8);
	pair_ask(p);
	check_status(c, send_raw(&p->a, 1, 0, 8, 0), NDX_E_CONNECTION_INVALID,
	             "send while connecting");
	receive_ok(&p->a, 2, 0, 8);
	pair_answer(p);
	pair_complete(p);
	sends_ok(&p->b, 3, 2, 0, 8);
	expect_received(&p->a, 1, 8);
	expect_received(&p->a, 2, 8);
}

void case_queue_posts_after_an_abort_are_cancelled(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_start_notify(&p->a);
	check_status(c, ndx_qp_flush(p->b.qp), NDX_OK, "flush at B");
	side_indicated(&p->a, NDX_DISCONNECT_ABORTED);
	for (size_t round = 0; round < 2; round++) {
		struct side *s = round ? &p->b : &p->a;

		sends_ok(s, 10, 4, 0, 8);
		expect_run(s, NDX_REQUEST_SEND, 10, 4, NDX_E_CANCELED);
		receives_ok(s, 20, 4, 0, 8);
		expect_run(s, NDX_REQUEST_RECEIVE, 20, 4, NDX_E_CANCELED);
	}
}

/* ---- silent success ---- */

void case_queue_silent_success_gives_no_result_and_its_slot_back(struct check *c)
{
	enum { MANY = 20000 };
	struct side_attr attr;
	struct pair *p;
	struct ndx_result results[32];
	uint64_t until = now_ms() + 6 * (uint64_t)WAIT_MS;
	size_t sent = 0;
	size_t got = 0;
	size_t heard = 0;

	side_attr_init(&attr);
	attr.initiator_depth = 8;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->b, 0, 64, 0, 16);
	while (got < MANY && !check_over(c)) {
		if (sent < MANY && send_raw(&p->a, sent, 0, 16, NDX_OP_SILENT_SUCCESS) == NDX_OK)
			sent++;
		else
			heard += ndx_cq_get_results(p->a.cq, results, 32);
		for (size_t n = ndx_cq_get_results(p->b.cq, results, 32), i = 0; i < n;
		     i++, got++) {
			result_is(&p->b, &results[i], NDX_REQUEST_RECEIVE, got % 64, NDX_OK);
			receive_ok(&p->b, got % 64, got % 64 * 16, 16);
		}
		check_that(c, now_ms() < until, "%zu of %d messages in time", got, MANY);
	}
	check_that(c, heard == 0, "%zu silent sends were not silent", heard);
	/* the last ones are known at B earlier than their end is known at A */
	while (!check_over(c) && send_raw(&p->a, 77, 0, 16, 0) == NDX_E_NO_MORE_ENTRIES) {
		check_that(c, ndx_cq_get_results(p->a.cq, results, 32) == 0,
		           "a result from nowhere");
		check_that(c, now_ms() < until, "the slots of silent sends stay taken");
	}
	expect(&p->a, NDX_REQUEST_SEND, 77, NDX_OK);
}

void case_queue_silent_failure_has_a_result(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	for (size_t i = 0; i < 6; i++)
		send_ok(&p->a, i, 0, 8, NDX_OP_SILENT_SUCCESS); /* RNR */
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 6, NDX_E_CANCELED);
}

void case_queue_silent_and_signaled_ones_may_be_mixed(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->b, 0, 60, 0, 8);
	for (size_t i = 0; i < 60; i++)
		send_ok(&p->a, i, 0, 8, i % 3 ? NDX_OP_SILENT_SUCCESS : 0);
	for (size_t i = 0; i < 60; i += 3)
		expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 60, NDX_OK);
	expect_silence(&p->a);
}

/* ---- flush and close ---- */

void case_queue_flush_of_an_unconnected_one_only_cancels(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush of nothing");
	receives_ok(&p->a, 0, 8, 0, MESSAGE);
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	expect_all_there(&p->a, 8, NDX_E_CANCELED);
	receives_ok(&p->a, 8, 2, 0, MESSAGE);
	pair_connect(p);
	sends_ok(&p->b, 0, 2, 0, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_RECEIVE, 8, 2, NDX_OK);
}

void case_queue_flush_of_a_connected_one_aborts(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	side_start_notify(&p->a);
	side_start_notify(&p->b);
	receives_ok(&p->a, 0, 16, 0, MESSAGE);
	sends_ok(&p->a, 20, 16, 0, MESSAGE); /* RNR */
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	expect_all_there(&p->a, 32, NDX_E_CANCELED);
	side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
	side_indicated(&p->a, NDX_DISCONNECT_ABORTED);
	side_disconnect(&p->a, NDX_E_CONNECTION_ABORTED);
	side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "second flush");
	expect_silence(&p->a);
}

void case_queue_flush_completes_everything_once_and_in_order(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	struct ndx_result result;
	size_t good = 0;

	side_attr_init(&attr);
	attr.separate_cqs = true;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->a, 0, 32, 0, MESSAGE);
	receives_ok(&p->b, 0, 10, 0, MESSAGE);
	sends_ok(&p->a, 100, 40, 0, MESSAGE);
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	expect_run(&p->a, NDX_REQUEST_RECEIVE, 0, 32, NDX_E_CANCELED);
	/* of the sends a first part may have arrived, the rest is cancelled */
	for (size_t i = 0; i < 40 && take(&p->a, p->a.cq, &result); i++) {
		good += result.status == NDX_OK;
		result_is(&p->a, &result, NDX_REQUEST_SEND, 100 + i,
		          good > i ? NDX_OK : NDX_E_CANCELED);
	}
	check_that(c, good <= 10, "%zu sends succeeded, there were 10 receives", good);
	expect_silence(&p->a);
	/* what succeeded has been received */
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, good, NDX_OK);
}

void case_queue_closed_one_leaves_its_results(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receives_ok(&p->b, 0, 8, 0, MESSAGE);
	sends_ok(&p->a, 0, 4, 0, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_SEND, 0, 4, NDX_OK);
	side_close_qp(&p->b);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 4, NDX_OK);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 4, 4, NDX_E_CANCELED);
}

void case_queue_closed_without_connecting(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	receives_ok(&p->a, 0, 8, 0, MESSAGE);
	side_close_qp(&p->a);
	expect_all_there(&p->a, 8, NDX_E_CANCELED);
	ndx_qp_close(NULL);
}

void case_queue_closed_under_the_peers_traffic(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	struct ndx_result result = {.status = NDX_OK};
	size_t posted;

	side_attr_init(&attr);
	attr.drain_ms = 30; /* A's sends beyond B's receives meet RNR */
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->b, 0, 32, 0, MESSAGE);
	side_start_notify(&p->a);
	for (posted = 0; posted < 20; posted++)
		send_ok(&p->a, posted, 0, MESSAGE, 0);
	side_close_qp(&p->b);
	for (; posted < 40; posted++)
		send_ok(&p->a, posted, 0, MESSAGE, 0);
	side_indicated(&p->a, NDX_DISCONNECT_GRACEFUL);
	for (size_t i = 0; i < posted && take(&p->a, p->a.cq, &result); i++)
		check_that(c, result.status == NDX_OK || result.status == NDX_E_CANCELED,
		           "a send completed %s", ndx_status_name(result.status));
	check_that(c, discard(&p->b) == 32, "not every receive has its result");
}

/* ---- read limits ---- */

void case_queue_reads_with_a_limit_of_zero_are_refused(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.outbound_reads = 0;
	p = pair_up(c, &attr);
	if (!p)
		return;
	check_status(c, read_raw(&p->a, 1, 0, 8, &p->b, 0, 0), NDX_E_INVALID_DEVICE_REQUEST,
	             "read with an outbound limit of 0");
	message_passes(&p->a, &p->b, MESSAGE);
}

/* What the peer serves counts as well as what one asked for. */
void case_queue_reads_that_the_peer_does_not_serve_are_refused(struct check *c)
{
	struct side_attr attr[2];
	struct pair *p;

	side_attr_init(&attr[0]);
	attr[1] = attr[0];
	attr[1].inbound_reads = 0;
	p = pair_up_with(c, &attr[0], &attr[1]);
	if (!p)
		return;
	check_status(c, read_raw(&p->a, 1, 0, 8, &p->b, 0, 0), NDX_E_INVALID_DEVICE_REQUEST,
	             "read from a peer that serves none");
	read_ok(&p->b, 2, 0, 8, &p->a, 0, 0); /* the other way is open */
	expect(&p->b, NDX_REQUEST_READ, 2, NDX_OK);
	message_passes(&p->a, &p->b, MESSAGE);
}

void case_queue_reads_beyond_the_limit_wait(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.outbound_reads = 1;
	attr.inbound_reads = 1;
	p = pair_up(c, &attr);
	if (!p)
		return;
	pattern_fill(p->b.buf, (size_t)32 * 1024, 3);
	for (size_t i = 0; i < 32; i++)
		read_ok(&p->a, i, i * 1024, 1024, &p->b, i * 1024, 0);
	expect_run(&p->a, NDX_REQUEST_READ, 0, 32, NDX_OK);
	pattern_there(c, p->a.buf, (size_t)32 * 1024, 3, "reads one by one");
}
