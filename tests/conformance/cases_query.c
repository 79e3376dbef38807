/* SPDX-License-Identifier: BSD-2-Clause */
/* query.*: queue pairs and regions say what state they are in. */
#include <string.h>
#include <sys/mman.h>

#include "cases.h"
#include "traffic.h"

enum { RECEIVES = 3, BEYOND = 24, FILL = 0xee };

static struct ndx_qp_info query(struct side *s)
{
	struct ndx_qp_info info;

	memset(&info, FILL, sizeof(info));
	info.size = sizeof(info);
	if (!check_over(s->c))
		check_status(s->c, ndx_qp_query(s->qp, NULL, &info), NDX_OK, "ndx_qp_query");
	return info;
}

static void state_is(struct side *s, enum ndx_qp_state expected, const char *when)
{
	const struct ndx_qp_info info = query(s);

	check_that(s->c, info.state == expected, "%s %s: %s, not %s", s->name, when,
	           ndx_qp_state_name(info.state), ndx_qp_state_name(expected));
}

/* Either is a number of requests, or the provider does not count. */
static void outstanding_is(struct side *s, uint64_t got, uint64_t expected, const char *what)
{
	check_that(s->c, got == expected || got == NDX_QP_NOT_COUNTED, "%s: %llu %s, not %llu",
	           s->name, (unsigned long long)got, what, (unsigned long long)expected);
}

static void check_addresses(struct side *s, const struct ndx_qp_info *info)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);

	if (check_over(s->c))
		return;
	memset(&address, 0, sizeof(address));
	check_status(s->c,
	             ndx_connector_get_local_address(s->conn, (struct sockaddr *)&address, &length),
	             NDX_OK, "get_local_address");
	check_that(s->c, address_equal(&address, &info->local), "%s: another local address",
	           s->name);
	memset(&address, 0, sizeof(address));
	length = sizeof(address);
	check_status(s->c,
	             ndx_connector_get_peer_address(s->conn, (struct sockaddr *)&address, &length),
	             NDX_OK, "get_peer_address");
	check_that(s->c, address_equal(&address, &info->peer), "%s: another peer address", s->name);
}

static void check_connected(struct side *s)
{
	const struct ndx_qp_info info = query(s);
	uint32_t inbound = 0;
	uint32_t outbound = 0;

	if (check_over(s->c))
		return;
	check_that(s->c, info.state == NDX_QP_CONNECTED, "%s is %s, not connected", s->name,
	           ndx_qp_state_name(info.state));
	check_that(s->c, info.connector_id == ndx_connector_get_id(s->conn),
	           "%s: connector#%u, not #%u", s->name, info.connector_id,
	           ndx_connector_get_id(s->conn));
	check_that(s->c, info.connector_state && strcmp(info.connector_state, "UP") == 0,
	           "%s: the connector is %s", s->name,
	           info.connector_state ? info.connector_state : "unknown");
	check_status(s->c, ndx_connector_get_read_limits(s->conn, &inbound, &outbound), NDX_OK,
	             "get_read_limits");
	check_that(s->c, info.inbound_read_limit == inbound && info.outbound_read_limit == outbound,
	           "%s: read limits %u and %u, not %u and %u", s->name, info.inbound_read_limit,
	           info.outbound_read_limit, inbound, outbound);
	check_addresses(s, &info);
	outstanding_is(s, info.receive_outstanding, RECEIVES, "receives outstanding");
	outstanding_is(s, info.initiator_outstanding, 0, "requests outstanding");
	check_that(s->c, info.failure == NDX_OK && info.failure_ns == 0 && !info.failure_cause[0],
	           "%s: a failure on a sound connection: %s", s->name, info.failure_cause);
	check_that(s->c, memchr(info.device_state, 0, sizeof(info.device_state)) != NULL,
	           "%s: the device's state does not end", s->name);
	check_that(s->c, !info.device_state[0] || (info.device_qp != 0 && info.mtu >= 256),
	           "%s: device queue pair %u, MTU %u", s->name, info.device_qp, info.mtu);
}

void case_query_queue_pair_through_its_life(struct check *c)
{
	struct ndx_qp_info info;
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p)
		return;
	info = query(&p->a);
	check_that(c, info.state == NDX_QP_UNCONNECTED && info.connector_id == 0 && info.id != 0,
	           "a new queue pair is %s, of connector#%u", ndx_qp_state_name(info.state),
	           info.connector_id);
	check_that(c,
	           info.local.ss_family == AF_UNSPEC && info.peer.ss_family == AF_UNSPEC &&
	                   !info.connector_state,
	           "a new queue pair has a connection");
	receives_ok(&p->a, 0, RECEIVES, 0, 8);
	receives_ok(&p->b, 0, RECEIVES, 0, 8);
	pair_ask(p);
	state_is(&p->a, NDX_QP_CONNECTING, "asks");
	state_is(&p->b, NDX_QP_UNCONNECTED, "is asked");
	pair_answer(p);
	state_is(&p->b, NDX_QP_CONNECTING, "has accepted");
	if (!pair_complete(p))
		return;
	check_connected(&p->a);
	check_connected(&p->b);
	if (!pair_disconnect(p))
		return;
	state_is(&p->a, NDX_QP_DISCONNECTED, "has disconnected");
	info = query(&p->b);
	check_that(c,
	           info.state == NDX_QP_DISCONNECTED && info.failure == NDX_OK &&
	                   info.reason != NDX_DISCONNECT_NONE,
	           "B is %s, failure %s, reason %s", ndx_qp_state_name(info.state),
	           ndx_status_name(info.failure), ndx_disconnect_reason_name(info.reason));
	outstanding_is(&p->b, info.receive_outstanding, 0, "receives outstanding");
	side_close_connector(&p->b);
	state_is(&p->b, NDX_QP_DISCONNECTED, "has closed its connector");
}

