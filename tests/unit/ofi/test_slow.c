/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that is busy for longer than anybody waits for a dead one is not taken for that. */
#include "relay.h"

#include <stdlib.h>

#define RATE (UINT32_C(8) << 20) /* bytes a second */
#define PART 4096u
#define LONG (UINT32_C(26) << 20) /* takes longer than silence is borne */

struct slow {
	struct relay *relay;
	struct ndx_mr *big[2];
	unsigned char *memory[2];
};

static void slow_up(struct pair *p, struct slow *s)
{
	struct pair_side *side[2] = {&p->a, &p->b};

	s->relay = relay_start(p, RATE);
	for (int i = 0; i < 2; i++) {
		s->memory[i] = calloc(1, LONG);
		assert_int_equal(ndx_mr_register_new(side[i]->adapter, s->memory[i], LONG,
		                                     NDX_MR_ALLOW_REMOTE_WRITE, &s->big[i]),
		                 NDX_OK);
	}
	pair_make(p);
	pair_connect(p);
}

static void end(struct pair *p, struct slow *s)
{
	pair_drop(p);
	relay_end(s->relay);
	for (int i = 0; i < 2; i++) {
		ndx_mr_close(s->big[i]);
		free(s->memory[i]);
	}
}

/* One request for all of it, from side i to the other. */
static void write_long(struct pair *p, struct slow *s, int i)
{
	struct pair_side *side = i == 0 ? &p->a : &p->b;
	const struct ndx_sge sge = {s->memory[i], LONG, ndx_mr_get_local_token(s->big[i])};

	assert_int_equal(ndx_qp_write(side->qp, (void *)7, &sge, 1, (uintptr_t)s->memory[1 - i],
	                              ndx_mr_get_remote_token(s->big[1 - i]), 0),
	                 NDX_OK);
}

static struct ndx_mr *region(struct pair_side *side)
{
	struct ndx_mr *mr;

	assert_int_equal(ndx_mr_register_new(side->adapter, side->memory, PART,
	                                     NDX_MR_ALLOW_REMOTE_READ, &mr),
	                 NDX_OK);
	return mr;
}

/* b gets to know a region of a's. */
static void read_from(struct pair *p, const struct ndx_mr *mr)
{
	const struct ndx_sge sge = pair_sge(&p->b, 0, PART);

	assert_int_equal(ndx_qp_read(p->b.qp, (void *)1, &sge, 1, (uintptr_t)p->a.memory,
	                             ndx_mr_get_remote_token(mr), 0),
	                 NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_READ, 1, NDX_OK);
}

/* a takes back what b knows, while one of them writes for long. */
static void take_back_behind_a_long_write(struct pair *p, int writer)
{
	struct ndx_mr *mr = region(&p->a);
	struct ndx_overlapped ov = {0};
	struct slow s;

	slow_up(p, &s);
	read_from(p, mr);
	write_long(p, &s, writer);
	assert_int_equal(ndx_mr_deregister(mr, &ov), NDX_PENDING);
	pair_expect(writer == 0 ? &p->a : &p->b, NDX_REQUEST_WRITE, 7, NDX_OK);
	assert_int_equal(pair_wait(&ov), NDX_OK);
	ndx_mr_close(mr);
	pair_part(p);
	end(p, &s);
}

static void the_question_stands_behind_a_long_write(void **state)
{
	take_back_behind_a_long_write(*state, 0);
}

static void the_answer_stands_behind_a_long_write(void **state)
{
	take_back_behind_a_long_write(*state, 1);
}

static void a_peer_that_was_granted_nothing_is_not_asked(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr = region(&p->a);
	struct ndx_overlapped ov = {0};
	struct ndx_result result;
	struct slow s;

	slow_up(p, &s);
	write_long(p, &s, 0);
	assert_int_equal(ndx_mr_deregister(mr, &ov), NDX_PENDING);
	assert_int_equal(pair_wait(&ov), NDX_OK);
	assert_int_equal(ndx_cq_get_results(p->a.cq, &result, 1), 0); /* the write goes on */
	ndx_mr_close(mr);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 7, NDX_OK);
	pair_part(p);
	end(p, &s);
}

static void a_path_that_stands_still_ends_the_wait(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr = region(&p->a);
	struct slow s;

	slow_up(p, &s);
	read_from(p, mr);
	assert_int_equal(ndx_connector_notify_disconnect(p->a.connector, &p->a.ov), NDX_PENDING);
	write_long(p, &s, 0);
	relay_stop_the_flow(s.relay);
	ndx_mr_close(mr);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(p->a.ov.information, NDX_DISCONNECT_ABORTED);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 7, NDX_E_CANCELED);
	end(p, &s);
}

static void keepalive_waits_for_a_long_write(void **state)
{
	struct pair *p = *state;
	struct slow s;

	p->attr.keepalive_ms = 1000;
	slow_up(p, &s);
	write_long(p, &s, 0);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 7, NDX_OK);
	pair_part(p);
	end(p, &s);
}

static void keepalive_waits_for_a_long_write_without_a_spare_descriptor(void **state)
{
	struct pair *p = *state;
	struct pair_hoard hoard;
	struct slow s;
	int fd;

	p->attr.keepalive_ms = 1000;
	slow_up(p, &s);
	assert_int_equal(ndx_cq_get_fd(p->a.cq, &fd), NDX_OK); /* to wait with */
	pair_use_up_descriptors(&hoard);
	write_long(p, &s, 0);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 7, NDX_OK);
	pair_give_back_descriptors(&hoard);
	pair_part(p);
	end(p, &s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_question_stands_behind_a_long_write),
		CASE(the_answer_stands_behind_a_long_write),
		CASE(a_peer_that_was_granted_nothing_is_not_asked),
		CASE(a_path_that_stands_still_ends_the_wait),
		CASE(keepalive_waits_for_a_long_write),
		CASE(keepalive_waits_for_a_long_write_without_a_spare_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
