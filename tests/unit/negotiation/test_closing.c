/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that is closed in a callback of the adapter which its sessions connect, wherever they
 * are: the close returns, no client can reach the server any more, the end of each session is
 * reported, and all that the server kept is freed behind that.
 */
#include "says.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <ndx/ndx.h>
#include <ndx/negotiation_server.h>
#include "connection.h"
#include "fake_direct.h"
#include "same_plugin.h"

enum { WAIT_MS = 20000, ROUNDS = 100 };
/* A client whose queue pair connects does not look at what its server says until the time of the
 * stage is over. */
enum { STAGE_MS = 1000 };

/* Where the session is when the server is closed. */
enum where {
	SILENT,     /* its client has not said hello */
	IN_CALL,    /* a call of the consumer's has it, which returns behind the close */
	CONNECTING, /* the server's queue pair waits for the client's */
	IDLE,       /* through with stage ready */
	WHEREVER,   /* chance decides */
};

static const struct ndx_variant_ops ops = {
	.info = same_info, .ready = same_ready, .done = same_ready, .reset = same_reset};
static const struct ndx_plugin_variant only = {.name = "as-it-is", .help = "test", .ops = &ops};
static const struct ndx_plugin plugin = {.abi = NDX_PLUGIN_ABI,
                                         .size = sizeof(struct ndx_plugin),
                                         .name = "same",
                                         .version = "1",
                                         .vendor = "test",
                                         .list = &only,
                                         .count = 1};

struct end {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_mr *mr;
	uint8_t memory[64];
	struct ndx_overlapped ov; /* of its callback */
};

struct rig {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	struct ndx_session *session;
	pthread_t thread; /* runs the session */
	struct sockaddr_in at;
	struct end a;    /* the client's */
	struct end b;    /* the server's */
	uint32_t held;   /* atomic, as the following: calls of the consumer's do not return */
	uint32_t stands; /* the client's control thread does */
	uint32_t inside; /* it is in the callback that makes it stand */
	uint32_t opened;
	uint32_t staged; /* calls that a stage has ended */
	uint32_t closed;
	uint32_t over; /* the server's close has come back */
};

static uint32_t get(const uint32_t *what)
{
	return __atomic_load_n(what, __ATOMIC_SEQ_CST);
}

static void set(uint32_t *what, uint32_t value)
{
	__atomic_store_n(what, value, __ATOMIC_SEQ_CST);
}

/* What hangs, hangs for good: nothing can be closed any more. */
static void await(const uint32_t *what, uint32_t value, const char *text)
{
	for (int ms = 0; get(what) != value; ms++) {
		if (ms == WAIT_MS) {
			print_error("%s\n", text);
			abort();
		}
		(void)poll(NULL, 0, 1);
	}
}

/* ---- the server's sessions ---- */

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	struct rig *r = arg;

	(void)session;
	resources->connector = r->b.connector;
	resources->qp = r->b.qp;
	(void)__atomic_add_fetch(&r->opened, 1, __ATOMIC_SEQ_CST);
	return NDX_OK;
}

static void on_staged(void *arg, struct ndx_session *session, enum ndx_stage stage)
{
	struct rig *r = arg;

	(void)session;
	(void)stage;
	(void)__atomic_add_fetch(&r->staged, 1, __ATOMIC_SEQ_CST);
	while (get(&r->held) != 0)
		(void)poll(NULL, 0, 1);
}

static void on_closed(void *arg, struct ndx_session *session)
{
	struct rig *r = arg;

	(void)session;
	(void)__atomic_add_fetch(&r->closed, 1, __ATOMIC_SEQ_CST);
}

/* ---- callbacks of adapters ---- */

static void call_back(struct end *e, ndx_overlapped_fn *fn, struct rig *r)
{
	e->ov = (struct ndx_overlapped){.callback = fn, .context = r};
	assert_int_equal(ndx_mr_register(e->mr, e->memory, sizeof(e->memory), 0, &e->ov),
	                 NDX_PENDING);
}

static void stand_still(struct ndx_overlapped *ov)
{
	struct rig *r = ov->context;

	set(&r->inside, 1);
	while (get(&r->stands) != 0)
		(void)poll(NULL, 0, 1);
}

static void close_server(struct ndx_overlapped *ov)
{
	struct rig *r = ov->context;

	ndx_negotiation_server_close(r->server);
	set(&r->over, 1);
}

/* ---- the rig ---- */

static void open_end(struct end *e, bool direct)
{
	struct ndx_qp_attr attr;

	assert_int_equal(ndx_adapter_open("loop", &e->adapter), NDX_OK);
	if (direct)
		fake_direct(e->adapter);
	assert_int_equal(ndx_cq_create_depth(e->adapter, 4, &e->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = e->cq;
	assert_int_equal(ndx_qp_create(e->adapter, &attr, &e->qp), NDX_OK);
	assert_int_equal(ndx_connector_create(e->adapter, NULL, &e->connector), NDX_OK);
	assert_int_equal(ndx_mr_create(e->adapter, &e->mr), NDX_OK);
}

static void close_end(struct end *e)
{
	ndx_mr_close(e->mr);
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
	ndx_adapter_close(e->adapter);
}

static void rig_up(struct rig *r, bool direct)
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_session_attr session;
	socklen_t length = sizeof(r->at);
	char address[32];
	const char *const servers[] = {address};

	memset(r, 0, sizeof(*r));
	open_end(&r->a, direct);
	open_end(&r->b, direct);
	assert_int_equal(ndx_negotiation_create(&r->negotiation), NDX_OK);
	assert_int_equal(ndx_negotiation_register(r->negotiation, &plugin), NDX_OK);
	assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "same", "as-it-is", NULL, 0,
	                                             &r->variant),
	                 NDX_OK);
	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &r->variant;
	attr.variant_count = 1;
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .staged = on_staged, .closed = on_closed, .arg = r};
	assert_int_equal(ndx_negotiation_server_create(&attr, &r->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(r->server, (struct sockaddr *)&r->at, &length),
		NDX_OK);
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(r->at.sin_port));
	ndx_session_attr_init(&session);
	session.variant = r->variant;
	session.servers = servers;
	session.server_count = 1;
	session.attempts = 1;
	session.stage_timeout_ms = STAGE_MS;
	session.connector = r->a.connector;
	session.qp = r->a.qp;
	assert_int_equal(ndx_session_create(&session, &r->session), NDX_OK);
}

