/* SPDX-License-Identifier: BSD-2-Clause */
#include "oob_rig.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "fake_direct.h"
#include "same_plugin.h"

/* ---- the plugin ---- */

int stuck;
int parting;

static enum ndx_status ready(void *session, const struct ndx_exchange *x, const void *peer,
                             size_t length, struct ndx_exchange_reply *reply)
{
	if (x->role == NDX_ROLE_CLIENT)
		stay_if_wanted(&stuck);
	return same_ready(session, x, peer, length, reply);
}

static enum ndx_status done(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	if (x->role == NDX_ROLE_CLIENT)
		__atomic_store_n(&parting, 1, __ATOMIC_SEQ_CST);
	return same_ready(session, x, peer, length, reply);
}

uint32_t peer_policy;

static enum ndx_status info(void *session, const struct ndx_exchange *x, const void *peer,
                            size_t length, struct ndx_exchange_reply *reply)
{
	const enum ndx_status st = same_info(session, x, peer, length, reply);

	if (st == NDX_OK && reply->completed)
		x->peer->policy = peer_policy;
	return st;
}

static const struct ndx_variant_ops ops = {.begin = begin_session,
                                           .end = end_session,
                                           .info = info,
                                           .ready = ready,
                                           .done = done,
                                           .reset = same_reset};
static const struct ndx_plugin_variant only = {.name = "as-it-is", .help = "test", .ops = &ops};
static const struct ndx_plugin plugin = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(struct ndx_plugin),
                                         .name = "same",
                                         .version = "1",
                                         .vendor = "test",
                                         .list = &only,
                                         .count = 1};

/* ---- two ends, and the session between them ---- */

uint32_t stage_ms;
uint32_t client_stage_ms;
struct ndx_memory_description offered;
enum ndx_stage held_stage = NDX_STAGE_READY;
bool managed;
const struct ndx_plugin *rig_plugin;
const struct ndx_setting *rig_setting;
const char *(*rig_detour)(uint16_t port);
void (*rig_opens)(void);
bool lacks_connector;
bool lacks_qp;

