/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a connection was aborted: the text says which check has failed, with lengths and limits. */
#include "pair.h"

#include <stdio.h>
#include <string.h>

/* The text of a side whose connection was aborted, when it is known. */
static void says(struct pair_side *side, const char *part)
{
	char text[512];
	size_t length = sizeof(text);

	assert_int_equal(ndx_connector_notify_disconnect(side->connector, &side->ov), NDX_PENDING);
	assert_int_equal(pair_wait(&side->ov), NDX_OK);
	assert_int_equal(side->ov.information, NDX_DISCONNECT_ABORTED);
	assert_int_equal(ndx_connector_get_error_text(side->connector, text, &length), NDX_OK);
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

static void both_ends_know_the_lengths_of_a_message_and_its_receive(void **state)
{
	struct pair *p = *state;

	pair_make(p);
	pair_connect(p);
	pair_receive(&p->b, 1, 0, 10);
	pair_send(&p->a, 3, 0, 11, 0);
	says(&p->a, ": a message is longer than the peer's receive: 11 bytes, for 10");
	says(&p->b, ": a message was longer than its receive: 11 bytes, for 10");
	pair_drop(p);
}

/* The wire has no room for a reason. So the end that posted no receive says that it did not, and an
 * end that has one does not say so. */
static void both_ends_name_the_time_limit_for_a_receive(void **state)
{
	struct pair *p = *state;

	p->attr.no_receive_timeout_ms = 50;
	for (int posted = 0; posted < 2; posted++) {
		char text[512];
		size_t length = sizeof(text);

		pair_make(p);
		pair_connect(p);
		if (posted) {
			pair_receive(&p->b, 1, 0, 8);
			assert_int_equal(ndx_qp_flush(p->a.qp), NDX_OK);
		} else {
			pair_send(&p->a, 1, 0, 8, 0);
			says(&p->a,
			     ": the peer posted no receive in no_receive_timeout_ms (50 ms)");
		}
		says(&p->b, "the link ended without a goodbye: ");
		assert_int_equal(ndx_connector_get_error_text(p->b.connector, text, &length),
		                 NDX_OK);
		assert_int_equal(strstr(text, "; no receive was posted: perhaps the peer's send "
		                              "waited for its no_receive_timeout_ms") != NULL,
		                 !posted);
		pair_drop(p);
	}
}

static void a_local_violation_names_the_check(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *plain;
	struct ndx_sge bad[4] = {pair_sge(&p->a, 0, 10), pair_sge(&p->a, 0, 10),
	                         pair_sge(&p->a, PAIR_MEMORY - 5, 5)};
	static const char *const why[] = {
		"local memory that it must not use: its token is of no region: it never was, or",
		"local memory that it must not use: it is not all inside the region",
		"local memory that it must not use: it is not all inside the region",
		"local memory that it must not use: the region or window lacks the right",
	};

	assert_int_equal(ndx_mr_register_new(p->a.adapter, p->a.memory, 100, 0, &plain), NDX_OK);
	bad[0].token ^= 1u << 20;                                 /* no such token */
	bad[1].buffer = (const unsigned char *)bad[1].buffer - 1; /* before the region */
	bad[2].length = 6;                                        /* beyond the region */
	bad[3] = (struct ndx_sge){p->a.memory, 10, ndx_mr_get_local_token(plain)};
	for (size_t i = 0; i < 4; i++) {
		pair_make(p);
		pair_connect(p);
		if (i < 3)
			assert_int_equal(ndx_qp_send(p->a.qp, NULL, &bad[i], 1, 0), NDX_OK);
		else /* a read writes to the own region */
			assert_int_equal(ndx_qp_read(p->a.qp, NULL, &bad[i], 1,
			                             (uintptr_t)p->b.memory,
			                             ndx_mr_get_remote_token(p->b.mr), 0),
			                 NDX_OK);
		says(&p->a, why[i]);
		pair_drop(p);
	}
	ndx_mr_close(plain);
}

static void memory_that_goes_while_a_send_waits_is_named(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr;
	struct ndx_sge sge;

	assert_int_equal(ndx_mr_register_new(p->a.adapter, p->a.memory, 100, 0, &mr), NDX_OK);
	sge = (struct ndx_sge){p->a.memory, 10, ndx_mr_get_local_token(mr)};
	pair_make(p);
	pair_connect(p);
	assert_int_equal(ndx_qp_send(p->a.qp, NULL, &sge, 1, 0), NDX_OK);
	ndx_mr_close(mr);
	pair_receive(&p->b, 1, 0, 100);
	says(&p->a, "local memory that it must not use: the region was deregistered meanwhile");
	pair_drop(p);
}

static void a_remote_violation_names_the_check(void **state)
{
	struct pair *p = *state;
	const struct ndx_sge sge = pair_sge(&p->a, 0, 10);
	struct ndx_mr *readable;
	static const char *const why[] = {
		"memory of the peer that it must not use: its token grants nothing: it never",
		"memory of the peer that it must not use: it is not all inside the region",
		"memory of the peer that it must not use: the region or window lacks the right",
	};

	assert_int_equal(ndx_mr_register_new(p->b.adapter, p->b.memory, 100,
	                                     NDX_MR_ALLOW_REMOTE_READ, &readable),
	                 NDX_OK);
	for (size_t i = 0; i < 3; i++) {
		const uintptr_t to = (uintptr_t)p->b.memory + (i == 1 ? PAIR_MEMORY - 9 : 0);
		uint32_t token = ndx_mr_get_remote_token(i == 2 ? readable : p->b.mr);

		if (i == 0)
			token++;
		pair_make(p);
		pair_connect(p);
		assert_int_equal(ndx_qp_write(p->a.qp, NULL, &sge, 1, to, token, 0), NDX_OK);
		says(&p->a, why[i]);
		pair_drop(p);
	}
	ndx_mr_close(readable);
}

static void a_receive_of_memory_that_it_must_not_write_names_the_check(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr;
	struct ndx_sge sge;

	assert_int_equal(ndx_mr_register_new(p->b.adapter, p->b.memory, 100, 0, &mr), NDX_OK);
	sge = (struct ndx_sge){p->b.memory, 100, ndx_mr_get_local_token(mr)};
	pair_make(p);
	pair_connect(p);
	assert_int_equal(ndx_qp_receive(p->b.qp, NULL, &sge, 1), NDX_OK);
	pair_send(&p->a, 1, 0, 10, 0);
	says(&p->b, "a message came for memory that must not be written: the region or window "
	            "lacks the right");
	pair_drop(p);
	ndx_mr_close(mr);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(both_ends_know_the_lengths_of_a_message_and_its_receive),
		CASE(both_ends_name_the_time_limit_for_a_receive),
		CASE(a_local_violation_names_the_check),
		CASE(memory_that_goes_while_a_send_waits_is_named),
		CASE(a_remote_violation_names_the_check),
		CASE(a_receive_of_memory_that_it_must_not_write_names_the_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
