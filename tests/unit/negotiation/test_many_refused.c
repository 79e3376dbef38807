/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of several queue pairs for which there is no memory, or not all that they need. */
#include "many_rig.h"

/* Atomic: the next calloc of an element of so many bytes fails. */
static size_t refused;
/* Atomic: the same for realloc, of so many bytes; `passed` of them do not. */
static size_t refused_growth;
static int passed;

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	if (size > 0 && __atomic_load_n(&refused_growth, __ATOMIC_SEQ_CST) == size &&
	    __atomic_fetch_sub(&passed, 1, __ATOMIC_SEQ_CST) == 0) {
		__atomic_store_n(&refused_growth, 0, __ATOMIC_SEQ_CST);
		return NULL;
	}
	return __real_realloc(memory, size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	size_t expected = size;

	if (size > 0 && __atomic_compare_exchange_n(&refused, &expected, 0, false, __ATOMIC_SEQ_CST,
	                                            __ATOMIC_SEQ_CST))
		return NULL;
	return __real_calloc(count, size);
}

static void fails_with(struct rig *r, enum ndx_status of_peer, const char *text)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	assert_int_equal(ndx_session_run(r->session), of_peer);
	assert_int_equal(ndx_session_get_error(r->session, &e), NDX_OK);
	if (strstr(e.text, text) == NULL)
		fail_msg("%s", e.text);
}

/* The session itself, and what the server asks its program for. */
static void a_lack_of_memory_is_told_with_the_number(void **state)
{
	struct rig r;

	(void)state;
	rig_up(&r, MOST);
	ndx_session_close(r.session);
	r.session = NULL;
	__atomic_store_n(&refused, sizeof(struct many), __ATOMIC_SEQ_CST);
	assert_int_equal(try_session(&r), NDX_E_NO_MEMORY);
	says("ndx_session_create: out of memory for 16 queue pairs");
	assert_null(r.session);
	assert_int_equal(__atomic_load_n(&refused, __ATOMIC_SEQ_CST), 0);
	make_session(&r);
	__atomic_store_n(&refused, sizeof(struct ndx_session_queue_pair), __ATOMIC_SEQ_CST);
	fails_with(&r, NDX_E_REMOTE_ERROR, "the server has no memory for 16 queue pairs");
	assert_int_equal(__atomic_load_n(&refused, __ATOMIC_SEQ_CST), 0);
	rig_down(&r);
	assert_int_equal(r.closed, 0); /* the program was not asked */
}

/* The first that lacks something is named. */
static void an_entry_with_one_of_two_objects_is_named(void **state)
{
	struct rig r;

	(void)state;
	lame = 5;
	rig_up(&r, MOST);
	fails_with(&r, NDX_E_REMOTE_ERROR,
	           "the server's program gave queue pair 5 no queue pair beside its "
	           "connector");
	rig_down(&r);
	assert_int_equal(r.closed, 1);
	lame = -1;
}

/* The same of queue pairs that are added, and the memory to ask for them. */
static void and_so_is_one_that_is_added(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	struct rig r;

	(void)state;
	rig_run(&r, 2);
	more_up(&r, 5);
	lame = 3;
	assert_int_equal(more_add(&r, NULL), NDX_E_REMOTE_ERROR);
	says("the server's program gave queue pair 5 no queue pair beside its connector");
	is_told(&r.not_added, 1);
	assert_int_equal(r.outcome, NDX_E_INVALID_PARAMETER);
	lame = -1;
	more_down(&r);
	more_up(&r, 5);
	__atomic_store_n(&refused, sizeof(struct ndx_session_queue_pair), __ATOMIC_SEQ_CST);
	assert_int_equal(more_add(&r, NULL), NDX_E_REMOTE_ERROR);
	assert_int_equal(__atomic_load_n(&refused, __ATOMIC_SEQ_CST), 0);
	says("the server has no memory for 5 more queue pairs");
	assert_int_equal(ndx_session_get_add_error(r.session, &e), NDX_OK);
	assert_true(e.remote);
	assert_int_equal(r.asked, 1); /* not for the second batch */
	assert_int_equal(r.not_added, 1);
	another_batch_is_added(&r, 5);
	rig_down(&r);
}

/* Atomic: records. */
static unsigned recorded;

static void on_record(void *arg, const struct ndx_log_record *record)
{
	(void)arg;
	(void)record;
	(void)__atomic_add_fetch(&recorded, 1, __ATOMIC_SEQ_CST);
}

/* The latest entry of that kind. */
static void history_says(const struct ndx_session *s, const char *text)
{
	struct ndx_history_entry list[256];
	size_t count = 256;
	const char *latest = "nothing";

	assert_int_equal(ndx_session_get_history(s, list, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++)
		if (list[i].kind == NDX_HISTORY_ADD)
			latest = list[i].text;
	if (strncmp(latest, text, strlen(text)) != 0)
		fail_msg("%s", latest);
}

/* One end of the session has no memory for queue pairs that are added: the client finds that before
 * it asks; the server refuses, and both ends have used the number and the indices. */
static void and_of_those_that_are_added_later(void **state)
{
	enum { FEW = 5 };
	struct ndx_session_error e = {.size = sizeof(e)};
	struct rig r;

	(void)state;
	rig_run(&r, 2);
	for (int ends = 0; ends < 2; ends++) {
		more_up(&r, FEW);
		/* The client's table grows first. */
		__atomic_store_n(&passed, ends, __ATOMIC_SEQ_CST);
		__atomic_store_n(&refused_growth, (2 + FEW) * sizeof(struct lane *),
		                 __ATOMIC_SEQ_CST);
		__atomic_store_n(&recorded, 0, __ATOMIC_SEQ_CST);
		ndx_log_set_sink(on_record, NULL, NDX_LOG_WARN);
		assert_int_equal(more_add(&r, NULL),
		                 ends == 0 ? NDX_E_NO_MEMORY : NDX_E_REMOTE_ERROR);
		history_says(r.session, ends == 0 ? "5 queue pairs: no memory"
		                                  : "batch 2, queue pairs 7 to 11: ");
		assert_int_equal(__atomic_load_n(&refused_growth, __ATOMIC_SEQ_CST), 0);
		assert_int_equal(ndx_session_get_add_error(r.session, &e), NDX_OK);
		if (strstr(e.text, "no memory for so many queue pairs") == NULL)
			fail_msg("%s", e.text);
		assert_int_equal(e.remote, ends == 1);
		assert_int_equal(r.asked, ends); /* of the batch behind the client's */
		assert_int_equal(ndx_session_get_state(r.session), NDX_SESSION_CONNECTED);
		another_batch_is_added(&r, FEW);
		ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
		/* The failure, once by each end that has it. */
		assert_int_equal(__atomic_load_n(&recorded, __ATOMIC_SEQ_CST), ends + 1);
		assert_int_equal(ndx_session_remove_queue_pairs(r.session, r.first, FEW), NDX_OK);
		is_told(&r.removed, FEW * (ends + 1));
	}
	all_last(r.a, 2);
	rig_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lack_of_memory_is_told_with_the_number),
		cmocka_unit_test(an_entry_with_one_of_two_objects_is_named),
		cmocka_unit_test(and_so_is_one_that_is_added),
		cmocka_unit_test(and_of_those_that_are_added_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
