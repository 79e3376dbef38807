/* SPDX-License-Identifier: BSD-2-Clause */
#include "many_rig.h"

#include <netinet/in.h>
#include <poll.h>

#include "fake_direct.h"
#include "same_plugin.h"

const char *rig_variant = "as-it-is";
const struct ndx_tls_attr *tls_server;
const struct ndx_tls_attr *tls_client;
const char *rig_uri = "direct";
bool old_server;
uint32_t rig_stage_ms;
uint32_t rig_most;
bool bare;
int lame = -1;
int still = -1;
uint32_t most_queue_pairs;
uint64_t most_memory;
uint64_t memory_each;

rig_deed_fn *_Atomic rig_deed;
static struct rig *rig; /* the latest */

static void break_lame(const struct ndx_exchange *x)
{
	if (x->role != NDX_ROLE_SERVER || x->round != 1 || rig->lame >= rig->more ||
	    x->queue_pair != x->first_queue_pair + rig->lame)
		return;
	ndx_qp_close(rig->more_b[rig->lame].qp);
	rig->more_b[rig->lame].qp = NULL;
}

static enum ndx_status do_deed(const struct ndx_exchange *x)
{
	rig_deed_fn *deed = rig_deed;

	return deed != NULL ? deed(x) : NDX_OK;
}

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	enum ndx_status st = NDX_OK;

	assert_true(x->queue_pair >= x->first_queue_pair &&
	            x->queue_pair < x->first_queue_pair + x->queue_pair_count);
	if (x->first_queue_pair > 0)
		break_lame(x);
	if (x->first_queue_pair > 0)
		st = do_deed(x);
	return st == NDX_OK ? same_info(session, x, peer, length, reply) : st;
}

static enum ndx_status ready(void *session, const struct ndx_exchange *x, const void *peer,
                             size_t length, struct ndx_exchange_reply *reply)
{
	enum ndx_status st = NDX_OK;

	if (x->first_queue_pair > 0)
		st = do_deed(x);
	return st == NDX_OK ? same_ready(session, x, peer, length, reply) : st;
}

static const struct ndx_variant_ops ops = {.info = info, .ready = ready, .reset = same_reset};
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
                                         .flags = NDX_PLUGIN_MANY | NDX_PLUGIN_ADDS,
                                         .list = variants,
                                         .count = 2};
static const struct ndx_plugin still_plugin = {.abi = NDX_PLUGIN_ABI,
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
	const struct rig *r = arg;

	(void)session;
	(void)resources;
	return r->refuses;
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
		if (lame >= 0 && i == (uint32_t)lame)
			list[i].qp = NULL;
		if (lame >= 0 && i == (uint32_t)lame + 1)
			list[i].connector = NULL;
	}
	return r->refuses;
}

static enum ndx_status on_add_many(void *arg, struct ndx_session *session, uint32_t first,
                                   uint32_t count, struct ndx_session_queue_pair *list)
{
	struct rig *r = arg;

	(void)session;
	r->first = first;
	(void)__atomic_add_fetch(&r->asked, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; !bare && i < count && i < r->more; i++) {
		list[i].connector = r->more_b[i].connector;
		list[i].qp = r->more_b[i].qp;
		list[i].memory.length = memory_each;
		if (lame >= 0 && i == (uint32_t)lame)
			list[i].qp = NULL;
	}
	return r->refuses;
}

static void on_added(void *arg, struct ndx_session *session, uint32_t first, uint32_t count,
                     enum ndx_status status)
{
	struct rig *r = arg;

	(void)session;
	assert_int_equal(first, r->first);
	assert_true(count > 0);
	r->outcome = status;
	(void)__atomic_add_fetch(status == NDX_OK ? &r->added : &r->not_added, 1, __ATOMIC_SEQ_CST);
}

static void on_removed(void *arg, struct ndx_session *session, uint32_t index)
{
	struct rig *r = arg;

	(void)session;
	(void)index;
	(void)__atomic_add_fetch(&r->removed, 1, __ATOMIC_SEQ_CST);
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
	attr.variants = &r->server_variant;
	attr.variant_count = 1;
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .closed = on_closed, .arg = r};
	attr.open_many = on_open_many;
	attr.add_many = old_server ? NULL : on_add_many;
	attr.added = on_added;
	attr.removed = on_removed;
	if (rig_most > 0)
		attr.max_queue_pairs = rig_most;
	if (rig_stage_ms > 0)
		attr.stage_timeout_ms = rig_stage_ms;
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
enum ndx_status try_session(struct rig *r)
{
	struct ndx_session_queue_pair list[MOST] = {0};
	const char *const servers[] = {r->address};
	struct ndx_session_attr attr;

