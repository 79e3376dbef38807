/* SPDX-License-Identifier: BSD-2-Clause */
/* registration.*: what rights permit, how long tokens live, and memory that is let go while in use.
 */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "probe.h"
#include "traffic.h"

enum { MESSAGE = 64, BIG = 1024 * 1024, BIGS = 12 };

static struct ndx_mr *region(struct side *s, void *at, size_t length, uint32_t flags)
{
	struct ndx_mr *mr = NULL;

	if (!check_over(s->c))
		check_status(s->c, ndx_mr_register_new(s->adapter, at, length, flags, &mr), NDX_OK,
		             "mr_register_new");
	return mr;
}

static bool deregisters(struct check *c, struct ndx_mr *mr)
{
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	return !check_over(c) &&
	       check_async(c, ndx_mr_deregister(mr, &ov), &ov, NDX_OK, "deregister");
}

/* The next result of the queue; it must be a failure. */
static enum ndx_status failure(struct side *s, struct ndx_cq *cq, enum ndx_request_type type,
                               size_t number)
{
	struct ndx_result result = {.status = NDX_PENDING};

	if (take(s, cq, &result))
		check_that(s->c, result.status < 0, "%s: a %s that cannot work completed %s",
		           s->name, request_name(type), ndx_status_name(result.status));
	result_is(s, &result, type, number, result.status);
	return result.status;
}

/* One that names memory of the peer which it may not access. */
static void remote_failure(struct side *s, enum ndx_request_type type, size_t number)
{
	enum ndx_status got = failure(s, s->cq, type, number);

	if (has_capability(s, NDX_CAP_REMOTE_ACCESS_STATUS))
		check_status(s->c, got, NDX_E_ACCESS_VIOLATION, "remote violation");
}

static enum ndx_status write_by(struct side *s, size_t number, size_t length, const void *to,
                                uint32_t token)
{
	struct ndx_sge one = sge(s, 0, length);

	return ndx_qp_write(s->qp, tag(s, number), &one, 1, (uint64_t)(uintptr_t)to, token, 0);
}

static enum ndx_status read_by(struct side *s, size_t number, size_t length, const void *from,
                               uint32_t token)
{
	struct ndx_sge one = sge(s, 0, length);

	return ndx_qp_read(s->qp, tag(s, number), &one, 1, (uint64_t)(uintptr_t)from, token, 0);
}

/* ---- rights ---- */

void case_registration_rights_of_two_regions_stand_apart(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_mr *reads;
	struct ndx_mr *writes;

	if (!p)
		return;
	reads = region(&p->b, p->b.buf, MESSAGE, NDX_MR_ALLOW_REMOTE_READ);
	writes = region(&p->b, p->b.buf, MESSAGE, NDX_MR_ALLOW_REMOTE_WRITE);
	if (!check_over(c)) {
		memset(p->a.buf, 0x11, MESSAGE);
		check_status(c,
		             write_by(&p->a, 1, MESSAGE, p->b.buf, ndx_mr_get_remote_token(writes)),
		             NDX_OK, "write");
		expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
		memset(p->a.buf, 0x22, MESSAGE);
		check_status(c,
		             read_by(&p->a, 2, MESSAGE, p->b.buf, ndx_mr_get_remote_token(reads)),
		             NDX_OK, "read");
		expect(&p->a, NDX_REQUEST_READ, 2, NDX_OK);
		bytes_are(c, p->a.buf, MESSAGE, 0x11, "what was read");
		memset(p->a.buf, 0x33, MESSAGE);
		check_status(c,
		             write_by(&p->a, 3, MESSAGE, p->b.buf, ndx_mr_get_remote_token(reads)),
		             NDX_OK, "write by the token for reads");
		remote_failure(&p->a, NDX_REQUEST_WRITE, 3);
		bytes_are(c, p->b.buf, MESSAGE, 0x11, "memory behind the token for reads");
	}
	pair_close_all(c);
	ndx_mr_close(reads);
	ndx_mr_close(writes);
}

void case_registration_token_for_writes_is_not_for_reads(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_mr *writes;

	if (!p)
		return;
	writes = region(&p->b, p->b.buf, MESSAGE, NDX_MR_ALLOW_REMOTE_WRITE);
	if (writes) {
		memset(p->a.buf, 0xee, MESSAGE);
		check_status(c,
		             read_by(&p->a, 1, MESSAGE, p->b.buf, ndx_mr_get_remote_token(writes)),
		             NDX_OK, "read by the token for writes");
		remote_failure(&p->a, NDX_REQUEST_READ, 1);
		bytes_are(c, p->a.buf, MESSAGE, 0xee, "the reader's memory");
	}
	pair_close_all(c);
	ndx_mr_close(writes);
}

