/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading on: a poll of a queue that is armed waits for the next part of a message. The clock of
 * the thread that polls is the test's, and so are the reads of its native queues, so that waits are
 * counted exactly.
 */
#include "relay.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include <ndx/spi/system.h>

#include "ofi.h"

#define US 1000u    /* nanoseconds */
#define COPY_US 10u /* a read that copies a part */
#define EMPTY_US 1u
#define WAIT_US 50u /* for the next part, ... */
#define ALL_US 500u /* ... and for all until the queue is armed again */
#define VAIN 8u     /* waits in vain, one after another, make a pause; ... */
#define PIECES 12u  /* ... so many if each part comes in two pieces; ... */
#define PAUSE 256u  /* ... in which so many parts come without a wait */
#define LANES 4u
#define LONG (UINT32_C(2) << 20) /* arrives in parts, in 0.1 s, ... */
#define RATE 20000000u           /* ... at this rate in bytes per second */
#define LONGS 4u
#define LONGS_MAX 100u
#define SHORT 64u
#define SPINS 8u /* polls of ndx_cq_wait_results() between two looks at the clock */

/* What the reads of this thread find. */
struct script {
	bool on;
	uint64_t now_ns;
	unsigned reads;  /* of all native queues, so far */
	unsigned period; /* of so many reads one copies a part; 0: the first `parts` of a poll */
	unsigned parts;
	unsigned result;                 /* the read that brings a result; 0: none */
	const struct ofi_ncq *result_of; /* the second read of this one brings a result */
	unsigned reads_of;               /* reads of that one, so far */
	unsigned wanted; /* during that read another thread wants the queue; 0: none */
	struct ofi_cq *cq;
	uint32_t *go; /* tells that thread to begin; atomic */
};

static _Thread_local struct script script;

uint64_t __real_ndxp_now_ns(void);
uint64_t __wrap_ndxp_now_ns(void);
uint64_t __real_ndxp_deadline(uint32_t ms);
uint64_t __wrap_ndxp_deadline(uint32_t ms);
int __real_ndxp_poll_ms_until(uint64_t deadline_ns, uint32_t most);
int __wrap_ndxp_poll_ms_until(uint64_t deadline_ns, uint32_t most);
void __real_ofi_ncq_poll(struct ofi_ncq *ncq, struct ndxp_cq *cq, size_t count);
void __wrap_ofi_ncq_poll(struct ofi_ncq *ncq, struct ndxp_cq *cq, size_t count);

uint64_t __wrap_ndxp_now_ns(void)
{
	return script.on ? script.now_ns : __real_ndxp_now_ns();
}

uint64_t __wrap_ndxp_deadline(uint32_t ms)
{
	return script.on ? script.now_ns + ms * NDXP_NS_PER_MS : __real_ndxp_deadline(ms);
}

int __wrap_ndxp_poll_ms_until(uint64_t deadline_ns, uint32_t most)
{
	return script.on ? 0 : __real_ndxp_poll_ms_until(deadline_ns, most);
}

/* Read until a result is there. */
static void read_result(struct ofi_ncq *ncq, struct ndxp_cq *cq, size_t count)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	while (!ndxp_cq_has(cq, 1) && pair_now() < end)
		__real_ofi_ncq_poll(ncq, cq, count);
}

static void until_wanted(const struct ofi_cq *cq)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	while (!ndxp_lock_is_wanted(&cq->poll_lock) && pair_now() < end)
		(void)poll(NULL, 0, 1);
}

void __wrap_ofi_ncq_poll(struct ofi_ncq *ncq, struct ndxp_cq *cq, size_t count)
{
	bool copies;

	if (!script.on) {
		__real_ofi_ncq_poll(ncq, cq, count);
		return;
	}
	copies = script.period == 0 ? script.reads < script.parts
	                            : script.reads % script.period == 0;
	script.now_ns += (copies ? COPY_US : EMPTY_US) * US;
	script.reads++;
	if (ncq == script.result_of)
		script.reads_of++;
	if (script.reads == script.result || (ncq == script.result_of && script.reads_of == 2))
		read_result(ncq, cq, count);
	if (script.reads == script.wanted) {
		__atomic_store_n(script.go, 1, __ATOMIC_RELEASE);
		until_wanted(script.cq);
	}
}

static void arm(const struct pair_side *side)
{
	int fd;

	assert_int_equal(ndx_cq_get_fd(side->cq, &fd), NDX_OK);
	assert_int_equal(ndx_cq_notify(side->cq, NDX_CQ_NOTIFY_ANY, NULL), NDX_OK);
}

