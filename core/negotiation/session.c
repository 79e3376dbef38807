/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: create, run stages, close. */
#include "many_add.h"
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_loop.h"
#include "base_ov.h"
#include "base_struct.h"

#define MESSAGE_LEAST 512u
#define RELAYS_MS 2000u

static const struct base_struct attr_layout = BASE_STRUCT(
	struct ndx_session_attr, NDX_SESSION_ATTR_SIZE_0_1, "call ndx_session_attr_init() first");

static const struct ndx_session_attr attr_defaults = {
	.inbound_read_limit = 16,
	.outbound_read_limit = 16,
	.connect_timeout_ms = 5000,
	.attempts = 3,
	.backoff_ms = 100,
	.backoff_most_ms = 5000,
	.stage_timeout_ms = 30000,
	.session_timeout_ms = 120000,
	.max_message = 65536,
	.max_rounds = 64,
	.max_history = 128,
};

void ndx_session_attr_init_sized(struct ndx_session_attr *attr, size_t size)
{
	base_struct_init(&attr_layout, attr, size, &attr_defaults);
}

static enum ndx_status check_servers(const struct ndx_session_attr *a)
{
	for (size_t i = 0; i < a->server_count; i++) {
		if (a->servers[i] == NULL)
			return fail(NDX_E_INVALID_PARAMETER, 0,
			            "ndx_session_create: server %zu is NULL", i);
		if (variant_transport(a->variant) == NULL && !link_address_valid(a->servers[i]))
			return fail(NDX_E_INVALID_ADDRESS, 0,
			            "ndx_session_create: \"%.128s\" is not HOST:PORT or "
			            "[IPV6]:PORT",
			            a->servers[i]);
	}
	return NDX_OK;
}

static enum ndx_status check_attr(const struct ndx_session_attr *a)
{
	const char *fault = NULL;

	if (a->variant == NULL)
		fault = "attr->variant is NULL";
	else if (a->servers == NULL || a->server_count == 0)
		fault = "there is no server";
	else if ((a->connector == NULL) != (a->qp == NULL))
		fault = "connector and qp go together, one is missing";
	else if (a->attempts == 0 || a->max_rounds == 0 || a->max_history == 0)
		fault = "attempts, max_rounds and max_history must be 1 or more";
	else if (a->max_history > 65536)
		fault = "max_history is beyond 65536";
	else if (a->max_message < MESSAGE_LEAST || a->max_message > FRAME_PAYLOAD_MAX)
		fault = "max_message must be 512 to 1048576";
	else if (a->reserved != 0)
		fault = "reserved is not 0";
	else if (a->connect_timeout_ms == 0 || a->stage_timeout_ms == 0 ||
	         a->session_timeout_ms == 0)
		fault = "a time-out is 0";
	if (fault != NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_create: %s", fault);
	return check_servers(a);
}

/* The queue pairs of the array: of several each has to have both objects. */
static enum ndx_status check_queue_pairs(const struct ndx_session_attr *a)
{
	const char *fault = NULL;
	char why[160];

	if (a->queue_pairs == NULL && a->queue_pair_count == 0)
		return NDX_OK;
	if (a->queue_pairs == NULL || a->queue_pair_count == 0 ||
	    a->queue_pair_count > NDX_SESSION_QUEUE_PAIRS_MOST)
		fault = "queue_pairs and queue_pair_count, 1 to 1024, go together";
	else if (a->connector != NULL || a->memory.length != 0)
		fault = "connector, qp and memory are those of a single queue pair; queue_pairs is "
			"given";
	if (fault != NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_create: %s", fault);
	for (size_t i = 0; i < a->queue_pair_count; i++)
		if ((a->queue_pairs[i].connector == NULL) != (a->queue_pairs[i].qp == NULL))
			return fail(NDX_E_INVALID_PARAMETER, 0,
			            "ndx_session_create: queue pair %zu: connector and qp go "
			            "together, one is missing",
			            i);
	if (!describe_takes(a->variant, (uint32_t)a->queue_pair_count, why, sizeof(why)))
		return fail(NDX_E_NOT_SUPPORTED, 0, "ndx_session_create: %s", why);
	if (a->queue_pair_count > 1 && variant_transport(a->variant) != NULL)
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "ndx_session_create: several queue pairs need TCP; the variant has a "
		            "transport of its plugin");
	return NDX_OK;
}

/* One queue pair of an array is a single one. NULL: out of memory, or *none. */
static struct many *take_queue_pairs(struct ndx_session *s, bool *none)
{
	const struct ndx_session_queue_pair *list = s->attr.queue_pairs;
	const uint32_t count = (uint32_t)s->attr.queue_pair_count;
	struct many *m;

