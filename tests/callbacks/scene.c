/* SPDX-License-Identifier: BSD-2-Clause */
#include "scene.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "same_plugin.h"

static bool worked(enum ndx_status st, const char *what)
{
	if (st == NDX_OK || st == NDX_PENDING)
		return true;
	fprintf(stderr, "%s: %s: %s\n", what, ndx_status_name(st), ndx_last_error());
	return false;
}

/* ---- the passive half of a connection, on a thread of its own ---- */

struct joining {
	struct scene *s;
	enum ndx_status (*accept)(struct scene *s);
	enum ndx_status status;
};

static void *join_thread(void *arg)
{
	struct joining *j = arg;

	j->status = j->accept(j->s);
	return NULL;
}

static bool join(struct scene *s, enum ndx_status (*accept)(struct scene *s),
                 enum ndx_status (*connect)(struct scene *s), const char *what)
{
	struct joining j = {.s = s, .accept = accept};
	enum ndx_status st;
	pthread_t thread;

	if (pthread_create(&thread, NULL, join_thread, &j) != 0)
		return false;
	st = connect(s);
	(void)pthread_join(thread, NULL);
	return worked(st, what) && worked(j.status, what);
}

static enum ndx_status accept_pair(struct scene *s)
{
	return ndx_accept_from(s->far, s->far_listener, s->far_qp, NULL, 0, PATIENCE_MS,
	                       &s->far_up);
}

static enum ndx_status connect_pair(struct scene *s)
{
	return ndx_connect_to(s->own, s->up_qp, (struct sockaddr *)&s->far_address,
	                      s->far_address_len, NULL, 0, PATIENCE_MS, &s->up);
}

static enum ndx_status accept_frames(struct scene *s)
{
	return ndx_receiver_accept(s->receiver, s->listener, NULL, 0, PATIENCE_MS);
}

static enum ndx_status connect_frames(struct scene *s)
{
	return ndx_sender_connect(s->far_sender, (struct sockaddr *)&s->address, s->address_len,
	                          NULL, 0, PATIENCE_MS);
}

static enum ndx_status accept_far_frames(struct scene *s)
{
	return ndx_receiver_accept(s->far_receiver, s->far_listener, NULL, 0, PATIENCE_MS);
}

static enum ndx_status connect_far_frames(struct scene *s)
{
	return ndx_sender_connect(s->sender, (struct sockaddr *)&s->far_address, s->far_address_len,
	                          NULL, 0, PATIENCE_MS);
}

/* ---- objects ---- */

static enum ndx_status make_qp(struct ndx_adapter *adapter, struct ndx_cq *cq, struct ndx_qp **out)
{
	struct ndx_qp_attr attr;

	ndx_qp_attr_init(&attr);
	attr.receive_cq = cq;
	attr.initiator_cq = cq;
	return ndx_qp_create(adapter, &attr, out);
}

static enum ndx_status listen_at(struct ndx_adapter *adapter, struct ndx_listener **out,
                                 struct sockaddr_storage *address, socklen_t *length)
{
	size_t count = 1;
	enum ndx_status st = ndx_adapter_query_addresses(adapter, address, &count);

	if (st != NDX_OK && st != NDX_E_BUFFER_OVERFLOW)
		return st;
	if (st == NDX_E_BUFFER_OVERFLOW) {
		struct sockaddr_storage all[64];

		count = 64;
		st = ndx_adapter_query_addresses(adapter, all, &count);
		if (st != NDX_OK)
			return st;
		*address = all[0];
	}
	st = ndx_listen_on(adapter, (struct sockaddr *)address, sizeof(*address), 0, out);
	*length = sizeof(*address);
	if (st == NDX_OK)
		st = ndx_listener_get_local_address(*out, (struct sockaddr *)address, length);
	return st;
}

