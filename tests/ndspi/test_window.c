/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: what a peer may do through one, and until when. */
#include "nd_op.h"

enum { SIZE = 512, AWAY = 4096 };

/* B binds, A uses. */
struct scene {
	struct nd_pair p;
	IND2MemoryRegion *mr; /* of B, without remote rights */
	IND2MemoryWindow *mw; /* NULL: the case needs none */
};

static void make_without(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	nd_make(&s->p);
	nd_connect(&s->p);
	assert_status(CALL(s->p.b.adapter, CreateMemoryRegion, BY_ID(IID_IND2MemoryRegion),
	                   s->p.b.file, OUT(s->mr)),
	              ND_SUCCESS);
	assert_ends(CALL(s->mr, Register, s->p.b.memory, ND_MEMORY, ND_MR_FLAG_ALLOW_LOCAL_WRITE,
	                 &s->p.b.ov),
	            &s->p.b.ov, ND_SUCCESS);
}

static void make(struct scene *s)
{
	make_without(s);
	s->mw = nd_new_window(&s->p.b);
}

static void drop(struct scene *s)
{
	if (s->mw != NULL)
		assert_int_equal(CALL(s->mw, Release), 0);
	assert_int_equal(CALL(s->mr, Release), 0);
	nd_disconnect(&s->p);
	nd_drop(&s->p);
}

/* The token, which is there before the result. */
static UINT32 bind_window(struct scene *s, size_t offset, size_t length, ULONG flags)
{
	UINT32 token;

	assert_status(CALL(s->p.b.qp, Bind, (void *)7, UNKNOWN(s->mr), UNKNOWN(s->mw),
	                   s->p.b.memory + offset, length, flags),
	              ND_SUCCESS);
	token = CALL(s->mw, GetRemoteToken);
	nd_expect(&s->p.b, Nd2RequestTypeBind, 7, ND_SUCCESS);
	assert_int_equal(CALL(s->mw, GetRemoteToken), token);
	return token;
}

static void invalidate(struct scene *s)
{
	assert_status(CALL(s->p.b.qp, Invalidate, (void *)8, UNKNOWN(s->mw), 0), ND_SUCCESS);
	nd_expect(&s->p.b, Nd2RequestTypeInvalidate, 8, ND_SUCCESS);
}

static void write_to(struct scene *s, size_t offset, ULONG length, UINT32 token, HRESULT status)
{
	const ND2_SGE sge = nd_sge(&s->p.a, 0, length);

	assert_status(CALL(s->p.a.qp, Write, (void *)1, &sge, 1,
	                   (UINT64)(uintptr_t)s->p.b.memory + offset, token, 0),
	              ND_SUCCESS);
	nd_expect(&s->p.a, Nd2RequestTypeWrite, 1, status);
}

static void read_from(struct scene *s, size_t offset, ULONG length, UINT32 token, HRESULT status)
{
	const ND2_SGE sge = nd_sge(&s->p.a, 0, length);

	assert_status(CALL(s->p.a.qp, Read, (void *)2, &sge, 1,
	                   (UINT64)(uintptr_t)s->p.b.memory + offset, token, 0),
	              ND_SUCCESS);
	nd_expect(&s->p.a, Nd2RequestTypeRead, 2, status);
}

/* B's receive shows that the connection has ended. */
static void expect_end(struct scene *s)
{
	nd_expect(&s->p.b, Nd2RequestTypeReceive, 9, ND_CANCELED);
}

static void both_rights_allow_both(void **state)
{
	struct scene s;
	UINT32 token;

	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	make(&s);
	token = bind_window(&s, AWAY, SIZE, ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE);
	memset(s.p.a.memory, 0x5a, SIZE);
	write_to(&s, AWAY, SIZE, token, ND_SUCCESS);
	assert_memory_equal(s.p.b.memory + AWAY, s.p.a.memory, SIZE);
	assert_int_equal(s.p.b.memory[AWAY + SIZE], 0);
	assert_int_equal(s.p.b.memory[AWAY - 1], 0);
	memset(s.p.b.memory + AWAY, 0x17, SIZE);
	read_from(&s, AWAY, SIZE, token, ND_SUCCESS);
	assert_int_equal(s.p.a.memory[SIZE - 1], 0x17);
	drop(&s);
}

static void a_right_that_is_missing_breaks_the_connection(void **state)
{
	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	for (int reading = 0; reading < 2; reading++) {
		struct scene s;
		UINT32 token;

		make(&s);
		nd_receive(&s.p.b, 9, 0, SIZE);
		token = bind_window(&s, AWAY, SIZE,
		                    reading ? ND_OP_FLAG_ALLOW_WRITE : ND_OP_FLAG_ALLOW_READ);
		memset(s.p.a.memory, 0x5a, SIZE);
		if (reading) {
			write_to(&s, AWAY, SIZE, token, ND_SUCCESS);
			read_from(&s, AWAY, SIZE, token, ND_ACCESS_VIOLATION);
		} else {
			read_from(&s, AWAY, SIZE, token, ND_SUCCESS);
			memset(s.p.a.memory, 0x5a, SIZE);
			write_to(&s, AWAY, SIZE, token, ND_ACCESS_VIOLATION);
			assert_int_equal(s.p.b.memory[AWAY], 0);
		}
		expect_end(&s);
		drop(&s);
	}
}