/* Read into memory of A that was registered with these rights. */
static void reads_into(struct check *c, uint32_t rights, enum ndx_status want)
{
	struct pair *p = pair_up(c, NULL);
	uint8_t sink[MESSAGE];
	struct ndx_sge one = {.buffer = sink, .length = MESSAGE};
	struct ndx_mr *mr;

	if (!p)
		return;
	memset(sink, 0xee, MESSAGE);
	memset(p->b.buf, 0x11, MESSAGE);
	mr = region(&p->a, sink, MESSAGE, rights);
	if (mr) {
		one.token = ndx_mr_get_local_token(mr);
		check_status(c,
		             ndx_qp_read(p->a.qp, tag(&p->a, 1), &one, 1, (uintptr_t)p->b.buf,
		                         ndx_mr_get_remote_token(p->b.mr), 0),
		             NDX_OK, "read");
		expect(&p->a, NDX_REQUEST_READ, 1, want);
		bytes_are(c, sink, MESSAGE, want == NDX_OK ? 0x11 : 0xee, "sink of a read");
	}
	pair_close_all(c);
	ndx_mr_close(mr);
}

void case_registration_reads_need_a_sink(struct check *c)
{
	reads_into(c, NDX_MR_RDMA_READ_SINK, NDX_OK);
	reads_into(c, NDX_MR_ALLOW_LOCAL_WRITE, NDX_OK);
	reads_into(c, NDX_MR_ALLOW_REMOTE_WRITE, NDX_OK);
	reads_into(c, 0, NDX_E_ACCESS_VIOLATION);
	reads_into(c, NDX_MR_ALLOW_REMOTE_READ, NDX_E_ACCESS_VIOLATION);
}

void case_registration_sending_needs_no_right(struct check *c)
{
	struct side_attr attr[2];
	struct pair *p;

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[0].access = 0;
	p = pair_up_with(c, &attr[0], &attr[1]);
	if (!p)
		return;
	message_passes(&p->a, &p->b, MESSAGE);
	pattern_fill(p->a.buf, MESSAGE, 6);
	write_ok(&p->a, 1, 0, MESSAGE, &p->b, 1024, 0);
	expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
	pattern_there(c, p->b.buf + 1024, MESSAGE, 6, "written memory");
}

/* ---- how long a token lives ---- */

void case_registration_local_token_ends_with_it(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_sge one;

	if (!p)
		return;
	one = sge(&p->a, 0, MESSAGE);
	memset(p->b.buf, 0xee, MESSAGE);
	receive_ok(&p->b, 1, 0, MESSAGE);
	deregisters(c, p->a.mr);
	check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 2), &one, 1, 0), NDX_OK,
	             "send by a token that ended");
	expect(&p->a, NDX_REQUEST_SEND, 2, NDX_E_ACCESS_VIOLATION);
	expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_E_CANCELED);
	bytes_are(c, p->b.buf, MESSAGE, 0xee, "the peer's receive");
}

/* The same memory, registered anew: the old tokens stay dead. */
static void old_token_stays_dead(struct check *c, bool local)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_overlapped ov;
	struct ndx_sge one;
	struct side *owner;
	uint32_t token;

	if (!p)
		return;
	ndx_overlapped_init(&ov);
	owner = local ? &p->a : &p->b;
	one = sge(&p->a, 0, MESSAGE);
	token = ndx_mr_get_remote_token(p->b.mr);
	memset(p->b.buf, 0xee, MESSAGE);
	deregisters(c, owner->mr);
	check_async(
		c,
		ndx_mr_register(owner->mr, owner->buf, owner->attr.buffer, owner->attr.access, &ov),
		&ov, NDX_OK, "register again");
	write_ok(&p->a, 1, 0, MESSAGE, &p->b, 4096, 0); /* by the new ones */
	expect(&p->a, NDX_REQUEST_WRITE, 1, NDX_OK);
	if (check_over(c))
		return;
	check_status(c,
	             ndx_qp_write(p->a.qp, tag(&p->a, 2), &one, 1, (uintptr_t)p->b.buf, token, 0),
	             NDX_OK, "write by an old token");
	if (local)
		expect(&p->a, NDX_REQUEST_WRITE, 2, NDX_E_ACCESS_VIOLATION);
	else
		remote_failure(&p->a, NDX_REQUEST_WRITE, 2);
	bytes_are(c, p->b.buf, MESSAGE, 0xee, "memory behind an old token");
}

