/* SPDX-License-Identifier: BSD-2-Clause */
/* How long a disconnect takes, from the call to its completion, towards several kinds of peer. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

enum {
	SLOW_MS = 10,   /* how often a slow peer looks */
	UNDER_WAY = 16, /* sends that wait for receives */
	BATCH = 32,     /* disconnects that run into a time limit together */
	AT_SENDS = MESSAGES * LONGEST,
	STAGE_BYTES = 2 * AT_SENDS,
};

const char *kind_name(enum kind kind)
{
	switch (kind) {
	case KIND_IDLE:
		return "idle";
	case KIND_BUSY:
		return "busy";
	case KIND_SLOW:
		return "slow";
	case KIND_SILENT:
		return "silent";
	case KIND_RNR:
		return "silent, sends waiting";
	case KIND_STOPPED:
		return "stopped process";
	case KINDS:
		break;
	}
	return "unknown";
}

/* ---- the peer's program ---- */

struct peer {
	struct line *line;
	enum kind kind;
	pthread_t thread;
	bool good;
};

static size_t take_results(struct end *end)
{
	struct ndx_result results[32];
	size_t count = 0;
	size_t got;

	while ((got = ndx_cq_get_results(end->cq, results, 32)) > 0)
		count += got;
	return count;
}

static bool post_receives(struct line *line, size_t count)
{
	bool good = true;

	for (size_t i = 0; good && i < count; i++)
		good = line_receive(line, i, i * LONGEST, LONGEST);
	return good;
}

static bool post_sends(struct line *line, size_t count)
{
	bool good = true;

	for (size_t i = 0; good && i < count; i++)
		good = line_send(line, FIRST_SEND + i, AT_SENDS + i * LONGEST, LONGEST);
	return good;
}

static void *peer_run(void *arg)
{
	struct peer *peer = arg;
	struct line *line = peer->line;

	peer->good = true;
	while (peer->kind == KIND_BUSY && ndx_overlapped_status(&line->notify) == NDX_PENDING)
		(void)take_results(line->end);
	if (peer->kind == KIND_SLOW) {
		(void)ndx_overlapped_wait(&line->notify,
		                          SLOW_MS); /* the end is not told so early */
		(void)take_results(line->end);
		peer->good = post_receives(line, UNDER_WAY);
	}
	peer->good = wait_for(&line->notify, "notify_disconnect") && line_disconnect(line) &&
	             wait_for(&line->disc, "the peer's disconnect") && peer->good;
	return NULL;
}

/* ---- one at a time ---- */

static bool make_traffic(struct line lines[2], enum kind kind)
{
	if (kind == KIND_BUSY)
		return post_sends(&lines[1], MESSAGES) && post_sends(&lines[0], MESSAGES);
	return kind != KIND_SLOW || post_sends(&lines[0], UNDER_WAY);
}

static bool disconnect_timed(struct line *line, uint64_t *us)
{
	uint64_t start = now_us();
	bool good = line_disconnect(line) && wait_for(&line->disc, "disconnect");

	*us = now_us() - start;
	return good;
}

static bool one(struct stage *stage, enum kind kind, uint64_t *us, size_t *succeeded)
{
	struct line lines[2];
	struct peer peer = {.line = &lines[1], .kind = kind, .good = true};
	bool threaded = kind != KIND_SILENT;
	size_t receives = kind == KIND_SLOW ? 0 : MESSAGES;
	bool good;

	memset(lines, 0, sizeof(lines));
	good = line_open(&lines[0], &stage->ends[0], NULL) &&
	       line_open(&lines[1], &stage->ends[1], NULL) && post_receives(&lines[0], MESSAGES) &&
	       post_receives(&lines[1], receives) && lines_connect(stage, lines);
	threaded = threaded && good && pthread_create(&peer.thread, NULL, peer_run, &peer) == 0;
	good = good && make_traffic(lines, kind) && disconnect_timed(&lines[0], us);
	if (threaded) {
		if (!good) /* so that the peer has something to see */
			line_close(&lines[0]);
		(void)pthread_join(peer.thread, NULL);
	}
	*succeeded += good && lines[0].disc.status == NDX_OK;
	line_close(&lines[0]);
	line_close(&lines[1]);
	(void)take_results(&stage->ends[0]);
	(void)take_results(&stage->ends[1]);
	return good && peer.good;
}

static bool one_by_one(struct stage *stage, enum kind kind, size_t count, struct timing *timing)
{
	uint64_t *us = calloc(count, sizeof(*us));
	size_t succeeded = 0;
	bool good = us != NULL;

	for (size_t i = 0; good && i < count; i++)
		good = one(stage, kind, &us[i], &succeeded);
	if (good)
		timing_of(timing, us, count, succeeded);
	free(us);
	return good;
}

/* ---- those that run into a time limit: together ---- */

bool batch_disconnect(struct line *lines, size_t count, size_t stride, struct timing *timing)
{
	uint64_t us[BATCH];
	struct ndx_overlapped *done[BATCH];
	struct ndx_port *port = NULL;
	uint64_t start;
	size_t succeeded = 0;
	size_t ended = 0;
	size_t got = 1;

	if (count > BATCH || ndx_port_create(&port) != NDX_OK)
		return went_wrong("port_create", NDX_E_INSUFFICIENT_RESOURCES);
	start = now_us();
	for (size_t i = 0; i < count; i++) {
		lines[i * stride].disc.port = port;
		if (!line_disconnect(&lines[i * stride]))
			got = 0;
	}
	for (; got > 0 && ended < count; ended += got) {
		got = ndx_port_get(port, done, count - ended, WAIT_MS);
		for (size_t i = 0; i < got; i++) {
			us[ended + i] = now_us() - start;
			succeeded += done[i]->status == NDX_OK;
		}
	}
	for (size_t i = 0; i < count; i++)
		line_close(&lines[i * stride]); /* nothing is in flight to the port any more */
	ndx_port_close(port);
	if (ended < count)
		return went_wrong("disconnects of a batch", NDX_E_IO_TIMEOUT);
	timing_of(timing, us, count, succeeded);
	return true;
}

static bool measure_rnr(struct stage *stage, struct timing *timing)
{
	struct line lines[2 * BATCH];
	bool good = true;

	memset(lines, 0, sizeof(lines));
	for (size_t i = 0; good && i < BATCH; i++)
		good = line_open(&lines[2 * i], &stage->ends[0], NULL) &&
		       line_open(&lines[2 * i + 1], &stage->ends[1], NULL) &&
		       lines_connect(stage, &lines[2 * i]) && post_sends(&lines[2 * i], UNDER_WAY);
	good = good && batch_disconnect(lines, BATCH, 2, timing);
	for (size_t i = 0; i < (size_t)2 * BATCH; i++)
		line_close(&lines[i]);
	return good;
}

bool times_run(const char *uri, const struct options *o, struct timing timings[KINDS])
{
	struct stage stage;
	bool good;

	if (!stage_open(&stage, uri, STAGE_BYTES))
		return false;
	good = one_by_one(&stage, KIND_IDLE, o->times, &timings[KIND_IDLE]) &&
	       one_by_one(&stage, KIND_BUSY, o->times, &timings[KIND_BUSY]) &&
	       one_by_one(&stage, KIND_SLOW, 1 + o->times / 4, &timings[KIND_SLOW]) &&
	       one_by_one(&stage, KIND_SILENT, o->times, &timings[KIND_SILENT]) &&
	       measure_rnr(&stage, &timings[KIND_RNR]);
	stage_close(&stage);
	return good && stopped_run(uri, BATCH, &timings[KIND_STOPPED]);
}
