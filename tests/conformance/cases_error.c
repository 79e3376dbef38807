/* SPDX-License-Identifier: BSD-2-Clause */
/* error.*: what goes wrong at one side, as both sides see it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cases.h"
#include "traffic.h"

enum { MESSAGE = 64, SHORT_MS = 150 };

/* How one request of A ended that may not succeed. */
static enum ndx_status failure_of(struct side *s, enum ndx_request_type type, size_t number)
{
	struct ndx_result result = {.status = NDX_PENDING};

	(void)take(s, s->cq, &result);
	check_that(s->c, result.status < 0, "%s: a %s that cannot work completed %s", s->name,
	           request_name(type), ndx_status_name(result.status));
	result_is(s, &result, type, number, result.status);
	return result.status;
}

/*
 * The peer's stack refused the request: where the stack below hands the reason on it is `reason`,
 * elsewhere the request was cancelled with its connection. Nothing else.
 */
static void reason_or_cancelled(struct check *c, enum ndx_status got, enum ndx_status reason,
                                const char *what)
{
	check_either(c, got, reason, NDX_E_CANCELED, what);
}

/* The connection has ended at both sides: indications, cancelled receives, failing disconnects. */
static void ended_at_both(struct pair *p)
{
	struct side *sides[2] = {&p->a, &p->b};

	for (size_t i = 0; i < 2; i++) {
		side_start_notify(sides[i]);
		side_indicated(sides[i], NDX_DISCONNECT_ABORTED);
		side_disconnect(sides[i], NDX_E_CONNECTION_ABORTED);
	}
}

/* A violation of local memory: own error first, the rest is cancelled, the peer is told. */
static void local_violation(struct pair *p, enum ndx_request_type type, enum ndx_status posted)
{
	check_status(p->c, posted, NDX_OK, "post with a wrong token");
	sends_ok(&p->a, 10, 3, 0, 8);
	receives_ok(&p->a, 20, 2, 0, 8);
	expect(&p->a, type, 1, NDX_E_ACCESS_VIOLATION);
	expect_run(&p->a, NDX_REQUEST_SEND, 10, 3, NDX_E_CANCELED);
	expect_run(&p->a, NDX_REQUEST_RECEIVE, 20, 2, NDX_E_CANCELED);
	ended_at_both(p);
}

static uint32_t wrong_token(const struct side *s)
{
	return ndx_mr_get_local_token(s->mr) ^ 0x5a5a5a5a;
}

void case_error_send_from_a_wrong_local_token(struct check *c)
{
	struct side_attr attr;
	struct ndx_sge one;
	struct pair *p;

	side_attr_init(&attr);
	attr.separate_cqs = true;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->b, 0, 2, 0, MESSAGE);
	memset(p->b.buf, 0xee, 2 * MESSAGE);
	one = sge(&p->a, 0, MESSAGE);
	one.token = wrong_token(&p->a);
	local_violation(p, NDX_REQUEST_SEND, ndx_qp_send(p->a.qp, tag(&p->a, 1), &one, 1, 0));
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, 2, NDX_E_CANCELED);
	bytes_are(c, p->b.buf, 2 * MESSAGE, 0xee, "the peer's receive");
}

void case_error_write_from_a_wrong_local_token(struct check *c)
{
	struct side_attr attr;
	struct ndx_sge one;
	struct pair *p;

	side_attr_init(&attr);
	attr.separate_cqs = true;
	p = pair_up(c, &attr);
	if (!p)
		return;
	memset(p->b.buf, 0xee, 2 * MESSAGE);
	one = sge(&p->a, 0, MESSAGE);
	one.token = wrong_token(&p->a);
	local_violation(p, NDX_REQUEST_WRITE,
	                ndx_qp_write(p->a.qp, tag(&p->a, 1), &one, 1, (uint64_t)(uintptr_t)p->b.buf,
	                             ndx_mr_get_remote_token(p->b.mr), 0));
	bytes_are(c, p->b.buf, 2 * MESSAGE, 0xee, "the peer's memory");
}