	*none = count < 2;
	s->attr.queue_pairs = NULL;
	if (count == 1) {
		s->attr.connector = list[0].connector;
		s->attr.qp = list[0].qp;
		s->attr.memory = list[0].memory;
	}
	m = count < 2 ? NULL : many_alloc(count);
	for (uint32_t i = 0; m != NULL && i < count; i++)
		lane_set(m->lanes[i], &list[i]);
	return m;
}

static enum ndx_status check_tls(const struct ndx_session_attr *a)
{
	if (a->tls == NULL || variant_transport(a->variant) == NULL)
		return NDX_OK;
	return fail(
		NDX_E_INVALID_PARAMETER, 0,
		"ndx_session_create: TLS is for TCP; the variant has a transport of its plugin");
}

static enum ndx_status copy_servers(struct ndx_session *s)
{
	s->servers = calloc(s->attr.server_count, sizeof(*s->servers));
	s->given_up = calloc(s->attr.server_count, sizeof(*s->given_up));
	if (s->servers == NULL || s->given_up == NULL)
		return NDX_E_NO_MEMORY;
	for (size_t i = 0; i < s->attr.server_count; i++) {
		s->servers[i] = strdup(s->attr.servers[i]);
		if (s->servers[i] == NULL)
			return NDX_E_NO_MEMORY;
	}
	s->attr.servers = NULL;
	return NDX_OK;
}

static void free_servers(struct ndx_session *s)
{
	for (size_t i = 0; s->servers != NULL && i < s->attr.server_count; i++)
		free(s->servers[i]);
	free(s->servers);
	free(s->given_up);
}

static enum ndx_status prepare_relays(struct ndx_session *s)
{
	if (!session_has_relay(s))
		return NDX_OK;
	s->relays = relay_group_create();
	if (s->relays == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_session_create: out of memory");
	return engine_need_pool(s->driver.engine, "ndx_session_create");
}

enum ndx_status ndx_session_create(const struct ndx_session_attr *attr, struct ndx_session **out)
{
	struct ndx_session_attr own = attr_defaults;
	struct dialogue_limits limits;
	struct engine *engine;
	struct ndx_session *s;
	struct many *many;
	enum ndx_status st;
	char what[40] = "";
	bool single;

