/* SPDX-License-Identifier: BSD-2-Clause */
/* What a plugin is tried with. */
#include "ends.h"

#include <arpa/inet.h>
#include <poll.h>

void side_begin(struct side *s, const struct ndx_plugin_variant *variant, enum ndx_role role,
                const struct ndx_plugin_value *values)
{
	const struct ndx_variant_ops *ops = variant->ops;
	char why[160] = "";

	memset(s, 0, sizeof(*s));
	s->variant = variant;
	s->x = (struct ndx_exchange){.session = 1, .role = role};
	s->reply.room = ENDS_MESSAGE;
	if (ops->create != NULL)
		assert_int_equal(ops->create(NULL, variant, values, &s->instance, why, sizeof(why)),
		                 NDX_OK);
	s->session = s->instance;
	if (ops->begin != NULL)
		assert_int_equal(ops->begin(s->instance, &s->x, &s->session, &s->reply), NDX_OK);
}

void side_end(struct side *s)
{
	const struct ndx_variant_ops *ops = s->variant->ops;

	if (ops->end != NULL)
		ops->end(s->session);
	if (ops->destroy != NULL)
		ops->destroy(s->instance);
}

void side_call(struct side *s, side_fn *fn, const struct side *peer)
{
	/* As long as what was said, so that a sanitizer sees a byte too many. */
	uint8_t *heard = peer != NULL ? malloc(peer->reply.length + 1) : NULL;
	const size_t length = peer != NULL ? peer->reply.length : 0;

	if (length > 0) {
		assert_non_null(heard);
		heard = realloc(heard, length);
		assert_non_null(heard);
		memcpy(heard, peer->said, length);
	}
	s->x.own = &s->own;
	s->x.peer = &s->peer;
	s->x.agreed = &s->agreed;
	s->reply = (struct ndx_exchange_reply){.data = s->said, .room = ENDS_MESSAGE};
	s->status = fn(s->session, &s->x, heard, length, &s->reply);
	free(heard);
}

static side_fn *function_of(const struct side *s)
{
	const struct ndx_variant_ops *ops = s->variant->ops;

	if (s->x.stage == NDX_STAGE_INFO)
		return ops->info;
	return s->x.stage == NDX_STAGE_READY ? ops->ready : ops->done;
}

/* The first round has no peer. */
static void talk_once(struct side *a, struct side *b, bool first)
{
	const struct side said = *a;

	side_call(a, function_of(a), first ? NULL : b);
	side_call(b, function_of(b), first ? NULL : &said);
}

bool sides_talk(struct side *a, struct side *b, enum ndx_stage stage)
{
	a->x.stage = stage;
	b->x.stage = stage;
	for (uint32_t round = 0; round < 16; round++) {
		a->x.round = round;
		b->x.round = round;
		talk_once(a, b, round == 0);
		if (a->status != NDX_OK || b->status != NDX_OK)
			return false;
		if (a->reply.completed || b->reply.completed)
			return a->reply.completed && b->reply.completed;
	}
	return false;
}

bool end_open(struct end *e, const char *uri)
{
	struct ndx_connector_attr connector;
	struct ndx_qp_attr qp;

	memset(e, 0, sizeof(*e));
	if (ndx_adapter_open(uri, &e->adapter) != NDX_OK)
		return false;
	assert_int_equal(ndx_cq_create_depth(e->adapter, 16, &e->cq), NDX_OK);
	ndx_qp_attr_init(&qp);
	qp.receive_cq = e->cq;
	qp.initiator_cq = e->cq;
	qp.receive_depth = 4;
	qp.initiator_depth = 4;
	assert_int_equal(ndx_qp_create(e->adapter, &qp, &e->qp), NDX_OK);
	ndx_connector_attr_init(&connector);
	assert_int_equal(ndx_connector_create(e->adapter, &connector, &e->connector), NDX_OK);
	return true;
}

void end_close(struct end *e)
{
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
	ndx_adapter_close(e->adapter);
}

static enum ndx_status on_open(void *arg, struct ndx_session *s, struct ndx_session_resources *r)
{
	struct rendezvous *m = arg;

	(void)s;
	r->connector = m->server.connector;
	r->qp = m->server.qp;
	r->memory = m->memory;
	r->inbound_read_limit = m->reads[2];
	r->outbound_read_limit = m->reads[3];
	return NDX_OK;
}

static void on_staged(void *arg, struct ndx_session *s, enum ndx_stage stage)
{
	struct rendezvous *m = arg;

	if (stage == NDX_STAGE_INFO)
		assert_int_equal(ndx_session_get_agreement(s, NULL, &m->peer[1], &m->agreed[1]),
		                 NDX_OK);
}