static void start(struct pair *p)
{
	pair_make(p);
	pair_connect(p);
	arm(&p->b);
	script = (struct script){.parts = 1, .now_ns = ndxp_now_ns(), .cq = (void *)p->b.cq};
	assert_int_not_equal(script.cq->fds_shared, 0);
}

static void end(struct pair *p)
{
	script.on = false;
	pair_disconnect(p);
	pair_drop(p);
}

/* One poll by the script; returns its reads of native queues. */
static unsigned reads_of_poll(const struct pair_side *side, size_t results)
{
	struct ndx_result result[4];
	size_t got;

	script.on = true;
	script.reads = 0;
	got = ndx_cq_get_results(side->cq, result, 4);
	script.on = false;
	assert_int_equal(got, results);
	return script.reads;
}

static uint64_t rest_waits(const struct pair_side *side)
{
	return pair_counter(side, false, "rest_waits");
}

/* Parts come one after another, without an end. */
static void all_polls_until_armed_again_share_a_limit(void **state)
{
	struct pair *p = *state;

	start(p);
	script.period = 1;
	for (unsigned i = 0; i < 3; i++) {
		arm(&p->b);
		assert_int_equal(reads_of_poll(&p->b, 0), 1 + ALL_US / COPY_US);
		for (unsigned k = 0; k < 10; k++)
			assert_int_equal(reads_of_poll(&p->b, 0), 1);
	}
	assert_int_equal(rest_waits(&p->b), 3);
	end(p);
}

static void a_result_renews_the_limit(void **state)
{
	struct pair *p = *state;

	start(p);
	script.period = 1;
	assert_int_equal(reads_of_poll(&p->b, 0), 1 + ALL_US / COPY_US);
	pair_receive(&p->b, 1, 0, 64);
	pair_send(&p->a, 2, 0, 64, 0);
	script.result = 1;
	assert_int_equal(reads_of_poll(&p->b, 1), 1);
	script.result = 0;
	assert_int_equal(reads_of_poll(&p->b, 0), 1 + ALL_US / COPY_US);
	pair_expect(&p->a, NDX_REQUEST_SEND, 2, NDX_OK);
	end(p);
}

/* A wait of 1 ms ends not later than one poll's reading on after that. */
static void a_wait_keeps_its_time_out(void **state)
{
	struct pair *p = *state;
	const uint64_t poll_us = COPY_US + ALL_US;
	struct ndx_result result;
	uint64_t begin;
	size_t got;

	start(p);
	script.period = 1;
	begin = script.now_ns;
	script.on = true;
	assert_int_equal(ndx_cq_wait_results(p->b.cq, &result, 1, 1, &got), NDX_PENDING);
	script.on = false;
	/* it polls SPINS times, arms, and polls once */
	assert_int_equal(script.now_ns - begin,
	                 (poll_us + (SPINS - 1) * COPY_US + poll_us) * (uint64_t)US);
	assert_int_equal(rest_waits(&p->b), 2);
	end(p);
}

/* So many waits in vain behind so many parts, then a pause; all of that twice. */
static void expect_pauses(const struct pair_side *side, unsigned waits, unsigned parts)
{
	script.parts = parts;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < waits; i++) {
			arm(side);
			assert_int_equal(reads_of_poll(side, 0), parts + WAIT_US / EMPTY_US);
		}
		for (unsigned i = 1; i < PAUSE; i++) {
			arm(side);
			assert_int_equal(reads_of_poll(side, 0), 1);
		}
	}
	assert_int_equal(rest_waits(side), 2 * waits);
}

/* Each part comes when the poll has waited for it in vain. */
static void waits_in_vain_make_a_pause(void **state)
{
	struct pair *p = *state;

	start(p);
	expect_pauses(&p->b, VAIN, 1);
	end(p);
}

/* The second piece comes at once, which says nothing about the next part. */
static void so_do_parts_in_two_pieces(void **state)
{
	struct pair *p = *state;

	start(p);
	expect_pauses(&p->b, PIECES, 2);
	end(p);
}

/* Each part comes 10 us after the last one. */
static void parts_in_time_make_no_pause(void **state)
{
	struct pair *p = *state;
	const unsigned per_part_us = COPY_US + 9 * EMPTY_US;

	start(p);
	script.period = 10;
	for (unsigned i = 0; i < PAUSE; i++) {
		arm(&p->b);
		assert_true(reads_of_poll(&p->b, 0) >= ALL_US / per_part_us * script.period);
	}
	/* and with one wait in vain for each three parts that came in time */
	script.period = 0;
	script.parts = 4;
	for (unsigned i = 0; i < PAUSE; i++) {
		arm(&p->b);
		assert_int_equal(reads_of_poll(&p->b, 0), script.parts + WAIT_US / EMPTY_US);
	}
	assert_int_equal(rest_waits(&p->b), 2 * PAUSE);
	end(p);
}