/* Microsoft's test binds so. */
static void a_window_may_grant_nothing(void **state)
{
	struct scene s;
	UINT32 token;

	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	make(&s);
	nd_receive(&s.p.b, 9, 0, SIZE);
	token = bind_window(&s, AWAY, SIZE, 0);
	read_from(&s, AWAY, SIZE, token, ND_ACCESS_VIOLATION);
	expect_end(&s);
	drop(&s);
}

static void beyond_the_window_is_fatal(void **state)
{
	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	nd_need_kept("a window ends where it was bound to end");
	for (int before = 0; before < 2; before++) {
		struct scene s;
		UINT32 token;

		make(&s);
		nd_receive(&s.p.b, 9, 0, SIZE);
		token = bind_window(&s, AWAY, SIZE, ND_OP_FLAG_ALLOW_WRITE);
		memset(s.p.a.memory, 0x5a, 2 * SIZE);
		if (before)
			write_to(&s, AWAY - 1, SIZE, token, ND_ACCESS_VIOLATION);
		else
			write_to(&s, AWAY, SIZE + 1, token, ND_ACCESS_VIOLATION);
		assert_int_equal(s.p.b.memory[before ? AWAY - 1 : AWAY + SIZE], 0);
		expect_end(&s);
		drop(&s);
	}
}

static void use_after_invalidate_is_fatal(void **state)
{
	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	for (int reading = 0; reading < 2; reading++) {
		struct scene s;
		UINT32 token;

		make(&s);
		nd_receive(&s.p.b, 9, 0, SIZE);
		token = bind_window(&s, AWAY, SIZE, ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE);
		write_to(&s, AWAY, SIZE, token, ND_SUCCESS);
		invalidate(&s);
		memset(s.p.b.memory + AWAY, 0, SIZE);
		memset(s.p.a.memory, 0x5a, SIZE);
		if (reading)
			read_from(&s, AWAY, SIZE, token, ND_ACCESS_VIOLATION);
		else
			write_to(&s, AWAY, SIZE, token, ND_ACCESS_VIOLATION);
		assert_int_equal(s.p.b.memory[AWAY], 0);
		expect_end(&s);
		drop(&s);
	}
}

static void an_invalidated_window_may_be_bound_again(void **state)
{
	struct scene s;
	IND2MemoryRegion *first;
	UINT32 token;

	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	make(&s);
	for (size_t i = 1; i <= 4; i++) {
		token = bind_window(&s, i * AWAY, SIZE, ND_OP_FLAG_ALLOW_WRITE);
		memset(s.p.a.memory, (int)i, SIZE);
		write_to(&s, i * AWAY, SIZE, token, ND_SUCCESS);
		assert_int_equal(s.p.b.memory[i * AWAY + SIZE - 1], i);
		invalidate(&s);
	}
	/* to another region */
	first = s.mr;
	s.mr = s.p.b.mr;
	token = bind_window(&s, AWAY, SIZE, ND_OP_FLAG_ALLOW_READ);
	s.mr = first;
	assert_ends(CALL(s.mr, Deregister, &s.p.b.ov), &s.p.b.ov, ND_SUCCESS);
	read_from(&s, AWAY, SIZE, token, ND_SUCCESS);
	assert_status(CALL(s.p.b.mr, Deregister, &s.p.b.ov), ND_DEVICE_BUSY);
	invalidate(&s);
	assert_ends(CALL(s.p.b.mr, Deregister, &s.p.b.ov), &s.p.b.ov, ND_SUCCESS);
	drop(&s);
}

static void an_unbound_window_cannot_be_invalidated(void **state)
{
	struct scene s;

	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	make(&s);
	nd_receive(&s.p.b, 9, 0, SIZE);
	assert_status(CALL(s.p.b.qp, Invalidate, (void *)8, UNKNOWN(s.mw), 0), ND_SUCCESS);
	nd_expect(&s.p.b, Nd2RequestTypeInvalidate, 8, ND_INVALID_DEVICE_REQUEST);
	expect_end(&s);
	drop(&s);
}