	for (uint32_t i = 0; !bare && i < r->count; i++) {
		list[i].connector = r->a[i].connector;
		list[i].qp = r->a[i].qp;
	}
	ndx_session_attr_init(&attr);
	attr.variant = r->variant;
	attr.servers = servers;
	attr.server_count = 1;
	attr.backoff_ms = 1;
	if (rig_stage_ms > 0)
		attr.stage_timeout_ms = rig_stage_ms;
	attr.max_history = 1024;
	attr.tls = tls_client;
	attr.queue_pairs = list;
	attr.queue_pair_count = r->count;
	return ndx_session_create(&attr, &r->session);
}

void make_session(struct rig *r)
{
	assert_int_equal(try_session(r), NDX_OK);
}

void rig_up(struct rig *r, uint32_t count)
{
	memset(r, 0, sizeof(*r));
	r->count = count;
	r->lame = MOST;
	rig = r;
	for (int i = 0; i < 2; i++) {
		const bool direct = strcmp(rig_uri, "direct") == 0;

		assert_int_equal(ndx_adapter_open(direct ? "loop" : rig_uri, &r->adapters[i]),
		                 NDX_OK);
		if (direct)
			fake_direct(r->adapters[i]);
	}
	for (uint32_t i = 0; i < count; i++) {
		open_end(r->adapters[0], &r->a[i]);
		open_end(r->adapters[1], &r->b[i]);
	}
	for (int i = 0; i < 2; i++) {
		struct ndx_negotiation **n = &r->negotiations[i];

		assert_int_equal(ndx_negotiation_create(n), NDX_OK);
		assert_int_equal(ndx_negotiation_register(*n, i == still ? &still_plugin : &plugin),
		                 NDX_OK);
		assert_int_equal(
			ndx_negotiation_get_variant(*n, "same", rig_variant, NULL, 0,
		                                    i == 0 ? &r->variant : &r->server_variant),
			NDX_OK);
	}
	serve(r);
	make_session(r);
}

void more_up(struct rig *r, uint32_t count)
{
	for (r->more = 0; r->more < count; r->more++) {
		r->more_a[r->more] = (struct end){.cq = NULL};
		r->more_b[r->more] = (struct end){.cq = NULL};
		open_end(r->adapters[0], &r->more_a[r->more]);
		open_end(r->adapters[1], &r->more_b[r->more]);
	}
}

void more_down(struct rig *r)
{
	for (uint32_t i = 0; i < r->more; i++) {
		close_end(&r->more_a[i]);
		close_end(&r->more_b[i]);
	}
	r->more = 0;
	r->lame = MOST;
}

void more_list(const struct rig *r, struct ndx_session_queue_pair list[MOST])
{
	memset(list, 0, MOST * sizeof(*list));
	for (uint32_t i = 0; i < r->more; i++) {
		list[i].connector = r->more_a[i].connector;
		list[i].qp = r->more_a[i].qp;
	}
}

void watch(struct end *e)
{
	assert_int_equal(ndx_connector_notify_disconnect(e->connector, &e->notify), NDX_PENDING);
}

void rig_run(struct rig *r, uint32_t count)
{
	rig_up(r, count);
	assert_int_equal(ndx_session_run(r->session), NDX_OK);
	for (uint32_t i = 0; !bare && i < count; i++) {
		watch(&r->a[i]);
		watch(&r->b[i]);
	}
}

void rig_down(struct rig *r)
{
	ndx_session_close(r->session);
	ndx_negotiation_server_close(r->server);
	ndx_variant_close(r->variant);
	ndx_variant_close(r->server_variant);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ndx_negotiation_close(r->negotiations[i]), NDX_OK);
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

enum ndx_status more_add(struct rig *r, uint32_t *first)
{
	struct ndx_session_queue_pair list[MOST];

	more_list(r, list);
	return ndx_session_add_queue_pairs(r->session, list, r->more, first);
}

void is_told(const int *count, int value)
{
	for (int i = 0; i < WAIT_MS && __atomic_load_n(count, __ATOMIC_SEQ_CST) < value; i++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(__atomic_load_n(count, __ATOMIC_SEQ_CST), value);
}

void all_last(struct end *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(ndx_overlapped_status(&list[i].notify), NDX_PENDING);
}

void more_end(struct rig *r)
{
	for (uint32_t i = 0; i < r->more; i++) {
		watch(&r->more_b[i]);
		disconnect_both(&r->more_a[i], &r->more_b[i]);
	}
	more_down(r);
}

void another_batch_is_added(struct rig *r, uint32_t count)
{
	more_down(r);
	more_up(r, count);
	assert_int_equal(more_add(r, NULL), NDX_OK);
	more_end(r);
}
