/* SPDX-License-Identifier: BSD-2-Clause */
/* A connected pair over loop, of which one side (or both) may misbehave. */
#ifndef TESTS_FAULT_RIG_H
#define TESTS_FAULT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include <ndx/ndx.h>

#include "fault_control.h"

#define RIG_PATIENCE_MS 10000u
#define RIG_DEPTH 8u
#define RIG_MESSAGE 32u

struct rig_side {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_mr *mr;
	struct ndx_connector *connector;
	unsigned char memory[RIG_DEPTH][RIG_MESSAGE];
};

static inline void rig_open(struct rig_side *s, const char *uri)
{
	memset(s, 0, sizeof(*s));
	assert_int_equal(ndx_adapter_open(uri, &s->adapter), NDX_OK);
}

static inline void rig_make(struct rig_side *s, void *context)
{
	struct ndx_qp_attr attr;

	assert_int_equal(ndx_cq_create_depth(s->adapter, 4, &s->cq), NDX_OK);
	assert_int_equal(ndx_mr_register_new(s->adapter, s->memory, sizeof(s->memory),
	                                     NDX_MR_ALLOW_LOCAL_WRITE, &s->mr),
	                 NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = s->cq;
	attr.initiator_cq = s->cq;
	attr.receive_depth = RIG_DEPTH;
	attr.initiator_depth = RIG_DEPTH;
	attr.context = context;
	assert_int_equal(ndx_qp_create(s->adapter, &attr, &s->qp), NDX_OK);
}

static inline void rig_close(struct rig_side *s)
{
	ndx_connector_close(s->connector);
	ndx_qp_close(s->qp);
	ndx_mr_close(s->mr);
	ndx_cq_close(s->cq);
	ndx_adapter_close(s->adapter);
}

static inline struct ndx_listener *rig_listen(struct rig_side *s, struct sockaddr_in *at)
{
	const struct sockaddr_in any = {.sin_family = AF_INET,
	                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct ndx_listener *listener = NULL;
	socklen_t len = sizeof(*at);

	assert_int_equal(
		ndx_listen_on(s->adapter, (const struct sockaddr *)&any, sizeof(any), 4, &listener),
		NDX_OK);
	assert_int_equal(ndx_listener_get_local_address(listener, (struct sockaddr *)at, &len),
	                 NDX_OK);
	return listener;
}

/* Begins; true if the peer's answer came, or why not. */
static inline enum ndx_status rig_ask(struct rig_side *a, const struct sockaddr_in *at,
                                      struct ndx_overlapped *ov)
{
	assert_int_equal(ndx_connector_create(a->adapter, NULL, &a->connector), NDX_OK);
	return ndx_connector_connect(
		a->connector, a->qp, (const struct sockaddr *)at, sizeof(*at),
		&(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                   .inbound_read_limit = 4,
	                                   .outbound_read_limit = 4},
		ov);
}

static inline void rig_connect(struct rig_side *a, struct rig_side *b)
{
	struct ndx_overlapped asked = {0};
	struct ndx_overlapped accepted = {0};
	struct ndx_listener *listener;
	struct sockaddr_in at;

	listener = rig_listen(b, &at);
	assert_int_equal(rig_ask(a, &at, &asked), NDX_PENDING);
	assert_int_equal(ndx_connector_create(b->adapter, NULL, &b->connector), NDX_OK);
	assert_int_equal(ndx_listener_get_connection_request(listener, b->connector, &accepted),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&accepted, RIG_PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_connector_accept(
				 b->connector, b->qp,
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .inbound_read_limit = 4,
	                                                    .outbound_read_limit = 4},
				 &accepted),
	                 NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&asked, RIG_PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_connector_complete_connect(a->connector, &asked), NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&asked, RIG_PATIENCE_MS), NDX_OK);
	assert_int_equal(ndx_overlapped_wait(&accepted, RIG_PATIENCE_MS), NDX_OK);
	ndx_listener_close(listener);
}

static inline void rig_pair(struct rig_side *a, const char *uri_a, struct rig_side *b,
                            const char *uri_b)
{
	rig_open(a, uri_a);
	rig_open(b, uri_b);
	rig_make(a, a);
	rig_make(b, b);
	rig_connect(a, b);
}

static inline void rig_post_receive(struct rig_side *s, uintptr_t slot)
{
	const struct ndx_sge sge = {s->memory[slot], RIG_MESSAGE, ndx_mr_get_local_token(s->mr)};

	assert_int_equal(ndx_qp_receive(s->qp, (void *)slot, &sge, 1), NDX_OK);
}

static inline void rig_post_send(struct rig_side *s, uintptr_t slot)
{
	const struct ndx_sge sge = {s->memory[slot], RIG_MESSAGE, ndx_mr_get_local_token(s->mr)};

	assert_int_equal(ndx_qp_send(s->qp, (void *)slot, &sge, 1, 0), NDX_OK);
}

#endif
