/* SPDX-License-Identifier: BSD-2-Clause */
#include "plan.h"

#include <stdio.h>
#include <string.h>

#include "chance.h"

enum {
	PATIENT_DRAIN_MS = 2000,
	PATIENT_DISCONNECT_MS = 8000,
	SHORT_DRAIN_MS = 25,
	SHORT_DISCONNECT_MS = 60,
	FOREVER = -1,
};

static const char *const finish_names[FINISHES] = {
	[FINISH_DISCONNECT] = "disconnect",
	[FINISH_NOTHING] = "nothing",
	[FINISH_CLOSE_QP] = "close qp",
	[FINISH_CLOSE_CONNECTOR] = "close connector",
	[FINISH_FLUSH] = "flush",
	[FINISH_LOCAL_TOKEN] = "wrong local token",
	[FINISH_REMOTE_TOKEN] = "wrong remote token",
	[FINISH_REMOTE_RANGE] = "wrong remote range",
	[FINISH_SHORT_RECEIVE] = "short receive",
	[FINISH_NO_RECEIVE] = "no receive",
	[FINISH_CLOSE_MEMORY] = "close memory",
	[FINISH_INVALIDATE] = "invalidate unbound",
};

static const char *const attempt_names[ATTEMPTS] = {"normal",    "nobody",     "reject",
                                                    "turn down", "close late", "cancel"};
static const char *const fate_names[FATES] = {"lives", "killed", "stopped", "exits", "leaves"};
static const char *const caller_names[CALLERS] = {"", ", in callbacks", ", in crossed callbacks",
                                                  ", in another adapter's callbacks"};
static const char *const fork_names[FORKS] = {"", ", forks", ", forks and execs"};

const char *finish_name(enum finish finish)
{
	return finish_names[finish];
}

static uint32_t pick(uint64_t *random, const uint32_t *from, uint32_t count)
{
	return from[below(random, count)];
}

/* Ends by themselves, by both, by accident. */
static enum finish pick_finish(uint64_t *random)
{
	static const enum finish odd[] = {
		FINISH_CLOSE_QP,        FINISH_CLOSE_QP,     FINISH_CLOSE_CONNECTOR,
		FINISH_CLOSE_CONNECTOR, FINISH_FLUSH,        FINISH_FLUSH,
		FINISH_LOCAL_TOKEN,     FINISH_REMOTE_TOKEN, FINISH_REMOTE_RANGE,
		FINISH_SHORT_RECEIVE,   FINISH_CLOSE_MEMORY, FINISH_INVALIDATE,
	};
	uint32_t dice = below(random, 100);

	if (dice < 52)
		return FINISH_DISCONNECT;
	if (dice < 70)
		return FINISH_NOTHING;
	return odd[below(random, sizeof(odd) / sizeof(odd[0]))];
}

static void plan_end(struct end_plan *e, const struct plan *plan, const struct side_plan *side,
                     const struct means *means, uint64_t *random)
{
	static const uint32_t depths[] = {1, 2, 4, 16, 64};

	e->finish = pick_finish(random);
	if (e->finish == FINISH_INVALIDATE && !means->windows)
		e->finish = FINISH_FLUSH;
	e->finish_at = below(random, plan->turns);
	e->polling = chance(random, 75) ? POLL_EAGER : chance(random, 60) ? POLL_LAZY : POLL_NEVER;
	e->polite = true;
	e->asks = chance(random, 70);
	e->ask_at = chance(random, 60) ? 0 : below(random, plan->turns);
	e->cancels = chance(random, 15);
	e->waits = chance(random, 20);
	e->late_end = chance(random, 70);
	e->one_region = chance(random, 40);
	e->one_cq = chance(random, 50);
	e->uses_srq = side->srq && chance(random, 70);
	e->receive_cq = below(random, side->cqs);
	e->initiator_cq = e->one_cq ? e->receive_cq : below(random, side->cqs);
	e->receive_depth = pick(random, depths, 5);
	e->initiator_depth = pick(random, depths, 5);
	e->sge = 1 + below(random, means->sge < 3 ? means->sge : 3);
	e->inline_size = chance(random, 50) ? means->inline_size : 0;
	if (e->inline_size > 64)
		e->inline_size = 64;
	e->no_receive_ms = (uint32_t)FOREVER;
	e->keepalive_ms = chance(random, 20) ? 20000 : 0;
	e->seed = random_next(random);
}

