/* SPDX-License-Identifier: BSD-2-Clause */
#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_struct.h"
#include "receiver.h"

static uint64_t read_counter(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void read_counters(const struct receiver_counters *c, struct ndx_receiver_stats *s)
{
	s->frames = read_counter(&c->frames);
	s->bytes = read_counter(&c->bytes);
	s->copied = read_counter(&c->copied);
	s->copies_missed = read_counter(&c->copies_missed);
	s->empty = read_counter(&c->empty);
	s->no_immediate = read_counter(&c->no_immediate);
	s->lost = read_counter(&c->lost);
	s->repeated = read_counter(&c->repeated);
	s->overwritten = read_counter(&c->overwritten);
	s->misplaced = read_counter(&c->misplaced);
	s->oversize = read_counter(&c->oversize);
	s->connections = read_counter(&c->connections);
	s->sleeps = read_counter(&c->sleeps);
	s->wakeups = read_counter(&c->wakeups);
	for (int i = 0; i < NDX_RECEIVER_CONSUMERS; i++)
		s->consumer_errors[i] = read_counter(&c->consumer_errors[i]);
	for (int i = 0; i < NDX_STATS_STATUSES; i++)
		s->errors[i] = read_counter(&c->errors[i]);
	for (int i = 0; i < NDX_STATS_BUCKETS; i++) {
		s->sizes[i] = read_counter(&c->sizes[i]);
		s->gaps[i] = read_counter(&c->gaps[i]);
	}
}

static void read_slab(struct slab *slab, struct ndx_receiver_stats *s)
{
	ndxp_lock_acquire(&slab->lock);
	s->slots = slab->count;
	s->posted = slab->posted;
	s->held = slab->held;
	s->low_water = slab->low_water;
	s->repost_failed = slab->repost_failed;
	s->out_of_slots = slab->out_of_slots;
	s->out_of_slots_ns = slab->out_of_slots_ns;
	if (slab->out_of_slots_since_ns != 0 && s->time_ns > slab->out_of_slots_since_ns)
		s->out_of_slots_ns += s->time_ns - slab->out_of_slots_since_ns;
	ndxp_lock_release(&slab->lock);
}

enum ndx_status ndx_receiver_get_stats(struct ndx_receiver *r, struct ndx_receiver_stats *stats)
{
	static const struct base_struct layout =
		BASE_STRUCT(struct ndx_receiver_stats, NDX_RECEIVER_STATS_SIZE_0_1,
	                    "set `size` to sizeof(*stats)");
	struct ndx_receiver_stats now = {.time_ns = ndxp_now_ns()};

	if (r == NULL || stats == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_receiver_get_stats: NULL argument");
	read_counters(&r->counters, &now);
	read_slab(r->slab, &now);
	if (r->pull.ring != NULL) {
		ndxp_lock_acquire(&r->pull.lock);
		now.queued = r->pull.count;
		ndxp_lock_release(&r->pull.lock);
	}
	return base_struct_out(&layout, "ndx_receiver_get_stats", stats, stats->size, &now);
}