void case_error_read_into_a_wrong_local_token(struct check *c)
{
	struct side_attr attr;
	struct ndx_sge one;
	struct pair *p;

	side_attr_init(&attr);
	attr.separate_cqs = true;
	p = pair_up(c, &attr);
	if (!p)
		return;
	memset(p->a.buf, 0xee, 2 * MESSAGE);
	one = sge(&p->a, 0, MESSAGE);
	one.token = wrong_token(&p->a);
	local_violation(p, NDX_REQUEST_READ,
	                ndx_qp_read(p->a.qp, tag(&p->a, 1), &one, 1, (uint64_t)(uintptr_t)p->b.buf,
	                            ndx_mr_get_remote_token(p->b.mr), 0));
	bytes_are(c, p->a.buf, 2 * MESSAGE, 0xee, "the own memory");
}

void case_error_local_memory_outside_the_region(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	struct ndx_sge one;

	side_attr_init(&attr);
	attr.separate_cqs = true;
	p = pair_up(c, &attr);
	if (!p)
		return;
	one = sge(&p->a, attr.buffer - 32, 64); /* half of it behind the end */
	local_violation(p, NDX_REQUEST_SEND, ndx_qp_send(p->a.qp, tag(&p->a, 1), &one, 1, 0));
}

/* In front of the region, behind it, across its end, and so long that the sum wraps around. */
void case_error_local_memory_that_is_not_of_the_region(struct check *c)
{
	for (unsigned round = 0; round < 4 && !check_over(c); round++) {
		struct side_attr attr;
		struct ndx_sge one;
		struct pair *p;

		side_attr_init(&attr);
		attr.separate_cqs = true;
		p = pair_up(c, &attr);
		if (!p)
			return;
		one = sge(&p->a, 0, 64);
		if (round == 0)
			one.buffer = p->a.buf - 1;
		else if (round == 1)
			one.buffer = p->a.buf + attr.buffer;
		else if (round == 2)
			one.length = (uint32_t)attr.buffer + 1;
		else
			one.buffer = (void *)(UINTPTR_MAX - 31);
		check_note(c, "round %u", round);
		local_violation(p, NDX_REQUEST_SEND,
		                ndx_qp_send(p->a.qp, tag(&p->a, 1), &one, 1, 0));
		pair_close_all(c);
	}
}

void case_error_receive_without_local_write(struct check *c)
{
	struct side_attr attr[2];
	struct pair *p;

	side_attr_init(&attr[0]);
	attr[1] = attr[0];
	attr[1].access = NDX_MR_ALLOW_REMOTE_READ;
	p = pair_up_with(c, &attr[0], &attr[1]);
	if (!p)
		return;
	memset(p->b.buf, 0xee, MESSAGE);
	receive_ok(&p->b, 1, 0, MESSAGE);
	send_ok(&p->a, 2, 0, MESSAGE, 0);
	expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_ACCESS_VIOLATION);
	reason_or_cancelled(c, failure_of(&p->a, NDX_REQUEST_SEND, 2), NDX_E_REMOTE_ERROR,
	                    "send to such a receive");
	bytes_are(c, p->b.buf, MESSAGE, 0xee, "memory without local write");
	ended_at_both(p);
}

void case_error_receive_into_a_wrong_token(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_sge one;

	if (!p)
		return;
	one = sge(&p->b, 0, MESSAGE);
	one.token = wrong_token(&p->b);
	check_status(c, ndx_qp_receive(p->b.qp, tag(&p->b, 1), &one, 1), NDX_OK, "receive");
	send_ok(&p->a, 2, 0, MESSAGE, 0);
	expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_ACCESS_VIOLATION);
	reason_or_cancelled(c, failure_of(&p->a, NDX_REQUEST_SEND, 2), NDX_E_REMOTE_ERROR,
	                    "send to such a receive");
	ended_at_both(p);
}