/* Sends whether a receive waits or not; at the end some may wait in vain, as long as a drain takes.
 */
static void be_rude(struct conn_plan *c, struct plan *plan, uint32_t side, uint64_t *random)
{
	c->ends[side].polite = false;
	plan->drain_ms = SHORT_DRAIN_MS + below(random, 20);
}

/* One side posts no receives and the other sends all the same. */
static void plan_rnr(struct conn_plan *c, struct plan *plan, uint64_t *random)
{
	uint32_t mute = below(random, 2);

	c->ends[mute].mute = true;
	c->ends[mute].uses_srq = false;
	be_rude(c, plan, 1 - mute, random);
	if (!chance(random, 30))
		return;
	c->ends[1 - mute].finish = FINISH_NO_RECEIVE;
	c->ends[1 - mute].no_receive_ms = 5 + below(random, 20);
}

static void plan_conn(struct conn_plan *c, struct plan *plan, const struct means *means,
                      uint64_t *random)
{
	static const uint32_t messages[] = {16, 64, 256, 256, 1024};

	c->message = plan->area > 65536 ? 32768 : pick(random, messages, 5);
	for (uint32_t i = 0; i < SIDES; i++)
		plan_end(&c->ends[i], plan, &plan->sides[i], means, random);
	if (chance(random, 3))
		plan_rnr(c, plan, random);
	else if (chance(random, 6)) /* sends may wait a moment for a receive, or too long */
		be_rude(c, plan, below(random, 2), random);
	for (uint32_t i = 0; i < SIDES; i++) {
		if (c->ends[1 - i].uses_srq) /* a side that posts too much there takes the receives
		                                of others */
			c->ends[i].polite = true;
	}
	c->attempt = ATTEMPT_NORMAL;
	if (chance(random, 8))
		c->attempt = (enum attempt)(1 + below(random, ATTEMPTS - 1));
}

static enum fate pick_fate(uint64_t *random)
{
	uint32_t dice = below(random, 100);

	if (dice < 25)
		return FATE_LIVES;
	if (dice < 60)
		return FATE_KILLED;
	if (dice < 78)
		return FATE_STOPPED;
	return dice < 89 ? FATE_EXITS : FATE_LEAVES;
}

/* Half of the survivors do nothing until they are told that the peer is gone. */
static void plan_death(struct plan *plan, uint64_t *random)
{
	static const enum fate fates[] = {FATE_KILLED, FATE_KILLED, FATE_EXITS, FATE_LEAVES};

	plan->fate = fates[below(random, 4)];
	for (uint32_t i = 0; i < plan->conns; i++) {
		struct end_plan *survivor = &plan->of[i].ends[1 - plan->child];

		if (chance(random, 50))
			continue;
		survivor->finish = FINISH_NOTHING;
		survivor->no_receive_ms =
			(uint32_t)FOREVER; /* else its sends may end the connection */
		survivor->asks = true;
		survivor->ask_at = 0;
		survivor->cancels = false;
		survivor->patient = true;
	}
}

/* The other side is a process, which may die. */
static void plan_process(struct plan *plan, const struct means *means, uint64_t *random)
{
	plan->process = true;
	plan->threads = 1;
	plan->child = below(random, 2);
	plan->fate = pick_fate(random);
	plan->fate_at = below(random, plan->turns);
	for (uint32_t i = 0; i < plan->conns; i++) {
		plan->of[i].attempt = ATTEMPT_NORMAL;
		for (uint32_t side = 0; side < SIDES; side++)
			plan->of[i].ends[side].late_end = true;
	}
	if (means->deaths)
		plan_death(plan, random);
	if (plan->fate == FATE_STOPPED) {
		plan->drain_ms = SHORT_DRAIN_MS;
		plan->disconnect_ms = SHORT_DISCONNECT_MS;
	}
}

