/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs come and go at random while the others of their session transfer data: no byte is
 * lost or changed. $NDX_TEST_SEED repeats a run. */
#include "many_rig.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sys/random.h>

enum { BASE = 4, FEW = 4, ROUNDS = 300, SIZE = 3000, KEPT = 40, SLOTS = BASE + FEW, TOO_MANY = 64 };

static uint64_t seed;

static uint64_t next_number(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint32_t below(uint32_t limit)
{
	return (uint32_t)((next_number(&seed) >> 32) % limit);
}

/* ---- the data of one queue pair ---- */

struct slot {
	uint8_t out[SIZE];
	uint8_t in[SIZE];
	uint8_t window[SIZE]; /* the peer writes here */
};

struct bank {
	struct ndx_mr *mr;
	struct slot *slots;
};

struct transfer {
	struct end *ends[2];
	uint32_t slot;
	uint64_t key;
	const char *wrong; /* NULL: all was right */
	enum ndx_status status;
};

static struct bank banks[2];

static void bank_open(struct bank *b, struct ndx_adapter *adapter)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st;

	b->slots = calloc(SLOTS, sizeof(*b->slots));
	assert_non_null(b->slots);
	assert_int_equal(ndx_mr_create(adapter, &b->mr), NDX_OK);
	st = ndx_mr_register(b->mr, b->slots, SLOTS * sizeof(*b->slots),
	                     NDX_MR_ALLOW_LOCAL_WRITE | NDX_MR_ALLOW_REMOTE_WRITE, &ov);
	assert_int_equal(st == NDX_PENDING ? ndx_overlapped_wait(&ov, WAIT_MS) : st, NDX_OK);
}

static void bank_close(struct bank *b)
{
	ndx_mr_close(b->mr);
	free(b->slots);
}

static void paint(uint8_t *at, uint64_t key)
{
	for (size_t i = 0; i < SIZE; i += 8) {
		const uint64_t word = next_number(&key);

		memcpy(at + i, &word, SIZE - i < 8 ? SIZE - i : 8);
	}
}

static bool is_painted(const uint8_t *at, uint64_t key)
{
	uint8_t right[SIZE];

	paint(right, key);
	return memcmp(at, right, SIZE) == 0;
}

static struct ndx_sge sge_of(int side, uint8_t *at)
{
	return (struct ndx_sge){
		.buffer = at, .length = SIZE, .token = ndx_mr_get_local_token(banks[side].mr)};
}

/* `count` results, all of them good. */
static bool results(struct transfer *w, int side, size_t count, const char *what)
{
	struct ndx_result result;

	for (int tries = 0; count > 0 && tries < 1000 + WAIT_MS; tries++) {
		if (ndx_cq_get_results(w->ends[side]->cq, &result, 1) == 0) {
			(void)poll(NULL, 0, tries < 1000 ? 0 : 1);
			continue;
		}
		tries = 0;
		count--;
		w->status = result.status;
		if (result.status != NDX_OK)
			break;
	}
	if (count == 0)
		return true;
	w->wrong = what;
	return false;
}

static bool posted(struct transfer *w, enum ndx_status st, const char *what)
{
	w->status = st;
	if (st != NDX_OK)
		w->wrong = what;
	return st == NDX_OK;
}

static bool receive(struct transfer *w, int side)
{
	struct ndx_sge sge = sge_of(side, banks[side].slots[w->slot].in);

	return posted(w, ndx_qp_receive(w->ends[side]->qp, NULL, &sge, 1), "a receive is posted");
}

/* Write into the peer's window, and send. */
static bool speak(struct transfer *w, int side, uint64_t key)
{
	struct slot *own = &banks[side].slots[w->slot];
	struct slot *peer = &banks[!side].slots[w->slot];
	struct ndx_qp *qp = w->ends[side]->qp;
	struct ndx_sge sge = sge_of(side, own->out);

	paint(own->out, key);
	return posted(w,
	              ndx_qp_write(qp, NULL, &sge, 1, (uint64_t)(uintptr_t)peer->window,
	                           ndx_mr_get_remote_token(banks[!side].mr), 0),
	              "a write is posted") &&
	       posted(w, ndx_qp_send(qp, NULL, &sge, 1, 0), "a send is posted");
}

