/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lane.h"

#define MAX_COUNT (UINT64_C(1) << 22)
#define NS_PER_MS 1000000u
#define WARM_LEAST 8u /* messages */

/* AGAIN: the same lane as SAME */
enum { NDX, SAME, AGAIN, PLAIN, BESIDE, LANES = BESIDE + (int)LANE_BESIDES };

struct rounds {
	unsigned count;
	double *ns[LANES]; /* for one message; half a round trip */
	double *scratch;
};

static double *room(unsigned count)
{
	double *values = calloc(count, sizeof(*values));

	if (values == NULL)
		lane_die("no memory", "for the figures");
	return values;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of sorted values; part is 0 .. 1. */
static double quantile(const double *sorted, unsigned count, double part)
{
	const double at = part * (count - 1);
	const unsigned below = (unsigned)at;
	const unsigned above = below + 1 < count ? below + 1 : below;

	return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/* Leaves a[i] / b[i] (b NULL: a[i]) sorted in scratch; the median. */
static double median(struct rounds *r, const double *a, const double *b)
{
	for (unsigned i = 0; i < r->count; i++)
		r->scratch[i] = b != NULL ? a[i] / b[i] : a[i];
	qsort(r->scratch, r->count, sizeof(*r->scratch), compare);
	return quantile(r->scratch, r->count, 0.5);
}

/* Of how many messages does a block of the wanted length consist? */
static uint64_t calibrate(const struct measure_plan *plan, struct traffic *traffic,
                          struct traffic_block block)
{
	const double wanted = (double)plan->block_ms * NS_PER_MS;

	for (block.count = 8; block.count < MAX_COUNT;) {
		double factor;
		double ns;

		block.warm = block.count / 16 + WARM_LEAST;
		ns = (double)traffic_run(traffic, &block);
		factor = wanted / (ns > 1 ? ns : 1);

		if (factor < 2) {
			const double count = (double)block.count * factor;

			return count > 8 ? (uint64_t)count : 8;
		}
		block.count *= factor < 8 ? (uint64_t)factor : 8;
	}
	return block.count;
}

static void shuffle(unsigned order[LANES], unsigned count)
{
	for (unsigned i = count; i > 1; i--) {
		const unsigned j = (unsigned)(random() % (long)i);
		const unsigned swap = order[i - 1];

		order[i - 1] = order[j];
		order[j] = swap;
	}
}

static void run_rounds(struct traffic *traffic, struct traffic_block block,
                       struct lane *const lanes[LANES], struct rounds *r)
{
	unsigned order[LANES];
	unsigned count = 0;
	const double messages = (double)block.count * (block.test == TRAFFIC_STREAM ? 1.0 : 2.0);

	for (unsigned k = 0; k < LANES; k++) {
		if (lanes[k] != NULL)
			order[count++] = k;
	}
	for (unsigned i = 0; i < r->count; i++) {
		shuffle(order, count);
		for (unsigned k = 0; k < count; k++) {
			block.lane = lanes[order[k]];
			r->ns[order[k]][i] = (double)traffic_run(traffic, &block) / messages;
		}
	}
}

/* From times for one message to what the row tells. */
static void conclude(struct rounds *r, struct measure_row *row)
{
	const bool rate = row->test == TRAFFIC_STREAM;

	for (unsigned k = 0; k < LANES; k++) {
		for (unsigned i = 0; i < r->count; i++)
			r->ns[k][i] = rate ? 1e9 / r->ns[k][i] : r->ns[k][i] / 1e3;
	}
	row->ndx = median(r, r->ns[NDX], NULL);
	for (unsigned k = 0; k < LANE_BESIDES; k++) {
		row->beside[k] = median(r, r->ns[BESIDE + k], NULL);
		row->ratio_beside[k] = median(r, r->ns[NDX], r->ns[BESIDE + k]);
	}
	if (!row->compared)
		return;
	row->raw_same = median(r, r->ns[SAME], NULL);
	row->aa = median(r, r->ns[SAME], r->ns[AGAIN]);
	if (row->plain) {
		row->raw_plain = median(r, r->ns[PLAIN], NULL);
		row->ratio_plain = median(r, r->ns[NDX], r->ns[PLAIN]);
	}
	row->ratio_same = median(r, r->ns[NDX], r->ns[SAME]);
	row->q1 = quantile(r->scratch, r->count, 0.25);
	row->q3 = quantile(r->scratch, r->count, 0.75);
}

/* What there is to compare with. */
static void open_raw(const struct measure_plan *plan, const struct lane_attr *attr,
                     struct lane *lanes[LANES])
{
	const struct lane_below *below = &plan->below;
	const struct sockaddr *address = (const struct sockaddr *)&below->address;

	if (below->stack == LANE_VERBS) {
		lanes[SAME] = lane_open_verbs(attr, below);
	} else if (below->stack == LANE_OFI && !attr->write) {
		lanes[SAME] = lane_open_raw(attr, below->devices[0], address, below->len, true);
		lanes[PLAIN] = lane_open_raw(attr, below->devices[0], address, below->len, false);
	}
	lanes[AGAIN] = lanes[SAME];
}

static void open_beside(const struct measure_plan *plan, const struct lane_attr *attr,
                        struct lane *lanes[LANE_BESIDES])
{
	const struct sockaddr *address = (const struct sockaddr *)&plan->below.address;

	if (attr->write)
		return;
	if (plan->beside[LANE_TCP])
		lanes[LANE_TCP] = lane_open_tcp(attr, address, plan->below.len);
	if (plan->beside[LANE_UCX])
		lanes[LANE_UCX] = lane_open_ucx(attr, address);
}

static void try_once(const struct measure_plan *plan, struct traffic *traffic,
                     struct measure_row *row)
{
	const struct lane_attr attr = {.uris = {plan->uris[0], plan->uris[1]},
	                               .size = row->size,
	                               .depth = row->depth,
	                               .write = row->test == TRAFFIC_WRITE,
	                               .wait = row->wait};
	struct traffic_block block = {.test = row->test, .wait = row->wait};
	struct rounds r = {.count = plan->blocks, .scratch = room(plan->blocks)};
	struct lane *lanes[LANES] = {lane_open_ndx(&attr)};

	for (unsigned k = 0; k < LANES; k++)
		r.ns[k] = room(plan->blocks);
	open_raw(plan, &attr, lanes);
	row->compared = lanes[SAME] != NULL;
	row->plain = lanes[PLAIN] != NULL;
	open_beside(plan, &attr, &lanes[BESIDE]);
	for (unsigned k = 0; k < LANE_BESIDES; k++)
		row->has_beside[k] = lanes[BESIDE + k] != NULL;
	block.lane = row->compared ? lanes[SAME] : lanes[NDX];
	block.count = calibrate(plan, traffic, block);
	block.warm = block.count * plan->warm_up_ms / plan->block_ms + WARM_LEAST;
	run_rounds(traffic, block, lanes, &r);
	conclude(&r, row);
	for (unsigned k = 0; k < LANES; k++) {
		if (lanes[k] != NULL && k != AGAIN)
			lanes[k]->close(lanes[k]);
		free(r.ns[k]);
	}
	free(r.scratch);
}

bool measure_is_undecided(const struct measure_row *row)
{
	return row->compared && fabs(row->aa - 1) > MEASURE_AA_LIMIT;
}

void measure_run(const struct measure_plan *plan, struct traffic *traffic, struct measure_row *row)
{
	for (unsigned i = 1; i <= plan->tries; i++) {
		try_once(plan, traffic, row);
		if (!measure_is_undecided(row))
			return;
		if (traffic_now_ns() >= plan->deadline_ns)
			return;
		if (i < plan->tries)
			(void)fprintf(stderr,
			              "undecided: same against same is %.3f; try %u of %u\n",
			              row->aa, i + 1, plan->tries);
	}
}

const char *measure_unit(const struct measure_row *row)
{
	return row->test == TRAFFIC_STREAM ? "msg/s" : "us";
}