void case_error_only_the_first_of_several_says_why(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_sge one;

	if (!p)
		return;
	one = sge(&p->b, 0, MESSAGE);
	one.token = wrong_token(&p->b);
	for (size_t i = 0; i < 3; i++)
		check_status(c, ndx_qp_receive(p->b.qp, tag(&p->b, 1 + i), &one, 1), NDX_OK,
		             "receive");
	send_ok(&p->a, 2, 0, MESSAGE, 0);
	expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_ACCESS_VIOLATION);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 2, 2, NDX_E_CANCELED);
	ended_at_both(p);
}

void case_error_receive_whose_region_went_away(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	memset(p->b.buf, 0xee, MESSAGE);
	receive_ok(&p->b, 1, 0, MESSAGE);
	side_close_mr(&p->b);
	send_ok(&p->a, 2, 0, MESSAGE, 0);
	expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_ACCESS_VIOLATION);
	reason_or_cancelled(c, failure_of(&p->a, NDX_REQUEST_SEND, 2), NDX_E_REMOTE_ERROR,
	                    "send to such a receive");
	bytes_are(c, p->b.buf, MESSAGE, 0xee, "memory that is not registered");
	ended_at_both(p);
}

void case_error_receive_too_small(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	memset(p->b.buf, 0xee, 1024);
	receive_ok(&p->b, 1, 0, 100);
	receive_ok(&p->b, 2, 512, 100);
	send_ok(&p->a, 3, 0, 101, 0);
	send_ok(&p->a, 4, 0, 8, 0);
	expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_BUFFER_OVERFLOW);
	expect(&p->b, NDX_REQUEST_RECEIVE, 2, NDX_E_CANCELED);
	reason_or_cancelled(c, failure_of(&p->a, NDX_REQUEST_SEND, 3), NDX_E_DATA_OVERRUN,
	                    "send that is too long");
	expect(&p->a, NDX_REQUEST_SEND, 4, NDX_E_CANCELED);
	bytes_are(c, p->b.buf + 100, 1024 - 100, 0xee, "behind the receive");
	ended_at_both(p);
}

/* The sender is told why: what programs look at that negotiate the sizes of their messages. */
void case_error_sender_of_a_message_too_long_gets_the_reason(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	receive_ok(&p->b, 1, 0, 100);
	send_ok(&p->a, 3, 0, 101, 0);
	expect(&p->a, NDX_REQUEST_SEND, 3, NDX_E_DATA_OVERRUN);
}

void case_error_sender_to_a_bad_receive_gets_the_reason(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_sge one;

	if (!p)
		return;
	one = sge(&p->b, 0, MESSAGE);
	one.token = wrong_token(&p->b);
	check_status(c, ndx_qp_receive(p->b.qp, tag(&p->b, 1), &one, 1), NDX_OK, "receive");
	send_ok(&p->a, 2, 0, MESSAGE, 0);
	expect(&p->a, NDX_REQUEST_SEND, 2, NDX_E_REMOTE_ERROR);
}

/* ---- remote memory ---- */

static void is_remote_violation(struct side *s, enum ndx_status status)
{
	if (has_capability(s, NDX_CAP_REMOTE_ACCESS_STATUS))
		check_status(s->c, status, NDX_E_ACCESS_VIOLATION, "remote violation");
	else
		reason_or_cancelled(s->c, status, NDX_E_REMOTE_ERROR, "remote violation");
}

static void remote_violation(struct pair *p, enum ndx_request_type type, enum ndx_status posted)
{
	check_status(p->c, posted, NDX_OK, "post");
	send_ok(&p->a, 5, 0, 8, 0);
	check_status(p->c, ndx_qp_receive(p->b.qp, tag(&p->b, 6), NULL, 0), NDX_OK, "receive");
	is_remote_violation(&p->a, failure_of(&p->a, type, 1));
	expect(&p->a, NDX_REQUEST_SEND, 5, NDX_E_CANCELED);
	expect(&p->b, NDX_REQUEST_RECEIVE, 6, NDX_E_CANCELED);
	ended_at_both(p);
}

