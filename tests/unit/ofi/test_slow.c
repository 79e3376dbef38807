/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that is busy for longer than the time limit for a dead peer does not count as dead. */
#include "relay.h"

#include <stdlib.h>

#define RATE (UINT32_C(8) << 20) /* bytes per second */
#define PART 4096u
#define LONG_BYTES (UINT32_C(26) << 20) /* takes longer than the time limit for a silent peer */

struct slow_path {
	struct relay *relay;
	struct ndx_mr *mr[2];
	unsigned char *memory[2];
};

static void connect_slowly(struct pair *p, struct slow_path *s)
{
	struct pair_side *side[2] = {&p->a, &p->b};

	s->relay = relay_start(p, RATE);
	for (int i = 0; i < 2; i++) {
		s->memory[i] = test_calloc(1, LONG_BYTES);
		assert_int_equal(ndx_mr_register_new(side[i]->adapter, s->memory[i], LONG_BYTES,
		                                     NDX_MR_ALLOW_REMOTE_WRITE, &s->mr[i]),
		                 NDX_OK);
	}
	pair_make(p);
	pair_connect(p);
}

static void close_both(struct pair *p, struct slow_path *s)
{
	pair_drop(p);
	relay_close(s->relay);
	for (int i = 0; i < 2; i++) {
		ndx_mr_close(s->mr[i]);
		test_free(s->memory[i]);
	}
}

/* One write of the whole region, from side i to the other. */
static void write_long(struct pair *p, struct slow_path *s, int i)
{
	struct pair_side *side = i == 0 ? &p->a : &p->b;
	const struct ndx_sge sge = {s->memory[i], LONG_BYTES, ndx_mr_get_local_token(s->mr[i])};

	assert_int_equal(ndx_qp_write(side->qp, (void *)7, &sge, 1, (uintptr_t)s->memory[1 - i],
	                              ndx_mr_get_remote_token(s->mr[1 - i]), 0),
	                 NDX_OK);
}

static struct ndx_mr *register_part(struct pair_side *side)
{
	struct ndx_mr *mr;

	assert_int_equal(ndx_mr_register_new(side->adapter, side->memory, PART,
	                                     NDX_MR_ALLOW_REMOTE_READ, &mr),
	                 NDX_OK);
	return mr;
}

/* b reads a region of a, so b knows its token. */
static void read_region(struct pair *p, const struct ndx_mr *mr)
{
	const struct ndx_sge sge = pair_sge(&p->b, 0, PART);

	assert_int_equal(ndx_qp_read(p->b.qp, (void *)1, &sge, 1, (uintptr_t)p->a.memory,
	                             ndx_mr_get_remote_token(mr), 0),
	                 NDX_OK);
	pair_expect(&p->b, NDX_REQUEST_READ, 1, NDX_OK);
}

/* a deregisters a region that b knows, during a long write of one of them. */
static void deregister_behind_a_long_write(struct pair *p, int writer)
{
	struct ndx_mr *mr = register_part(&p->a);
	struct ndx_overlapped ov = {0};
	struct slow_path s;

	connect_slowly(p, &s);
	read_region(p, mr);
	write_long(p, &s, writer);
	assert_int_equal(ndx_mr_deregister(mr, &ov), NDX_PENDING);
	pair_expect(writer == 0 ? &p->a : &p->b, NDX_REQUEST_WRITE, 7, NDX_OK);
	assert_int_equal(pair_wait(&ov), NDX_OK);
	ndx_mr_close(mr);
	pair_disconnect(p);
	close_both(p, &s);
}

static void a_sync_waits_behind_a_long_write(void **state)
{
	deregister_behind_a_long_write(*state, 0);
}

static void a_synced_waits_behind_a_long_write(void **state)
{
	deregister_behind_a_long_write(*state, 1);
}

static void a_peer_without_a_grant_gets_no_sync(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr = register_part(&p->a);
	struct ndx_overlapped ov = {0};
	struct ndx_result result;
	struct slow_path s;

	connect_slowly(p, &s);
	write_long(p, &s, 0);
	assert_int_equal(ndx_mr_deregister(mr, &ov), NDX_PENDING);
	assert_int_equal(pair_wait(&ov), NDX_OK);
	/* the write is still outstanding */
	assert_int_equal(ndx_cq_get_results(p->a.cq, &result, 1), 0);
	ndx_mr_close(mr);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 7, NDX_OK);
	pair_disconnect(p);
	close_both(p, &s);
}

static void a_path_that_stands_still_ends_the_wait(void **state)
{
	struct pair *p = *state;
	struct ndx_mr *mr = register_part(&p->a);
	struct slow_path s;

	connect_slowly(p, &s);
	read_region(p, mr);
	assert_int_equal(ndx_connector_notify_disconnect(p->a.connector, &p->a.ov), NDX_PENDING);
	write_long(p, &s, 0);
	relay_stall(s.relay);
	ndx_mr_close(mr);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	assert_int_equal(p->a.ov.information, NDX_DISCONNECT_ABORTED);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 7, NDX_E_CANCELED);
	close_both(p, &s);
}

static void keepalive_waits_for_a_long_write(void **state)
{
	struct pair *p = *state;
	struct slow_path s;

	p->attr.keepalive_ms = 1000;
	connect_slowly(p, &s);
	write_long(p, &s, 0);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 7, NDX_OK);
	pair_disconnect(p);
	close_both(p, &s);
}

static void keepalive_waits_for_a_long_write_without_a_spare_descriptor(void **state)
{
	struct pair *p = *state;
	struct pair_used_fds hoard;
	struct slow_path s;
	int fd;

	p->attr.keepalive_ms = 1000;
	connect_slowly(p, &s);
	assert_int_equal(ndx_cq_get_fd(p->a.cq, &fd), NDX_OK); /* the wait uses this descriptor */
	pair_use_up_descriptors(&hoard);
	write_long(p, &s, 0);
	pair_expect(&p->a, NDX_REQUEST_WRITE, 7, NDX_OK);
	pair_give_back_descriptors(&hoard);
	pair_disconnect(p);
	close_both(p, &s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_sync_waits_behind_a_long_write),
		CASE(a_synced_waits_behind_a_long_write),
		CASE(a_peer_without_a_grant_gets_no_sync),
		CASE(a_path_that_stands_still_ends_the_wait),
		CASE(keepalive_waits_for_a_long_write),
		CASE(keepalive_waits_for_a_long_write_without_a_spare_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
