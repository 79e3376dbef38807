/* SPDX-License-Identifier: BSD-2-Clause */
/* The documented statuses of memory regions and memory windows. */
#include "nd_table.h"

#include <sys/mman.h>

enum { BYTES = 4096 };

static IND2MemoryRegion *new_region(struct nd_pair *p)
{
	IND2MemoryRegion *mr = NULL;

	assert_status(CALL(p->a.adapter, CreateMemoryRegion, BY_ID(IID_IND2MemoryRegion), p->a.file,
	                   OUT(mr)),
	              ND_SUCCESS);
	return mr;
}

/* How the registration ended, at once or later. */
static HRESULT registered(struct nd_pair *p, const void *buffer, SIZE_T length, ULONG flags)
{
	IND2MemoryRegion *mr = new_region(p);
	HRESULT status = CALL(mr, Register, buffer, length, flags, &p->a.ov);

	if (status == ND_PENDING)
		status = nd_ov_end(&p->a.ov);
	assert_int_equal(CALL(mr, Release), 0);
	return status;
}

static HRESULT register_plain(struct nd_pair *p)
{
	return registered(p, p->a.memory, BYTES, 0);
}

static HRESULT register_nothing(struct nd_pair *p)
{
	return registered(p, NULL, 0, 0);
}

static HRESULT register_null(struct nd_pair *p)
{
	return registered(p, NULL, BYTES, 0);
}

static HRESULT register_empty(struct nd_pair *p)
{
	return registered(p, p->a.memory, 0, 0);
}

static HRESULT register_unmapped(struct nd_pair *p)
{
	void *page = mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	HRESULT status;

	assert_true(page != MAP_FAILED);
	assert_int_equal(munmap(page, BYTES), 0);
	status = registered(p, page, BYTES, 0);
	return status;
}