void case_registration_old_tokens_stay_dead(struct check *c)
{
	old_token_stays_dead(c, true);
	old_token_stays_dead(c, false);
}

void case_registration_closing_revokes(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	uint32_t token;

	if (!p)
		return;
	token = ndx_mr_get_remote_token(p->b.mr);
	read_ok(&p->a, 1, 0, MESSAGE, &p->b, 0, 0);
	expect(&p->a, NDX_REQUEST_READ, 1, NDX_OK);
	side_close_mr(&p->b);
	memset(p->b.buf, 0x77, p->b.attr.buffer);
	memset(p->a.buf, 0xee, MESSAGE);
	check_status(c, read_by(&p->a, 2, MESSAGE, p->b.buf, token), NDX_OK,
	             "read of a closed region");
	remote_failure(&p->a, NDX_REQUEST_READ, 2);
	bytes_are(c, p->a.buf, MESSAGE, 0xee, "the reader's memory");
}

/* ---- other adapters ---- */

void case_registration_local_token_of_another_adapter(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_adapter *other = NULL;
	struct ndx_mr *mr = NULL;
	uint8_t memory[MESSAGE] = {0};
	struct ndx_sge one = {.buffer = memory, .length = MESSAGE};

	if (!p ||
	    !check_status(c, ndx_adapter_open(c->world->places[0].uri, &other), NDX_OK, "open"))
		return;
	check_status(c, ndx_mr_register_new(other, memory, MESSAGE, NDX_MR_ALLOW_REMOTE_WRITE, &mr),
	             NDX_OK, "mr_register_new");
	if (mr) {
		one.token = ndx_mr_get_local_token(mr);
		receive_ok(&p->b, 1, 0, MESSAGE);
		check_status(c, ndx_qp_send(p->a.qp, tag(&p->a, 2), &one, 1, 0), NDX_OK,
		             "send by a token of another adapter");
		expect(&p->a, NDX_REQUEST_SEND, 2, NDX_E_ACCESS_VIOLATION);
	}
	pair_close_all(c);
	ndx_mr_close(mr);
	ndx_adapter_close(other);
}

void case_registration_remote_token_of_another_adapter(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_adapter *other = NULL;
	struct ndx_mr *mr = NULL;
	uint8_t memory[MESSAGE];

	if (!p ||
	    !check_status(c, ndx_adapter_open(c->world->places[1].uri, &other), NDX_OK, "open"))
		return;
	memset(memory, 0xee, MESSAGE);
	check_status(c, ndx_mr_register_new(other, memory, MESSAGE, NDX_MR_ALLOW_REMOTE_WRITE, &mr),
	             NDX_OK, "mr_register_new");
	if (mr) {
		check_status(c, write_by(&p->a, 1, MESSAGE, memory, ndx_mr_get_remote_token(mr)),
		             NDX_OK, "write by a token of another adapter");
		remote_failure(&p->a, NDX_REQUEST_WRITE, 1);
		bytes_are(c, memory, MESSAGE, 0xee, "memory of another adapter");
	}
	pair_close_all(c);
	ndx_mr_close(mr);
	ndx_adapter_close(other);
}

/* ---- let go while in use: what then moves must not be what came afterwards ---- */

/* True if the region is gone; it may also be refused. */
static bool lets_go(struct check *c, struct ndx_mr *mr)
{
	struct ndx_overlapped ov;
	enum ndx_status got;

	if (check_over(c))
		return false;
	ndx_overlapped_init(&ov);
	got = check_result_of(c, ndx_mr_deregister(mr, &ov), &ov);
	check_either(c, got, NDX_OK, NDX_E_DEVICE_BUSY, "deregister of memory in use");
	return got == NDX_OK && !check_over(c);
}