/* Windows of one region may overlap. */
static void windows_have_rights_of_their_own(void **state)
{
	struct scene s;
	IND2MemoryWindow *first;
	UINT32 tokens[2];

	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	make(&s);
	nd_receive(&s.p.b, 9, 0, SIZE);
	tokens[0] = bind_window(&s, AWAY, SIZE, ND_OP_FLAG_ALLOW_READ);
	first = s.mw;
	s.mw = nd_new_window(&s.p.b);
	tokens[1] = bind_window(&s, AWAY, SIZE, ND_OP_FLAG_ALLOW_WRITE);
	assert_int_not_equal(tokens[0], tokens[1]);
	write_to(&s, AWAY, SIZE, tokens[1], ND_SUCCESS);
	read_from(&s, AWAY, SIZE, tokens[0], ND_SUCCESS);
	invalidate(&s);
	read_from(&s, AWAY, SIZE, tokens[0], ND_SUCCESS);
	write_to(&s, AWAY, SIZE, tokens[1], ND_ACCESS_VIOLATION);
	expect_end(&s);
	assert_int_equal(CALL(first, Release), 0);
	drop(&s);
}

/* The region goes before the window; and a silent bind. */
static void a_region_may_be_released_first(void **state)
{
	struct scene s;

	(void)state;
	nd_need(NDX_CAP_MEMORY_WINDOW);
	make(&s);
	assert_status(CALL(s.p.b.qp, Bind, NULL, UNKNOWN(s.mr), UNKNOWN(s.mw), s.p.b.memory, SIZE,
	                   ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_SILENT_SUCCESS),
	              ND_SUCCESS);
	assert_status(CALL(s.p.b.qp, Send, (void *)3, NULL, 0, 0), ND_SUCCESS);
	nd_receive(&s.p.a, 4, 0, SIZE);
	nd_expect(&s.p.a, Nd2RequestTypeReceive, 4, ND_SUCCESS);
	nd_expect(&s.p.b, Nd2RequestTypeSend, 3, ND_SUCCESS);
	assert_int_equal(CALL(s.mr, Release), 0);
	assert_int_equal(CALL(s.mw, Release), 0);
	nd_disconnect(&s.p);
	nd_drop(&s.p);
}

static void a_revoked_token_is_fatal(void **state)
{
	struct scene s;
	UINT32 token;

	(void)state;
	make_without(&s);
	nd_receive(&s.p.b, 9, 0, SIZE);
	token = CALL(s.p.b.mr, GetRemoteToken);
	write_to(&s, AWAY, SIZE, token, ND_SUCCESS);
	assert_ends(CALL(s.p.b.mr, Deregister, &s.p.b.ov), &s.p.b.ov, ND_SUCCESS);
	assert_int_equal(CALL(s.p.b.mr, GetRemoteToken), 0);
	memset(s.p.b.memory, 0, ND_MEMORY);
	memset(s.p.a.memory, 0x5a, SIZE);
	write_to(&s, AWAY, SIZE, token, ND_ACCESS_VIOLATION);
	assert_int_equal(s.p.b.memory[AWAY], 0);
	expect_end(&s);
	drop(&s);
}

/* The rights of a region, without windows. */
static void a_region_grants_what_it_was_registered_for(void **state)
{
	(void)state;
	for (int reading = 0; reading < 2; reading++) {
		struct scene s;
		UINT32 token;

		make_without(&s);
		nd_receive(&s.p.b, 9, 0, SIZE);
		assert_ends(CALL(s.mr, Deregister, &s.p.b.ov), &s.p.b.ov, ND_SUCCESS);
		assert_ends(
			CALL(s.mr, Register, s.p.b.memory, ND_MEMORY,
		             reading ? ND_MR_FLAG_ALLOW_REMOTE_WRITE : ND_MR_FLAG_ALLOW_REMOTE_READ,
		             &s.p.b.ov),
			&s.p.b.ov, ND_SUCCESS);
		token = CALL(s.mr, GetRemoteToken);
		if (reading) {
			write_to(&s, AWAY, SIZE, token, ND_SUCCESS);
			read_from(&s, AWAY, SIZE, token, ND_ACCESS_VIOLATION);
		} else {
			read_from(&s, AWAY, SIZE, token, ND_SUCCESS);
			write_to(&s, AWAY, SIZE, token, ND_ACCESS_VIOLATION);
		}
		expect_end(&s);
		drop(&s);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_rights_allow_both),
		cmocka_unit_test(a_right_that_is_missing_breaks_the_connection),
		cmocka_unit_test(a_window_may_grant_nothing),
		cmocka_unit_test(beyond_the_window_is_fatal),
		cmocka_unit_test(use_after_invalidate_is_fatal),
		cmocka_unit_test(an_invalidated_window_may_be_bound_again),
		cmocka_unit_test(an_unbound_window_cannot_be_invalidated),
		cmocka_unit_test(windows_have_rights_of_their_own),
		cmocka_unit_test(a_region_may_be_released_first),
		cmocka_unit_test(a_revoked_token_is_fatal),
		cmocka_unit_test(a_region_grants_what_it_was_registered_for),
	};
	const int rc = nd_begin(argc, argv);

	return rc != 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}