/* Write and read `length` bytes at `offset` of the peer's buffer, each over a connection of its
 * own. */
static void both_violate(struct check *c, uint32_t access, long offset, size_t length,
                         uint32_t token_error, bool writes, bool reads)
{
	for (unsigned round = 0; round < 2; round++) {
		struct side_attr attr[2];
		struct ndx_sge one;
		struct pair *p;
		uint64_t to;
		uint32_t token;

		if (check_over(c) || !(round ? reads : writes))
			continue;
		side_attr_init(&attr[0]);
		attr[1] = attr[0];
		attr[1].access = access;
		p = pair_up_with(c, &attr[0], &attr[1]);
		if (!p)
			return;
		memset(p->a.buf, 0xee, attr[0].buffer);
		memset(p->b.buf, 0xee, attr[1].buffer);
		memset(p->a.buf, 0x11, MESSAGE);
		one = sge(&p->a, round ? 4096 : 0, length);
		to = (uint64_t)(uintptr_t)p->b.buf + (uint64_t)offset;
		token = ndx_mr_get_remote_token(p->b.mr) ^ token_error;
		check_note(c, "%s", round ? "read" : "write");
		if (round)
			remote_violation(
				p, NDX_REQUEST_READ,
				ndx_qp_read(p->a.qp, tag(&p->a, 1), &one, 1, to, token, 0));
		else
			remote_violation(
				p, NDX_REQUEST_WRITE,
				ndx_qp_write(p->a.qp, tag(&p->a, 1), &one, 1, to, token, 0));
		bytes_are(c, p->b.buf, attr[1].buffer, 0xee, "the peer's memory");
		bytes_are(c, p->a.buf + 4096, attr[0].buffer - 4096, 0xee, "the reader's memory");
		pair_close_all(c);
	}
}

static const uint32_t all_rights = NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ;

void case_error_remote_token_wrong(struct check *c)
{
	both_violate(c, all_rights, 0, MESSAGE, 0x13572468, true, true);
}

void case_error_remote_address_in_front_of_the_region(struct check *c)
{
	both_violate(c, all_rights, -8, MESSAGE, 0, true, true);
}

void case_error_remote_address_behind_the_region(struct check *c)
{
	both_violate(c, all_rights, 64 * 1024 - 32, MESSAGE, 0, true, true);
	both_violate(c, all_rights, 1 << 30, MESSAGE, 0, true, true);
}

/* The end of what is asked for lies in front of its beginning. */
void case_error_remote_address_that_wraps_around(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_sge one;

	if (!p)
		return;
	one = sge(&p->a, 0, MESSAGE);
	memset(p->b.buf, 0xee, p->b.attr.buffer);
	remote_violation(p, NDX_REQUEST_WRITE,
	                 ndx_qp_write(p->a.qp, tag(&p->a, 1), &one, 1, UINT64_MAX - 7,
	                              ndx_mr_get_remote_token(p->b.mr), 0));
	bytes_are(c, p->b.buf, p->b.attr.buffer, 0xee, "the peer's memory");
}

void case_error_remote_write_without_the_right(struct check *c)
{
	both_violate(c, NDX_MR_ALLOW_REMOTE_READ, 0, MESSAGE, 0, true, false);
	both_violate(c, NDX_MR_ALLOW_LOCAL_WRITE, 0, MESSAGE, 0, true, false);
}

void case_error_remote_read_without_the_right(struct check *c)
{
	both_violate(c, NDX_MR_ALLOW_REMOTE_WRITE, 0, MESSAGE, 0, false, true);
	both_violate(c, NDX_MR_ALLOW_LOCAL_WRITE, 0, MESSAGE, 0, false, true);
}

