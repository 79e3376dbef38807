/* SPDX-License-Identifier: BSD-2-Clause */
/* Binding windows and using them. */
#include "traffic.h"
#include "window.h"

struct pair *pair_with_region(struct check *c, uint32_t access)
{
	struct side_attr attr[2];

	side_attr_init(&attr[0]);
	side_attr_init(&attr[1]);
	attr[1].access = access;
	return pair_up_with(c, &attr[0], &attr[1]);
}

struct ndx_mw *window_open(struct side *s)
{
	struct ndx_mw *mw = NULL;

	if (!check_over(s->c))
		check_status(s->c, ndx_mw_create(s->adapter, &mw), NDX_OK, "mw_create");
	return mw;
}

enum ndx_status bind_raw(struct side *s, size_t number, struct ndx_mw *mw, size_t at, size_t length,
                         uint32_t flags)
{
	return ndx_qp_bind(s->qp, tag(s, number), s->mr, mw, s->buf + at, length, flags);
}

bool binds(struct side *s, struct ndx_mw *mw, size_t at, size_t length, uint32_t flags)
{
	return !check_over(s->c) &&
	       check_status(s->c, bind_raw(s, 1000, mw, at, length, flags), NDX_OK, "bind") &&
	       expect(s, NDX_REQUEST_BIND, 1000, NDX_OK);
}

bool invalidates(struct side *s, struct ndx_mw *mw)
{
	return !check_over(s->c) &&
	       check_status(s->c, ndx_qp_invalidate(s->qp, tag(s, 1001), mw, 0), NDX_OK,
	                    "invalidate") &&
	       expect(s, NDX_REQUEST_INVALIDATE, 1001, NDX_OK);
}

bool reaches(struct pair *p, bool write, size_t at, size_t length, uint32_t token,
             enum ndx_status want)
{
	enum ndx_request_type type = write ? NDX_REQUEST_WRITE : NDX_REQUEST_READ;
	uint64_t to = (uint64_t)(uintptr_t)(p->b.buf + at);
	struct ndx_sge one = sge(&p->a, 0, length);
	enum ndx_status got;

	if (check_over(p->c))
		return false;
	if (write)
		got = ndx_qp_write(p->a.qp, tag(&p->a, 7), &one, 1, to, token, 0);
	else
		got = ndx_qp_read(p->a.qp, tag(&p->a, 7), &one, 1, to, token, 0);
	return check_status(p->c, got, NDX_OK, "read or write by a window's token") &&
	       expect(&p->a, type, 7, want);
}