static HRESULT register_constant(struct nd_pair *p)
{
	void *page = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	HRESULT status;

	assert_true(page != MAP_FAILED);
	assert_status(registered(p, page, BYTES, 0), ND_SUCCESS);
	status = registered(p, page, BYTES, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
	assert_int_equal(munmap(page, BYTES), 0);
	return status;
}

static HRESULT register_too_long(struct nd_pair *p)
{
	return registered(p, p->a.memory, p->a.info.MaxRegistrationSize + 1, 0);
}

static HRESULT register_flags(struct nd_pair *p)
{
	return registered(p, p->a.memory, BYTES, 0x100);
}

static HRESULT register_twice(struct nd_pair *p)
{
	return CALL(p->a.mr, Register, p->a.memory, BYTES, 0, &p->a.ov);
}

static HRESULT deregister_unregistered(struct nd_pair *p)
{
	IND2MemoryRegion *mr = new_region(p);
	const HRESULT status = CALL(mr, Deregister, &p->a.ov);

	assert_int_equal(CALL(mr, GetLocalToken), 0);
	assert_int_equal(CALL(mr, GetRemoteToken), 0);
	assert_int_equal(CALL(mr, Release), 0);
	return status;
}

static HRESULT deregister_plain(struct nd_pair *p)
{
	const HRESULT status = CALL(p->a.mr, Deregister, &p->a.ov);

	return status == ND_PENDING ? nd_ov_end(&p->a.ov) : status;
}

#define REGISTER "MemoryRegion.Register"
#define DEREGISTER "MemoryRegion.Deregister"

static const struct nd_row region_rows[] = {
	REAL(REGISTER, ND_INVALID_PARAMETER, register_nothing),
	REAL(REGISTER, ND_INVALID_PARAMETER, register_too_long),
	REAL(REGISTER, ND_INVALID_PARAMETER, register_flags),
	REAL(REGISTER, ND_INVALID_BUFFER_SIZE, register_empty),
	REAL(REGISTER, ND_ACCESS_VIOLATION, register_null),
	REAL(REGISTER, ND_ACCESS_VIOLATION, register_unmapped),
	REAL(REGISTER, ND_ACCESS_VIOLATION, register_constant),
	REAL(REGISTER, ND_INVALID_DEVICE_STATE, register_twice),
	FAULT(REGISTER, ND_INSUFFICIENT_RESOURCES, register_plain, "mr_register", 2,
              "INSUFFICIENT_RESOURCES"),
	FAULT(REGISTER, ND_NO_MEMORY, register_plain, "mr_register", 2, "NO_MEMORY"),
	FAULT(REGISTER, ND_DEVICE_REMOVED, register_plain, "mr_register", 2, "DEVICE_REMOVED"),
	REAL(DEREGISTER, ND_INVALID_DEVICE_STATE, deregister_unregistered),
	FAULT(DEREGISTER, ND_INTERNAL_ERROR, deregister_plain, "mr_deregister", 1,
              "INTERNAL_ERROR"),
};

/* ---- windows ---- */

struct bind {
	size_t offset, length;
	ULONG flags;
};

static const struct bind whole = {0, BYTES, ND_OP_FLAG_ALLOW_READ};

static HRESULT bind_to(struct nd_pair *p, IND2MemoryRegion *mr, IND2MemoryWindow *mw,
                       struct bind bind)
{
	return CALL(p->a.qp, Bind, NULL, UNKNOWN(mr), UNKNOWN(mw), p->a.memory + bind.offset,
	            bind.length, bind.flags);
}

/* Binds a new window, and releases the window. */
static HRESULT bound(struct nd_pair *p, IND2MemoryRegion *mr, struct bind bind)
{
	IND2MemoryWindow *mw = nd_new_window(&p->a);
	const HRESULT status = bind_to(p, mr, mw, bind);

	assert_int_equal(CALL(mw, Release), 0);
	return status;
}

static HRESULT bind_unconnected(struct nd_pair *p)
{
	return bound(p, p->a.mr, whole);
}

static HRESULT bind_outside(struct nd_pair *p)
{
	const struct bind outside = {ND_MEMORY - BYTES + 1, BYTES, ND_OP_FLAG_ALLOW_READ};

	nd_connect(p);
	return bound(p, p->a.mr, outside);
}

static HRESULT bind_without_right(struct nd_pair *p)
{
	const struct bind writable = {0, BYTES, ND_OP_FLAG_ALLOW_WRITE};
	IND2MemoryRegion *mr = new_region(p);
	HRESULT status;

	nd_connect(p);
	assert_ends(CALL(mr, Register, p->a.memory, BYTES, 0, &p->a.ov), &p->a.ov, ND_SUCCESS);
	status = bound(p, mr, writable);
	assert_int_equal(CALL(mr, Release), 0);
	return status;
}

static HRESULT bind_unregistered(struct nd_pair *p)
{
	IND2MemoryRegion *mr = new_region(p);
	HRESULT status;

	nd_connect(p);
	status = bound(p, mr, whole);
	assert_int_equal(CALL(mr, Release), 0);
	return status;
}

static HRESULT bind_bad_flags(struct nd_pair *p)
{
	const struct bind inlined = {0, BYTES, ND_OP_FLAG_INLINE};

	nd_connect(p);
	return bound(p, p->a.mr, inlined);
}

static HRESULT bind_no_region(struct nd_pair *p)
{
	nd_connect(p);
	return bound(p, NULL, whole);
}

static HRESULT bind_foreign_region(struct nd_pair *p)
{
	nd_connect(p);
	return bound(p, (IND2MemoryRegion *)p->a.cq, whole);
}

/* B's side has an adapter of its own. */
static HRESULT bind_region_of_other_adapter(struct nd_pair *p)
{
	nd_connect(p);
	return bound(p, p->b.mr, whole);
}

static HRESULT bind_window_of_other_adapter(struct nd_pair *p)
{
	IND2MemoryWindow *mw = nd_new_window(&p->b);
	HRESULT status;

	nd_connect(p);
	status = bind_to(p, p->a.mr, mw, whole);
	assert_int_equal(CALL(mw, Release), 0);
	return status;
}

static HRESULT bind_no_window(struct nd_pair *p)
{
	nd_connect(p);
	return bind_to(p, p->a.mr, NULL, whole);
}

static HRESULT bind_foreign_window(struct nd_pair *p)
{
	nd_connect(p);
	return bind_to(p, p->a.mr, (IND2MemoryWindow *)p->a.mr, whole);
}

static void fill_queue(struct nd_pair *p)
{
	nd_connect(p);
	for (int i = 0; i < ND_DEPTH; i++)
		assert_status(CALL(p->a.qp, Send, NULL, NULL, 0, 0), ND_SUCCESS);
}

static HRESULT bind_full(struct nd_pair *p)
{
	fill_queue(p);
	return bound(p, p->a.mr, whole);
}

static HRESULT bind_twice(struct nd_pair *p)
{
	IND2MemoryWindow *mw = nd_new_window(&p->a);
	HRESULT status;

	nd_connect(p);
	assert_status(bind_to(p, p->a.mr, mw, whole), ND_SUCCESS);
	nd_expect(&p->a, Nd2RequestTypeBind, 0, ND_SUCCESS);
	status = bind_to(p, p->a.mr, mw, whole);
	assert_int_equal(CALL(mw, Release), 0);
	return status;
}

/* The region of a bound window; afterwards the region can go. */
static HRESULT deregister_bound(struct nd_pair *p)
{
	IND2MemoryWindow *mw = nd_new_window(&p->a);
	HRESULT status;

	nd_connect(p);
	assert_status(bind_to(p, p->a.mr, mw, whole), ND_SUCCESS);
	nd_expect(&p->a, Nd2RequestTypeBind, 0, ND_SUCCESS);
	status = CALL(p->a.mr, Deregister, &p->a.ov);
	assert_status(CALL(p->a.qp, Invalidate, NULL, UNKNOWN(mw), 0), ND_SUCCESS);
	nd_expect(&p->a, Nd2RequestTypeInvalidate, 0, ND_SUCCESS);
	assert_ends(CALL(p->a.mr, Deregister, &p->a.ov), &p->a.ov, ND_SUCCESS);
	assert_int_equal(CALL(mw, Release), 0);
	return status;
}

static HRESULT invalidated(struct nd_pair *p, ULONG flags)
{
	IND2MemoryWindow *mw = nd_new_window(&p->a);
	const HRESULT status = CALL(p->a.qp, Invalidate, NULL, UNKNOWN(mw), flags);

	assert_int_equal(CALL(mw, Release), 0);
	return status;
}

static HRESULT invalidate_unconnected(struct nd_pair *p)
{
	return invalidated(p, 0);
}

static HRESULT invalidate_full(struct nd_pair *p)
{
	fill_queue(p);
	return invalidated(p, 0);
}

static HRESULT invalidate_bad_flags(struct nd_pair *p)
{
	nd_connect(p);
	return invalidated(p, ND_OP_FLAG_ALLOW_READ);
}

static HRESULT invalidate_no_window(struct nd_pair *p)
{
	nd_connect(p);
	return CALL(p->a.qp, Invalidate, NULL, NULL, 0);
}

static HRESULT invalidate_foreign_window(struct nd_pair *p)
{
	nd_connect(p);
	return CALL(p->a.qp, Invalidate, NULL, UNKNOWN(p->a.connector), 0);
}

static HRESULT invalidate_window_of_other_adapter(struct nd_pair *p)
{
	IND2MemoryWindow *mw = nd_new_window(&p->b);
	HRESULT status;

	nd_connect(p);
	status = CALL(p->a.qp, Invalidate, NULL, UNKNOWN(mw), 0);
	assert_int_equal(CALL(mw, Release), 0);
	return status;
}

#define BIND "QueuePair.Bind"
#define INVALIDATE "QueuePair.Invalidate"

static const struct nd_row window_rows[] = {
	REAL(BIND, ND_CONNECTION_INVALID, bind_unconnected),
	REAL(BIND, ND_NO_MORE_ENTRIES, bind_full),
	REAL(BIND, ND_ACCESS_VIOLATION, bind_outside),
	REAL(BIND, ND_ACCESS_VIOLATION, bind_without_right),
	REAL(BIND, ND_ACCESS_VIOLATION, bind_unregistered),
	REAL(BIND, ND_INVALID_PARAMETER_2, bind_no_region),
	REAL(BIND, ND_INVALID_PARAMETER_2, bind_foreign_region),
	REAL(BIND, ND_INVALID_PARAMETER_2, bind_region_of_other_adapter),
	REAL(BIND, ND_INVALID_PARAMETER_3, bind_no_window),
	REAL(BIND, ND_INVALID_PARAMETER_3, bind_foreign_window),
	REAL(BIND, ND_INVALID_PARAMETER_3, bind_window_of_other_adapter),
	REAL(BIND, ND_INVALID_PARAMETER_6, bind_bad_flags),
	REAL(BIND, ND_DEVICE_BUSY, bind_twice),
	REAL(DEREGISTER, ND_DEVICE_BUSY, deregister_bound),
	REAL(INVALIDATE, ND_CONNECTION_INVALID, invalidate_unconnected),
	REAL(INVALIDATE, ND_NO_MORE_ENTRIES, invalidate_full),
	REAL(INVALIDATE, ND_INVALID_PARAMETER_2, invalidate_no_window),
	REAL(INVALIDATE, ND_INVALID_PARAMETER_2, invalidate_foreign_window),
	REAL(INVALIDATE, ND_INVALID_PARAMETER_2, invalidate_window_of_other_adapter),
	REAL(INVALIDATE, ND_INVALID_PARAMETER_3, invalidate_bad_flags),
};

static void region(void **state)
{
	(void)state;
	nd_run_rows(ROWS(region));
}

static void window(void **state)
{
	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	nd_run_rows(ROWS(window));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(region),
		cmocka_unit_test(window),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
