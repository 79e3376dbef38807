/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: ndspi_overhead c|nd COUNT; $NDX_ADAPTER names an adapter that completes a send within the
 * post. COUNT times two posts, each with the GetResults that takes its result, between two ends in
 * one process: by the C API, or by the interfaces of NetworkDirect. overhead.sh counts the
 * instructions of pairs_c() and pairs_nd().
 */
#include "nd_pair.h"

#include <stdio.h>

#include <ndx/ndx.h>

struct c_side {
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped ov;
};

void pairs_c(struct c_side *a, struct c_side *b, unsigned count);
void pairs_nd(struct nd_side *a, struct nd_side *b, unsigned count);

static void make_c_side(struct c_side *s, struct ndx_adapter *adapter)
{
	struct ndx_qp_attr attr;

	memset(s, 0, sizeof(*s));
	assert_int_equal(ndx_cq_create_depth(adapter, 4 * ND_DEPTH, &s->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = s->cq;
	attr.initiator_cq = s->cq;
	attr.receive_depth = ND_DEPTH;
	attr.initiator_depth = ND_DEPTH;
	assert_int_equal(ndx_qp_create(adapter, &attr, &s->qp), NDX_OK);
	assert_int_equal(ndx_connector_create(adapter, NULL, &s->connector), NDX_OK);
}

static void end(struct c_side *s)
{
	assert_int_equal(ndx_overlapped_wait(&s->ov, ND_WAIT_MS), NDX_OK);
}

static void connect_c(struct ndx_adapter *adapter, struct c_side *a, struct c_side *b)
{
	struct ndx_listener *listener;
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	size_t count = 16;
	struct sockaddr_storage all[16];

	assert_int_equal(ndx_adapter_query_addresses(adapter, all, &count), NDX_OK);
	assert_int_equal(
		ndx_listen_on(adapter, (struct sockaddr *)&all[0], sizeof(all[0]), 0, &listener),
		NDX_OK);
	assert_int_equal(
		ndx_listener_get_local_address(listener, (struct sockaddr *)&address, &length),
		NDX_OK);
	assert_int_equal(ndx_listener_get_connection_request(listener, b->connector, &b->ov),
	                 NDX_PENDING);
	assert_int_equal(ndx_connector_connect(a->connector, a->qp, (struct sockaddr *)&address,
	                                       length, NULL, &a->ov),
	                 NDX_PENDING);
	end(b);
	assert_int_equal(ndx_connector_accept(b->connector, b->qp, NULL, &b->ov), NDX_PENDING);
	end(a);
	assert_int_equal(ndx_connector_complete_connect(a->connector, &a->ov), NDX_PENDING);
	end(a);
	end(b);
	ndx_listener_close(listener);
}

__attribute__((noinline)) void pairs_c(struct c_side *a, struct c_side *b, unsigned count)
{
	struct ndx_result result;

	for (unsigned i = 0; i < count; i++) {
		(void)ndx_qp_receive(b->qp, NULL, NULL, 0);
		(void)ndx_qp_send(a->qp, NULL, NULL, 0, 0);
		while (ndx_cq_get_results(a->cq, &result, 1) == 0)
			continue;
		while (ndx_cq_get_results(b->cq, &result, 1) == 0)
			continue;
	}
}

__attribute__((noinline)) void pairs_nd(struct nd_side *a, struct nd_side *b, unsigned count)
{
	ND2_RESULT result;

	for (unsigned i = 0; i < count; i++) {
		(void)CALL(b->qp, Receive, NULL, NULL, 0);
		(void)CALL(a->qp, Send, NULL, NULL, 0, 0);
		while (CALL(a->cq, GetResults, &result, 1) == 0)
			continue;
		while (CALL(b->cq, GetResults, &result, 1) == 0)
			continue;
	}
}

static void run_c(unsigned count)
{
	struct ndx_adapter *adapter;
	struct c_side a, b;

	assert_int_equal(ndx_adapter_open(NULL, &adapter), NDX_OK);
	make_c_side(&a, adapter);
	make_c_side(&b, adapter);
	connect_c(adapter, &a, &b);
	pairs_c(&a, &b, count);
	ndx_connector_close(a.connector);
	ndx_connector_close(b.connector);
	ndx_qp_close(a.qp);
	ndx_qp_close(b.qp);
	ndx_cq_close(a.cq);
	ndx_cq_close(b.cq);
	ndx_adapter_close(adapter);
}

static void run_nd(unsigned count)
{
	struct nd_pair p;

	assert_status(NdStartup(), ND_SUCCESS);
	nd_make(&p);
	nd_connect(&p);
	pairs_nd(&p.a, &p.b, count);
	nd_drop(&p);
}

int main(int argc, char **argv)
{
	const unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;

	if (count == 0 || (strcmp(argv[1], "c") != 0 && strcmp(argv[1], "nd") != 0)) {
		fprintf(stderr, "usage: %s c|nd COUNT\n", argv[0]);
		return 2;
	}
	if (strcmp(argv[1], "c") == 0)
		run_c(count);
	else
		run_nd(count);
	return 0;
}