	if (attr == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_create: NULL argument");
	st = base_struct_in(&attr_layout, "ndx_session_create", &own, attr, attr->size);
	if (st == NDX_OK)
		st = check_attr(&own);
	if (st == NDX_OK)
		st = check_tls(&own);
	if (st == NDX_OK)
		st = check_queue_pairs(&own);
	if (st != NDX_OK)
		return st;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "ndx_session_create: out of memory");
	s->id = __atomic_add_fetch(&own.variant->plugin->negotiation->last_session, 1,
	                           __ATOMIC_RELAXED);
	s->attr = own;
	s->server = "";
	limits = (struct dialogue_limits){own.max_message, own.max_rounds};
	many = take_queue_pairs(s, &single);
	if (!single && many == NULL)
		(void)snprintf(what, sizeof(what), " for %zu queue pairs", own.queue_pair_count);
	st = single || many != NULL ? copy_servers(s) : NDX_E_NO_MEMORY;
	if (st == NDX_OK)
		st = ndxp_random(s->cookie, sizeof(s->cookie));
	if (st != NDX_OK)
		goto fail_memory;
	st = history_init(&s->history, own.max_history);
	if (st != NDX_OK)
		goto fail_memory;
	if (own.tls != NULL)
		st = tls_share_take(&own.variant->tls, own.tls, "ndx_session_create", &s->tls);
	s->attr.tls = NULL;
	if (st == NDX_OK)
		st = plugins_engine(own.variant->plugin->negotiation, &engine);
	if (st != NDX_OK)
		goto fail_engine;
	driver_init(s, &session_client_role, engine);
	link_init(&s->link, own.variant);
	st = prepare_relays(s);
	if (st != NDX_OK)
		goto fail_relays;
	dialogue_init(&s->dialogue, own.variant, NDX_ROLE_CLIENT, s->id, &limits, &s->history);
	if (many != NULL)
		many_init(s, many, &addition_client);
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_cond_init(&s->call.turn, NULL);
	s->begin = (struct ndxp_job){.fn = session_on_begin, .arg = s};
	*out = s;
	return NDX_OK;
fail_relays:
	link_fini(&s->link);
	engine_put(engine);
fail_engine: /* ndx_last_error() has the cause */
	relay_group_put(s->relays);
	tls_context_put(s->tls);
	history_fini(&s->history);
	many_free(many);
	free_servers(s);
	free(s);
	return st;
fail_memory:
	many_free(many);
	free_servers(s);
	free(s);
	return fail(st, 0, "ndx_session_create: %s%s", ndx_status_text(st), what);
}

/* ---- calls ---- */

/* Start the call, which is marked as active. `ov` is begun, or NULL: the caller waits. */
static void start(struct ndx_session *s, const struct session_wish *w, struct ndx_overlapped *ov)
{
	struct session_call *call = &s->call;

	pthread_mutex_lock(&s->lock);
	call->connects = w->connects;
	call->last = w->last;
	call->adds = w->addition != NULL;
	call->addition = w->addition;
	call->information = 0;
	call->ov = ov;
	call->done = false;
	call->posted = true;
	/* Under the lock: a cancel completes the call from here on, and then the session may go. */
	ndxp_loop_post(s->driver.engine->loop, &s->begin);
	pthread_mutex_unlock(&s->lock);
}

/* Wait for the end of the call. This thread runs what may block. */
static enum ndx_status await(struct ndx_session *s)
{
	struct session_call *call = &s->call;
	enum ndx_status st;

	pthread_mutex_lock(&s->lock);
	while (!call->done) {
		struct pool_task *task = call->task;

		call->task = NULL;
		if (task == NULL) {
			(void)pthread_cond_wait(&call->turn, &s->lock);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		task->fn(task);
		pthread_mutex_lock(&s->lock);
	}
	st = call->status;
	__atomic_store_n(&call->active, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&s->lock);
	return st == NDX_OK ? NDX_OK : session_say_failure(s);
}

enum ndx_status session_check_thread(const char *call)
{
	if (!ndxp_loop_on_any())
		return NDX_OK;
	return fail(NDX_E_WOULD_BLOCK, 0, "%s: not in a callback", call);
}

static enum ndx_status check_new(struct ndx_session *s)
{
	const enum ndx_session_state state = ndx_session_get_state(s);

	if (state != NDX_SESSION_CREATED)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_session_connect: session %llu is %s already",
		            (unsigned long long)s->id, ndx_session_state_name(state));
	s->deadline_ns = ndxp_deadline(s->attr.session_timeout_ms);
	return NDX_OK;
}

static enum ndx_status check_turn(struct ndx_session *s, enum ndx_stage stage)
{
	const enum ndx_session_state state = ndx_session_get_state(s);

