/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many connections on one completion queue. Connections without reads share native queues, whatever
 * the version of libfabric: the end of one must not affect the others.
 */
#include "pair.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS 40u
#define FIRST 20u /* the test counts descriptors from this pair on */
#define ROUNDS 60u
#define BYTES 64u
#define BATCH 16u

struct shared_queue {
	struct pair *base; /* has the adapters, regions and listener */
	struct ndx_cq *cq[2];
	struct pair pairs[PAIRS];
	unsigned sent[PAIRS]; /* number of results in the round */
	unsigned received[PAIRS];
};

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	(void)closedir(dir);
	return count;
}

static void create_side(const struct shared_queue *m, struct pair_side *side, struct ndx_cq *cq)
{
	struct ndx_qp_attr attr = m->base->attr;

	memset(&side->ov, 0, sizeof(side->ov));
	side->cq = cq;
	attr.receive_cq = cq;
	attr.initiator_cq = cq;
	attr.context = side;
	assert_int_equal(ndx_qp_create(side->adapter, &attr, &side->qp), NDX_OK);
	assert_int_equal(ndx_connector_create(side->adapter, NULL, &side->connector), NDX_OK);
}

static void connect_pair(struct shared_queue *m, unsigned i)
{
	m->pairs[i] = *m->base;
	create_side(m, &m->pairs[i].a, m->cq[0]);
	create_side(m, &m->pairs[i].b, m->cq[1]);
	pair_connect(&m->pairs[i]);
}

static void close_pair(struct shared_queue *m, unsigned i)
{
	struct pair_side *sides[2] = {&m->pairs[i].a, &m->pairs[i].b};

	for (unsigned k = 0; k < 2; k++) {
		ndx_connector_close(sides[k]->connector);
		ndx_qp_close(sides[k]->qp);
	}
}

/* Take the results that are there. Results of `victim` may have any status. */
static void take_results(struct shared_queue *m, unsigned side, unsigned victim)
{
	struct ndx_result results[BATCH];
	const size_t n = ndx_cq_get_results(m->cq[side], results, BATCH);

	for (size_t k = 0; k < n; k++) {
		const uintptr_t i = (uintptr_t)results[k].request_context;

		assert_true(i < PAIRS);
		if (i != victim)
			assert_int_equal(results[k].status, NDX_OK);
		if (results[k].request_type == NDX_REQUEST_RECEIVE)
			m->received[i]++;
		else
			m->sent[i]++;
	}
}

static bool is_complete(const struct shared_queue *m, unsigned victim)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		if (i != victim && (m->sent[i] == 0 || m->received[i] == 0))
			return false;
	}
	return true;
}

static void post_all(struct shared_queue *m)
{
	memset(m->sent, 0, sizeof(m->sent));
	memset(m->received, 0, sizeof(m->received));
	for (unsigned i = 0; i < PAIRS; i++) {
		pair_receive(&m->pairs[i].b, i, (size_t)i * BYTES, BYTES);
		pair_send(&m->pairs[i].a, i, (size_t)i * BYTES, BYTES, 0);
	}
}

static void end_pair(struct shared_queue *m, unsigned i, unsigned how)
{
	switch (how % 4) {
	case 0:
		pair_disconnect(&m->pairs[i]);
		break;
	case 1:
		assert_int_equal(ndx_qp_flush(m->pairs[i].a.qp), NDX_OK);
		break;
	case 2:
		assert_int_equal(ndx_qp_flush(m->pairs[i].b.qp), NDX_OK);
		break;
	default: /* close without a disconnect */
		break;
	}
}

static void run_round(struct shared_queue *m, unsigned victim, unsigned how)
{
	const uint64_t limit = pair_now() + PAIR_TIMEOUT_MS;

	post_all(m);
	end_pair(m, victim, how);
	close_pair(m, victim);
	while (!is_complete(m, victim)) {
		take_results(m, 0, victim);
		take_results(m, 1, victim);
		assert_true(pair_now() < limit);
	}
	connect_pair(m, victim);
	for (unsigned i = 0; i < PAIRS; i++) {
		assert_true(m->sent[i] <= 1);
		assert_true(m->received[i] <= 1);
	}
}

static void run_rounds(struct pair *p, unsigned *descriptors_used)
{
	struct shared_queue *m = calloc(1, sizeof(*m));
	unsigned before = 0;

	assert_non_null(m);
	m->base = p;
	assert_int_equal(ndx_cq_create_depth(p->a.adapter, 4 * PAIRS, &m->cq[0]), NDX_OK);
	assert_int_equal(ndx_cq_create_depth(p->b.adapter, 4 * PAIRS, &m->cq[1]), NDX_OK);
	for (unsigned i = 0; i < PAIRS; i++) {
		if (i == FIRST)
			before = count_descriptors();
		connect_pair(m, i);
	}
	*descriptors_used = count_descriptors() - before;
	for (unsigned i = 0; i < ROUNDS; i++)
		run_round(m, (i * 7) % PAIRS, i);
	for (unsigned i = 0; i < PAIRS; i++)
		close_pair(m, i);
	ndx_cq_close(m->cq[0]);
	ndx_cq_close(m->cq[1]);
	free(m);
}

static void the_end_of_a_connection_does_not_affect_others(void **state)
{
	struct pair *p = *state;
	unsigned used;

	p->read_limit = 0;
	run_rounds(p, &used);
	/* A socket for each end, and a new native queue for some. */
	assert_true(used < 2 * 2 * (PAIRS - FIRST));
}

static void connections_with_reads_do_not_affect_each_other(void **state)
{
	struct pair *p = *state;
	unsigned used;

	p->read_limit = 1;
	run_rounds(p, &used);
	assert_true(used >= 2 * (PAIRS - FIRST));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_end_of_a_connection_does_not_affect_others),
		CASE(connections_with_reads_do_not_affect_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
