/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's calls that add queue pairs to a session, and remove some. */
#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "many_add.h"

/* Whether both ends can add queue pairs, and remove them. */
static enum ndx_status check_ends(const struct ndx_session *s, const char *call)
{
	char why[200];

	if (!describe_adds(s->attr.variant, why, sizeof(why)))
		return fail(NDX_E_NOT_SUPPORTED, 0, "%s: %s", call, why);
	if (!s->many->adds)
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "%s: the server's version of NDX, or its plugin (NDX_PLUGIN_ADDS), "
		            "neither adds nor removes queue pairs",
		            call);
	return NDX_OK;
}

/* ---- add ---- */

static enum ndx_status check_add(struct ndx_session *s, const struct addition *a)
{
	const struct many *m = s->many;
	const enum ndx_session_state state = ndx_session_get_state(s);
	const char *call = "ndx_session_add_queue_pairs";
	enum ndx_status st;

	if (session_failed_idle(s))
		return NDX_OK;
	if (state != NDX_SESSION_CONNECTED || s->dialogue.next != DIALOGUE_IDLE ||
	    s->dialogue.finished != NDX_STAGE_READY)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "%s: session %llu is %s; queue pairs are added between the stages "
		            "ready and done",
		            call, (unsigned long long)s->id, ndx_session_state_name(state));
	st = check_ends(s, call);
	if (st != NDX_OK)
		return st;
	if (a->count > FRAME_QUEUE_PAIRS_MAX - m->count)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, 0,
		            "%s: the session has %u queue pairs, and 1024 is the most", call,
		            m->count);
	if (a->count > FRAME_INDICES - m->next_index)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, 0,
		            "%s: the session has used its 65536 indices", call);
	if (__atomic_load_n(&s->cancelled, __ATOMIC_ACQUIRE) != 0)
		return fail(NDX_E_CANCELED, 0, "%s: session %llu was cancelled", call,
		            (unsigned long long)s->id);
	return NDX_OK;
}

static enum ndx_status check_list(const struct ndx_session *s,
                                  const struct ndx_session_queue_pair *list, size_t count,
                                  const char *call)
{
	if (s == NULL || list == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: NULL argument", call);
	if (count == 0 || count > NDX_SESSION_QUEUE_PAIRS_MOST)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: count must be 1 to 1024", call);
	for (size_t i = 0; i < count; i++)
		if ((list[i].connector == NULL) != (list[i].qp == NULL))
			return fail(NDX_E_INVALID_PARAMETER, 0,
			            "%s: queue pair %zu: connector and qp go together, one is "
			            "missing",
			            call, i);
	if (s->many == NULL)
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "%s: session %llu has one queue pair; only one that began with two or "
		            "more takes further ones",
		            call, (unsigned long long)s->id);
	return NDX_OK;
}

