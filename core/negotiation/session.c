/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: create, run stages, close. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_loop.h"
#include "base_struct.h"

#define MESSAGE_LEAST 512u
#define QP_SLICE_MS 20u

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

enum ndx_status ndx_session_create(const struct ndx_session_attr *attr, struct ndx_session **out)
{
	struct ndx_session_attr own = attr_defaults;
	struct dialogue_limits limits;
	struct ndx_session *s;
	enum ndx_status st;

	if (attr == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_create: NULL argument");
	st = base_struct_in(&attr_layout, "ndx_session_create", &own, attr, attr->size);
	if (st == NDX_OK)
		st = check_attr(&own);
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
	s->inbox_room = FRAME_HEADER + (size_t)own.max_message;
	s->inbox = malloc(s->inbox_room);
	st = s->inbox == NULL ? NDX_E_NO_MEMORY : copy_servers(s);
	if (st == NDX_OK)
		st = ndxp_random(s->cookie, sizeof(s->cookie));
	if (st != NDX_OK)
		goto fail_memory;
	st = history_init(&s->history, own.max_history);
	if (st != NDX_OK)
		goto fail_memory;
	st = link_init(&s->link, own.variant);
	if (st != NDX_OK)
		goto fail_link;
	dialogue_init(&s->dialogue, own.variant, NDX_ROLE_CLIENT, s->id, &limits, &s->history);
	(void)pthread_mutex_init(&s->lock, NULL);
	*out = s;
	return NDX_OK;
fail_link:
	history_fini(&s->history);
fail_memory:
	free_servers(s);
	free(s->inbox);
	free(s);
	return fail(st, 0, "ndx_session_create: %s", ndx_status_text(st));
}

/* Send the error to the peer, if the transport still works. */
static void tell_peer(struct ndx_session *s)
{
	uint8_t bytes[FRAME_HEADER + FRAME_ERROR_SIZE_MAX];
	size_t length;

	if (!s->dialogue.tell)
		return;
	length = dialogue_error_frame(&s->dialogue, bytes);
	(void)session_send(s, bytes, length, ndxp_deadline(100));
}

/* The calls block for work of the adapter's thread. */
static enum ndx_status check_thread(const char *call)
{
	if (!ndxp_loop_on_any())
		return NDX_OK;
	return fail(NDX_E_WOULD_BLOCK, 0, "%s: not in a callback", call);
}

enum ndx_status ndx_session_connect(struct ndx_session *s)
{
	enum ndx_status st;

	if (s == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_connect: session is NULL");
	st = check_thread("ndx_session_connect");
	if (st != NDX_OK)
		return st;
	if (ndx_session_get_state(s) != NDX_SESSION_CREATED)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "ndx_session_connect: session %llu is %s already",
		            (unsigned long long)s->id,
		            ndx_session_state_name(ndx_session_get_state(s)));
	s->deadline_ns = ndxp_deadline(s->attr.session_timeout_ms);
	st = session_reach(s, false);
	if (st == NDX_OK)
		session_set_state(s, NDX_SESSION_CONNECTED);
	return st;
}

/* Wait for the queue pair in slices, because a cancel sets a descriptor and the connect an
 * overlapped object. */
static enum ndx_status wait_for_qp(struct ndx_session *s, struct ndx_overlapped *ov)
{
	enum ndx_status st = NDX_PENDING;
	bool late = false;

	while (st == NDX_PENDING && !late && !link_cancelled(&s->link)) {
		late = ndxp_now_ns() >= s->stage_deadline_ns;
		st = ndx_overlapped_wait(ov, late ? 0 : QP_SLICE_MS);
	}
	if (st != NDX_PENDING)
		return st;
	(void)ndx_connector_cancel(s->attr.connector);
	st = ndx_overlapped_status(ov);
	return st == NDX_E_CANCELED && late ? NDX_E_IO_TIMEOUT : st;
}

/* The queue pair's part of stage validate. */
static void connect_qp(struct ndx_session *s)
{
	struct ndx_overlapped ov = {0};
	char cause[DESCRIBE_CAUSE];
	char text[DESCRIBE_CAUSE + 64];
	enum ndx_status st = session_oob_open(s);
	bool started = false;

	if (st == NDX_OK && s->attr.connector != NULL)
		st = ndx_connector_connect_peer(s->attr.connector, &s->dialogue.peer, &ov);
	if (st == NDX_PENDING) {
		started = true;
		st = wait_for_qp(s, &ov);
	}
	if (st == NDX_E_IO_TIMEOUT)
		(void)snprintf(text, sizeof(text),
		               "the peer's queue pair does not connect in time");
	else if (st == NDX_E_CANCELED)
		(void)snprintf(text, sizeof(text), "cancelled");
	else
		(void)snprintf(text, sizeof(text), "the queue pair cannot be connected: %.127s",
		               started ? describe_cause(s->attr.connector, cause)
		                       : ndx_last_error());
	dialogue_connected(&s->dialogue, st, text);
}

/* Receive and handle the peer's next frame. */
static enum ndx_status receive(struct ndx_session *s, enum ndx_error_layer *layer)
{
	const uint64_t since = ndxp_now_ns();
	struct frame f;
	enum ndx_status st = session_read_frame(s, &f, s->stage_deadline_ns, layer);