static bool make_objects(struct scene *s)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};

	return worked(ndx_adapter_query(s->own, &info), "query") &&
	       worked(ndx_cq_create_depth(s->own, 256, &s->cq), "cq") &&
	       worked(ndx_cq_create_depth(s->far, 256, &s->far_cq), "cq") &&
	       (!(info.capabilities & NDX_CAP_SRQ) ||
	        worked(ndx_srq_create(s->own,
	                              &(struct ndx_srq_attr){.size = sizeof(struct ndx_srq_attr),
	                                                     .depth = 4,
	                                                     .max_sge = 1,
	                                                     .threshold = 1},
	                              &s->srq),
	               "srq")) &&
	       (!(info.capabilities & NDX_CAP_MEMORY_WINDOW) ||
	        worked(ndx_mw_create(s->own, &s->mw), "mw")) &&
	       worked(ndx_mr_register_new(s->own, s->memory, BYTES, NDX_MR_ALLOW_LOCAL_WRITE,
	                                  &s->mr),
	              "mr") &&
	       worked(ndx_mr_create(s->own, &s->raw_mr), "mr") &&
	       worked(make_qp(s->own, s->cq, &s->qp), "qp") &&
	       worked(make_qp(s->own, s->cq, &s->up_qp), "qp") &&
	       worked(make_qp(s->far, s->far_cq, &s->far_qp), "qp") &&
	       worked(ndx_connector_create(s->own, NULL, &s->connector), "connector") &&
	       worked(ndx_listener_create(s->own, &s->deaf), "listener") &&
	       worked(listen_at(s->own, &s->listener, &s->address, &s->address_len), "listen") &&
	       worked(listen_at(s->far, &s->far_listener, &s->far_address, &s->far_address_len),
	              "listen") &&
	       worked(ndx_port_create(&s->port), "port") &&
	       worked(ndx_cq_notify(s->cq, NDX_CQ_NOTIFY_ERRORS, &s->pending), "notify");
}

void receiver_attr(const struct scene *s, struct ndx_adapter *adapter,
                   struct ndx_receiver_attr *attr)
{
	ndx_receiver_attr_init(attr);
	attr->adapter = adapter;
	attr->slot_size = 512;
	attr->slot_count = 8;
	attr->pull = true;
	attr->loop = adapter == s->own ? s->loop : NULL;
}

void sender_attr(struct ndx_adapter *adapter, struct ndx_sender_attr *attr)
{
	ndx_sender_attr_init(attr);
	attr->adapter = adapter;
	attr->slot_size = 512;
	attr->slot_count = 8;
}

static bool make_frames(struct scene *s)
{
	struct ndx_receiver_attr here;
	struct ndx_receiver_attr there;
	struct ndx_sender_attr own;
	struct ndx_sender_attr far;

	if (!worked(ndx_receive_loop_create(NULL, &s->loop), "receive loop"))
		return false;
	receiver_attr(s, s->own, &here);
	receiver_attr(s, s->far, &there);
	sender_attr(s->own, &own);
	sender_attr(s->far, &far);
	return worked(ndx_receiver_create(&here, &s->receiver), "receiver") &&
	       worked(ndx_receiver_create(&here, &s->idle_receiver), "receiver") &&
	       worked(ndx_receiver_create(&there, &s->far_receiver), "receiver") &&
	       worked(ndx_sender_create(&own, &s->sender), "sender") &&
	       worked(ndx_sender_create(&own, &s->idle_sender), "sender") &&
	       worked(ndx_sender_create(&far, &s->far_sender), "sender");
}

