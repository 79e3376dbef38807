/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection whose channel was handed over: what the peer may say on it, and what it may do to
 * it. The peer is the test, byte by byte.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#undef fail /* cmocka's; base_log.h has another */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/ndx.h>

#include "core.h"
#include "fake_direct.h"
#include "negotiation/frame.h"
#include "negotiation/settle.h"

#define PATIENCE_MS 10000u

struct end {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
	struct ndx_qp *qp;
	struct ndx_connector *connector;
	struct ndx_overlapped ov;
	struct ndx_overlapped notify;
	struct ndx_peer_description own;
	struct ndx_peer_description peer;
	int fd;   /* of the connector */
	int wire; /* of the peer; nothing is waited for without an end */
};

static void open_end(struct end *e, uint32_t connect_timeout_ms)
{
	const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	struct ndx_connector_attr how;
	struct ndx_qp_attr attr;
	int pair[2];

	memset(e, 0, sizeof(*e));
	assert_int_equal(ndx_adapter_open("loop", &e->adapter), NDX_OK);
	fake_direct(e->adapter);
	assert_int_equal(ndx_cq_create(e->adapter, 4, 0, 0, &e->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = e->cq;
	assert_int_equal(ndx_qp_create(e->adapter, &attr, &e->qp), NDX_OK);
	ndx_connector_attr_init(&how);
	how.connect_timeout_ms = connect_timeout_ms;
	assert_int_equal(ndx_connector_create(e->adapter, &how, &e->connector), NDX_OK);
	assert_int_equal(
		ndx_connector_describe(e->connector, e->qp, NDX_ROLE_CLIENT, 4, 4, &e->own),
		NDX_OK);
	e->peer = e->own;
	e->peer.qpn = 0x123456;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	e->fd = pair[0];
	e->wire = pair[1];
	assert_int_equal(setsockopt(e->wire, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
	                 0);
}

static void close_end(struct end *e)
{
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
	ndx_adapter_close(e->adapter);
	(void)close(e->wire);
}

static void ends(struct ndx_overlapped *ov, enum ndx_status status)
{
	assert_int_equal(ndx_overlapped_wait(ov, PATIENCE_MS), status);
}

static void tell(const struct end *e, const void *bytes, size_t length)
{
	assert_int_equal(send(e->wire, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

static void say(const struct end *e, enum frame_type type, uint8_t flags, uint32_t length)
{
	const struct frame f = {.type = type, .flags = flags, .length = length};
	uint8_t bytes[FRAME_HEADER + 64] = {0};

	frame_write_header(bytes, &f);
	tell(e, bytes, FRAME_HEADER + length);
}

static void say_validate(const struct end *e, const struct frame_validate *v)
{
	uint8_t bytes[FRAME_HEADER + FRAME_VALIDATE_SIZE];
	const struct frame f = {.type = FRAME_VALIDATE,
	                        .stage = NDX_STAGE_VALIDATE,
	                        .length = frame_write_validate(bytes + FRAME_HEADER, v)};

	frame_write_header(bytes, &f);
	tell(e, bytes, sizeof(bytes));
}

/* What the peer holds if it has understood everything. */
static struct frame_validate peers_view(const struct end *e)
{
	struct frame_validate v;
	char why[160];

	assert_int_equal(settle(NDX_ROLE_SERVER, &e->peer, &e->own, &v.agreed, why, sizeof(why)),
	                 NDX_OK);
	settle_identity(&e->peer, v.own);
	settle_identity(&e->own, v.peer);
	return v;
}

/* The next frame that the peer gets. */
static void hears(const struct end *e, enum frame_type type, uint8_t flags, uint8_t *payload)
{
	uint8_t bytes[FRAME_HEADER + FRAME_VALIDATE_SIZE];
	struct frame f;
	const char *why;
	size_t used;

	assert_int_equal(recv(e->wire, bytes, FRAME_HEADER, MSG_WAITALL), FRAME_HEADER);
	if (frame_parse(bytes, FRAME_HEADER, FRAME_VALIDATE_SIZE, &f, &used, &why) == FRAME_MORE)
		assert_int_equal(
			recv(e->wire, bytes + FRAME_HEADER, used - FRAME_HEADER, MSG_WAITALL),
			(ssize_t)(used - FRAME_HEADER));
	assert_int_equal(frame_parse(bytes, used, FRAME_VALIDATE_SIZE, &f, &used, &why),
	                 FRAME_WHOLE);
	assert_int_equal(f.type, type);
	assert_int_equal(f.flags, flags);
	if (payload != NULL)
		memcpy(payload, f.payload, f.length);
}

static void hears_the_end(const struct end *e)
{
	uint8_t byte;
	const ssize_t n = recv(e->wire, &byte, 1, 0);

	/* Reset, if something was left unread there. */
	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

static void begin(struct end *e)
{
	assert_int_equal(ndx_connector_set_channel(e->connector, e->fd), NDX_OK);
	assert_int_equal(ndx_connector_connect_peer(e->connector, &e->peer, &e->ov), NDX_PENDING);
}

static void up(struct end *e)
{
	struct frame_validate v;

	open_end(e, PATIENCE_MS);
	v = peers_view(e);
	begin(e);
	hears(e, FRAME_VALIDATE, 0, NULL);
	say_validate(e, &v);
	ends(&e->ov, NDX_OK);
	assert_int_equal(ndx_connector_notify_disconnect(e->connector, &e->notify), NDX_PENDING);
}

static void indicated(struct end *e, enum ndx_disconnect_reason reason)
{
	ends(&e->notify, NDX_OK);
	assert_int_equal(e->notify.information, reason);
}

static void disconnects(struct end *e, enum ndx_status status)
{
	memset(&e->ov, 0, sizeof(e->ov));
	assert_int_equal(ndx_connector_disconnect(e->connector, &e->ov), NDX_PENDING);
	ends(&e->ov, status);
}

static void both_say_goodbye(void **state)
{
	struct end e;

	(void)state;
	up(&e); /* we first */
	assert_int_equal(ndx_connector_disconnect(e.connector, &e.ov), NDX_PENDING);
	hears(&e, FRAME_GOODBYE, 0, NULL);
	say(&e, FRAME_ALIVE, 0, 0); /* means nothing */
	assert_int_equal(ndx_overlapped_status(&e.ov), NDX_PENDING);
	say(&e, FRAME_GOODBYE, 0, 0);
	ends(&e.ov, NDX_OK);
	hears_the_end(&e);
	close_end(&e);
	up(&e); /* the peer first, and it goes at once when it is answered */
	say(&e, FRAME_GOODBYE, 0, 0);
	indicated(&e, NDX_DISCONNECT_GRACEFUL);
	hears(&e, FRAME_GOODBYE, 0, NULL);
	assert_int_equal(shutdown(e.wire, SHUT_RDWR), 0);
	disconnects(&e, NDX_OK);
	close_end(&e);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* Until the connector has read, and dealt with, all that was said. */
static void is_taken(const struct end *e)
{
	int left = 1;

	while (left > 0) {
		assert_int_equal(ioctl(e->wire, SIOCOUTQ, &left), 0);
		(void)poll(NULL, 0, 1);
	}
	base_loop_call(e->adapter->loop, nothing, NULL);
}

/* The provider takes its time with it; meanwhile the peer, who has said all, goes away. */
static void who_goes_behind_both_goodbyes_breaks_nothing(void **state)
{
	struct end e;

	(void)state;
	fake_direct_broods = true;
	up(&e);
	assert_int_equal(ndx_connector_disconnect(e.connector, &e.ov), NDX_PENDING);
	hears(&e, FRAME_GOODBYE, 0, NULL);
	say(&e, FRAME_GOODBYE, 0, 0);
	say(&e, FRAME_BYE, 0, 0);
	is_taken(&e);
	fake_direct_broods = false;
	core_host.report(e.connector->native, NDX_REPORT_PEER_DISC, 0, NULL);
	ends(&e.ov, NDX_OK);
	close_end(&e);
}

static unsigned detaches;

static enum ndx_status detach_in_the_end(struct ndx_spi_conn *conn)
{
	(void)conn;
	return ++detaches < 4 ? NDX_PENDING : NDX_OK;
}

static void set_detach(void *arg)
{
	static struct ndx_provider_ops ops;
	struct ndx_adapter *adapter = arg;

	ops = *adapter->ops;
	ops.conn_detach = detach_in_the_end;
	adapter->ops = &ops;
}

static void a_queue_pair_stays_while_its_provider_needs_it(void **state)
{
	struct end e;

	(void)state;
	up(&e);
	base_loop_call(e.adapter->loop, set_detach, e.adapter);
	detaches = 0;
	ndx_qp_close(e.qp); /* the peer does not answer */
	e.qp = NULL;
	assert_int_equal(detaches, 4);
	hears(&e, FRAME_GOODBYE, 0, NULL);
	say(&e, FRAME_GOODBYE, 0, 0);
	indicated(&e, NDX_DISCONNECT_GRACEFUL);
	disconnects(&e, NDX_OK);
	close_end(&e);
}

static void the_peer_is_told_what_we_hold(void **state)
{
	uint8_t payload[FRAME_VALIDATE_SIZE];
	uint8_t expected[FRAME_VALIDATE_SIZE];
	struct frame_validate v;
	struct end e;

	(void)state;
	open_end(&e, PATIENCE_MS);
	e.peer.outbound_read_limit = 2;
	v = peers_view(&e);
	begin(&e);
	hears(&e, FRAME_VALIDATE, 0, payload);
	/* The same, seen from the other side. */
	settle_identity(&e.own, v.own);
	settle_identity(&e.peer, v.peer);
	(void)frame_write_validate(expected, &v);
	assert_memory_equal(payload, expected, sizeof(expected));
	close_end(&e);
	ends(&e.ov, NDX_E_CANCELED);
}

static void who_holds_something_else_is_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct frame_validate v;
		struct end e;

		open_end(&e, PATIENCE_MS);
		v = peers_view(&e);
		v.own[3] ^= i == 0;
		v.peer[7] ^= i == 1;
		v.agreed.mtu >>= i == 2;
		v.agreed.server_reads += i == 3;
		begin(&e);
		hears(&e, FRAME_VALIDATE, 0, NULL);
		if (i == 4)
			say(&e, FRAME_VALIDATE, 0, 47);
		else
			say_validate(&e, &v);
		ends(&e.ov, NDX_E_CONNECTION_REFUSED);
		hears_the_end(&e);
		close_end(&e);
	}
}

static void who_does_not_validate_is_not_waited_for(void **state)
{
	struct end e;

	(void)state;
	open_end(&e, 50);
	begin(&e);
	hears(&e, FRAME_VALIDATE, 0, NULL);
	ends(&e.ov, NDX_E_IO_TIMEOUT);
	hears_the_end(&e);
	close_end(&e);
	open_end(&e, PATIENCE_MS);
	begin(&e);
	hears(&e, FRAME_VALIDATE, 0, NULL);
	assert_int_equal(shutdown(e.wire, SHUT_RDWR), 0);
	ends(&e.ov, NDX_E_CONNECTION_ABORTED);
	close_end(&e);
}

/* It was connected, and is not any more; both in one piece, before anybody looks. */
static void who_parts_at_once_was_there(void **state)
{
	struct frame_validate v;
	struct end e;

	(void)state;
	open_end(&e, PATIENCE_MS);
	v = peers_view(&e);
	say_validate(&e, &v);
	say(&e, FRAME_GOODBYE, 0, 0);
	assert_int_equal(shutdown(e.wire, SHUT_WR), 0);
	begin(&e);
	ends(&e.ov, NDX_OK);
	disconnects(&e, NDX_E_CONNECTION_ABORTED); /* it has not waited for ours */
	close_end(&e);
}

static void what_has_no_place_there_ends_it(void **state)
{
	static const struct {
		enum frame_type type;
		uint8_t flags;
		uint32_t length;
	} odd[] = {
		{FRAME_GOODBYE, FRAME_ABORTED, 0},
		{FRAME_GOODBYE, 0, 1},
		{FRAME_BYE, 0, 0},
		{FRAME_ERROR, 0, 8},
		{FRAME_DATA, 0, 0},
		{FRAME_DATA, 0, 20},
		{FRAME_DATA, 0, 60},
		{FRAME_HELLO, 0, 0},
		{FRAME_WELCOME, 0, 12},
		{FRAME_ALIVE, 1, 0},
		{(enum frame_type)9, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct end e;

		print_message("type %d, flags %u, %u bytes\n", odd[i].type, odd[i].flags,
		              odd[i].length);
		up(&e);
		say(&e, odd[i].type, odd[i].flags, odd[i].length);
		indicated(&e, NDX_DISCONNECT_ABORTED);
		hears(&e, FRAME_GOODBYE, FRAME_ABORTED, NULL);
		hears_the_end(&e);
		disconnects(&e, NDX_E_CONNECTION_ABORTED);
		close_end(&e);
	}
}

static void a_stream_that_ends_or_is_none_ends_it(void **state)
{
	static const char *const streams[] = {"", "N", "NDXN", "NDXN\1\7",
	                                      "GET / HTTP/1.1\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		struct end e;

		up(&e);
		tell(&e, streams[i], strlen(streams[i]));
		assert_int_equal(shutdown(e.wire, SHUT_WR), 0);
		indicated(&e, NDX_DISCONNECT_ABORTED);
		disconnects(&e, NDX_E_CONNECTION_ABORTED);
		close_end(&e);
	}
}

/* A frame may come in any pieces; many may come at once. */
static void pieces_are_put_together(void **state)
{
	const struct frame bye = {.type = FRAME_GOODBYE};
	uint8_t bytes[FRAME_HEADER];
	struct end e;

	(void)state;
	up(&e);
	for (int i = 0; i < 100; i++)
		say(&e, FRAME_ALIVE, 0, 0);
	frame_write_header(bytes, &bye);
	for (size_t i = 0; i < sizeof(bytes); i++)
		tell(&e, bytes + i, 1);
	indicated(&e, NDX_DISCONNECT_GRACEFUL);
	disconnects(&e, NDX_OK);
	close_end(&e);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void a_channel_is_taken_once(void **state)
{
	struct end e;
	int other;

	(void)state;
	open_end(&e, PATIENCE_MS);
	assert_int_equal(ndx_connector_connect_peer(e.connector, &e.peer, &e.ov),
	                 NDX_E_INVALID_DEVICE_STATE);
	other = dup(e.fd);
	assert_int_equal(ndx_connector_set_channel(e.connector, -2), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_connector_set_channel(e.connector, e.fd), NDX_OK);
	assert_int_equal(ndx_connector_set_channel(e.connector, other), NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_connector_set_channel(e.connector, NDX_NO_CHANNEL),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_true(is_open(other));
	(void)close(other);
	assert_int_equal(ndx_connector_connect_peer(e.connector, &e.own, &e.ov),
	                 NDX_E_INVALID_PARAMETER);
	ndx_connector_close(e.connector);
	e.connector = NULL;
	hears_the_end(&e);
	close_end(&e);
}

static void peers_that_do_not_go_together_are_refused(void **state)
{
	static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
	struct ndx_peer_description peer;
	struct end e;

	(void)state;
	open_end(&e, PATIENCE_MS);
	assert_int_equal(ndx_connector_set_channel(e.connector, e.fd), NDX_OK);
	peer = e.peer;
	memcpy(peer.gid, ipv4, sizeof(ipv4));
	assert_int_equal(ndx_connector_connect_peer(e.connector, &peer, &e.ov),
	                 NDX_E_INVALID_CONFIG);
	peer = e.peer;
	peer.lid = 3;
	assert_int_equal(ndx_connector_connect_peer(e.connector, &peer, &e.ov),
	                 NDX_E_INVALID_CONFIG);
	peer = e.peer;
	peer.mtu = 1500;
	assert_int_equal(ndx_connector_connect_peer(e.connector, &peer, &e.ov),
	                 NDX_E_INVALID_PARAMETER);
	close_end(&e);
}

static void a_peer_without_a_channel_answers_by_itself(void **state)
{
	struct end e;

	(void)state;
	open_end(&e, PATIENCE_MS);
	assert_int_equal(ndx_connector_set_channel(e.connector, NDX_NO_CHANNEL), NDX_OK);
	assert_int_equal(ndx_connector_connect_peer(e.connector, &e.peer, &e.ov), NDX_PENDING);
	ends(&e.ov, NDX_OK);
	disconnects(&e, NDX_OK);
	close_end(&e);
	(void)close(e.fd);
	open_end(&e, PATIENCE_MS);
	assert_int_equal(ndx_connector_set_channel(e.connector, NDX_NO_CHANNEL), NDX_OK);
	close_end(&e);
	(void)close(e.fd);
}

/* A device's driver is told from which PSN it sends. */
static void an_end_sends_from_the_psn_that_it_was_told(void **state)
{
	struct ndx_connector_attr attr;
	struct ndx_peer_description own;
	struct ndx_connector *connector;
	struct end e;

	(void)state;
	open_end(&e, PATIENCE_MS);
	(void)close(e.fd);
	ndx_connector_close(e.connector);
	ndx_connector_attr_init(&attr);
	attr.psn = 1u << 24;
	assert_int_equal(ndx_connector_create(e.adapter, &attr, &e.connector),
	                 NDX_E_INVALID_PARAMETER);
	assert_non_null(strstr(ndx_last_error(), "psn 0x1000000"));
	attr.psn = 0xffffff;
	assert_int_equal(ndx_connector_create(e.adapter, &attr, &e.connector), NDX_OK);
	assert_int_equal(ndx_connector_describe(e.connector, e.qp, NDX_ROLE_SERVER, 4, 4, &own),
	                 NDX_OK);
	assert_int_equal(own.psn, 0xffffff);
	/* Once more, by another connector. */
	ndx_connector_close(e.connector);
	attr.psn = 0;
	assert_int_equal(ndx_connector_create(e.adapter, &attr, &connector), NDX_OK);
	assert_int_equal(ndx_connector_describe(connector, e.qp, NDX_ROLE_SERVER, 4, 4, &own),
	                 NDX_OK);
	assert_int_equal(own.psn, 0);
	e.connector = connector;
	close_end(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_say_goodbye),
		cmocka_unit_test(who_goes_behind_both_goodbyes_breaks_nothing),
		cmocka_unit_test(a_queue_pair_stays_while_its_provider_needs_it),
		cmocka_unit_test(the_peer_is_told_what_we_hold),
		cmocka_unit_test(who_holds_something_else_is_refused),
		cmocka_unit_test(who_does_not_validate_is_not_waited_for),
		cmocka_unit_test(who_parts_at_once_was_there),
		cmocka_unit_test(what_has_no_place_there_ends_it),
		cmocka_unit_test(a_stream_that_ends_or_is_none_ends_it),
		cmocka_unit_test(pieces_are_put_together),
		cmocka_unit_test(a_channel_is_taken_once),
		cmocka_unit_test(peers_that_do_not_go_together_are_refused),
		cmocka_unit_test(a_peer_without_a_channel_answers_by_itself),
		cmocka_unit_test(an_end_sends_from_the_psn_that_it_was_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