	if (st != NDX_OK)
		return st;
	if (!session_oob_handle(s, &f))
		dialogue_receive(&s->dialogue, &f, since);
	s->inbox_used = 0;
	/* Heartbeats restart the wait for a frame, so check the stage's deadline here. */
	if (f.type == FRAME_ALIVE && ndxp_now_ns() >= s->stage_deadline_ns)
		return NDX_E_IO_TIMEOUT;
	return NDX_OK;
}

/* One step of the stage; only the transport can fail. */
static enum ndx_status step(struct ndx_session *s, enum ndx_error_layer *layer)
{
	struct dialogue *x = &s->dialogue;
	enum ndx_status st;

	*layer = NDX_LAYER_TRANSPORT;
	switch (x->next) {
	case DIALOGUE_CALL:
		dialogue_call(x);
		return NDX_OK;
	case DIALOGUE_CONNECT:
		connect_qp(s);
		return NDX_OK;
	case DIALOGUE_SEND:
		st = session_send(s, x->out, x->out_length, s->stage_deadline_ns);
		if (st == NDX_OK)
			dialogue_sent(x);
		return st;
	case DIALOGUE_RECEIVE:
		return receive(s, layer);
	case DIALOGUE_IDLE:
	case DIALOGUE_FAILED:
	case DIALOGUE_CLOSED:
	default:
		return NDX_OK;
	}
}

static enum ndx_status broken(struct ndx_session *s, enum ndx_error_layer layer, enum ndx_status st)
{
	char text[256];

	if (st == NDX_E_IO_TIMEOUT)
		layer = NDX_LAYER_FRAMEWORK;
	if (st == NDX_E_CANCELED)
		(void)snprintf(text, sizeof(text), "cancelled");
	else if (st == NDX_E_IO_TIMEOUT)
		(void)snprintf(text, sizeof(text), "time is over (stage %u ms, session %u ms): %s",
		               s->attr.stage_timeout_ms, s->attr.session_timeout_ms,
		               s->dialogue.next == DIALOGUE_RECEIVE ? "nothing came from the peer"
		                                                    : "the peer takes nothing");
	else
		(void)snprintf(text, sizeof(text), "%.255s", ndx_last_error());
	/* Send the error to a peer that sent an invalid frame, or none in time. Do not send to a
	 * peer that is gone, or that has received a part of a frame. */
	dialogue_fail(&s->dialogue, layer, st,
	              layer == NDX_LAYER_FRAMEWORK && s->dialogue.next == DIALOGUE_RECEIVE, text);
	tell_peer(s);
	return session_failed(s);
}

/* The transport is lost: repeat the stage over a new one, if the variant can. */
static enum ndx_status resume(struct ndx_session *s)
{
	enum ndx_status st;

	link_close(&s->link);
	s->inbox_used = 0;
	log_warn(0, "session %llu: the transport is lost in stage %s; connecting again",
	         (unsigned long long)s->id, frame_stage_name(s->dialogue.view.stage));
	st = session_reach(s, true);
	if (st != NDX_OK)
		return st;
	session_set_state(s, NDX_SESSION_EXCHANGING);
	st = dialogue_restart(&s->dialogue);
	if (st != NDX_OK)
		return session_fail(s, NDX_LAYER_PLUGIN, st, "the plugin cannot begin anew");
	return NDX_OK;
}

static bool can_resume(const struct ndx_session *s, enum ndx_status st)
{
	return st == NDX_E_CONNECTION_ABORTED && s->oob == NULL &&
	       s->attr.variant->table->ops->reset != NULL &&
	       s->dialogue.view.stage != NDX_STAGE_VALIDATE;
}

static enum ndx_status run_stage(struct ndx_session *s)
{
	struct dialogue *x = &s->dialogue;
	enum ndx_error_layer layer;
	enum ndx_status st;