static bool arrived(struct transfer *w, int side, uint64_t key)
{
	const struct slot *own = &banks[side].slots[w->slot];

	if (!is_painted(own->in, key))
		w->wrong = "a message has other bytes";
	else if (!is_painted(own->window, key))
		w->wrong = "a write has other bytes";
	return w->wrong == NULL;
}

/* A message and a write there, and both back. */
static bool exchange(struct transfer *w)
{
	const uint64_t key = w->key += 2;

	return receive(w, 0) && receive(w, 1) && speak(w, 0, key) &&
	       results(w, 1, 1, "a message arrives") && arrived(w, 1, key) &&
	       results(w, 0, 2, "a send and a write end") && speak(w, 1, key + 1) &&
	       results(w, 0, 1, "an answer arrives") && arrived(w, 0, key + 1) &&
	       results(w, 1, 2, "the answer's send and write end");
}

/* ---- those that stay ---- */

struct traffic {
	pthread_t thread;
	struct transfer transfers[BASE];
	uint64_t rounds; /* atomic */
	bool over;       /* atomic */
};

static void *traffic_main(void *arg)
{
	struct traffic *t = arg;
	bool fine = true;

	while (fine && !__atomic_load_n(&t->over, __ATOMIC_ACQUIRE)) {
		for (int i = 0; fine && i < BASE; i++)
			fine = exchange(&t->transfers[i]);
		(void)__atomic_add_fetch(&t->rounds, 1, __ATOMIC_ACQ_REL);
		(void)poll(NULL, 0, 1); /* the rest of the test has one processor */
	}
	return NULL;
}

static void traffic_start(struct traffic *t, struct rig *r)
{
	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < BASE; i++)
		t->transfers[i] = (struct transfer){
			.ends = {&r->a[i], &r->b[i]}, .slot = i, .key = (uint64_t)i << 48};
	assert_int_equal(pthread_create(&t->thread, NULL, traffic_main, t), 0);
}

static void is_right(const struct transfer *w)
{
	if (w->wrong != NULL)
		fail_msg("%s, queue pair %u, message %" PRIu64 ": %s, %s", rig_uri, w->slot,
		         (w->key & 0xffffffff) / 2, w->wrong, ndx_status_name(w->status));
}

static void traffic_stop(struct traffic *t, uint64_t at_least)
{
	__atomic_store_n(&t->over, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(t->thread, NULL), 0);
	for (int i = 0; i < BASE; i++)
		is_right(&t->transfers[i]);
	assert_true(t->rounds >= at_least);
	print_message("%s: %" PRIu64 " messages each way on each of %d queue pairs\n", rig_uri,
	              t->rounds, BASE);
}

/* ---- those that come and go ---- */

struct tally {
	uint32_t added;
	uint32_t refused;
	uint32_t cancelled;
	uint32_t broken;
	uint32_t kept[KEPT + FEW]; /* indices that are not removed yet */
	uint32_t keeps;
};

/* The server is done with all that came before when it refuses more than it may have. */
static void meet(struct rig *r)
{
	static const struct ndx_session_queue_pair many[TOO_MANY];

	assert_int_equal(ndx_session_add_queue_pairs(r->session, many, TOO_MANY, NULL),
	                 NDX_E_REMOTE_ERROR);
}

static void refuse(struct rig *r, struct tally *t)
{
	r->refuses = NDX_E_INSUFFICIENT_RESOURCES;
	assert_int_equal(more_add(r, NULL), NDX_E_REMOTE_ERROR);
	r->refuses = NDX_OK;
	t->refused++;
	meet(r);
	more_down(r);
}

static void break_one(struct rig *r, struct tally *t)
{
	r->lame = below(r->more);
	assert_true(more_add(r, NULL) < 0);
	t->broken++;
	r->lame = MOST;
	meet(r);
	more_down(r);
}