void case_registration_deregistered_under_a_receive(struct check *c)
{
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	memset(p->a.buf, 0x11, MESSAGE);
	receive_ok(&p->b, 1, 0, MESSAGE);
	if (lets_go(c, p->b.mr)) {
		memset(p->b.buf, 0xee, MESSAGE);
		send_ok(&p->a, 2, 0, MESSAGE, 0);
		(void)failure(&p->b, p->b.rcq, NDX_REQUEST_RECEIVE, 1);
		(void)failure(&p->a, p->a.cq, NDX_REQUEST_SEND, 2);
		bytes_are(c, p->b.buf, MESSAGE, 0xee, "memory that was let go");
	} else {
		send_ok(&p->a, 2, 0, MESSAGE, 0);
		expect_received(&p->b, 1, MESSAGE);
	}
}

void case_registration_deregistered_under_a_send(struct check *c)
{
	struct pair *p = pair_up(c, NULL);
	struct ndx_result result = {.status = NDX_PENDING};
	bool gone;

	if (!p)
		return;
	memset(p->a.buf, 0x11, MESSAGE);
	memset(p->b.buf, 0x11, MESSAGE);
	send_ok(&p->a, 2, 0, MESSAGE, 0); /* nothing is there to receive it */
	expect_silence(&p->a);
	gone = lets_go(c, p->a.mr);
	if (gone)
		memset(p->a.buf, 0xee, MESSAGE);
	receive_ok(&p->b, 1, 0, MESSAGE);
	(void)take(&p->a, p->a.cq, &result);
	check_that(c, gone || result.status == NDX_OK, "refused to let go, but the send fails: %s",
	           ndx_status_name(result.status));
	if (take(&p->b, p->b.rcq, &result) && result.status == NDX_OK)
		check_that(c, result.bytes_transferred == MESSAGE, "%u bytes came",
		           result.bytes_transferred);
	if (!check_over(c))
		bytes_are(c, p->b.buf, MESSAGE, 0x11, "the peer's receive");
}

/* Two sides with large buffers. */
static struct pair *pair_for_bulk(struct check *c)
{
	struct side_attr attr;

	side_attr_init(&attr);
	attr.buffer = (size_t)BIG * BIGS;
	return pair_up(c, &attr);
}

/* Takes results of A until all are there; how many were good. */
static size_t bulk_results(struct pair *p, enum ndx_request_type type, size_t posted)
{
	struct ndx_result result;
	size_t good = 0;

	for (size_t i = 0; i < posted && take(&p->a, p->a.cq, &result); i++) {
		result_is(&p->a, &result, type, i, result.status);
		check_that(p->c, result.status != NDX_OK || good == i,
		           "a %s succeeded behind one that failed", request_name(type));
		good += result.status == NDX_OK;
	}
	expect_silence(&p->a);
	return good;
}

/* Reads of A in flight; how many. */
static size_t begin_reads(struct pair *p)
{
	size_t posted = 0;

	while (posted < BIGS && read_ok(&p->a, posted, posted * BIG, BIG, &p->b, posted * BIG, 0))
		posted++;
	return posted;
}

/* Reads in flight when the one side or the other lets its memory go. */
static void deregistered_under_reads(struct check *c, bool at_source)
{
	struct pair *p = pair_for_bulk(c);
	size_t posted;
	size_t good;
	bool gone;

	if (!p)
		return;
	memset(p->a.buf, 0xcc, (size_t)BIG * BIGS);
	memset(p->b.buf, 0x11, (size_t)BIG * BIGS);
	posted = begin_reads(p);
	gone = lets_go(c, at_source ? p->b.mr : p->a.mr);
	if (gone)
		memset(at_source ? p->b.buf : p->a.buf, 0xee, (size_t)BIG * BIGS);
	good = bulk_results(p, NDX_REQUEST_READ, posted);
	if (check_over(c))
		return;
	check_that(c, gone || good == posted, "refused to let go, but reads fail");
	if (gone && !at_source)
		bytes_are(c, p->a.buf, (size_t)BIG * BIGS, 0xee, "sink that was let go");
	else
		bytes_are(c, p->a.buf, good * BIG, 0x11, "what good reads brought");
}

void case_registration_source_deregistered_under_reads(struct check *c)
{
	deregistered_under_reads(c, true);
}

void case_registration_sink_deregistered_under_reads(struct check *c)
{
	deregistered_under_reads(c, false);
}