	while (x->next != DIALOGUE_IDLE && x->next != DIALOGUE_FAILED &&
	       x->next != DIALOGUE_CLOSED) {
		st = step(s, &layer);
		if (st == NDX_OK && link_cancelled(&s->link) && x->next != DIALOGUE_IDLE)
			st = NDX_E_CANCELED;
		if (st == NDX_OK)
			continue;
		if (!can_resume(s, st))
			return broken(s, layer, st);
		st = resume(s);
		if (st != NDX_OK)
			return st;
	}
	if (x->next == DIALOGUE_CLOSED)
		return session_fail(s, NDX_LAYER_FRAMEWORK, NDX_E_CONNECTION_ABORTED,
		                    "the peer ended the session in mid-stage");
	if (x->next != DIALOGUE_FAILED)
		return NDX_OK;
	tell_peer(s);
	return session_failed(s);
}

static enum ndx_status check_turn(struct ndx_session *s, enum ndx_stage stage)
{
	const enum ndx_session_state state = ndx_session_get_state(s);

	if (state == NDX_SESSION_CREATED)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0,
		            "session %llu: stage %s needs a connected session; call "
		            "ndx_session_connect() first",
		            (unsigned long long)s->id, frame_stage_name(stage));
	if (state != NDX_SESSION_CONNECTED)
		return fail(NDX_E_INVALID_DEVICE_STATE, 0, "session %llu is %s",
		            (unsigned long long)s->id, ndx_session_state_name(state));
	return dialogue_start(&s->dialogue, stage);
}

enum ndx_status ndx_session_execute(struct ndx_session *s, enum ndx_stage stage)
{
	struct sockaddr_storage near;
	enum ndx_status st;

	if (s == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_session_execute: session is NULL");
	st = check_thread("ndx_session_execute");
	if (st == NDX_OK)
		st = check_turn(s, stage);
	if (st != NDX_OK)
		return st;
	s->stage_deadline_ns = ndxp_deadline(s->attr.stage_timeout_ms);
	if (stage != NDX_STAGE_DONE && s->deadline_ns < s->stage_deadline_ns)
		s->stage_deadline_ns = s->deadline_ns;
	session_set_state(s, NDX_SESSION_EXCHANGING);
	session_oob_pause(s);
	if (stage == NDX_STAGE_INFO) {
		describe_near(s->link.fd, &near);
		st = describe_own(&s->attr, NDX_ROLE_CLIENT, &near, &s->dialogue.own);
		if (st != NDX_OK)
			return session_fail(s, NDX_LAYER_PROVIDER, st, ndx_last_error());
	}
	st = run_stage(s);
	if (st != NDX_OK)
		return st;
	pthread_mutex_lock(&s->lock);
	s->state = NDX_SESSION_CONNECTED;
	s->agreed = s->dialogue.agreement_known;
	pthread_mutex_unlock(&s->lock);
	session_oob_listen(s);
	return NDX_OK;
}

enum ndx_status ndx_session_run(struct ndx_session *s)
{
	enum ndx_status st = ndx_session_connect(s);

	for (int stage = NDX_STAGE_INFO; st == NDX_OK && stage <= NDX_STAGE_READY; stage++)
		st = ndx_session_execute(s, (enum ndx_stage)stage);
	return st;
}

void ndx_session_cancel(struct ndx_session *s)
{
	if (s != NULL)
		link_cancel(&s->link);
}

void ndx_session_close(struct ndx_session *s)
{
	const struct frame bye = {.type = FRAME_SESSION_END};
	uint8_t bytes[FRAME_HEADER];

	if (s == NULL)
		return;
	session_oob_leave(s);
	if (s->state == NDX_SESSION_CONNECTED && (s->link.fd >= 0 || s->link.stream != NULL)) {
		frame_write_header(bytes, &bye);
		(void)link_send(&s->link, bytes, sizeof(bytes),
		                ndxp_deadline(base_loop_in_callback() ? 0 : 100));
	}
	dialogue_fini(&s->dialogue);
	link_fini(&s->link);
	history_fini(&s->history);
	(void)pthread_mutex_destroy(&s->lock);
	free_servers(s);
	free(s->inbox);
	free(s);
}