static void *run_session(void *session)
{
	return (void *)(intptr_t)ndx_session_run(session);
}

static int join(const struct rig *r)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&r->at, sizeof(r->at)) == 0)
		return fd;
	assert_int_equal(errno, ECONNREFUSED);
	(void)close(fd);
	return -1;
}

static void await_alive(struct rig *r, uint32_t alive)
{
	struct ndx_negotiation_server_stats stats = {0};

	for (int ms = 0; ms < WAIT_MS && stats.alive != alive; ms++) {
		(void)poll(NULL, 0, 1);
		stats.size = sizeof(stats);
		assert_int_equal(ndx_negotiation_server_get_stats(r->server, &stats), NDX_OK);
	}
	assert_int_equal(stats.alive, alive);
}

static bool has_been_told_of_its_peer(struct ndx_connector *c)
{
	struct ndx_transition list[NDX_HISTORY_MAX];
	size_t count = NDX_HISTORY_MAX;

	assert_int_equal(ndx_connector_get_history(c, list, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i].event, "CONNECT_PEER") == 0)
			return true;
	return false;
}

/* The session gets there. */
static void go(struct rig *r, enum where where)
{
	if (where == CONNECTING) {
		/* Described it is; then its control thread does not get to connecting it. */
		set(&r->held, 1);
		assert_int_equal(pthread_create(&r->thread, NULL, run_session, r->session), 0);
		await(&r->staged, 1, "stage info does not end");
		set(&r->stands, 1);
		call_back(&r->a, stand_still, r);
		await(&r->inside, 1, "the client's control thread does not stand");
		set(&r->held, 0);
		for (int ms = 0; ms < WAIT_MS && !has_been_told_of_its_peer(r->b.connector); ms++)
			(void)poll(NULL, 0, 1);
		return;
	}
	if (where == IN_CALL)
		set(&r->held, 1);
	assert_int_equal(pthread_create(&r->thread, NULL, run_session, r->session), 0);
	if (where == IN_CALL)
		await(&r->staged, 1, "stage info does not end");
	else if (where == IDLE)
		await(&r->staged, 3, "stage ready does not end");
	else
		(void)poll(NULL, 0, rand() % 4);
}

static void end(struct rig *r)
{
	enum ndx_status st = NDX_E_DEVICE_BUSY;
	void *result;

	set(&r->held, 0);
	set(&r->stands, 0);
	await(&r->closed, get(&r->opened), "a session is not told that it is over");
	if (r->thread != 0)
		assert_int_equal(pthread_join(r->thread, &result), 0);
	ndx_session_close(r->session);
	ndx_variant_close(r->variant);
	/* The server keeps its variants until it goes. */
	for (int ms = 0; ms < WAIT_MS && st == NDX_E_DEVICE_BUSY; ms++) {
		st = ndx_negotiation_close(r->negotiation);
		(void)poll(NULL, 0, 1);
	}
	assert_int_equal(st, NDX_OK);
	assert_int_equal(get(&r->closed), get(&r->opened));
	close_end(&r->a);
	close_end(&r->b);
}

static void close_there(enum where where, bool direct)
{
	struct rig r;
	int fd = -1;

	rig_up(&r, direct);
	if (where == SILENT) {
		fd = join(&r);
		await_alive(&r, 1);
	} else {
		go(&r, where);
	}
	call_back(&r.b, close_server, &r);
	await(&r.over, 1, "the close does not come back");
	if (where == IN_CALL)
		assert_int_equal(get(&r.closed), 0);
	assert_int_equal(join(&r), -1); /* also while a session is left */
	end(&r);
	if (fd >= 0)
		(void)close(fd);
}

static void before_hello(void **state)
{
	(void)state;
	close_there(SILENT, false);
}

static void while_a_call_has_the_session(void **state)
{
	(void)state;
	close_there(IN_CALL, false);
	close_there(IN_CALL, true);
}

static void while_the_queue_pair_connects(void **state)
{
	(void)state;
	close_there(CONNECTING, false);
	close_there(CONNECTING, true);
}

static void between_two_stages(void **state)
{
	(void)state;
	close_there(IDLE, false);
	close_there(IDLE, true);
}

static void at_any_time(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++)
		close_there(WHEREVER, i % 2 != 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_hello),
		cmocka_unit_test(while_a_call_has_the_session),
		cmocka_unit_test(while_the_queue_pair_connects),
		cmocka_unit_test(between_two_stages),
		cmocka_unit_test(at_any_time),
	};
	const unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : (unsigned)getpid();

	print_message("seed %u\n", seed);
	srand(seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
