/* SPDX-License-Identifier: BSD-2-Clause */
/* mw.*: binding memory windows and ending it. B has the memory, A is the peer that uses it. */
#include <string.h>

#include "cases.h"
#include "traffic.h"
#include "window.h"

enum { MESSAGE = 64, START = 4096, LENGTH = 1024 };

/* Both directions work, and move the right bytes. */
static bool serves(struct pair *p, size_t at, size_t length, uint32_t token)
{
	uint64_t key = check_random(p->c);
	bool fine;

	if (check_over(p->c))
		return false;
	pattern_fill(p->a.buf, length, key);
	fine = reaches(p, true, at, length, token, NDX_OK) &&
	       pattern_there(p->c, p->b.buf + at, length, key, "written through a window");
	memset(p->a.buf, 0, length);
	return fine && reaches(p, false, at, length, token, NDX_OK) &&
	       pattern_there(p->c, p->a.buf, length, key, "read through a window");
}

/* A region without rights of its own for the peer. */
static struct pair *pair_for_windows(struct check *c)
{
	return pair_with_region(c, NDX_MR_ALLOW_LOCAL_WRITE);
}

void case_mw_create_and_close(struct check *c)
{
	struct ndx_mw *mw[16] = {NULL};
	struct ndx_mw *none = (struct ndx_mw *)c;
	struct ndx_mw *out = none;

	for (size_t i = 0; i < 16; i++)
		check_status(c, ndx_mw_create(c->world->places[0].adapter, &mw[i]), NDX_OK,
		             "mw_create");
	for (size_t i = 0; i < 16; i++)
		ndx_mw_close(mw[i]);
	check_status(c, ndx_mw_create(NULL, &out), NDX_E_INVALID_PARAMETER,
	             "mw_create without an adapter");
	check_status(c, ndx_mw_create(c->world->places[0].adapter, NULL), NDX_E_INVALID_PARAMETER,
	             "mw_create without a place for it");
	check_that(c, out == none, "the output of a failed call was touched");
}

