/* SPDX-License-Identifier: BSD-2-Clause */
/* A plugin's transport as a socket of the driver. */
#include "relay.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <ndx/spi/container_of.h>
#include <ndx/spi/log.h>
#include <ndx/spi/system.h>
#include "base_socket.h"
#include "link.h"

#define ROOM 8192u

/* Without a descriptor, the waits in `receive` are short: the driver's bytes wait for their end.
 * They grow while nothing is to do. */
#define SLICE_LEAST_MS 5u
#define SLICE_MOST_MS 100u
/* Then other tasks have their turn. */
#define TURN_MS 1000u

#define PREDECESSOR_MS 200u
/* A call that has not returned so long after the cancel is named in the log. */
#define OVERDUE_MS 1000u

struct relay {
	struct link link;
	struct engine *engine;
	struct relay_group *group;
	char *address;
	uint64_t session;
	uint64_t leave_ns; /* before `left`: when what is not sent is given up */
	uint32_t connect_ms;
	uint32_t send_ms;
	uint32_t farewell_ms;
	int fd;           /* the relay's end of the socket pair */
	uint32_t left;    /* atomic: relay_leave() was called */
	uint32_t sending; /* atomic: what the driver wrote may be in a send of the transport */

	/* Loop thread: */
	struct ndxp_watch out;
	struct ndxp_watch in;
	struct ndxp_timer timer;
	struct ndxp_job job;
	struct ndxp_job cancelled;
	struct ndxp_job last;
	bool serving;    /* `task` is in the pool */
	bool cancelling; /* `cancel` is */
	bool closing;    /* `task` is there for the last time */
	bool asked;      /* the transport was cancelled, or is to be */
	bool out_watched;
	bool in_watched;

	/* The task's; on the loop thread while there is none: */
	bool connected; /* atomic */
	bool dead;      /* the transport has failed or ended, or the driver has */
	int descriptor; /* a duplicate of the transport's; -1: none */
	uint32_t slice_ms;
	struct pool_task task;
	struct pool_task cancel;
	size_t length; /* of `bytes` */
	size_t taken;
	uint8_t bytes[ROOM]; /* received, and not taken by the driver */

	pthread_mutex_t lock; /* protects the next three */
	bool released;        /* the plugin is not the relay's any more */
	enum ndx_status status;
	char text[PLUGIN_TEXT];
};

/* ---- groups ---- */

struct relay_group {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned refs;
	unsigned count;
};

struct relay_group *relay_group_create(void)
{
	struct relay_group *g = calloc(1, sizeof(*g));
	pthread_condattr_t attr;

	if (g == NULL)
		return NULL;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&g->lock, NULL);
	(void)pthread_cond_init(&g->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	g->refs = 1;
	return g;
}

struct relay_group *relay_group_get(struct relay_group *g)
{
	(void)__atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
	return g;
}

