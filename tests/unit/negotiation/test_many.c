/* SPDX-License-Identifier: BSD-2-Clause */
/* Several queue pairs in one session, whose transport carries their goodbyes. */
#include "many_rig.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/spi/provider.h>

#include "fake_direct.h"
#include "many.h"

/* All connections but those of the mask last. */
static void others_last(struct rig *r, uint32_t over)
{
	for (uint32_t i = 0; i < r->count; i++) {
		if ((over & 1u << i) != 0)
			continue;
		assert_int_equal(ndx_overlapped_status(&r->a[i].notify), NDX_PENDING);
		assert_int_equal(ndx_overlapped_status(&r->b[i].notify), NDX_PENDING);
	}
}

/* ---- goodbyes ---- */

/* One each way for each queue pair, and the latest entries are of the latest of them. */
static void all_goodbyes_are_recorded(const struct ndx_session *s)
{
	struct ndx_history_entry list[128];
	size_t count = sizeof(list) / sizeof(list[0]);

	assert_int_equal(ndx_session_get_history(s, list, &count, NULL), NDX_OK);
	for (uint32_t i = 0; i < MOST; i++) {
		unsigned sent = 0;
		unsigned received = 0;
		char text[40];

		(void)snprintf(text, sizeof(text), "queue pair %u: goodbye", i);
		for (size_t k = 0; k < count; k++) {
			if (strcmp(list[k].text, text) != 0)
				continue;
			sent += list[k].kind == NDX_HISTORY_SENT;
			received += list[k].kind == NDX_HISTORY_RECEIVED;
		}
		assert_int_equal(sent, 1);
		assert_int_equal(received, 1);
	}
}

static void a_goodbye_is_that_of_one_queue_pair(void **state)
{
	struct rig r;
	uint32_t over = 0;

	(void)state;
	for (int closes_first = 0; closes_first < 2; closes_first++, over = 0) {
		rig_run(&r, MOST);
		if (closes_first) {
			ndx_session_close(r.session);
			r.session = NULL;
		}
		for (uint32_t k = 0; k < MOST; k++) {
			const uint32_t i = k * 5 % MOST;

			others_last(&r, over);
			if (i % 2 == 0)
				disconnect_both(&r.a[i], &r.b[i]);
			else
				disconnect_both(&r.b[i], &r.a[i]);
			over |= 1u << i;
		}
		if (!closes_first)
			all_goodbyes_are_recorded(r.session);
		if (!closes_first)
			assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		/* The last connection that ends ends a session that was closed. */
		while (closes_first && __atomic_load_n(&r.closed, __ATOMIC_SEQ_CST) == 0)
			(void)poll(NULL, 0, 1);
		rig_down(&r);
	}
}

static void an_abort_is_that_of_one_queue_pair(void **state)
{
	struct rig r;

	(void)state;
	rig_run(&r, MOST);
	assert_int_equal(ndx_qp_flush(r.a[3].qp), NDX_OK);
	indicated(&r.b[3], NDX_DISCONNECT_ABORTED);
	indicated(&r.a[3], NDX_DISCONNECT_ABORTED);
	others_last(&r, 1u << 3);
	disconnect_both(&r.a[0], &r.b[0]);
	disconnect_both(&r.b[15], &r.a[15]);
	others_last(&r, 1u << 3 | 1u << 0 | 1u << 15);
	rig_down(&r);
}

/* On the thread that owns the descriptor. */
static void shut_on_loop(void *arg)
{
	const struct ndx_session *s = arg;

	(void)shutdown(s->driver.fd, SHUT_RDWR);
}

/* As if the peer, or the way to it, were gone. */
static void the_end_of_the_transport_is_that_of_all(void **state)
{
	struct rig r;

	(void)state;
	rig_run(&r, MOST);
	disconnect_both(&r.a[1], &r.b[1]);
	ndxp_loop_call(r.session->driver.engine->loop, shut_on_loop, r.session);
	for (uint32_t i = 0; i < MOST; i++) {
		if (i == 1)
			continue;
		indicated(&r.a[i], NDX_DISCONNECT_ABORTED);
		indicated(&r.b[i], NDX_DISCONNECT_ABORTED);
	}
	rig_down(&r);
}

static void all_say_goodbye(struct rig *r)
{
	for (uint32_t i = 0; i < MOST; i++)
		disconnect_both(&r->a[i], &r->b[i]);
	assert_int_equal(ndx_session_execute(r->session, NDX_STAGE_DONE), NDX_OK);
}

static void messages_may_be_long(void **state)
{
	struct rig r;

	(void)state;
	rig_variant = "long";
	for (int i = 0; i < 3; i++) {
		rig_run(&r, MOST);
		all_say_goodbye(&r);
		rig_down(&r);
	}
	rig_variant = "as-it-is";
}

/* Each queue pair has a MAC of its own, behind the 48 bytes of its VALIDATE. */
static void each_is_bound(const struct rig *r)
{
	static struct ndx_history_entry list[1024];
	size_t count = sizeof(list) / sizeof(list[0]);
	uint32_t bound = 0;

	assert_int_equal(ndx_session_get_history(r->session, list, &count, NULL), NDX_OK);
	for (uint32_t i = 0; i < MOST; i++) {
		char text[40];

		(void)snprintf(text, sizeof(text), "queue pair %u: validate", i);
		for (size_t k = 0; k < count; k++)
			bound += list[k].kind == NDX_HISTORY_RECEIVED && list[k].bytes_in == 80 &&
			         strcmp(list[k].text, text) == 0;
	}
	assert_int_equal(bound, MOST);
}