/* Connections whose passive sides have one completion queue, that of the first. */
static void make_lanes(struct pair *p, struct pair *lane, struct relay **slow)
{
	for (unsigned i = 0; i < LANES; i++) {
		struct ndx_qp_attr attr = p->attr;

		lane[i] = *p;
		pair_make(&lane[i]);
		if (i == 0)
			continue;
		ndx_qp_close(lane[i].b.qp);
		ndx_cq_close(lane[i].b.cq);
		lane[i].b.cq = NULL;
		attr.receive_cq = lane[0].b.cq;
		attr.initiator_cq = lane[0].b.cq;
		attr.context = &lane[i].b;
		assert_int_equal(ndx_qp_create(p->b.adapter, &attr, &lane[i].b.qp), NDX_OK);
		pair_connect(&lane[i]);
	}
	if (slow != NULL)
		*slow = relay_start(&lane[0], RATE);
	pair_connect(&lane[0]);
}

static void drop_lanes(struct pair *lane)
{
	for (unsigned i = 0; i < LANES; i++)
		pair_disconnect(&lane[i]);
	for (unsigned i = 0; i < LANES; i++)
		pair_drop(&lane[i]);
}

static struct ofi_qp *qp_of(const struct pair_side *side)
{
	return ofi_qp_of((struct ndx_spi_qp *)(void *)side->qp);
}

static void another_connection_ends_reading_on(void **state)
{
	struct pair lane[LANES];
	struct ofi_cq *cq;

	make_lanes(*state, lane, NULL);
	for (unsigned i = 0; i < LANES; i++) {
		arm(&lane[0].b);
		cq = (void *)lane[0].b.cq;
		assert_int_not_equal(cq->fds_shared, 0);
		script = (struct script){.parts = 1, .now_ns = ndxp_now_ns(), .period = 1};
		script.result_of = qp_of(&lane[i].b)->ncq;
		pair_receive(&lane[i].b, 1, 0, SHORT);
		pair_send(&lane[i].a, 2, 0, SHORT, 0);
		/* the first read of all of them, and the second */
		assert_int_equal(reads_of_poll(&lane[0].b, 1), 2 * cq->native);
		pair_expect(&lane[i].a, NDX_REQUEST_SEND, 2, NDX_OK);
	}
	drop_lanes(lane);
}

/* The consumer of all lanes: what the threads have taken. */
struct taken {
	struct pair *lane;
	bool alone;              /* one thread, so results are in order */
	uint32_t expected;       /* results of all lanes; 0: not known yet; atomic */
	uint32_t results;        /* so far, ...; atomic */
	uint32_t count[LANES];   /* ... and of each lane; atomic */
	uint32_t context[LANES]; /* sums of contexts; atomic */
	uint32_t faults;         /* atomic */
};

static void take_result(struct taken *taken, const struct ndx_result *result)
{
	const struct pair *of = container_of(result->queue_pair_context, struct pair, b);
	const size_t i = (size_t)(of - taken->lane);
	const uint32_t context = (uint32_t)(uintptr_t)result->request_context;
	const uint32_t number = __atomic_add_fetch(&taken->count[i], 1, __ATOMIC_RELEASE);

	(void)__atomic_add_fetch(&taken->context[i], context, __ATOMIC_RELAXED);
	if (result->status != NDX_OK || result->request_type != NDX_REQUEST_RECEIVE ||
	    result->bytes_transferred != (i == 0 ? LONG : SHORT) ||
	    (taken->alone && context != number))
		(void)__atomic_add_fetch(&taken->faults, 1, __ATOMIC_RELAXED);
	(void)__atomic_add_fetch(&taken->results, 1, __ATOMIC_RELEASE);
}

static void *consume(void *arg)
{
	struct taken *taken = arg;
	const uint64_t limit = pair_now() + 10 * PAIR_TIMEOUT_MS;
	struct ndx_result result[2];
	size_t got;

	while (pair_now() < limit &&
	       (__atomic_load_n(&taken->expected, __ATOMIC_ACQUIRE) == 0 ||
	        __atomic_load_n(&taken->results, __ATOMIC_ACQUIRE) < taken->expected)) {
		(void)ndx_cq_wait_results(taken->lane[0].b.cq, result, 2, 10, &got);
		for (size_t i = 0; i < got; i++)
			take_result(taken, &result[i]);
	}
	return NULL;
}