void relay_group_put(struct relay_group *g)
{
	if (g == NULL || __atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	(void)pthread_cond_destroy(&g->changed);
	(void)pthread_mutex_destroy(&g->lock);
	free(g);
}

bool relay_group_wait(struct relay_group *g, uint32_t ms)
{
	const uint64_t deadline = ndxp_deadline(ms);
	const struct timespec at = {.tv_sec = (time_t)(deadline / 1000000000u),
	                            .tv_nsec = (long)(deadline % 1000000000u)};
	bool ended;

	pthread_mutex_lock(&g->lock);
	while (g->count > 0 && pthread_cond_timedwait(&g->changed, &g->lock, &at) == 0)
		;
	ended = g->count == 0;
	pthread_mutex_unlock(&g->lock);
	return ended;
}

static void count_one(struct relay_group *g, bool more)
{
	pthread_mutex_lock(&g->lock);
	g->count = more ? g->count + 1 : g->count - 1;
	(void)pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

/* ---- on the pool ---- */

static bool has_left(const struct relay *r)
{
	return __atomic_load_n(&r->left, __ATOMIC_ACQUIRE) != 0;
}

/* The transport has failed with ndx_last_error(), or with a status that has no text. */
static void fail_relay(struct relay *r, enum ndx_status st, const char *call)
{
	r->dead = true;
	pthread_mutex_lock(&r->lock);
	r->status = st;
	if (st == NDX_E_IO_TIMEOUT || st == NDX_E_CANCELED)
		(void)snprintf(r->text, sizeof(r->text),
		               "plugin \"%s\", transport \"%s\": its %s failed: %s",
		               r->link.plugin->name, r->link.table->name, call,
		               ndx_status_text(st));
	else
		(void)snprintf(r->text, sizeof(r->text), "%s", ndx_last_error());
	pthread_mutex_unlock(&r->lock);
	/* What the driver has received up to here stays readable for it. */
	(void)shutdown(r->fd, SHUT_RDWR);
}

/* Send what the driver has written. */
static void send_all(struct relay *r)
{
	uint8_t bytes[ROOM];
	enum ndx_status st;
	size_t got = 0;

	while (!r->dead &&
	       (st = base_socket_receive(r->fd, bytes, sizeof(bytes), &got)) != NDX_PENDING) {
		if (st != NDX_OK) {
			r->dead = true; /* the driver has closed its end */
			return;
		}
		r->slice_ms = SLICE_LEAST_MS;
		st = link_send(&r->link, bytes, got,
		               has_left(r) ? r->leave_ns : ndxp_deadline(r->send_ms));
		if (st != NDX_OK)
			fail_relay(r, st, "send");
	}
}

static void send_out(struct relay *r)
{
	__atomic_store_n(&r->sending, 1, __ATOMIC_SEQ_CST);
	send_all(r);
	__atomic_store_n(&r->sending, 0, __ATOMIC_SEQ_CST);
}

/* Give the driver what was received. False: the driver does not take all of it now. */
static bool pass_to_driver(struct relay *r)
{
	const enum ndx_status st = base_socket_send(r->fd, r->bytes, r->length, &r->taken);

	if (st == NDX_PENDING)
		return false;
	r->dead = st != NDX_OK; /* the driver has closed its end */
	r->length = 0;
	r->taken = 0;
	return st == NDX_OK;
}

/* False: nothing came. */
static bool receive_in(struct relay *r, uint32_t ms)
{
	const enum ndx_status st =
		link_receive(&r->link, r->bytes, sizeof(r->bytes), &r->length, ndxp_deadline(ms));

	if (st == NDX_OK) {
		r->slice_ms = SLICE_LEAST_MS;
		return true;
	}
	r->length = 0;
	if (st != NDX_E_IO_TIMEOUT)
		fail_relay(r, st, "receive");
	return false;
}

/* One step of a transport without a descriptor; waits for a slice of time at most. */
static void serve_blind(struct relay *r)
{
	struct pollfd full = {.fd = r->fd, .events = POLLIN | POLLOUT};

	send_out(r);
	if (r->dead)
		return;
	if (r->length > 0 && !pass_to_driver(r)) {
		(void)poll(&full, 1, (int)r->slice_ms);
		return;
	}
	if (receive_in(r, r->slice_ms)) {
		(void)pass_to_driver(r);
		return;
	}
	r->slice_ms = r->slice_ms * 2 < SLICE_MOST_MS ? r->slice_ms * 2 : SLICE_MOST_MS;
}

/* All that a transport with a descriptor has to do at present. What the transport keeps in memory
 * of its own does not make the descriptor readable, so `receive` is called until nothing comes. */
static void serve_ready(struct relay *r)
{
	for (;;) {
		send_out(r);
		if (r->dead || has_left(r) || (r->length > 0 && !pass_to_driver(r)) ||
		    !receive_in(r, 0))
			return;
	}
}

static void connect_now(struct relay *r)
{
	const uint64_t deadline = ndxp_deadline(r->connect_ms);
	enum ndx_status st;

	/* A transport that this one replaces may hold what this one needs. */
	(void)relay_group_wait(r->group, PREDECESSOR_MS);
	st = link_connect(&r->link, r->address, deadline);
	if (st != NDX_OK) {
		fail_relay(r, st, "connect");
		return;
	}
	__atomic_store_n(&r->connected, true, __ATOMIC_RELEASE);
	r->descriptor = link_descriptor(&r->link);
}

static void serve(struct pool_task *task)
{
	struct relay *r = container_of(task, struct relay, task);
	const uint64_t until = ndxp_deadline(TURN_MS);

	if (!r->connected)
		connect_now(r);
	if (!r->dead && r->descriptor >= 0)
		serve_ready(r);
	while (!r->dead && r->descriptor < 0 && !has_left(r) && ndxp_now_ns() < until)
		serve_blind(r);
	ndxp_loop_post(r->engine->loop, &r->job);
}

static void cancel_call(struct pool_task *task)
{
	struct relay *r = container_of(task, struct relay, cancel);

	link_cancel(&r->link);
	ndxp_loop_post(r->engine->loop, &r->cancelled);
}

/* The last task: nothing else calls the transport any more. */
static void close_transport(struct pool_task *task)
{
	struct relay *r = container_of(task, struct relay, task);
	struct ndx_variant *variant = r->link.variant;
	struct relay_group *group = r->group;

	if (r->connected)
		send_out(r);
	link_fini(&r->link);
	/* The plugin, with its names, may be gone after variant_put(). */
	pthread_mutex_lock(&r->lock);
	r->released = true;
	pthread_mutex_unlock(&r->lock);
	/* That job frees the relay. */
	ndxp_loop_post(r->engine->loop, &r->last);
	variant_put(variant);
	count_one(group, false);
	relay_group_put(group);
}

bool relay_is_connected(const struct relay *r)
{
	return __atomic_load_n(&r->connected, __ATOMIC_ACQUIRE);
}

/* ---- on the loop ---- */

static void push(struct relay *r, void (*fn)(struct pool_task *task))
{
	r->serving = true;
	r->task.fn = fn;
	engine_push(r->engine, &r->task);
}

static void begin_cancel(struct relay *r)
{
	r->asked = true;
	r->cancelling = true;
	r->cancel.fn = cancel_call;
	engine_push(r->engine, &r->cancel);
	ndxp_timer_set(r->engine->loop, &r->timer, OVERDUE_MS);
}

static void unwatch(struct relay *r)
{
	if (r->out_watched)
		ndxp_watch_remove(r->engine->loop, &r->out);
	if (r->in_watched)
		ndxp_watch_remove(r->engine->loop, &r->in);
	r->out_watched = false;
	r->in_watched = false;
}

/* Wait for the driver's bytes, and for the transport's if the driver takes those. */
static void arm(struct relay *r)
{
	struct ndx_loop *loop = r->engine->loop;
	const uint32_t events = r->length > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN;

	if (!r->out_watched)
		r->out_watched = ndxp_watch_add(loop, &r->out, 0, true) == NDX_OK;
	if (!r->in_watched) {
		r->in.fd = r->descriptor;
		r->in_watched = ndxp_watch_add(loop, &r->in, 0, true) == NDX_OK;
	}
	if (!r->out_watched || !r->in_watched) {
		unwatch(r);
		ndxp_fd_close(r->descriptor); /* then without it */
		r->descriptor = -1;
		push(r, serve);
		return;
	}
	ndxp_watch_rearm(loop, &r->out, events);
	if (r->length == 0)
		ndxp_watch_rearm(loop, &r->in, EPOLLIN);
}

/* A task has ended, or the driver has left: what is next? */
static void advance(struct relay *r)
{
	if (r->serving || r->closing)
		return;
	if (has_left(r)) {
		if (r->cancelling)
			return;
		/* The duplicate would keep the transport open that the plugin closes. */
		unwatch(r);
		ndxp_fd_close(r->descriptor);
		r->descriptor = -1;
		r->closing = true;
		ndxp_timer_set(r->engine->loop, &r->timer, OVERDUE_MS);
		push(r, close_transport);
		return;
	}
	if (r->dead)
		return; /* the driver will find out, and leave */
	if (r->descriptor >= 0)
		arm(r);
	else
		push(r, serve);
}

static void on_served(void *arg)
{
	struct relay *r = arg;

	r->serving = false;
	advance(r);
}

static void on_cancelled(void *arg)
{
	struct relay *r = arg;

	r->cancelling = false;
	advance(r);
}

static void on_event(void *arg, uint32_t events)
{
	struct relay *r = arg;

	(void)events;
	if (!r->serving && !r->closing && !has_left(r))
		push(r, serve);
}

static void on_timer(void *arg)
{
	struct relay *r = arg;

	if (!r->closing && !r->asked) {
		begin_cancel(r);
		return;
	}
	pthread_mutex_lock(&r->lock);
	if (!r->released)
		log_warn(0,
		         "session %llu: plugin \"%s\", transport \"%s\": it does not return from "
		         "its "
		         "%s; a thread of the pool stays with it",
		         (unsigned long long)r->session, r->link.plugin->name, r->link.table->name,
		         r->closing              ? "close"
		         : relay_is_connected(r) ? "send or receive after its cancel"
		                                 : "connect");
	pthread_mutex_unlock(&r->lock);
}

static void free_relay(struct relay *r)
{
	ndxp_fd_close(r->fd);
	(void)pthread_mutex_destroy(&r->lock);
	free(r->address);
	free(r);
}

static void on_last(void *arg)
{
	struct relay *r = arg;
	struct engine *engine = r->engine;

	ndxp_timer_cancel(engine->loop, &r->timer);
	free_relay(r);
	engine_put(engine);
}

/* ---- the driver's side ---- */

enum ndx_status relay_create(const struct relay_attr *attr, struct relay **out, int *fd)
{
	struct relay *r = calloc(1, sizeof(*r));
	int pair[2];

	if (r != NULL)
		r->address = strdup(attr->address);
	if (r == NULL || r->address == NULL) {
		free(r);
		return fail(NDX_E_NO_MEMORY, 0, "no memory for the plugin's transport");
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
		free(r->address);
		free(r);
		return fail(NDX_E_INSUFFICIENT_RESOURCES, 0,
		            "no descriptors for the plugin's transport");
	}
	link_init(&r->link, attr->variant);
	(void)pthread_mutex_init(&r->lock, NULL);
	r->engine = attr->engine;
	r->group = relay_group_get(attr->group);
	r->session = attr->session;
	r->connect_ms = attr->connect_ms;
	r->send_ms = attr->send_ms;
	r->farewell_ms = attr->farewell_ms;
	r->fd = pair[0];
	r->descriptor = -1;
	r->slice_ms = SLICE_LEAST_MS;
	r->out = (struct ndxp_watch){.fd = pair[0], .fn = on_event, .arg = r};
	r->in = (struct ndxp_watch){.fd = -1, .fn = on_event, .arg = r};
	r->timer = (struct ndxp_timer){.fn = on_timer, .arg = r};
	r->job = (struct ndxp_job){.fn = on_served, .arg = r};
	r->cancelled = (struct ndxp_job){.fn = on_cancelled, .arg = r};
	r->last = (struct ndxp_job){.fn = on_last, .arg = r};
	variant_get(attr->variant);
	engine_get(attr->engine);
	*out = r;
	*fd = pair[1];
	push(r, serve);
	return NDX_OK;
}

bool relay_why(struct relay *r, enum ndx_status *status, char *text, size_t room)
{
	bool failed;

	pthread_mutex_lock(&r->lock);
	failed = r->status != NDX_OK;
	if (failed) {
		*status = r->status;
		(void)snprintf(text, room, "%s", r->text);
	}
	pthread_mutex_unlock(&r->lock);
	return failed;
}

/* Whether the driver's last bytes are still on their way to the transport. In this order: a task
 * announces that it sends before it takes the bytes. */
static bool has_unsent(struct relay *r)
{
	int unsent = 0;

	return relay_is_connected(r) && ((ioctl(r->fd, FIONREAD, &unsent) == 0 && unsent > 0) ||
	                                 __atomic_load_n(&r->sending, __ATOMIC_SEQ_CST) != 0);
}

void relay_leave(struct relay *r)
{
	count_one(r->group, true);
	r->leave_ns = ndxp_deadline(r->farewell_ms);
	__atomic_store_n(&r->left, 1, __ATOMIC_RELEASE);
	if (r->serving && has_unsent(r))
		ndxp_timer_set(r->engine->loop, &r->timer, r->farewell_ms);
	else if (r->serving)
		begin_cancel(r);
	advance(r);
}