void case_error_both_tokens_wrong_is_one_failure(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_sge one;

	if (!p)
		return;
	one = sge(&p->a, 0, MESSAGE);
	one.token = wrong_token(&p->a);
	check_status(c,
	             ndx_qp_write(p->a.qp, tag(&p->a, 1), &one, 1, (uint64_t)(uintptr_t)p->b.buf,
	                          ndx_mr_get_remote_token(p->b.mr) ^ 0x13572468, 0),
	             NDX_OK, "write");
	/* either error would do, and both have this name; where only the own one can be told, that
	 */
	expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_E_ACCESS_VIOLATION);
	expect_silence(&p->a);
	ended_at_both(p);
}

void case_error_revoked_memory_is_out_of_the_peers_reach(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	uint64_t to;
	uint32_t token;
	struct ndx_overlapped ov;
	struct ndx_sge one;

	if (!p)
		return;
	ndx_overlapped_init(&ov);
	to = (uint64_t)(uintptr_t)p->b.buf;
	token = ndx_mr_get_remote_token(p->b.mr);
	write_ok(&p->a, 0, 0, MESSAGE, &p->b, 0, 0);
	expect(&p->a, NDX_REQUEST_WRITE, 0, NDX_OK);
	check_async(c, ndx_mr_deregister(p->b.mr, &ov), &ov, NDX_OK, "deregister");
	memset(p->b.buf, 0xee, p->b.attr.buffer);
	memset(p->a.buf, 0x11, MESSAGE);
	one = sge(&p->a, 0, MESSAGE);
	check_status(c, ndx_qp_write(p->a.qp, tag(&p->a, 1), &one, 1, to, token, 0), NDX_OK,
	             "write");
	is_remote_violation(&p->a, failure_of(&p->a, NDX_REQUEST_WRITE, 1));
	bytes_are(c, p->b.buf, p->b.attr.buffer, 0xee, "memory that was deregistered");
	ended_at_both(p);
}

void case_error_deregistered_while_the_peer_writes(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	struct ndx_result result;
	size_t posted = 0;
	bool refused = false;

	side_attr_init(&attr);
	attr.buffer = (size_t)1 << 20;
	p = pair_up(c, &attr);
	if (!p)
		return;
	memset(p->a.buf, 0x11, attr.buffer);
	while (posted < 32 && write_ok(&p->a, posted, 0, attr.buffer, &p->b, 0, 0))
		posted++;
	side_close_mr(&p->b);
	memset(p->b.buf, 0xee, attr.buffer); /* from here on it is ours alone */
	/* a first part may have been served; one is refused; the rest is cancelled */
	for (size_t i = 0; i < posted && take(&p->a, p->a.cq, &result); i++) {
		result_is(&p->a, &result, NDX_REQUEST_WRITE, i, result.status);
		if (refused)
			check_status(c, result.status, NDX_E_CANCELED,
			             "write behind a refused one");
		else if (result.status != NDX_OK)
			is_remote_violation(&p->a, result.status);
		refused = refused || result.status != NDX_OK;
	}
	expect_silence(&p->a);
	bytes_are(c, p->b.buf, attr.buffer, 0xee, "memory after mr_close");
}

void case_error_no_bytes_need_no_right(struct check *c)
{
	struct side_attr attr[2];
	struct pair *p;

	side_attr_init(&attr[0]);
	attr[1] = attr[0];
	attr[1].access = NDX_MR_ALLOW_LOCAL_WRITE;
	p = pair_up_with(c, &attr[0], &attr[1]);
	if (!p)
		return;
	check_status(c, ndx_qp_write(p->a.qp, tag(&p->a, 1), NULL, 0, 42, 0x13572468, 0), NDX_OK,
	             "write of no bytes");
	check_status(c, ndx_qp_read(p->a.qp, tag(&p->a, 2), NULL, 0, 42, 0x13572468, 0), NDX_OK,
	             "read of no bytes");
	expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
	expect(&p->a, NDX_REQUEST_READ, 2, NDX_OK);
	message_passes(&p->a, &p->b, MESSAGE);
}