static enum ndx_status prepare(struct ndx_session *s, const struct ndx_session_queue_pair *list,
                               size_t count, struct session_wish *w)
{
	enum ndx_status st = check_list(s, list, count, w->call);

	if (st != NDX_OK)
		return st;
	w->addition = addition_alloc(s, (uint32_t)count);
	if (w->addition == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", w->call);
	for (size_t i = 0; i < count; i++)
		lane_set(w->addition->lanes[i], &list[i]);
	return NDX_OK;
}

enum ndx_status ndx_session_add_queue_pairs(struct ndx_session *s,
                                            const struct ndx_session_queue_pair *list, size_t count,
                                            uint32_t *first)
{
	struct session_wish w = {
		.call = "ndx_session_add_queue_pairs", .last = -1, .check = check_add};
	enum ndx_status st = prepare(s, list, count, &w);

	if (st == NDX_OK)
		st = session_call_run(s, &w);
	if (st == NDX_OK && first != NULL)
		*first = s->call.information;
	return st;
}

enum ndx_status ndx_session_add_queue_pairs_overlapped(struct ndx_session *s,
                                                       const struct ndx_session_queue_pair *list,
                                                       size_t count, struct ndx_overlapped *ov)
{
	struct session_wish w = {
		.call = "ndx_session_add_queue_pairs_overlapped", .last = -1, .check = check_add};
	enum ndx_status st = prepare(s, list, count, &w);

	return st == NDX_OK ? session_call_begin(s, &w, ov) : st;
}

/* ---- remove ---- */

struct removal {
	struct ndx_session *session;
	uint32_t first;
	uint32_t count;
	bool connected;     /* the first one still is */
	enum ndx_status st; /* of the word to the server */
};

/* Whether the transport still carries the goodbyes of the queue pair's connection. */
static bool is_connected(const struct lane *lane)
{
	return lane->s.driver.oob != NULL && !driver_oob_is_over(&lane->s);
}

static void on_remove(void *arg)
{
	struct removal *r = arg;
	struct ndx_session *s = r->session;
	const struct frame_remove remove = {r->first, r->count};
	uint8_t payload[FRAME_REMOVE_SIZE];
	const struct frame f = {.type = FRAME_REMOVE,
	                        .stage = s->dialogue.view.stage,
	                        .payload = payload,
	                        .length = frame_write_remove(payload, &remove)};

	for (uint32_t i = 0; i < r->count; i++) {
		const struct lane *lane = many_find(s->many, r->first + i);

		r->connected = lane != NULL && is_connected(lane);
		if (r->connected) {
			r->first += i;
			return;
		}
	}
	r->st = many_queue(s, &f);
	if (r->st == NDX_OK)
		(void)many_remove(s, r->first, r->count); /* it has them */
}

static void on_removed(void *arg)
{
	(void)many_sweep(arg);
}

/* The session is marked as busy. */
static enum ndx_status remove_now(struct removal *r, const char *call)
{
	struct ndx_session *s = r->session;
	struct ndx_loop *loop = s->driver.engine->loop;
	const enum ndx_session_state state = ndx_session_get_state(s);
	enum ndx_status st;

	if (state == NDX_SESSION_FAILED || session_failed_idle(s))
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "%s: session %llu has failed; ndx_session_get_error() says why", call,
		            (unsigned long long)s->id);
	if (state != NDX_SESSION_CONNECTED || s->dialogue.finished < NDX_STAGE_READY)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "%s: session %llu is %s; queue pairs are removed after stage ready",
		            call, (unsigned long long)s->id, ndx_session_state_name(state));
	st = check_ends(s, call);
	if (st != NDX_OK)
		return st;
	for (uint32_t i = 0; i < r->count; i++)
		if (many_find(s->many, r->first + i) == NULL)
			return fail(NDX_E_INVALID_PARAMETER, 0, "%s: there is no queue pair %u",
			            call, r->first + i);
	ndxp_loop_call(loop, on_remove, r);
	if (r->connected)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "%s: queue pair %u is connected; disconnect it first", call, r->first);
	if (r->st != NDX_OK)
		return fail(r->st, 0, "%s: %s", call,
		            r->st == NDX_E_NO_MEMORY ? "out of memory" : many_unread);
	addition_work(s);
	ndxp_loop_call(loop, on_removed, s);
	return NDX_OK;
}

enum ndx_status ndx_session_remove_queue_pairs(struct ndx_session *s, uint32_t first,
                                               uint32_t count)
{
	struct removal r = {.session = s, .first = first, .count = count};
	const char *call = "ndx_session_remove_queue_pairs";
	enum ndx_status st;

	if (s == NULL || count == 0 || count > NDX_SESSION_QUEUE_PAIRS_MOST ||
	    first > FRAME_INDICES - count)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "%s: session is NULL, or these are no queue pairs of a session", call);
	if (s->many == NULL)
		return fail(NDX_E_NOT_SUPPORTED, 0, "%s: session %llu has one queue pair", call,
		            (unsigned long long)s->id);
	st = session_check_thread(call);
	if (st == NDX_OK)
		st = session_occupy(s, call, SESSION_CALLED);
	if (st != NDX_OK)
		return st;
	st = remove_now(&r, call);
	session_vacate(s);
	return st;
}