/* At a moment that is chosen at random, perhaps too late. */
static bool cancel(struct rig *r, struct tally *t, uint32_t *first)
{
	struct ndx_session_queue_pair list[MOST];
	struct ndx_overlapped ov = {0};
	enum ndx_status st;

	more_list(r, list);
	assert_int_equal(ndx_session_add_queue_pairs_overlapped(r->session, list, r->more, &ov),
	                 NDX_PENDING);
	for (uint32_t i = below(200); i > 0; i--)
		(void)poll(NULL, 0, 0);
	ndx_session_cancel(r->session);
	st = ndx_overlapped_wait(&ov, WAIT_MS);
	*first = ov.information;
	if (st == NDX_OK)
		return false;
	assert_int_equal(st, NDX_E_CANCELED);
	t->cancelled++;
	meet(r);
	more_down(r);
	return true;
}

/* In an order that is chosen at random. */
static void forget(struct rig *r, struct tally *t, uint32_t down_to)
{
	while (t->keeps > down_to) {
		const uint32_t i = below(t->keeps);

		assert_int_equal(ndx_session_remove_queue_pairs(r->session, t->kept[i], 1), NDX_OK);
		t->kept[i] = t->kept[--t->keeps];
	}
}

/* They transfer data, and end. */
static void use(struct rig *r, struct tally *t, uint32_t first)
{
	const uint32_t count = r->more;

	t->added += count;
	for (uint32_t i = 0; i < count; i++) {
		struct transfer w = {.ends = {&r->more_a[i], &r->more_b[i]},
		                     .slot = BASE + i,
		                     .key = next_number(&seed)};

		(void)exchange(&w);
		is_right(&w);
	}
	more_end(r);
	if (below(2) == 0) {
		assert_int_equal(ndx_session_remove_queue_pairs(r->session, first, count), NDX_OK);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		t->kept[t->keeps++] = first + i;
	forget(r, t, below(KEPT));
}

static void play(struct rig *r, struct tally *t)
{
	const uint32_t kind = below(10);
	uint32_t first = 0;

	more_up(r, 1 + below(FEW));
	if (kind == 0) {
		refuse(r, t);
		return;
	}
	if (kind == 1) {
		break_one(r, t);
		return;
	}
	if (kind < 5 ? cancel(r, t, &first) : false)
		return;
	if (kind >= 5)
		assert_int_equal(more_add(r, &first), NDX_OK);
	use(r, t, first);
}

static void data_pass_beside_batches(void **state)
{
	static const char *const uris[] = {"loop", "ofi:tcp"};
	struct traffic traffic;
	struct rig r;

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct tally t = {0};

		rig_uri = uris[k];
		rig_run(&r, BASE);
		for (int i = 0; i < 2; i++)
			bank_open(&banks[i], r.adapters[i]);
		traffic_start(&traffic, &r);
		for (int i = 0; i < ROUNDS; i++)
			play(&r, &t);
		traffic_stop(&traffic, 10);
		all_last(r.a, BASE);
		all_last(r.b, BASE);
		assert_true(t.added > 0 && t.refused > 0 && t.broken > 0 && t.cancelled > 0);
		print_message("%s: %u added, %u batches refused, %u broken, %u cancelled\n",
		              rig_uri, t.added, t.refused, t.broken, t.cancelled);
		forget(&r, &t, 0);
		assert_int_equal(ndx_session_get_queue_pair_count(r.session), BASE);
		for (uint32_t i = 0; i < BASE; i++)
			disconnect_both(&r.a[i], &r.b[i]);
		assert_int_equal(ndx_session_execute(r.session, NDX_STAGE_DONE), NDX_OK);
		for (int i = 0; i < 2; i++)
			bank_close(&banks[i]);
		rig_down(&r);
	}
	rig_uri = "direct";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_pass_beside_batches),
	};
	const char *given = getenv("NDX_TEST_SEED");

	if (given != NULL)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return 1;
	(void)printf("NDX_TEST_SEED=0x%" PRIx64 "\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