void case_query_queue_pair_tells_why_it_died(struct check *c)
{
	struct ndx_qp_info info;
	struct ndx_qp_info later;
	struct pair *p = pair_up(c, NULL);

	if (!p)
		return;
	check_status(c, ndx_qp_flush(p->a.qp), NDX_OK, "flush");
	side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
	info = query(&p->b);
	if (check_over(c))
		return;
	check_that(c, info.state == NDX_QP_DISCONNECTED && info.reason == NDX_DISCONNECT_ABORTED,
	           "B is %s, reason %s", ndx_qp_state_name(info.state),
	           ndx_disconnect_reason_name(info.reason));
	check_that(c,
	           info.failure == NDX_E_CONNECTION_ABORTED && info.failure_ns != 0 &&
	                   info.failure_cause[0] != '\0',
	           "B failed with %s and says \"%s\"", ndx_status_name(info.failure),
	           info.failure_cause);
	/* the cause outlives the connector */
	side_close_connector(&p->b);
	later = query(&p->b);
	check_that(c, later.state == NDX_QP_DISCONNECTED && later.connector_id == info.connector_id,
	           "later it is %s, of connector#%u", ndx_qp_state_name(later.state),
	           later.connector_id);
	check_that(c,
	           later.failure == info.failure && later.failure_ns == info.failure_ns &&
	                   strcmp(later.failure_cause, info.failure_cause) == 0,
	           "later it failed with %s: \"%s\"", ndx_status_name(later.failure),
	           later.failure_cause);
	check_that(c, address_equal(&later.peer, &info.peer), "later it has another peer");
}

void case_query_queue_pair_returns_what_was_granted(struct check *c)
{
	struct side_attr want;
	struct ndx_qp_attr attr = {.size = sizeof(attr)};
	struct pair *p;

	side_attr_init(&want);
	want.receive_depth = 5;
	want.initiator_depth = 7;
	want.no_receive_timeout_ms = 3210;
	want.separate_cqs = true;
	p = pair_open(c, &want, NULL);
	if (!p || !check_status(c, ndx_qp_query(p->a.qp, &attr, NULL), NDX_OK, "ndx_qp_query"))
		return;
	check_that(c, attr.size == sizeof(attr), "it filled %zu bytes", attr.size);
	check_that(c, attr.receive_cq == p->a.rcq && attr.initiator_cq == p->a.cq && !attr.srq,
	           "the queues are others");
	check_that(c, attr.receive_depth >= 5 && attr.initiator_depth >= 7, "depths %u and %u",
	           attr.receive_depth, attr.initiator_depth);
	check_that(c,
	           attr.max_receive_sge >= want.receive_sge &&
	                   attr.max_initiator_sge >= want.initiator_sge,
	           "%u and %u SGEs", attr.max_receive_sge, attr.max_initiator_sge);
	check_that(c, attr.no_receive_timeout_ms == 3210, "no_receive_timeout_ms %u",
	           attr.no_receive_timeout_ms);
}

static struct ndx_mr_info query_mr(struct check *c, struct ndx_mr *mr)
{
	struct ndx_mr_info info;

	memset(&info, FILL, sizeof(info));
	info.size = sizeof(info);
	if (!check_over(c))
		check_status(c, ndx_mr_query(mr, &info), NDX_OK, "ndx_mr_query");
	return info;
}

static void mr_is_gone(struct check *c, struct ndx_mr *mr, const struct ndx_mr_info *before)
{
	const struct ndx_mr_info info = query_mr(c, mr);

	check_that(c,
	           info.state == NDX_MR_NOT_REGISTERED && !info.local_token && !info.remote_token,
	           "deregistered, it is %s, tokens 0x%x and 0x%x", ndx_mr_state_name(info.state),
	           info.local_token, info.remote_token);
	check_that(c,
	           info.buffer == before->buffer && info.length == before->length &&
	                   info.registered_ns == before->registered_ns,
	           "deregistered, it forgets what it was");
	check_that(c, info.ended_ns >= info.registered_ns, "it ended before it began");
}

