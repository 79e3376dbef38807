/* SPDX-License-Identifier: BSD-2-Clause */
/* The provider's counters, and its texts for attempts that fail. */
#include "pair.h"

#include <string.h>
#include <unistd.h>

#include "closed_port.h"

#define RECEIVES 4u

static void credits_are_those_of_the_peers_receives(void **state)
{
	struct pair *p = *state;
	struct ndx_qp_stats stats = {.size = sizeof(stats)};

	p->attr.receive_depth = 2 * RECEIVES;
	pair_make(p);
	for (uintptr_t i = 0; i < RECEIVES; i++)
		pair_receive(&p->b, i, i * 64, 64);
	assert_int_equal(pair_counter(&p->a, true, "connected"), 0);
	pair_connect(p);
	assert_int_equal(pair_counter(&p->a, true, "connected"), 1);
	assert_int_equal(pair_counter(&p->a, true, "peer_depth"), 2 * RECEIVES);
	assert_int_equal(pair_counter(&p->a, true, "credits"), RECEIVES);
	assert_int_equal(pair_counter(&p->b, true, "receives_native"), RECEIVES);
	assert_int_equal(pair_counter(&p->b, true, "receives_credited"), RECEIVES);
	for (uintptr_t i = 0; i < RECEIVES; i++) {
		pair_send(&p->a, i, 0, 64, 0);
		pair_expect(&p->a, NDX_REQUEST_SEND, i, NDX_OK);
		pair_expect(&p->b, NDX_REQUEST_RECEIVE, i, NDX_OK);
	}
	assert_int_equal(pair_counter(&p->a, true, "credits"), 0);
	assert_int_equal(pair_counter(&p->b, true, "receives_native"), 0);
	assert_int_equal(pair_counter(&p->a, true, "sends_native"), 0);
	/* A send without a credit waits, and counts as an RNR wait; a control message brings the
	 * credit. */
	pair_send(&p->a, 9, 0, 64, 0);
	assert_int_equal(ndx_qp_get_stats(p->a.qp, &stats), NDX_OK);
	assert_int_equal(stats.rnr_waits, 1);
	pair_receive(&p->b, 9, 0, 64);
	pair_expect(&p->a, NDX_REQUEST_SEND, 9, NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 9, NDX_OK);
	assert_true(pair_counter(&p->b, true, "credit_messages_sent") > 0);
	assert_int_equal(pair_counter(&p->a, true, "credit_messages_received"),
	                 pair_counter(&p->b, true, "credit_messages_sent"));
	pair_disconnect(p);
	pair_drop(p);
}

static void control_messages_and_links_are_counted(void **state)
{
	struct pair *p = *state;
	uint64_t sent;

	pair_make(p);
	assert_int_equal(pair_counter(&p->a, false, "links"), 0);
	sent = pair_counter(&p->a, false, "control_messages_sent");
	pair_connect(p);
	assert_true(pair_counter(&p->a, false, "links") > 0);
	assert_true(pair_counter(&p->a, false, "control_messages_sent") > sent); /* READY */
	assert_true(pair_counter(&p->b, false, "control_messages_received") > 0);
	sent = pair_counter(&p->b, false, "control_messages_sent");
	pair_disconnect(p);
	assert_true(pair_counter(&p->b, false, "control_messages_sent") > sent); /* DISC */
	assert_true(pair_counter(&p->b, false, "native_wakeups") +
	                    pair_counter(&p->b, false, "empty_reads") >
	            0);
	pair_drop(p);
}

static void refused_attempt_has_its_cause_in_the_history(void **state)
{
	struct pair *p = *state;
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t count = NDX_HISTORY_MAX;
	struct sockaddr_in at;
	const int fd = closed_port_at(&at);

	pair_make(p);
	assert_int_equal(ndx_connector_connect(p->a.connector, p->a.qp,
	                                       (const struct sockaddr *)&at, sizeof(at), NULL,
	                                       &p->a.ov),
	                 NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_E_CONNECTION_REFUSED);
	assert_int_equal(ndx_connector_get_history(p->a.connector, list, &count, NULL), NDX_OK);
	assert_int_equal(count, 2);
	assert_int_equal(list[1].status, NDX_E_CONNECTION_REFUSED);
	assert_string_equal(list[1].cause, "no listener there, or a refusal without data");
	assert_int_not_equal(list[1].native, 0);
	pair_drop(p);
	(void)close(fd);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(credits_are_those_of_the_peers_receives),
		CASE(control_messages_and_links_are_counted),
		CASE(refused_attempt_has_its_cause_in_the_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