/* ---- no receive ---- */

void case_error_no_receive_in_time(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	uint64_t start;
	uint64_t took;

	side_attr_init(&attr);
	attr.no_receive_timeout_ms = SHORT_MS;
	p = pair_up(c, &attr);
	if (!p)
		return;
	start = now_ms();
	sends_ok(&p->a, 1, 3, 0, MESSAGE);
	expect(&p->a, NDX_REQUEST_SEND, 1, NDX_E_IO_TIMEOUT);
	took = now_ms() - start;
	check_that(c, took >= SHORT_MS - 30 && took < SHORT_MS + WAIT_MS / 2,
	           "with a time-out of %d ms it took %u", SHORT_MS, (unsigned)took);
	expect_run(&p->a, NDX_REQUEST_SEND, 2, 2, NDX_E_CANCELED);
	ended_at_both(p);
}

void case_error_no_receive_in_the_default_time(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	uint64_t start = now_ms();

	if (!p)
		return;
	send_ok(&p->a, 1, 0, MESSAGE, 0);
	expect(&p->a, NDX_REQUEST_SEND, 1, NDX_E_IO_TIMEOUT);
	check_that(c, now_ms() - start >= 3500 && now_ms() - start < 4000 + WAIT_MS / 2,
	           "the default of 4 s took %u ms", (unsigned)(now_ms() - start));
}

void case_error_late_receive_within_the_time(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.no_receive_timeout_ms = 20 * SHORT_MS;
	p = pair_up(c, &attr);
	if (!p)
		return;
	send_ok(&p->a, 1, 0, MESSAGE, 0);
	expect_silence(&p->a);
	receive_ok(&p->b, 2, 0, MESSAGE);
	expect(&p->a, NDX_REQUEST_SEND, 1, NDX_OK);
	expect_received(&p->b, 2, MESSAGE);
	message_passes(&p->b, &p->a, MESSAGE);
}

void case_error_waiting_for_a_receive_without_limit(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	uint64_t until = now_ms() + 5000; /* beyond the default */

	side_attr_init(&attr);
	attr.no_receive_timeout_ms = NDX_INFINITE;
	p = pair_up(c, &attr);
	if (!p)
		return;
	side_start_notify(&p->a);
	send_ok(&p->a, 1, 0, MESSAGE, 0);
	while (now_ms() < until && check_pending(c, &p->a.notify, "end of the connection"))
		continue;
	receive_ok(&p->b, 2, 0, MESSAGE);
	expect(&p->a, NDX_REQUEST_SEND, 1, NDX_OK);
	expect_received(&p->b, 2, MESSAGE);
}

void case_error_rnr_sends_do_not_block_the_rest(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	side_attr_init(&attr);
	attr.no_receive_timeout_ms = NDX_INFINITE;
	attr.drain_ms = 30;
	p = pair_up(c, &attr);
	if (!p)
		return;
	send_ok(&p->a, 1, 0, MESSAGE, 0);
	/* the other direction and its reads and writes go on */
	receive_ok(&p->a, 2, 0, MESSAGE);
	write_ok(&p->b, 3, 0, MESSAGE, &p->a, 1024, 0);
	read_ok(&p->b, 4, 4096, MESSAGE, &p->a, 1024, 0);
	send_ok(&p->b, 5, 0, MESSAGE, 0);
	expect(&p->b, NDX_REQUEST_WRITE, 3, NDX_OK);
	expect(&p->b, NDX_REQUEST_READ, 4, NDX_OK);
	expect(&p->b, NDX_REQUEST_SEND, 5, NDX_OK);
	expect_received(&p->a, 2, MESSAGE);
}