static bool make_sessions(struct scene *s)
{
	static const struct ndx_session_queue_pair pairs[2];
	static const char *const servers[] = {"127.0.0.1:1"};
	struct ndx_negotiation_server_attr at;
	struct ndx_session_manager_attr manager;
	struct ndx_session_attr several;
	struct ndx_session_attr attr;

	if (!worked(ndx_negotiation_create(&s->negotiation), "framework") ||
	    !worked(ndx_negotiation_register(s->negotiation, &same_plugin), "register") ||
	    !worked(ndx_negotiation_get_variant(s->negotiation, "same", "as-it-is", NULL, 0,
	                                        &s->variant),
	            "variant"))
		return false;
	ndx_negotiation_server_attr_init(&at);
	at.address = "127.0.0.1:0";
	at.variants = &s->variant;
	at.variant_count = 1;
	ndx_session_attr_init(&attr);
	attr.variant = s->variant;
	attr.servers = servers;
	attr.server_count = 1;
	several = attr;
	several.queue_pairs = pairs;
	several.queue_pair_count = 2;
	ndx_session_manager_attr_init(&manager);
	manager.negotiation = s->negotiation;
	manager.max_events = 1;
	return worked(ndx_negotiation_server_create(&at, &s->server), "server") &&
	       worked(ndx_session_create(&attr, &s->session), "session") &&
	       worked(ndx_session_create(&several, &s->several), "session of several") &&
	       worked(ndx_session_manager_create(&manager, &s->manager), "manager");
}

static void ignore(void *context, const struct ndx_reassembly_event *event)
{
	(void)context;
	(void)event;
}

void reassembly_attr(struct ndx_reassembly_attr *attr)
{
	ndx_reassembly_attr_init(attr);
	attr->on_event = ignore;
}

bool scene_open(struct scene *s, const char *uri)
{
	struct ndx_reassembly_attr attr;

	memset(s, 0, sizeof(*s));
	reassembly_attr(&attr);
	return worked(ndx_adapter_open(uri, &s->own), "open") &&
	       worked(ndx_adapter_open(uri, &s->far), "open") && make_objects(s) &&
	       make_frames(s) && make_sessions(s) &&
	       worked(ndx_reassembly_create(&attr, &s->reassembly), "reassembly") &&
	       join(s, accept_pair, connect_pair, "connect") &&
	       join(s, accept_frames, connect_frames, "connect receiver") &&
	       join(s, accept_far_frames, connect_far_frames, "connect sender");
}

/* A server that was closed in a callback keeps its variants until its threads have ended. */
static void close_framework(struct ndx_negotiation *n)
{
	struct timespec now;
	time_t end;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + PATIENCE_MS / 1000;
	while (ndx_negotiation_close(n) == NDX_E_DEVICE_BUSY && now.tv_sec < end) {
		(void)poll(NULL, 0, 1);
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
	}
	if (now.tv_sec >= end) {
		fprintf(stderr, "the framework stays busy: %s\n", ndx_last_error());
		abort();
	}
}

void scene_close(struct scene *s)
{
	ndx_session_close(s->session);
	ndx_session_close(s->several);
	(void)ndx_session_manager_close(s->manager, 0);
	ndx_negotiation_server_close(s->server);
	ndx_variant_close(s->variant);
	ndx_sender_close(s->sender);
	ndx_sender_close(s->idle_sender);
	ndx_sender_close(s->far_sender);
	ndx_receiver_close(s->receiver);
	ndx_receiver_close(s->idle_receiver);
	ndx_receiver_close(s->far_receiver);
	ndx_receive_loop_close(s->loop);
	ndx_connector_close(s->up);
	ndx_connector_close(s->far_up);
	ndx_connector_close(s->connector);
	ndx_listener_close(s->listener);
	ndx_listener_close(s->deaf);
	ndx_listener_close(s->far_listener);
	ndx_qp_close(s->qp);
	ndx_qp_close(s->up_qp);
	ndx_qp_close(s->far_qp);
	ndx_mr_close(s->mr);
	ndx_mr_close(s->raw_mr);
	ndx_mw_close(s->mw);
	ndx_srq_close(s->srq);
	ndx_cq_close(s->cq);
	ndx_cq_close(s->far_cq);
	ndx_port_close(s->port);
	ndx_reassembly_close(s->reassembly);
	ndx_adapter_close(s->own);
	ndx_adapter_close(s->far);
	close_framework(s->negotiation);
}
