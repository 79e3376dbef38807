/* SPDX-License-Identifier: BSD-2-Clause */
/* disconnect.load_*: traffic both ways, cut off at any moment. And many connections at once. */
#include "cases.h"
#include "load.h"
#include "traffic.h"

static void rounds(struct check *c, uint32_t receive_depth, unsigned count)
{
	struct load_plan plan = {.receive_depth = receive_depth, .threads = false};

	for (unsigned i = 0; i < count && !check_over(c); i++) {
		load_round(c, &plan);
		pair_close_all(c);
	}
}

void case_disconnect_load_depth_1(struct check *c)
{
	rounds(c, 1, 1);
}

void case_disconnect_load_depth_2(struct check *c)
{
	rounds(c, 2, 1);
}

void case_disconnect_load_depth_4(struct check *c)
{
	rounds(c, 4, 1);
}

void case_disconnect_load_depth_64(struct check *c)
{
	rounds(c, 64, 1);
}

void case_disconnect_load_threads(struct check *c)
{
	static const uint32_t depths[] = {1, 2, 4, 64};
	struct load_plan plan = {.threads = true};

	plan.receive_depth = depths[check_below(c, 4)];
	load_round(c, &plan);
}

void case_disconnect_load_closed(struct check *c)
{
	static const uint32_t depths[] = {1, 2, 4, 64};
	struct load_plan plan = {.end = LOAD_CLOSE};

	plan.receive_depth = depths[check_below(c, 4)];
	load_round(c, &plan);
}

void case_disconnect_load_flushed(struct check *c)
{
	static const uint32_t depths[] = {1, 2, 4, 64};
	struct load_plan plan = {.end = LOAD_FLUSH};

	plan.receive_depth = depths[check_below(c, 4)];
	load_round(c, &plan);
}

/* ---- storms ---- */

enum { STORM_THREADS = 4, STORM_ROUNDS = 12 };

struct storm {
	struct check *c;
	struct check own; /* its pairs and its random numbers; one thread */
	pthread_t thread;
	bool running;
};

static void *storm_run(void *arg)
{
	struct storm *storm = arg;
	struct check *c = &storm->own;

	for (unsigned i = 0; i < STORM_ROUNDS && !check_over(c) && !check_over(storm->c); i++) {
		struct side_attr attr;
		struct pair *p;

		side_attr_init(&attr);
		attr.receive_depth = 4;
		attr.initiator_depth = 4;
		attr.buffer = 4096;
		p = pair_up(c, &attr);
		if (!p)
			break;
		message_passes(&p->a, &p->b, 128);
		if (check_chance(c, 30))
			side_close_qp(&p->a); /* implicit */
		else
			side_disconnect(check_chance(c, 50) ? &p->a : &p->b, NDX_OK);
		pair_close_all(c);
	}
	pair_close_all(c);
	return NULL;
}

void case_disconnect_storm_from_threads(struct check *c)
{
	struct storm storms[STORM_THREADS];

	for (size_t i = 0; i < STORM_THREADS; i++) {
		storms[i].c = c;
		check_begin(&storms[i].own, c->world, check_random(c));
		storms[i].running =
			pthread_create(&storms[i].thread, NULL, storm_run, &storms[i]) == 0;
	}
	for (size_t i = 0; i < STORM_THREADS; i++) {
		if (storms[i].running)
			(void)pthread_join(storms[i].thread, NULL);
		check_that(c, storms[i].running && storms[i].own.outcome == OUTCOME_PASSED, "%s",
		           storms[i].running ? storms[i].own.reason : "no thread");
		check_end(&storms[i].own);
	}
}