void case_query_region_through_its_life(struct check *c)
{
	struct ndx_adapter *adapter = c->world->places[0].adapter;
	const size_t length = 3 * 4096 + 5;
	struct ndx_overlapped ov = {0};
	struct ndx_mr *mr = NULL;
	struct ndx_mr_info info;
	uint8_t *memory =
		mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!check_that(c, memory != MAP_FAILED, "no memory") ||
	    !check_status(c, ndx_mr_create(adapter, &mr), NDX_OK, "ndx_mr_create"))
		return;
	info = query_mr(c, mr);
	check_that(c,
	           info.state == NDX_MR_NOT_REGISTERED && info.adapter == adapter && info.id != 0,
	           "a new region is %s", ndx_mr_state_name(info.state));
	check_that(c, !info.buffer && !info.length && !info.registered_ns && !info.ended_ns,
	           "a new region has memory");
	check_status(c, ndx_mr_register(mr, memory, length, NDX_MR_ALLOW_REMOTE_WRITE, &ov),
	             NDX_PENDING, "register");
	check_ends(c, &ov, NDX_OK, "register");
	info = query_mr(c, mr);
	check_that(c, info.state == NDX_MR_REGISTERED && info.outcome == NDX_OK,
	           "registered, it is %s", ndx_mr_state_name(info.state));
	check_that(c,
	           info.buffer == memory && info.length == length &&
	                   info.flags == NDX_MR_ALLOW_REMOTE_WRITE,
	           "%zu bytes at %p with 0x%x", info.length, info.buffer, info.flags);
	check_that(c,
	           info.local_token == ndx_mr_get_local_token(mr) &&
	                   info.remote_token == ndx_mr_get_remote_token(mr),
	           "the tokens are others");
	check_that(c, info.registered_ns != 0 && info.ended_ns == 0, "from %llu to %llu ns",
	           (unsigned long long)info.registered_ns, (unsigned long long)info.ended_ns);
	check_status(c, ndx_mr_deregister(mr, &ov), NDX_PENDING, "deregister");
	check_ends(c, &ov, NDX_OK, "deregister");
	mr_is_gone(c, mr, &info);
	ndx_mr_close(mr);
	(void)munmap(memory, 4 * 4096);
}

void case_query_fills_no_more_than_its_size(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct {
		struct ndx_qp_info info;
		uint8_t beyond[BEYOND];
	} qp;
	struct {
		struct ndx_qp_attr attr;
		uint8_t beyond[BEYOND];
	} own;
	struct {
		struct ndx_mr_info info;
		uint8_t beyond[BEYOND];
	} mr;

	if (!p)
		return;
	memset(&own, FILL, sizeof(own));
	own.attr.size = sizeof(own);
	check_status(c, ndx_qp_query(p->a.qp, &own.attr, NULL), NDX_OK, "of a newer program");
	check_that(c, own.attr.size == sizeof(own.attr), "it filled %zu bytes", own.attr.size);
	bytes_are(c, own.beyond, BEYOND, FILL, "beyond the attributes'");
	own.attr.size = NDX_QP_ATTR_SIZE_0_1 - 1;
	check_status(c, ndx_qp_query(p->a.qp, &own.attr, NULL), NDX_E_INVALID_PARAMETER,
	             "with a size below the first");
	own.attr.size = sizeof(own);
	qp.info.size = NDX_QP_INFO_SIZE_0_1 - 1;
	check_status(c, ndx_qp_query(p->a.qp, &own.attr, &qp.info), NDX_E_INVALID_PARAMETER,
	             "with one size below the first");
	check_that(c, own.attr.size == sizeof(own), "a call that failed filled the attributes");
	memset(&qp, FILL, sizeof(qp));
	qp.info.size = sizeof(qp);
	check_status(c, ndx_qp_query(p->a.qp, NULL, &qp.info), NDX_OK, "of a newer program");
	check_that(c, qp.info.size == sizeof(qp.info), "it filled %zu bytes", qp.info.size);
	bytes_are(c, qp.beyond, BEYOND, FILL, "beyond the queue pair's");
	qp.info.size = NDX_QP_INFO_SIZE_0_1 - 1;
	check_status(c, ndx_qp_query(p->a.qp, NULL, &qp.info), NDX_E_INVALID_PARAMETER,
	             "with a size below the first");
	memset(&mr, FILL, sizeof(mr));
	mr.info.size = sizeof(mr);
	check_status(c, ndx_mr_query(p->a.mr, &mr.info), NDX_OK, "of a newer program");
	check_that(c, mr.info.size == sizeof(mr.info), "it filled %zu bytes", mr.info.size);
	bytes_are(c, mr.beyond, BEYOND, FILL, "beyond the region's");
	mr.info.size = NDX_MR_INFO_SIZE_0_1 - 1;
	check_status(c, ndx_mr_query(p->a.mr, &mr.info), NDX_E_INVALID_PARAMETER,
	             "with a size below the first");
	check_status(c, ndx_qp_query(p->a.qp, NULL, NULL), NDX_E_INVALID_PARAMETER, "for nothing");
	check_status(c, ndx_mr_query(p->a.mr, NULL), NDX_E_INVALID_PARAMETER, "for nothing");
}