static void open_end(struct end *e)
{
	struct ndx_qp_attr attr;

	assert_int_equal(ndx_adapter_open("loop", &e->adapter), NDX_OK);
	if (!managed)
		fake_direct(e->adapter);
	assert_int_equal(ndx_cq_create_depth(e->adapter, 4, &e->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = e->cq;
	assert_int_equal(ndx_qp_create(e->adapter, &attr, &e->qp), NDX_OK);
	assert_int_equal(ndx_connector_create(e->adapter, NULL, &e->connector), NDX_OK);
}

static void close_end(struct end *e)
{
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
	ndx_adapter_close(e->adapter);
}

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	struct rig *r = arg;

	if (rig_opens != NULL)
		rig_opens();
	r->theirs = session;
	resources->connector = lacks_connector ? NULL : r->b.connector;
	resources->qp = lacks_qp ? NULL : r->b.qp;
	return NDX_OK;
}

static void on_staged(void *arg, struct ndx_session *session, enum ndx_stage stage)
{
	struct rig *r = arg;

	(void)session;
	if (stage == NDX_STAGE_INFO)
		__atomic_store_n(&r->informed, 1, __ATOMIC_SEQ_CST);
	if (stage == held_stage)
		stay_while(&r->held);
}

static void on_closed(void *arg, struct ndx_session *session)
{
	struct rig *r = arg;
	size_t count = 1;

	(void)ndx_session_get_history(session, &r->theirs_latest, &count, NULL);
	r->theirs_error = (struct ndx_session_error){.size = sizeof(r->theirs_error)};
	(void)ndx_session_get_error(session, &r->theirs_error);
	(void)__atomic_add_fetch(&r->closed, 1, __ATOMIC_SEQ_CST);
}

void rig_up(struct rig *r)
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_session_attr session;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);
	char address[32];
	const char *const servers[] = {address};
	const struct ndx_plugin *used = rig_plugin != NULL ? rig_plugin : &plugin;

	memset(r, 0, sizeof(*r));
	open_end(&r->a);
	open_end(&r->b);
	assert_int_equal(ndx_negotiation_create(&r->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(r->negotiation, used), NDX_OK);
	assert_int_equal(ndx_negotiation_get_variant(r->negotiation, used->name, used->list[0].name,
	                                             rig_setting, rig_setting != NULL, &r->variant),
	                 NDX_OK);
	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &r->variant;
	attr.variant_count = 1;
	if (stage_ms > 0)
		attr.stage_timeout_ms = stage_ms;
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .staged = on_staged, .closed = on_closed, .arg = r};
	assert_int_equal(ndx_negotiation_server_create(&attr, &r->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(r->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	if (rig_detour != NULL)
		(void)snprintf(address, sizeof(address), "%s", rig_detour(ntohs(at.sin_port)));
	ndx_session_attr_init(&session);
	session.variant = r->variant;
	session.servers = servers;
	session.server_count = 1;
	session.connector = r->a.connector;
	session.qp = r->a.qp;
	session.memory = offered;
	if (client_stage_ms > 0)
		session.stage_timeout_ms = client_stage_ms;
	assert_int_equal(ndx_session_create(&session, &r->session), NDX_OK);
}

struct cut {
	const struct ndx_session *session;
	int how;
	int result;
};

static void cut_on_loop(void *arg)
{
	struct cut *cut = arg;

	cut->result = shutdown(cut->session->driver.fd, cut->how);
}

void cut_transport(struct ndx_session *s, int how)
{
	struct cut cut = {.session = s, .how = how};

	ndxp_loop_call(s->driver.engine->loop, cut_on_loop, &cut);
	assert_int_equal(cut.result, 0);
}

void wait_closed(struct rig *r)
{
	await(&r->closed);
}

void watch(struct end *e)
{
	assert_int_equal(ndx_connector_notify_disconnect(e->connector, &e->notify), NDX_PENDING);
}

void rig_run(struct rig *r)
{
	rig_up(r);
	assert_int_equal(ndx_session_run(r->session), NDX_OK);
	watch(&r->a);
	watch(&r->b);
}

void rig_down(struct rig *r)
{
	enum ndx_status st = NDX_E_DEVICE_BUSY;

	ndx_session_close(r->session);
	ndx_negotiation_server_close(r->server);
	ndx_variant_close(r->variant);
	/* A connection that outlives its session keeps the plugin's transport a little longer. */
	for (int ms = 0; rig_plugin != NULL && ms < WAIT_MS && st == NDX_E_DEVICE_BUSY; ms++) {
		st = ndx_negotiation_close(r->negotiation);
		if (st == NDX_E_DEVICE_BUSY)
			(void)poll(NULL, 0, 1);
	}
	if (rig_plugin == NULL)
		st = ndx_negotiation_close(r->negotiation);
	assert_int_equal(st, NDX_OK);
	close_end(&r->a);
	close_end(&r->b);
}

void indicated(struct end *e, enum ndx_disconnect_reason reason)
{
	assert_int_equal(ndx_overlapped_wait(&e->notify, WAIT_MS), NDX_OK);
	assert_int_equal(e->notify.information, reason);
}

void start_disconnect(struct end *e)
{
	assert_int_equal(ndx_connector_disconnect(e->connector, &e->disc), NDX_PENDING);
}

void disconnected(struct end *e, enum ndx_status status)
{
	assert_int_equal(ndx_overlapped_wait(&e->disc, WAIT_MS), status);
}

void disconnect_both(struct end *from, struct end *to)
{
	start_disconnect(from);
	indicated(to, NDX_DISCONNECT_GRACEFUL);
	disconnected(from, NDX_OK);
	start_disconnect(to);
	disconnected(to, NDX_OK);
}