	if (session_failed_idle(s))
		return NDX_OK;
	if (state == NDX_SESSION_CREATED)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "session %llu: stage %s needs a connected session; call "
		            "ndx_session_connect() first",
		            (unsigned long long)s->id, frame_stage_name(stage));
	if (state != NDX_SESSION_CONNECTED)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0, "session %llu is %s",
		            (unsigned long long)s->id, ndx_session_state_name(state));
	return dialogue_may_start(&s->dialogue, stage);
}

enum ndx_status session_occupy(struct ndx_session *s, const char *call, uint32_t what)
{
	uint32_t now = 0;

	if (__atomic_compare_exchange_n(&s->call.active, &now, what, false, __ATOMIC_ACQ_REL,
	                                __ATOMIC_ACQUIRE))
		return NDX_OK;
	return fail(now == SESSION_ADDS && what == SESSION_ADDS ? NDX_E_DEVICE_BUSY
	                                                        : NDX_E_INVALID_DEVICE_STATE,
	            0, "%s: another call on session %llu is in progress", call,
	            (unsigned long long)s->id);
}

void session_vacate(struct ndx_session *s)
{
	__atomic_store_n(&s->call.active, 0, __ATOMIC_RELEASE);
}

/* Mark the session as busy, and check that it can do this now. */
static enum ndx_status occupy(struct ndx_session *s, const struct session_wish *w)
{
	enum ndx_status st;

	st = session_occupy(s, w->call, w->addition != NULL ? SESSION_ADDS : SESSION_CALLED);
	if (st != NDX_OK)
		return st;
	if (w->addition != NULL)
		st = w->check(s, w->addition);
	else
		st = w->connects ? check_new(s) : check_turn(s, (enum ndx_stage)w->last);
	if (st != NDX_OK)
		session_vacate(s);
	return st;
}

enum ndx_status session_call_run(struct ndx_session *s, const struct session_wish *w)
{
	enum ndx_status st;

	if (s == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: session is NULL", w->call);
	st = session_check_thread(w->call);
	if (st == NDX_OK)
		st = occupy(s, w);
	if (st != NDX_OK) {
		addition_free(w->addition);
		return st;
	}
	start(s, w, NULL);
	return await(s);
}

enum ndx_status session_call_begin(struct ndx_session *s, const struct session_wish *w,
                                   struct ndx_overlapped *ov)
{
	enum ndx_status st;