void case_registration_source_deregistered_under_writes(struct check *c)
{
	struct pair *p = pair_for_bulk(c);
	size_t posted = 0;
	size_t good;
	bool gone;

	if (!p)
		return;
	memset(p->a.buf, 0x11, (size_t)BIG * BIGS);
	memset(p->b.buf, 0x11,
	       (size_t)BIG * BIGS); /* old and new are alike: nothing else may come */
	while (posted < BIGS && write_ok(&p->a, posted, posted * BIG, BIG, &p->b, posted * BIG, 0))
		posted++;
	gone = lets_go(c, p->a.mr);
	if (gone)
		memset(p->a.buf, 0xee, (size_t)BIG * BIGS);
	good = bulk_results(p, NDX_REQUEST_WRITE, posted);
	check_that(c, gone || good == posted, "refused to let go, but writes fail");
	if (!check_over(c))
		bytes_are(c, p->b.buf, (size_t)BIG * BIGS, 0x11, "target of writes");
}

void case_registration_target_deregistered_under_writes(struct check *c)
{
	struct pair *p = pair_for_bulk(c);
	size_t posted = 0;

	if (!p)
		return;
	memset(p->a.buf, 0x11, (size_t)BIG * BIGS);
	while (posted < BIGS && write_ok(&p->a, posted, posted * BIG, BIG, &p->b, posted * BIG, 0))
		posted++;
	if (!lets_go(c, p->b.mr))
		return;
	memset(p->b.buf, 0xee, (size_t)BIG * BIGS);
	(void)bulk_results(p, NDX_REQUEST_WRITE, posted);
	if (!check_over(c))
		bytes_are(c, p->b.buf, (size_t)BIG * BIGS, 0xee, "target that was let go");
}

void case_registration_cancel_ends_a_deregistration(struct check *c)
{
	struct pair *p = pair_for_bulk(c);
	struct ndx_overlapped ov;
	size_t posted;

	ndx_overlapped_init(&ov);
	if (!p)
		return;
	posted = begin_reads(p);
	check_status(c, ndx_mr_deregister(p->b.mr, &ov), NDX_PENDING, "deregister");
	check_status(c, ndx_mr_cancel(p->b.mr), NDX_OK, "mr_cancel");
	check_either(c, ndx_overlapped_status(&ov), NDX_OK, NDX_E_CANCELED,
	             "deregister after its cancel");
	(void)bulk_results(p, NDX_REQUEST_READ, posted);
	pair_close_all(c);
}

void case_registration_close_ends_a_deregistration(struct check *c)
{
	struct pair *p = pair_for_bulk(c);
	struct probe one;
	size_t posted;

	if (!p || !probe_begin(&one, c, WAY_CALLBACK))
		return;
	posted = begin_reads(p);
	check_status(c, ndx_mr_deregister(p->b.mr, &one.ov), NDX_PENDING, "deregister");
	side_close_mr(&p->b);
	probe_has_ended(&one, NDX_OK, "deregister of a closed region");
	if (!check_over(c))
		memset(p->b.buf, 0xee, (size_t)BIG * BIGS);
	(void)bulk_results(p, NDX_REQUEST_READ, posted);
	pair_close_all(c);
	probe_end(&one);
}

static void close_region_of(struct probe *probe)
{
	struct side *s = probe->arg;

	side_close_mr(s);
	memset(s->buf, 0xee, (size_t)BIG * BIGS);
}

void case_registration_callback_closes_a_region_in_use(struct check *c)
{
	struct pair *p = pair_for_bulk(c);
	struct probe one;
	uint64_t start = now_ms();
	size_t posted;
	size_t good;

	if (!p || !probe_begin_then(&one, c, close_region_of, &p->b))
		return;
	memset(p->b.buf, 0x11, (size_t)BIG * BIGS);
	posted = begin_reads(p);
	check_status(c, ndx_cq_notify(p->b.cq, NDX_CQ_NOTIFY_ANY, &one.ov), NDX_PENDING,
	             "cq_notify");
	check_status(c, ndx_cq_cancel(p->b.cq), NDX_OK, "cq_cancel");
	probe_has_ended(&one, NDX_E_CANCELED, "cq_notify");
	good = bulk_results(p, NDX_REQUEST_READ, posted);
	if (!check_over(c))
		bytes_are(c, p->a.buf, good * BIG, 0x11, "what good reads brought");
	check_that(c, now_ms() - start < WAIT_MS, "it took %d ms", (int)(now_ms() - start));
	pair_close_all(c);
	probe_end(&one);
}