void case_mw_token_is_there_when_bind_returns(struct check *c)
{
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
	uint32_t token;

	if (mw) {
		check_status(c, bind_raw(&p->b, 1, mw, START, LENGTH, WINDOW_BOTH), NDX_OK, "bind");
		token = ndx_mw_get_remote_token(mw);
		check_that(c, token != 0, "a window that was bound has no token");
		check_that(c, token != ndx_mr_get_remote_token(p->b.mr),
		           "the window has the token of its region");
		expect(&p->b, NDX_REQUEST_BIND, 1, NDX_OK);
		check_that(c, ndx_mw_get_remote_token(mw) == token,
		           "the token changed when the bind completed");
		serves(p, START, LENGTH, token);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_may_be_the_whole_region(struct check *c)
{
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;

	if (mw && binds(&p->b, mw, 0, p->b.attr.buffer, WINDOW_BOTH)) {
		serves(p, 0, MESSAGE, ndx_mw_get_remote_token(mw));
		serves(p, p->b.attr.buffer - MESSAGE, MESSAGE, ndx_mw_get_remote_token(mw));
		serves(p, 0, p->b.attr.buffer, ndx_mw_get_remote_token(mw));
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_can_be_bound_anew(struct check *c)
{
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
	uint32_t old = 0;

	for (size_t i = 0; mw && i < 50 && !check_over(c); i++) {
		size_t at = START + i * 128;

		binds(&p->b, mw, at, LENGTH, WINDOW_BOTH);
		check_that(c, ndx_mw_get_remote_token(mw) != old, "bind %zu kept the token", i);
		old = ndx_mw_get_remote_token(mw);
		serves(p, at, LENGTH, old);
		invalidates(&p->b, mw);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

/* After its invalidation, or that and another bind, the old token opens nothing. */
static void old_token_is_dead(struct check *c, bool bound_anew, bool write)
{
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
	uint32_t old;

	if (mw && binds(&p->b, mw, START, LENGTH, WINDOW_BOTH)) {
		old = ndx_mw_get_remote_token(mw);
		serves(p, START, LENGTH, old);
		invalidates(&p->b, mw);
		if (bound_anew && binds(&p->b, mw, START, LENGTH, WINDOW_BOTH))
			serves(p, START, LENGTH, ndx_mw_get_remote_token(mw));
		memset(p->a.buf, 0x11, LENGTH);
		memset(p->b.buf + START, 0xee, LENGTH);
		reaches(p, write, START, LENGTH, old, NDX_E_ACCESS_VIOLATION);
		bytes_are(c, p->a.buf, LENGTH, 0x11, "the peer's memory");
		bytes_are(c, p->b.buf + START, LENGTH, 0xee, "memory behind an old token");
		side_start_notify(&p->b);
		side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_invalidate_ends_it(struct check *c)
{
	old_token_is_dead(c, false, true);
	old_token_is_dead(c, false, false);
}

void case_mw_old_token_stays_dead(struct check *c)
{
	old_token_is_dead(c, true, true);
	old_token_is_dead(c, true, false);
}

void case_mw_invalidate_of_an_unbound_one_fails(struct check *c)
{
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;

	if (mw) {
		check_status(c, ndx_qp_invalidate(p->b.qp, tag(&p->b, 1), mw, 0), NDX_OK,
		             "invalidate of a new window");
		send_ok(&p->b, 2, 0, MESSAGE, 0);
		expect(&p->b, NDX_REQUEST_INVALIDATE, 1, NDX_E_INVALID_DEVICE_REQUEST);
		expect(&p->b, NDX_REQUEST_SEND, 2, NDX_E_CANCELED);
		side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_invalidate_twice_fails(struct check *c)
{
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;

	if (mw && binds(&p->b, mw, START, LENGTH, WINDOW_BOTH)) {
		invalidates(&p->b, mw);
		check_status(c,
		             ndx_qp_invalidate(p->b.qp, tag(&p->b, 1), mw, NDX_OP_SILENT_SUCCESS),
		             NDX_OK, "second invalidate");
		expect(&p->b, NDX_REQUEST_INVALIDATE, 1, NDX_E_INVALID_DEVICE_REQUEST);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

/* ---- binds that are refused leave everything as it was ---- */

static void bind_refused(struct side *s, struct ndx_mr *mr, struct ndx_mw *mw, void *at,
                         size_t length, uint32_t flags, enum ndx_status want, const char *what)
{
	uint32_t token = ndx_mw_get_remote_token(mw);

	if (check_over(s->c))
		return;
	check_status(s->c, ndx_qp_bind(s->qp, tag(s, 1), mr, mw, at, length, flags), want, what);
	check_that(s->c, ndx_mw_get_remote_token(mw) == token, "%s: the token changed", what);
}

void case_mw_bind_outside_its_region_is_refused(struct check *c)
{
	const enum ndx_status want = NDX_E_ACCESS_VIOLATION;
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
	struct side *b = p ? &p->b : NULL;
	size_t size;

	if (mw) {
		size = b->attr.buffer;
		bind_refused(b, b->mr, mw, b->buf - 1, 16, WINDOW_BOTH, want, "bind in front");
		bind_refused(b, b->mr, mw, b->buf + size - 15, 16, WINDOW_BOTH, want,
		             "bind behind");
		bind_refused(b, b->mr, mw, b->buf, size + 1, WINDOW_BOTH, want,
		             "bind of a byte more");
		bind_refused(b, b->mr, mw, b->buf + 1, SIZE_MAX, WINDOW_BOTH, want,
		             "bind of all there is");
		bind_refused(b, b->mr, mw, p->a.buf, 16, WINDOW_BOTH, want, "bind of other memory");
		if (binds(b, mw, START, LENGTH, WINDOW_BOTH))
			serves(p, START, LENGTH, ndx_mw_get_remote_token(mw));
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_bind_without_the_right_is_refused(struct check *c)
{
	struct side_attr attr[2];
	struct ndx_mw *mw = NULL;
	struct pair *p;

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[1].access = 0;
	p = pair_up_with(c, &attr[0], &attr[1]);
	if (p)
		mw = window_open(&p->b);
	if (mw) {
		bind_refused(&p->b, p->b.mr, mw, p->b.buf, 64, NDX_OP_ALLOW_WRITE,
		             NDX_E_ACCESS_VIOLATION, "bind for writing without local write");
		bind_refused(&p->b, p->b.mr, mw, p->b.buf, 64, WINDOW_BOTH, NDX_E_ACCESS_VIOLATION,
		             "bind for both without local write");
		binds(&p->b, mw, 0, 64, NDX_OP_ALLOW_READ);
		reaches(p, false, 0, 64, ndx_mw_get_remote_token(mw), NDX_OK);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_bind_while_bound_is_refused(struct check *c)
{
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;

	if (mw && binds(&p->b, mw, START, LENGTH, WINDOW_BOTH)) {
		bind_refused(&p->b, p->b.mr, mw, p->b.buf, 64, WINDOW_BOTH, NDX_E_DEVICE_BUSY,
		             "bind of a bound window");
		serves(p, START, LENGTH, ndx_mw_get_remote_token(mw));
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_bind_to_what_is_not_registered_is_refused(struct check *c)
{
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
	struct ndx_mr *fresh = NULL;

	if (mw && check_status(c, ndx_mr_create(p->b.adapter, &fresh), NDX_OK, "mr_create")) {
		bind_refused(&p->b, fresh, mw, p->b.buf, 64, WINDOW_BOTH, NDX_E_ACCESS_VIOLATION,
		             "bind to a region that is not registered");
		message_passes(&p->a, &p->b, MESSAGE);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
	ndx_mr_close(fresh);
}

void case_mw_bind_of_foreign_objects_is_refused(struct check *c)
{
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;
	struct ndx_adapter *other = NULL;
	struct ndx_mr *region = NULL;
	struct ndx_mw *foreign = NULL;

	if (mw &&
	    check_status(c, ndx_adapter_open(c->world->places[1].uri, &other), NDX_OK, "open")) {
		check_status(c, ndx_mw_create(other, &foreign), NDX_OK, "mw_create");
		check_status(c,
		             ndx_mr_register_new(other, p->b.buf, 4096, NDX_MR_ALLOW_LOCAL_WRITE,
		                                 &region),
		             NDX_OK, "mr_register_new");
		if (!check_over(c)) {
			bind_refused(&p->b, region, mw, p->b.buf, 64, WINDOW_BOTH,
			             NDX_E_INVALID_PARAMETER,
			             "bind to a region of another adapter");
			bind_refused(&p->b, p->b.mr, foreign, p->b.buf, 64, WINDOW_BOTH,
			             NDX_E_INVALID_PARAMETER,
			             "bind of a window of another adapter");
		}
		message_passes(&p->a, &p->b, MESSAGE);
	}
	pair_close_all(c);
	ndx_mr_close(region);
	ndx_mw_close(foreign);
	ndx_mw_close(mw);
	ndx_adapter_close(other);
}

void case_mw_flags_of_others_are_refused(struct check *c)
{
	struct pair *p = pair_for_windows(c);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;

	if (mw) {
		bind_refused(&p->b, p->b.mr, mw, p->b.buf, 64, NDX_OP_SOLICIT_EVENT,
		             NDX_E_INVALID_PARAMETER, "bind with SOLICIT_EVENT");
		bind_refused(&p->b, p->b.mr, mw, p->b.buf, 64, NDX_OP_INLINE | WINDOW_BOTH,
		             NDX_E_INVALID_PARAMETER, "bind with INLINE");
		bind_refused(&p->b, p->b.mr, mw, p->b.buf, 64, 0x1000, NDX_E_INVALID_PARAMETER,
		             "bind with flag 0x1000");
		binds(&p->b, mw, START, LENGTH, WINDOW_BOTH);
		check_status(c, ndx_qp_invalidate(p->b.qp, tag(&p->b, 1), mw, NDX_OP_ALLOW_READ),
		             NDX_E_INVALID_PARAMETER, "invalidate with ALLOW_READ");
		check_status(c, ndx_qp_invalidate(p->b.qp, tag(&p->b, 1), mw, NDX_OP_INLINE),
		             NDX_E_INVALID_PARAMETER, "invalidate with INLINE");
		serves(p, START, LENGTH, ndx_mw_get_remote_token(mw));
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}

void case_mw_bind_needs_a_connection(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_mw *mw = p ? window_open(&p->b) : NULL;

	if (mw) {
		bind_refused(&p->b, p->b.mr, mw, p->b.buf, 64, WINDOW_BOTH,
		             NDX_E_CONNECTION_INVALID, "bind before connecting");
		check_status(c, ndx_qp_invalidate(p->b.qp, tag(&p->b, 1), mw, 0),
		             NDX_E_CONNECTION_INVALID, "invalidate before connecting");
		pair_connect(p);
		pair_disconnect(p);
		check_status(c, bind_raw(&p->b, 1, mw, 0, 64, WINDOW_BOTH), NDX_OK,
		             "bind after the disconnect");
		expect(&p->b, NDX_REQUEST_BIND, 1, NDX_E_CANCELED);
		check_status(c, ndx_qp_invalidate(p->b.qp, tag(&p->b, 2), mw, 0), NDX_OK,
		             "invalidate after the disconnect");
		expect(&p->b, NDX_REQUEST_INVALIDATE, 2, NDX_E_CANCELED);
	}
	pair_close_all(c);
	ndx_mw_close(mw);
}
