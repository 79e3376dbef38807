/* SPDX-License-Identifier: BSD-2-Clause */
/* mw.*: what a window lets the peer do, its order among requests, and closing. B has the memory. */
#include <string.h>

#include "cases.h"
#include "traffic.h"
#include "window.h"

enum {
	START = 4096, /* of the window, in B's buffer */
	LENGTH = 1024,
	WINDOWS = 20,
};

/* One use of a window by the peer. */
struct attempt {
	const char *what;
	uint32_t region; /* rights of the region */
	uint32_t flags;  /* of the bind */
	size_t at;       /* in B's buffer */
	size_t length;
	bool write;
	bool works;
};

static void attempt(struct check *c, const struct attempt *t)
{
	struct pair *p = check_over(c) ? NULL : pair_with_region(c, t->region);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;

	if (mw && binds(&p->b, mw, START, LENGTH, t->flags)) {
		memset(p->a.buf, 0x11, p->a.attr.buffer);
		memset(p->b.buf, 0xee, p->b.attr.buffer);
		reaches(p, t->write, t->at, t->length, ndx_mw_get_remote_token(mw),
		        t->works ? NDX_OK : NDX_E_ACCESS_VIOLATION);
		check_note(c, "%s", t->what);
		if (t->works && t->write) {
			bytes_are(c, p->b.buf + t->at, t->length, 0x11, "what was written");
			memset(p->b.buf + t->at, 0xee, t->length);
		} else if (t->works) {
			bytes_are(c, p->a.buf, t->length, 0xee, "what was read");
			memset(p->a.buf, 0x11, t->length);
		}
		bytes_are(c, p->a.buf, p->a.attr.buffer, 0x11, "the rest of the peer's memory");
		bytes_are(c, p->b.buf, p->b.attr.buffer, 0xee, "the rest of the owner's memory");
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

static void attempts(struct check *c, const struct attempt *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		attempt(c, &list[i]);
}

void case_mw_rights_are_its_own(struct check *c)
{
	static const struct attempt list[] = {
		{"write without the right, in a region with it", NDX_MR_ALLOW_REMOTE_WRITE,
	         NDX_OP_ALLOW_READ, START, LENGTH, true, false},
		{"read without the right, in a region with it",
	         NDX_MR_ALLOW_REMOTE_READ | NDX_MR_ALLOW_LOCAL_WRITE, NDX_OP_ALLOW_WRITE, START,
	         LENGTH, false, false},
		{"write in a region without remote rights", NDX_MR_ALLOW_LOCAL_WRITE,
	         NDX_OP_ALLOW_WRITE, START, LENGTH, true, true},
		{"read in a region without remote rights", NDX_MR_ALLOW_LOCAL_WRITE,
	         NDX_OP_ALLOW_READ, START, LENGTH, false, true},
		{"read in a region without any right", 0, NDX_OP_ALLOW_READ, START, LENGTH, false,
	         true},
		{"write to a window for both", NDX_MR_ALLOW_LOCAL_WRITE, WINDOW_BOTH, START, LENGTH,
	         true, true},
		{"read of a window for both", NDX_MR_ALLOW_LOCAL_WRITE, WINDOW_BOTH, START, LENGTH,
	         false, true},
	};

	attempts(c, list, sizeof(list) / sizeof(list[0]));
}

void case_mw_without_rights_grants_nothing(struct check *c)
{
	static const struct attempt list[] = {
		{"read", NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ, 0, START, LENGTH,
	         false, false},
		{"write", NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ, 0, START, LENGTH,
	         true, false},
		{"read of no bytes", NDX_MR_ALLOW_LOCAL_WRITE, 0, START, 0, false, true},
	};

	attempts(c, list, sizeof(list) / sizeof(list[0]));
}

void case_mw_outside_of_it_is_refused(struct check *c)
{
	const uint32_t all = NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ;
	const struct attempt list[] = {
		{"write one byte in front", all, WINDOW_BOTH, START - 1, LENGTH, true, false},
		{"write one byte behind", all, WINDOW_BOTH, START + 1, LENGTH, true, false},
		{"write of one byte more", all, WINDOW_BOTH, START, LENGTH + 1, true, false},
		{"write elsewhere in the region", all, WINDOW_BOTH, 0, 8, true, false},
		{"read one byte in front", all, WINDOW_BOTH, START - 1, 2, false, false},
		{"read just behind", all, WINDOW_BOTH, START + LENGTH, 1, false, false},
		{"read of one byte more", all, WINDOW_BOTH, START, LENGTH + 1, false, false},
		{"write of the last byte", all, WINDOW_BOTH, START + LENGTH - 1, 1, true, true},
		{"read of the last byte", all, WINDOW_BOTH, START + LENGTH - 1, 1, false, true},
		{"write of no bytes elsewhere", all, WINDOW_BOTH, 0, 0, true, true},
		{"read of no bytes elsewhere", all, WINDOW_BOTH, 60000, 0, false, true},
	};

	attempts(c, list, sizeof(list) / sizeof(list[0]));
}

void case_mw_moves_just_the_bytes_asked_for(struct check *c)
{
	struct pair *p = pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;

	if (mw && binds(&p->b, mw, START, LENGTH, WINDOW_BOTH)) {
		memset(p->b.buf, 0xee, p->b.attr.buffer);
		memset(p->a.buf, 0x11, 16);
		reaches(p, true, START + 8, 16, ndx_mw_get_remote_token(mw), NDX_OK);
		bytes_are(c, p->b.buf, START + 8, 0xee, "in front of a write");
		bytes_are(c, p->b.buf + START + 8, 16, 0x11, "what was written");
		bytes_are(c, p->b.buf + START + 24, p->b.attr.buffer - START - 24, 0xee,
		          "behind a write");
		memset(p->a.buf, 0x22, 64);
		reaches(p, false, START + 8, 16, ndx_mw_get_remote_token(mw), NDX_OK);
		bytes_are(c, p->a.buf, 16, 0x11, "what was read");
		bytes_are(c, p->a.buf + 16, 48, 0x22, "behind what was read");
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_windows_may_overlap(struct check *c)
{
	struct pair *p = pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
	struct ndx_mw *mw[WINDOWS] = {NULL};
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	for (size_t i = 0; p && i < WINDOWS; i++) {
		mw[i] = window_open(&p->b);
		if (mw[i])
			binds(&p->b, mw[i], START + i * 16, LENGTH,
			      i % 2 ? NDX_OP_ALLOW_READ : NDX_OP_ALLOW_WRITE);
	}
	for (size_t i = 0; p && i < WINDOWS && !check_over(c); i++)
		reaches(p, i % 2 == 0, START + i * 16, LENGTH, ndx_mw_get_remote_token(mw[i]),
		        NDX_OK);
	for (size_t i = 0; p && i < WINDOWS && !check_over(c); i++) {
		check_status(c, ndx_mr_deregister(p->b.mr, &ov), NDX_E_DEVICE_BUSY,
		             "deregister with windows");
		check_status(c, ndx_qp_invalidate(p->b.qp, tag(&p->b, i), mw[i], 0), NDX_OK,
		             "invalidate");
		expect(&p->b, NDX_REQUEST_INVALIDATE, i, NDX_OK);
	}
	if (p && !check_over(c))
		check_async(c, ndx_mr_deregister(p->b.mr, &ov), &ov, NDX_OK,
		            "deregister without windows");
	pair_close_all(c);
	for (size_t i = 0; i < WINDOWS; i++)
		ndx_mw_close(mw[i]);
}

void case_mw_serves_one_connection(struct check *c)
{
	struct pair *p = pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
	struct pair *q = p ? pair_open_on(p, NULL, NULL) : NULL;
	struct ndx_mw *mw = q ? window_open(&p->b) : NULL;
	struct ndx_sge one;

	if (mw && pair_connect(q) && binds(&p->b, mw, START, LENGTH, WINDOW_BOTH)) {
		one = sge(&q->a, 0, 64);
		memset(p->b.buf, 0xee, p->b.attr.buffer);
		check_status(c,
		             ndx_qp_write(q->a.qp, tag(&q->a, 1), &one, 1,
		                          (uintptr_t)(p->b.buf + START),
		                          ndx_mw_get_remote_token(mw), 0),
		             NDX_OK, "write over another connection");
		expect(&q->a, NDX_REQUEST_WRITE, 1, NDX_E_ACCESS_VIOLATION);
		bytes_are(c, p->b.buf, p->b.attr.buffer, 0xee, "memory behind the window");
		reaches(p, true, START, LENGTH, ndx_mw_get_remote_token(mw), NDX_OK);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_another_queue_pair_may_bind_it_afterwards(struct check *c)
{
	struct pair *p = pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
	struct pair *q = p ? pair_open_on(p, NULL, NULL) : NULL;
	struct ndx_mw *mw = q ? window_open(&p->b) : NULL;

	if (mw && pair_connect(q) && binds(&p->b, mw, START, LENGTH, WINDOW_BOTH)) {
		check_status(c, ndx_qp_invalidate(p->b.qp, tag(&p->b, 1), mw, 0), NDX_OK,
		             "invalidate");
		expect(&p->b, NDX_REQUEST_INVALIDATE, 1, NDX_OK);
		binds(&q->b, mw, START, LENGTH, WINDOW_BOTH);
		reaches(q, true, START, LENGTH, ndx_mw_get_remote_token(mw), NDX_OK);
		reaches(q, false, START, LENGTH, ndx_mw_get_remote_token(mw), NDX_OK);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

/* ---- among other requests ---- */

void case_mw_requests_complete_in_order(struct check *c)
{
	struct pair *p = pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;

	if (mw) {
		/* all wait for the first: its receive comes last */
		send_ok(&p->b, 1, 0, 8, 0);
		check_status(c, bind_raw(&p->b, 2, mw, START, LENGTH, WINDOW_BOTH), NDX_OK, "bind");
		send_ok(&p->b, 3, 0, 8, 0);
		check_status(c, ndx_qp_invalidate(p->b.qp, tag(&p->b, 4), mw, NDX_OP_READ_FENCE),
		             NDX_OK, "invalidate");
		check_status(c, bind_raw(&p->b, 5, mw, START, 64, NDX_OP_ALLOW_READ), NDX_OK,
		             "bind behind the invalidate");
		expect_silence(&p->b);
		receives_ok(&p->a, 10, 2, 0, 8);
		expect(&p->b, NDX_REQUEST_SEND, 1, NDX_OK);
		expect(&p->b, NDX_REQUEST_BIND, 2, NDX_OK);
		expect(&p->b, NDX_REQUEST_SEND, 3, NDX_OK);
		expect(&p->b, NDX_REQUEST_INVALIDATE, 4, NDX_OK);
		expect(&p->b, NDX_REQUEST_BIND, 5, NDX_OK);
		expect_run(&p->a, NDX_REQUEST_RECEIVE, 10, 2, NDX_OK);
		reaches(p, false, START, 64, ndx_mw_get_remote_token(mw), NDX_OK);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_silent_requests_have_no_result(struct check *c)
{
	struct pair *p = pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;

	for (size_t i = 0; mw && i < 200 && !check_over(c); i++) {
		check_status(
			c,
			bind_raw(&p->b, 1, mw, START, LENGTH, WINDOW_BOTH | NDX_OP_SILENT_SUCCESS),
			NDX_OK, "silent bind");
		check_status(c,
		             ndx_qp_invalidate(p->b.qp, tag(&p->b, 2), mw, NDX_OP_SILENT_SUCCESS),
		             NDX_OK, "silent invalidate");
		if (i % 16 == 15) { /* a queue may need one aloud from time to time */
			receive_ok(&p->a, 1, 0, 8);
			send_ok(&p->b, i, 0, 8, 0);
			expect(&p->b, NDX_REQUEST_SEND, i, NDX_OK);
			expect_received(&p->a, 1, 8);
		}
	}
	if (mw)
		expect_silence(&p->b);
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_binds_take_slots_of_the_queue(struct check *c)
{
	struct side_attr attr[2];
	struct ndx_mw *mw[64] = {NULL};
	enum ndx_status got = NDX_OK;
	size_t bound = 0;
	struct pair *p;

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[1].initiator_depth = 4;
	p = pair_up_with(c, &attr[0], &attr[1]);
	for (size_t i = 0; p && i < 64 && got == NDX_OK && !check_over(c); i++) {
		mw[i] = window_open(&p->b);
		if (mw[i])
			got = bind_raw(&p->b, i, mw[i], START, LENGTH, WINDOW_BOTH);
		bound += got == NDX_OK;
	}
	check_status(c, got, NDX_E_NO_MORE_ENTRIES, "bind to a full queue");
	check_that(c, bound >= 4, "a queue of 4 was full after %zu", bound);
	if (p) {
		expect_run(&p->b, NDX_REQUEST_BIND, 0, bound, NDX_OK);
		binds(&p->b, mw[bound], START, LENGTH, WINDOW_BOTH);
		if (!check_over(c))
			reaches(p, true, START, LENGTH, ndx_mw_get_remote_token(mw[bound]), NDX_OK);
	}
	pair_close_all(c);
	for (size_t i = 0; i < 64; i++)
		ndx_mw_close(mw[i]);
}

/* ---- regions and closing ---- */

void case_mw_region_with_windows_is_busy(struct check *c)
{
	struct pair *p = pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	if (mw && binds(&p->b, mw, START, LENGTH, 0)) {
		check_status(c, ndx_mr_deregister(p->b.mr, &ov), NDX_E_DEVICE_BUSY,
		             "deregister with a window");
		check_that(c, ndx_mr_get_local_token(p->b.mr) != 0,
		           "a refused deregister took the token");
		message_passes(&p->a, &p->b, 64);
		check_status(c, ndx_qp_invalidate(p->b.qp, tag(&p->b, 1), mw, 0), NDX_OK,
		             "invalidate");
		expect(&p->b, NDX_REQUEST_INVALIDATE, 1, NDX_OK);
		check_async(c, ndx_mr_deregister(p->b.mr, &ov), &ov, NDX_OK,
		            "deregister without a window");
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

/* What is closed with a window bound; afterwards its token must be dead. */
static void closed_while_bound(struct check *c, bool region)
{
	struct pair *p = pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
	struct ndx_overlapped ov;
	uint32_t token;

	ndx_overlapped_init(&ov);
	if (mw && binds(&p->b, mw, START, LENGTH, WINDOW_BOTH)) {
		token = ndx_mw_get_remote_token(mw);
		reaches(p, true, START, LENGTH, token, NDX_OK);
		if (region) {
			side_close_mr(&p->b);
		} else {
			ndx_mw_close(mw);
			mw = NULL;
			check_async(c, ndx_mr_deregister(p->b.mr, &ov), &ov, NDX_OK,
			            "deregister after its window was closed");
		}
		memset(p->b.buf, 0xee, p->b.attr.buffer);
		reaches(p, true, START, LENGTH, token, NDX_E_ACCESS_VIOLATION);
		bytes_are(c, p->b.buf, p->b.attr.buffer, 0xee, "memory that was let go");
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_closed_while_bound(struct check *c)
{
	closed_while_bound(c, false);
}

void case_mw_region_closed_before_it(struct check *c)
{
	closed_while_bound(c, true);
}

void case_mw_queue_pair_closed_before_it(struct check *c)
{
	struct pair *p = pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	if (mw && binds(&p->b, mw, START, LENGTH, WINDOW_BOTH)) {
		side_close_connector(&p->b);
		side_close_qp(&p->b);
		ndx_mw_close(mw);
		mw = NULL;
		check_async(c, ndx_mr_deregister(p->b.mr, &ov), &ov, NDX_OK, "deregister");
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_closed_before_its_bind_begins(struct check *c)
{
	struct pair *p = pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
	struct ndx_result result = {.status = NDX_PENDING};
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	if (!mw)
		return;
	send_ok(&p->b, 1, 0, 8, 0); /* has no receive yet */
	check_status(c, bind_raw(&p->b, 2, mw, START, LENGTH, WINDOW_BOTH), NDX_OK, "bind");
	expect_silence(&p->b);
	ndx_mw_close(mw);
	receive_ok(&p->a, 3, 0, 8);
	expect(&p->b, NDX_REQUEST_SEND, 1, NDX_OK);
	if (take(&p->b, p->b.cq, &result))
		result_is(&p->b, &result, NDX_REQUEST_BIND, 2, result.status);
	check_that(c, result.status != NDX_OK, "a window that was closed could be bound");
	expect_silence(&p->b);
	if (!check_over(c))
		check_async(c, ndx_mr_deregister(p->b.mr, &ov), &ov, NDX_OK, "deregister");
}