/* A MAC is of one queue pair of one session. */
static void another_queue_pair_is_refused(struct rig *r)
{
	struct ndx_session_error e = {.size = sizeof(e)};

	rig_up(r, MOST);
	assert_int_equal(ndx_session_connect(r->session), NDX_OK);
	assert_int_equal(ndx_session_execute(r->session, NDX_STAGE_INFO), NDX_OK);
	for (uint32_t i = 0; i < MOST; i++)
		assert_int_equal(r->session->many->lanes[i]->s.dialogue.binding.queue_pair, i);
	r->session->many->lanes[5]->s.dialogue.binding.queue_pair = 6;
	/* Both ends find it; which one is the first is open. */
	assert_int_not_equal(ndx_session_execute(r->session, NDX_STAGE_VALIDATE), NDX_OK);
	assert_int_equal(ndx_session_get_error(r->session, &e), NDX_OK);
	assert_int_equal(e.of_queue_pair, 1);
	assert_int_equal(e.queue_pair, 5);
	assert_non_null(strstr(e.text, "wrong MAC"));
	rig_down(r);
}

static void is_over_budget(struct rig *r, const char *text)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	struct ndx_session_error e = {.size = sizeof(e)};

	rig_up(r, MOST);
	assert_int_equal(ndx_session_run(r->session), NDX_E_REMOTE_ERROR);
	assert_int_equal(ndx_session_get_error(r->session, &e), NDX_OK);
	if (strstr(e.text, text) == NULL)
		fail_msg("%s", e.text);
	assert_int_equal(ndx_negotiation_server_get_stats(r->server, &stats), NDX_OK);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.refused_principals, 1);
	rig_down(r);
}

/* A principal has all queue pairs of a session, and the memory of all of them. */
static void each_counts_for_its_principal(struct rig *r)
{
	most_queue_pairs = MOST;
	rig_run(r, MOST);
	all_say_goodbye(r);
	rig_down(r);
	most_queue_pairs = MOST - 1;
	is_over_budget(r, "more than 15 queue pairs");
	most_queue_pairs = 0;
	memory_each = 1000;
	most_memory = MOST * memory_each - 1;
	is_over_budget(r, "more than 15999 bytes of memory");
	memory_each = 0;
	most_memory = 0;
}

static void all_of_it_passes_through_tls(void **state)
{
	static const char key[] = "many:00112233445566778899aabbccddeeff\n";
	char file[] = "/tmp/ndx-many-XXXXXX";
	const int fd = mkstemp(file);
	struct ndx_tls_attr tls;
	struct rig r;

	(void)state;
	assert_int_equal(write(fd, key, sizeof(key) - 1), sizeof(key) - 1);
	(void)close(fd);
	ndx_tls_attr_init(&tls);
	tls.psk_file = file;
	tls_server = tls_client = &tls;
	for (int i = 0; i < 2; i++) {
		rig_variant = i == 0 ? "as-it-is" : "long";
		rig_run(&r, MOST);
		if (i == 0)
			each_is_bound(&r);
		all_say_goodbye(&r);
		rig_down(&r);
	}
	rig_variant = "as-it-is";
	another_queue_pair_is_refused(&r);
	each_counts_for_its_principal(&r);
	tls_server = tls_client = NULL;
	(void)unlink(file);
}

/* ---- the proof of the path ---- */

static void each_path_is_proved(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	char text[32];
	struct rig r;

	(void)state;
	fake_direct_proves = true;
	for (int good = 0; good < 2; good++) {
		for (int i = 0; i < 2; i++)
			fake_direct_proofs[i] = (struct ndx_spi_proof){
				.written = NDX_PROVED_WHOLE,
				.seen = good ? NDX_PROVED_WHOLE : NDX_PROVED_NOTHING,
				.status = NDX_OK};
		rig_up(&r, MOST);
		__atomic_store_n(&fake_direct_looks, 0, __ATOMIC_SEQ_CST);
		assert_int_equal(ndx_session_run(r.session) == NDX_OK, good);
		assert_true(__atomic_load_n(&fake_direct_looks, __ATOMIC_SEQ_CST) >= 2 * MOST);
		assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
		assert_int_equal(e.of_queue_pair, !good);
		(void)snprintf(text, sizeof(text), "queue pair %u: ", e.queue_pair);
		if (!good)
			assert_non_null(strstr(e.text, text));
		rig_down(&r);
	}
	fake_direct_proves = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_goodbye_is_that_of_one_queue_pair),
		cmocka_unit_test(an_abort_is_that_of_one_queue_pair),
		cmocka_unit_test(the_end_of_the_transport_is_that_of_all),
		cmocka_unit_test(messages_may_be_long),
		cmocka_unit_test(all_of_it_passes_through_tls),
		cmocka_unit_test(each_path_is_proved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