/*
 * Everything is called inside callbacks. With two threads there are two at the same time; crossed,
 * each of them works on the objects of the other's adapter.
 */
static void plan_callbacks(struct plan *plan, const struct means *means, uint64_t *random)
{
	plan->caller = chance(random, 50) ? CALLER_CALLBACK : CALLER_CROSSED;
	if (means->other_adapter && chance(random, 30))
		plan->caller = CALLER_OTHER;
	if (plan->threads > 2)
		plan->threads = 2;
	if (chance(random, 60))
		plan->sides[below(random, SIDES)].own_adapter = true;
	if (plan->caller == CALLER_CALLBACK && chance(random, 60)) {
		plan->busy = 50;
		plan->threads = 1;
		for (uint32_t i = 0; i < SIDES; i++)
			plan->sides[i].own_adapter = false;
	}
}

/* Other processes, callbacks, forks. */
static void plan_oddities(struct plan *plan, const struct means *means, uint64_t *random)
{
	if (means->deaths || (means->processes && chance(random, 4)))
		plan_process(plan, means, random);
	if (!plan->process && means->callbacks)
		plan_callbacks(plan, means, random);
	if (chance(random, plan->process ? 40 : 2)) {
		plan->forks = chance(random, 50) ? FORK_EXECS : FORK_EXITS;
		plan->fork_at = below(random, plan->process ? plan->fate_at + 1 : plan->turns);
	}
}

void plan_make(struct plan *plan, uint64_t seed, const struct means *means)
{
	static const uint32_t cq_depths[] = {1, 2, 16, 256};
	static const uint32_t conns[] = {1, 1, 1, 1, 2, 2, 3, 4};
	uint64_t random = seed;
	bool heavy;

	memset(plan, 0, sizeof(*plan));
	plan->seed = seed;
	heavy = chance(&random, 3);
	plan->conns = pick(&random, conns, 8);
	if (chance(&random, 3))
		plan->conns = CONNS_MAX;
	plan->turns = 20 + below(&random, chance(&random, 20) ? 300 : 100);
	plan->drain_ms = PATIENT_DRAIN_MS;
	plan->disconnect_ms = PATIENT_DISCONNECT_MS;
	plan->area = 8192;
	plan->fences = means->fences;
	plan->windows = means->windows;
	if (heavy) {
		plan->conns = 1;
		plan->area = 262144;
	}
	plan->threads = chance(&random, 60) ? 1 : 2 + below(&random, 2);
	plan->teardown = random_next(&random);
	for (uint32_t i = 0; i < SIDES; i++) {
		struct side_plan *side = &plan->sides[i];

		side->cqs = 1 + below(&random, CQS_MAX);
		for (uint32_t q = 0; q < side->cqs; q++)
			side->cq_depth[q] = pick(&random, cq_depths, 4);
		side->own_adapter = chance(&random, 2);
		side->srq = means->srq && chance(&random, 20);
		side->srq_depth = 1 + below(&random, 32);
	}
	for (uint32_t i = 0; i < plan->conns; i++)
		plan_conn(&plan->of[i], plan, means, &random);
	plan_oddities(plan, means, &random);
}

int plan_print(const struct plan *plan, char *text, size_t size)
{
	int at = snprintf(text, size, "%u connections, %u turns, %u thread(s)%s%s%s%s%s",
	                  plan->conns, plan->turns, plan->threads,
	                  plan->process ? ", peer process " : "",
	                  plan->process ? (plan->child ? "B " : "A ") : "",
	                  plan->process ? fate_names[plan->fate] : "", fork_names[plan->forks],
	                  caller_names[plan->caller]);

	for (uint32_t i = 0; i < plan->conns && at >= 0 && (size_t)at < size; i++) {
		const struct conn_plan *c = &plan->of[i];

		at += snprintf(text + at, size - (size_t)at, "\n#   %u: %s, A %s at %u, B %s at %u",
		               i, attempt_names[c->attempt], finish_names[c->ends[0].finish],
		               c->ends[0].finish_at, finish_names[c->ends[1].finish],
		               c->ends[1].finish_at);
	}
	return at;
}
