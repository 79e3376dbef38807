/* SPDX-License-Identifier: BSD-2-Clause */
#include "many_rig.h"

#include <netinet/in.h>

#include "fake_direct.h"
#include "same_plugin.h"

const char *rig_variant = "as-it-is";
const struct ndx_tls_attr *tls_server;
const struct ndx_tls_attr *tls_client;
bool bare;
uint32_t most_queue_pairs;
uint64_t most_memory;
uint64_t memory_each;

static const struct ndx_variant_ops ops = {
	.info = same_info, .ready = same_ready, .reset = same_reset};
/* Messages that do not fit into the socket, all together; the last byte says whose they are. */
static enum ndx_status long_info(void *session, const struct ndx_exchange *x, const void *peer,
                                 size_t length, struct ndx_exchange_reply *reply)
{
	enum ndx_status st;

	if (peer != NULL && (length != LONG || ((const uint8_t *)peer)[LONG - 1] != x->round - 1))
		return NDX_E_REMOTE_ERROR;
	st = same_info(session, x, peer, sizeof(*x->peer), reply);
	memcpy(reply->data, x->own, sizeof(*x->own));
	reply->data[LONG - 1] = (uint8_t)x->round;
	reply->length = LONG;
	reply->completed = x->round == 3;
	return st;
}

static const struct ndx_variant_ops long_ops = {.info = long_info, .ready = same_ready};
static const struct ndx_plugin_variant variants[] = {
	{.name = "as-it-is", .help = "test", .ops = &ops},
	{.name = "long", .help = "test", .ops = &long_ops},
};
static const struct ndx_plugin plugin = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(struct ndx_plugin),
                                         .name = "same",
                                         .version = "1",
                                         .vendor = "test",
                                         .flags = NDX_PLUGIN_MANY,
                                         .list = variants,
                                         .count = 2};

static void open_end(struct ndx_adapter *adapter, struct end *e)
{
	struct ndx_qp_attr attr;

	assert_int_equal(ndx_cq_create_depth(adapter, 4, &e->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = e->cq;
	assert_int_equal(ndx_qp_create(adapter, &attr, &e->qp), NDX_OK);
	assert_int_equal(ndx_connector_create(adapter, NULL, &e->connector), NDX_OK);
}

static void close_end(struct end *e)
{
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
}

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	(void)arg;
	(void)session;
	(void)resources;
	return NDX_OK;
}

static enum ndx_status on_open_many(void *arg, struct ndx_session *session, uint32_t count,
                                    struct ndx_session_queue_pair *list,
                                    struct ndx_session_resources *resources)
{
	struct rig *r = arg;

	(void)session;
	(void)resources;
	for (uint32_t i = 0; !bare && i < count && i < r->count; i++) {
		list[i].connector = r->b[i].connector;
		list[i].qp = r->b[i].qp;
		list[i].memory.length = memory_each;
	}
	return NDX_OK;
}

static void on_closed(void *arg, struct ndx_session *session)
{
	struct rig *r = arg;

	(void)session;
	(void)__atomic_add_fetch(&r->closed, 1, __ATOMIC_SEQ_CST);
}

static void serve(struct rig *r)
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &r->variant;
	attr.variant_count = 1;
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .closed = on_closed, .arg = r};
	attr.open_many = on_open_many;
	attr.tls = tls_server;
	if (most_queue_pairs > 0)
		attr.max_queue_pairs_per_principal = most_queue_pairs;
	attr.max_memory_per_principal = most_memory;
	assert_int_equal(ndx_negotiation_server_create(&attr, &r->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(r->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(r->address, sizeof(r->address), "127.0.0.1:%u", ntohs(at.sin_port));
}

/* A session of `count` queue pairs with the server at r->address. */
void make_session(struct rig *r)
{
	struct ndx_session_queue_pair list[MOST] = {0};
	const char *const servers[] = {r->address};
	struct ndx_session_attr attr;

	for (uint32_t i = 0; i < r->count; i++) {
		list[i].connector = r->a[i].connector;
		list[i].qp = r->a[i].qp;
	}
	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = servers;
	attr.server_count = 1;
	attr.backoff_ms = 1;
	attr.max_history = 1024;
	attr.tls = tls_client;
	attr.queue_pairs = list;
	attr.queue_pair_count = r->count;
	assert_int_equal(ndx_session_create(&attr, &r->session), NDX_OK);
}

void rig_up(struct rig *r, uint32_t count)
{
	memset(r, 0, sizeof(*r));
	r->count = count;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ndx_adapter_open("loop", &r->adapters[i]), NDX_OK);
		fake_direct(r->adapters[i]);
	}
	for (uint32_t i = 0; i < count; i++) {
		open_end(r->adapters[0], &r->a[i]);
		open_end(r->adapters[1], &r->b[i]);
	}
	assert_int_equal(ndx_negotiation_create(&r->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(r->negotiation, &plugin), NDX_OK);
	assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "same", rig_variant, NULL, 0,
	                                             &r->variant),
	                 NDX_OK);
	serve(r);
	make_session(r);
}

static void watch(struct end *e)
{
	assert_int_equal(ndx_connector_notify_disconnect(e->connector, &e->notify), NDX_PENDING);
}

void rig_run(struct rig *r, uint32_t count)
{
	rig_up(r, count);
	assert_int_equal(ndx_session_run(r->session), NDX_OK);
	for (uint32_t i = 0; i < count; i++) {
		watch(&r->a[i]);
		watch(&r->b[i]);
	}
}

void rig_down(struct rig *r)
{
	ndx_session_close(r->session);
	ndx_negotiation_server_close(r->server);
	ndx_variant_close(r->variant);
	assert_int_equal(ndx_negotiation_close(r->negotiation), NDX_OK);
	for (uint32_t i = 0; i < r->count; i++) {
		close_end(&r->a[i]);
		close_end(&r->b[i]);
	}
	for (int i = 0; i < 2; i++)
		ndx_adapter_close(r->adapters[i]);
}

void indicated(struct end *e, enum ndx_disconnect_reason reason)
{
	assert_int_equal(ndx_overlapped_wait(&e->notify, WAIT_MS), NDX_OK);
	assert_int_equal(e->notify.information, reason);
}

void disconnect_both(struct end *from, struct end *to)
{
	assert_int_equal(ndx_connector_disconnect(from->connector, &from->disc), NDX_PENDING);
	indicated(to, NDX_DISCONNECT_GRACEFUL);
	assert_int_equal(ndx_overlapped_wait(&from->disc, WAIT_MS), NDX_OK);
	assert_int_equal(ndx_connector_disconnect(to->connector, &to->disc), NDX_PENDING);
	assert_int_equal(ndx_overlapped_wait(&to->disc, WAIT_MS), NDX_OK);
}