	if (s == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: session is NULL", w->call);
	st = engine_need_pool(s->driver.engine, w->call);
	if (st == NDX_OK)
		st = base_ov_begin_call(ov, s->driver.engine->loop, w->call);
	if (st != NDX_OK) {
		addition_free(w->addition);
		return st;
	}
	st = occupy(s, w);
	if (st != NDX_OK) {
		addition_free(w->addition);
		base_ov_abandon(ov);
		return st;
	}
	start(s, w, ov);
	return NDX_PENDING;
}

enum ndx_status ndx_session_connect(struct ndx_session *s)
{
	return session_call_run(s, &(struct session_wish){.call = "ndx_session_connect",
	                                                  .connects = true,
	                                                  .last = -1});
}

enum ndx_status ndx_session_execute(struct ndx_session *s, enum ndx_stage stage)
{
	return session_call_run(s, &(struct session_wish){.call = "ndx_session_execute",
	                                                  .connects = false,
	                                                  .last = (int)stage});
}

enum ndx_status ndx_session_run(struct ndx_session *s)
{
	return session_call_run(s, &(struct session_wish){.call = "ndx_session_connect",
	                                                  .connects = true,
	                                                  .last = NDX_STAGE_READY});
}

enum ndx_status ndx_session_connect_overlapped(struct ndx_session *s, struct ndx_overlapped *ov)
{
	return session_call_begin(s,
	                          &(struct session_wish){.call = "ndx_session_connect_overlapped",
	                                                 .connects = true,
	                                                 .last = -1},
	                          ov);
}

enum ndx_status ndx_session_execute_overlapped(struct ndx_session *s, enum ndx_stage stage,
                                               struct ndx_overlapped *ov)
{
	return session_call_begin(s,
	                          &(struct session_wish){.call = "ndx_session_execute_overlapped",
	                                                 .connects = false,
	                                                 .last = (int)stage},
	                          ov);
}

enum ndx_status ndx_session_run_overlapped(struct ndx_session *s, struct ndx_overlapped *ov)
{
	return session_call_begin(s,
	                          &(struct session_wish){.call = "ndx_session_run_overlapped",
	                                                 .connects = true,
	                                                 .last = NDX_STAGE_READY},
	                          ov);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* False: the latest call has added queue pairs, and has ended, so that the cancel comes too late
 * for it, and is of nothing else. The caller of that call may not know yet that it has ended. */
static bool mark_cancelled(struct ndx_session *s)
{
	bool late;

	pthread_mutex_lock(&s->lock);
	late = s->call.adds && s->call.done;
	if (!late)
		__atomic_store_n(&s->cancelled, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&s->lock);
	return !late;
}

void ndx_session_cancel(struct ndx_session *s)
{
	struct engine *engine;

	if (s == NULL)
		return;
	engine = s->driver.engine;
	engine_get(engine); /* the callback of a call that completes may close everything */
	if (mark_cancelled(s)) {
		link_cancel(&s->link);
		ndxp_loop_call(engine->loop, session_on_cancel, s);
	}
	/* Behind what the cancel of a connecting queue pair has queued. */
	ndxp_loop_call(engine->loop, nothing, NULL);
	engine_put(engine);
}

/* An overlapped call in progress: cancel it, and wait. False: the session ends by itself. */
static bool end_call(struct ndx_session *s)
{
	struct session_abandoning a = {.session = s};

	if (__atomic_load_n(&s->call.active, __ATOMIC_ACQUIRE) == 0)
		return true;
	ndx_session_cancel(s);
	if (ndxp_loop_on_any()) {
		ndxp_loop_call(s->driver.engine->loop, session_abandon, &a);
		return !a.done;
	}
	pthread_mutex_lock(&s->lock);
	while (!s->call.done)
		(void)pthread_cond_wait(&s->call.turn, &s->lock);
	pthread_mutex_unlock(&s->lock);
	return true;
}

/* In a callback: the thread serves other sessions, so that a plugin's function must not keep it. */
static bool end_in_pool(struct ndx_session *s)
{
	const bool has_share = s->link.stream != NULL ||
	                       (s->dialogue.begun && s->attr.variant->table->ops->end != NULL &&
	                        (s->many != NULL || !plugin_is_prompt(s->attr.variant->plugin)));

	if (!has_share || !ndxp_loop_on_any() ||
	    engine_need_pool(s->driver.engine, "ndx_session_close") != NDX_OK)
		return false;
	ndxp_loop_call(s->driver.engine->loop, session_end_later, s);
	return true;
}

/* The plugin may be unloaded after the close: wait until its transports are closed, but not without
 * limit. One that the connection still needs is not waited for. */
static void await_relays(struct relay_group *relays, uint64_t id)
{
	if (relays == NULL)
		return;
	if (!ndxp_loop_on_any() && !relay_group_wait(relays, RELAYS_MS))
		log_warn(0,
		         "session %llu: it is closed, and its plugin has not closed the transport "
		         "yet; the variant stays in use until then",
		         (unsigned long long)id);
	relay_group_put(relays);
}

void ndx_session_close(struct ndx_session *s)
{
	struct relay_group *relays;
	uint64_t id;

	if (s == NULL || !end_call(s))
		return;
	ndxp_loop_call(s->driver.engine->loop, session_stop, s);
	if (end_in_pool(s))
		return;
	session_end_plugin(s, base_loop_in_callback() ? 0 : 100);
	id = s->id;
	relays = s->relays != NULL ? relay_group_get(s->relays) : NULL;
	ndxp_loop_call(s->driver.engine->loop, session_release, s);
	await_relays(relays, id);
}