static void begin_listening(struct listening *l, struct ndx_negotiation_server_attr *attr)
{
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	attr->address = "127.0.0.1:0";
	attr->stage_timeout_ms = ENDS_WAIT_MS;
	assert_int_equal(ndx_negotiation_server_create(attr, &l->server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(l->server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(l->address, sizeof(l->address), "127.0.0.1:%u", ntohs(at.sin_port));
}

void listening_begin(struct listening *l, struct ndx_variant *const *variants, size_t count,
                     uint32_t warn_ms)
{
	struct ndx_negotiation_server_attr attr;

	ndx_negotiation_server_attr_init(&attr);
	attr.variants = variants;
	attr.variant_count = count;
	attr.plugin_warn_ms = warn_ms;
	begin_listening(l, &attr);
}

void listening_end(struct listening *l)
{
	ndx_negotiation_server_close(l->server);
}

/* Calls of the plugin in stage info. */
static uint32_t count_rounds(const struct ndx_session *s)
{
	struct ndx_history_entry entries[128];
	size_t count = sizeof(entries) / sizeof(entries[0]);
	uint32_t rounds = 0;

	assert_int_equal(ndx_session_get_history(s, entries, &count, NULL), NDX_OK);
	for (size_t i = 0; i < count; i++)
		rounds +=
			entries[i].kind == NDX_HISTORY_CALL && strcmp(entries[i].text, "info") == 0;
	return rounds;
}

void rendezvous_run(struct rendezvous *m, struct ndx_variant *client, struct ndx_variant *server)
{
	struct ndx_negotiation_server_attr attr;
	struct ndx_session_attr session;
	struct listening listening;
	const char *servers = listening.address;
	struct ndx_session *s;

	ndx_negotiation_server_attr_init(&attr);
	attr.variants = &server;
	attr.variant_count = 1;
	attr.events = (struct ndx_negotiation_server_events){
		.open = on_open, .staged = on_staged, .arg = m};
	begin_listening(&listening, &attr);
	ndx_session_attr_init(&session);
	session.variant = client;
	session.servers = &servers;
	session.server_count = 1;
	session.stage_timeout_ms = ENDS_WAIT_MS;
	session.connector = m->client.connector;
	session.qp = m->client.qp;
	session.inbound_read_limit = m->reads[0];
	session.outbound_read_limit = m->reads[1];
	assert_int_equal(ndx_session_create(&session, &s), NDX_OK);
	m->status = ndx_session_run(s);
	if (m->status == NDX_OK)
		m->status = ndx_session_execute(s, NDX_STAGE_DONE);
	m->rounds = count_rounds(s);
	m->error.size = sizeof(m->error);
	assert_int_equal(ndx_session_get_error(s, &m->error), NDX_OK);
	(void)ndx_session_get_agreement(s, NULL, &m->peer[0], &m->agreed[0]);
	ndx_session_close(s);
	listening_end(&listening);
}

/* ---- the gateway ---- */

static bool relay(int from, int to)
{
	char bytes[4096];
	const ssize_t n = recv(from, bytes, sizeof(bytes), 0);

	return n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void relay_both(int a, int b)
{
	struct pollfd set[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};

	for (;;) {
		(void)poll(set, 2, -1);
		if (set[0].revents != 0 && !relay(a, b))
			return;
		if (set[1].revents != 0 && !relay(b, a))
			return;
	}
}

/* The request, to its empty line. */
static bool read_request(int fd)
{
	char line[512] = "";
	size_t used = 0;

	while (strstr(line, "\r\n\r\n") == NULL) {
		if (used + 1 == sizeof(line) || recv(fd, line + used, 1, 0) != 1)
			return false;
		line[++used] = '\0';
	}
	return strncmp(line, "CONNECT 127.0.0.1:", 18) == 0;
}

static void serve(struct gateway *g, int fd)
{
	static const char yes[] = "HTTP/1.1 200 go on\r\n\r\n";
	static const char no[] = "HTTP/1.1 403 no\r\n\r\n";
	struct sockaddr_in to = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	const int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	g->asked = read_request(fd);
	if (g->to == NULL) {
		(void)send(fd, no, sizeof(no) - 1, MSG_NOSIGNAL);
	} else {
		to.sin_port = htons((uint16_t)strtoul(strchr(g->to->address, ':') + 1, NULL, 10));
		if (connect(out, (struct sockaddr *)&to, sizeof(to)) == 0 &&
		    send(fd, yes, sizeof(yes) - 1, MSG_NOSIGNAL) > 0)
			relay_both(fd, out);
	}
	(void)close(out);
}

static void *gateway_main(void *arg)
{
	struct gateway *g = arg;
	const int fd = accept(g->fd, NULL, NULL);
	char byte;

	if (fd < 0)
		return NULL;
	if (!g->speaks && recv(fd, &byte, 1, MSG_PEEK) == 1)
		__atomic_store_n(&g->came, 1, __ATOMIC_SEQ_CST);
	while (!g->speaks && recv(fd, &byte, 1, 0) == 1)
		;
	if (g->speaks)
		serve(g, fd);
	(void)close(fd);
	return NULL;
}

void gateway_begin(struct gateway *g, const struct listening *to, bool speaks)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(at);

	*g = (struct gateway){.to = to, .speaks = speaks};
	g->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(g->fd >= 0);
	assert_int_equal(bind(g->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(g->fd, 1), 0);
	assert_int_equal(getsockname(g->fd, (struct sockaddr *)&at, &length), 0);
	(void)snprintf(g->address, sizeof(g->address), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&g->thread, NULL, gateway_main, g), 0);
}

void gateway_wait(struct gateway *g)
{
	while (__atomic_load_n(&g->came, __ATOMIC_SEQ_CST) == 0)
		(void)poll(NULL, 0, 1);
}

void gateway_end(struct gateway *g)
{
	(void)shutdown(g->fd, SHUT_RDWR);
	assert_int_equal(pthread_join(g->thread, NULL), 0);
	(void)close(g->fd);
}