static void send_one(struct pair *lane, unsigned i, uint32_t number)
{
	const uint32_t length = i == 0 ? LONG : SHORT;
	const size_t offset = i == 0 ? 0 : LONG + i * SHORT;

	pair_receive(&lane[i].b, number, offset, length);
	pair_send(&lane[i].a, number, offset, length, 0);
}

/* Wait until the consumer has taken so many results of a lane; their receives are free then. */
static void until_taken(const struct taken *taken, unsigned i, uint32_t count)
{
	const uint64_t limit = pair_now() + PAIR_TIMEOUT_MS;

	while (__atomic_load_n(&taken->count[i], __ATOMIC_ACQUIRE) < count && pair_now() < limit)
		(void)sched_yield();
	assert_true(__atomic_load_n(&taken->count[i], __ATOMIC_ACQUIRE) >= count);
}

/* Short messages on all other lanes, one after another, until the long one has arrived. Returns how
 * many in all. */
static uint32_t send_beside(struct pair *lane, uint32_t number, const struct taken *taken,
                            uint32_t longs)
{
	const uint64_t limit = pair_now() + PAIR_TIMEOUT_MS;

	while (__atomic_load_n(&taken->count[0], __ATOMIC_RELAXED) < longs && pair_now() < limit) {
		number++;
		for (unsigned i = 1; i < LANES; i++)
			send_one(lane, i, number);
		for (unsigned i = 1; i < LANES; i++)
			pair_expect(&lane[i].a, NDX_REQUEST_SEND, number, NDX_OK);
		for (unsigned i = 1; i < LANES; i++)
			until_taken(taken, i, number);
	}
	until_taken(taken, 0, longs);
	return number;
}

static void parts_beside_whole_messages(struct pair *p, unsigned threads)
{
	struct pair lane[LANES];
	struct taken taken = {.lane = lane, .alone = threads == 1};
	struct relay *slow;
	pthread_t thread[2];
	uint32_t longs = 0;
	uint32_t shorts = 0;

	make_lanes(p, lane, &slow);
	for (unsigned i = 0; i < threads; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, consume, &taken), 0);
	/* the control thread reads for a consumer that is not scheduled */
	while (longs < LONGS || (rest_waits(&lane[0].b) == 0 && longs < LONGS_MAX)) {
		send_one(lane, 0, ++longs);
		shorts = send_beside(lane, shorts, &taken, longs);
		pair_expect(&lane[0].a, NDX_REQUEST_SEND, longs, NDX_OK);
	}
	__atomic_store_n(&taken.expected, longs + (LANES - 1) * shorts, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < threads; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(taken.faults, 0);
	assert_int_not_equal(rest_waits(&lane[0].b), 0);
	for (unsigned i = 0; i < LANES; i++) {
		const uint32_t sent = i == 0 ? longs : shorts;

		assert_int_equal(taken.count[i], sent);
		assert_int_equal(taken.context[i], (uint32_t)((uint64_t)sent * (sent + 1) / 2));
	}
	drop_lanes(lane);
	relay_close(slow);
}

static void whole_messages_come_beside_parts(void **state)
{
	parts_beside_whole_messages(*state, 1);
}

static void whole_messages_come_beside_parts_to_two_threads(void **state)
{
	parts_beside_whole_messages(*state, 2);
}

struct other {
	struct pair_side *side;
	uint32_t go; /* atomic */
};

static void *arm_when_told(void *arg)
{
	struct other *other = arg;
	const uint64_t limit = pair_now() + PAIR_TIMEOUT_MS;

	while (__atomic_load_n(&other->go, __ATOMIC_ACQUIRE) == 0 && pair_now() < limit)
		(void)poll(NULL, 0, 1);
	arm(other->side);
	return NULL;
}

static void a_poll_gives_way_to_another_thread(void **state)
{
	struct pair *p = *state;
	struct other other = {.side = &p->b};
	pthread_t thread;

	start(p);
	assert_int_equal(pthread_create(&thread, NULL, arm_when_told, &other), 0);
	script.period = 1;
	script.wanted = 3;
	script.go = &other.go;
	assert_int_equal(reads_of_poll(&p->b, 0), 3);
	assert_int_equal(pthread_join(thread, NULL), 0);
	end(p);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(all_polls_until_armed_again_share_a_limit),
		CASE(a_result_renews_the_limit),
		CASE(a_wait_keeps_its_time_out),
		CASE(waits_in_vain_make_a_pause),
		CASE(so_do_parts_in_two_pieces),
		CASE(parts_in_time_make_no_pause),
		CASE(a_poll_gives_way_to_another_thread),
		CASE(another_connection_ends_reading_on),
		CASE(whole_messages_come_beside_parts),
		CASE(whole_messages_come_beside_parts_to_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
