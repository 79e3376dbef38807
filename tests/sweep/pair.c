/* SPDX-License-Identifier: BSD-2-Clause */
/* What most scripts begin and all end with. */
#include <string.h>

#include "sweep.h"

bool sweep_equip(struct side *s)
{
	return step_cq(s, 4) &&
	       step_mr(s, NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ |
	                          NDX_MR_RDMA_READ_SINK) &&
	       step_qp(s);
}

/*
 * The attempt came to nothing: away with it, so that another one can be made. The queue pairs are
 * as before it, unless one of them had heard already that it is connected.
 */
static bool clear_attempt(struct run *r)
{
	const bool keep = strcmp(faults_latest(r), "established") != 0;
	bool good = true;

	for (int i = 0; i < 2; i++) {
		struct side *s = &r->sides[i];

		ndx_connector_close(s->connector);
		s->connector = NULL;
		if (!keep) {
			ndx_qp_close(s->qp);
			s->qp = NULL;
			sweep_take_rest(s);
			good = good && step_qp(s);
		}
	}
	sweep_settle(r);
	return good;
}

static bool attempt(struct run *r)
{
	struct op *request;
	struct op *asked;
	struct op *accepted;
	struct op *completed;

	if (!step_connector(r->passive))
		return false;
	request = step_request(r->passive);
	if (request == NULL || !step_connector(r->active))
		return false;
	asked = step_connect(r->active, "hello", 5);
	if (asked == NULL || !step_wait_either(r, request, NDX_OK, asked))
		return false;
	accepted = step_accept(r->passive, "welcome", 7);
	if (accepted == NULL || !step_wait_either(r, asked, NDX_OK, accepted))
		return false;
	completed = step_complete(r->active);
	if (completed == NULL || !step_wait_either(r, completed, NDX_OK, accepted))
		return false;
	return step_wait(r, accepted, NDX_OK);
}

/* A stubborn script tries a second time. */
bool sweep_connect(struct run *r)
{
	if (attempt(r))
		return true;
	if (!r->stubborn || r->repeated || r->wrong)
		return false;
	r->repeated = true;
	r->failed = false;
	return clear_attempt(r) && attempt(r);
}

bool sweep_pair(struct run *r)
{
	return sweep_equip(r->passive) && sweep_equip(r->active) && step_listen(r->passive) &&
	       sweep_connect(r);
}

bool sweep_disconnect(struct run *r)
{
	return step_wait(r, step_disconnect(r->active), NDX_OK) &&
	       step_wait(r, step_disconnect(r->passive), NDX_OK);
}

void sweep_join(struct run *r, pthread_t thread, bool cancel)
{
	struct timespec soon;

	do {
		if (cancel || faults_struck(r))
			(void)ndx_listener_cancel(r->passive->listener);
		(void)clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec += 5000000;
		if (soon.tv_nsec >= 1000000000) {
			soon.tv_nsec -= 1000000000;
			soon.tv_sec++;
		}
	} while (pthread_timedjoin_np(thread, NULL, &soon) != 0);
}

/* ---- closing ---- */

static void close_connector(struct side *s)
{
	ndx_connector_close(s->connector);
	s->connector = NULL;
}

static void close_qp(struct side *s)
{
	ndx_qp_close(s->qp);
	s->qp = NULL;
}

static void close_cq(struct side *s)
{
	ndx_cq_close(s->cq);
	s->cq = NULL;
}

static void close_srq(struct side *s)
{
	ndx_srq_close(s->srq);
	s->srq = NULL;
}

static void close_mr(struct side *s)
{
	ndx_mr_close(s->mr);
	s->mr = NULL;
}

static void close_mw(struct side *s)
{
	ndx_mw_close(s->mw);
	s->mw = NULL;
}

static void close_listener(struct side *s)
{
	ndx_listener_close(s->listener);
	s->listener = NULL;
}

static void (*const closers[])(struct side *s) = {
	close_connector, close_qp, close_cq, close_srq, close_mr, close_mw, close_listener,
};

#define CLOSERS (sizeof(closers) / sizeof(closers[0]))

static unsigned below(struct run *r, unsigned limit)
{
	r->random = r->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(r->random >> 33) % limit;
}

/* Each of both sides' in an order of chance. */
void sweep_close(struct run *r)
{
	unsigned order[2 * CLOSERS] = {0};

	for (unsigned i = 0; i < 2 * CLOSERS; i++) {
		const unsigned j = below(r, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (unsigned i = 0; i < 2 * CLOSERS; i++)
		closers[order[i] / 2](&r->sides[order[i] % 2]);
	sweep_settle(r);
}
