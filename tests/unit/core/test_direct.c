/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection whose channel was handed over: what the peer may say on it, and what it may do to
 * it. The peer is the test, byte by byte.
 */
#include "end.h"

#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/spi/system.h>
#include "connection.h"
#include "fake_direct.h"
#include "agree.h"
#include "oob_link.h"

static void both_say_goodbye(void **state)
{
	struct end e;

	(void)state;
	end_up(&e); /* we first */
	assert_int_equal(ndx_connector_disconnect(e.connector, &e.ov), NDX_PENDING);
	end_expect_frame(&e, FRAME_GOODBYE, 0, NULL);
	end_send_frame(&e, FRAME_ALIVE, 0, 0); /* means nothing */
	assert_int_equal(ndx_overlapped_status(&e.ov), NDX_PENDING);
	end_send_frame(&e, FRAME_GOODBYE, 0, 0);
	end_completes(&e.ov, NDX_OK);
	end_expect_no_frame(&e);
	end_close(&e);
	end_up(&e); /* the peer first, and it goes at once when it is answered */
	end_send_frame(&e, FRAME_GOODBYE, 0, 0);
	end_indicated(&e, NDX_DISCONNECT_GRACEFUL);
	end_expect_frame(&e, FRAME_GOODBYE, 0, NULL);
	assert_int_equal(shutdown(e.wire, SHUT_RDWR), 0);
	end_disconnects(&e, NDX_OK);
	end_close(&e);
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
	ndxp_loop_call(e->adapter->loop, nothing, NULL);
}

/* The provider takes its time with the goodbye, and the peer, which has sent everything, goes away.
 */
static void a_peer_that_leaves_behind_both_goodbyes_breaks_nothing(void **state)
{
	struct end e;

	(void)state;
	fake_direct_broods = true;
	end_up(&e);
	assert_int_equal(ndx_connector_disconnect(e.connector, &e.ov), NDX_PENDING);
	end_expect_frame(&e, FRAME_GOODBYE, 0, NULL);
	end_send_frame(&e, FRAME_GOODBYE, 0, 0);
	end_send_frame(&e, FRAME_SESSION_END, 0, 0);
	is_taken(&e);
	fake_direct_broods = false;
	core_host.report(e.connector->native, NDX_REPORT_PEER_DISC, 0, NULL);
	end_completes(&e.ov, NDX_OK);
	end_close(&e);
}

static unsigned detaches;
static uint64_t detached_at; /* when it was asked last */
static uint64_t needed_until;

static enum ndx_status detach_in_the_end(struct ndx_spi_conn *conn)
{
	(void)conn;
	return ++detaches < 4 ? NDX_PENDING : NDX_OK;
}

/* Longer than any wait; a wait that lasts so long fails and does not hang. */
static enum ndx_status detach_never(struct ndx_spi_conn *conn)
{
	(void)conn;
	detaches++;
	detached_at = ndxp_now_ns();
	return detached_at < needed_until ? NDX_PENDING : NDX_OK;
}

static enum ndx_status (*detach)(struct ndx_spi_conn *conn);

static void set_detach(void *arg)
{
	static struct ndx_provider_ops ops;
	struct ndx_adapter *adapter = arg;

	ops = *adapter->ops;
	ops.conn_detach = detach;
	adapter->ops = &ops;
	detaches = 0;
	needed_until = ndxp_deadline(END_PATIENCE_MS);
}

static void a_queue_pair_stays_while_its_provider_needs_it(void **state)
{
	struct end e;

	(void)state;
	end_up(&e);
	detach = detach_in_the_end;
	ndxp_loop_call(e.adapter->loop, set_detach, e.adapter);
	ndx_qp_close(e.qp); /* the peer does not answer */
	e.qp = NULL;
	assert_int_equal(detaches, 4);
	end_expect_frame(&e, FRAME_GOODBYE, 0, NULL);
	end_send_frame(&e, FRAME_GOODBYE, 0, 0);
	end_indicated(&e, NDX_DISCONNECT_GRACEFUL);
	end_disconnects(&e, NDX_OK);
	end_close(&e);
}

/* The goodbye was said; then the provider would not let go. */
static void was_aborted(struct end *e)
{
	end_expect_frame(e, FRAME_GOODBYE, 0, NULL);
	end_expect_frame(e, FRAME_GOODBYE, FRAME_ABORTED, NULL);
	end_expect_no_frame(e);
	end_indicated(e, NDX_DISCONNECT_ABORTED);
	end_disconnects(e, NDX_E_CONNECTION_ABORTED);
}

static void a_provider_that_never_drains_ends_in_an_abort(void **state)
{
	struct end e;
	uint64_t due;

	(void)state;
	end_up(&e);
	detach = detach_never;
	ndxp_loop_call(e.adapter->loop, set_detach, e.adapter);
	due = ndxp_deadline(2000); /* what it may count on */
	ndx_qp_close(e.qp);
	e.qp = NULL;
	assert_true(detached_at >= due);
	assert_true(detached_at < needed_until);
	was_aborted(&e);
	end_close(&e);
}

/* The peer's goodbye comes, and then the peer closes, while the provider is asked. */
static enum ndx_status detach_too_late(struct ndx_spi_conn *conn)
{
	detaches++;
	core_host.report(conn, NDX_REPORT_PEER_DISC, 0, NULL);
	core_host.report(conn, NDX_REPORT_ABORT, 0, "the peer closed the link");
	return NDX_E_DEVICE_BUSY;
}

static void a_goodbye_before_the_refusal_counts(void **state)
{
	struct end e;

	(void)state;
	end_up(&e);
	detach = detach_too_late;
	ndxp_loop_call(e.adapter->loop, set_detach, e.adapter);
	ndx_qp_close(e.qp);
	e.qp = NULL;
	assert_int_equal(detaches, 1);
	end_indicated(&e, NDX_DISCONNECT_GRACEFUL);
	end_disconnects(&e, NDX_OK);
	end_close(&e);
}

static void close_here(void *arg)
{
	struct end *e = arg;

	ndx_qp_close(e->qp);
	e->qp = NULL;
}

/* On the control thread, which itself drives what the call would wait for. */
static void in_a_callback_it_ends_at_once(void **state)
{
	struct end e;

	(void)state;
	end_up(&e);
	detach = detach_never;
	ndxp_loop_call(e.adapter->loop, set_detach, e.adapter);
	ndxp_loop_call(e.adapter->loop, close_here, &e);
	assert_int_equal(detaches, 1);
	was_aborted(&e);
	end_close(&e);
}

static void the_peer_is_told_what_we_hold(void **state)
{
	uint8_t payload[FRAME_VALIDATE_SIZE];
	uint8_t expected[FRAME_VALIDATE_SIZE];
	struct frame_validate v;
	struct end e;

	(void)state;
	end_open(&e, END_PATIENCE_MS);
	e.peer.outbound_read_limit = 2;
	v = end_peers_view(&e);
	end_begin(&e);
	end_expect_frame(&e, FRAME_VALIDATE, 0, payload);
	/* The same, seen from the other side. */
	agree_identity(&e.own, v.own);
	agree_identity(&e.peer, v.peer);
	(void)frame_write_validate(expected, &v);
	assert_memory_equal(payload, expected, sizeof(expected));
	end_close(&e);
	end_completes(&e.ov, NDX_E_CANCELED);
}

static void a_peer_with_another_agreement_is_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct frame_validate v;
		struct end e;

		end_open(&e, END_PATIENCE_MS);
		v = end_peers_view(&e);
		v.own[3] ^= i == 0;
		v.peer[7] ^= i == 1;
		v.agreed.mtu >>= i == 2;
		v.agreed.server_reads += i == 3;
		end_begin(&e);
		end_expect_frame(&e, FRAME_VALIDATE, 0, NULL);
		if (i == 4)
			end_send_frame(&e, FRAME_VALIDATE, 0, 47);
		else
			end_send_validate(&e, &v);
		end_completes(&e.ov, NDX_E_CONNECTION_REFUSED);
		end_expect_no_frame(&e);
		end_close(&e);
	}
}

static void has_text(const struct end *e, const char *words)
{
	char text[512] = "";
	size_t length = sizeof(text);

	assert_int_equal(ndx_connector_get_error_text(e->connector, text, &length), NDX_OK);
	if (strstr(text, words) == NULL)
		print_error("\"%s\" lacks \"%s\"\n", text, words);
	assert_non_null(strstr(text, words));
}

static void a_peer_that_does_not_validate_fails_in_time(void **state)
{
	struct end e;

	(void)state;
	end_open(&e, 50);
	end_begin(&e);
	end_expect_frame(&e, FRAME_VALIDATE, 0, NULL);
	end_completes(&e.ov, NDX_E_IO_TIMEOUT);
	has_text(&e, ": connecting failed: NDX_E_IO_TIMEOUT: no answer in connect_timeout_ms; "
	             "the peer has not called ndx_connector_connect_peer(), or the stream does "
	             "not carry its messages");
	end_expect_no_frame(&e);
	end_close(&e);
	end_open(&e, END_PATIENCE_MS);
	end_begin(&e);
	end_expect_frame(&e, FRAME_VALIDATE, 0, NULL);
	assert_int_equal(shutdown(e.wire, SHUT_RDWR), 0);
	end_completes(&e.ov, NDX_E_CONNECTION_ABORTED);
	end_close(&e);
}

/* It was connected, and is not any more; both in one piece, before the end looks. */
static void a_peer_that_disconnects_at_once_was_connected(void **state)
{
	struct frame_validate v;
	struct end e;

	(void)state;
	end_open(&e, END_PATIENCE_MS);
	v = end_peers_view(&e);
	end_send_validate(&e, &v);
	end_send_frame(&e, FRAME_GOODBYE, 0, 0);
	assert_int_equal(shutdown(e.wire, SHUT_WR), 0);
	end_begin(&e);
	end_completes(&e.ov, NDX_OK);
	end_disconnects(&e, NDX_E_CONNECTION_ABORTED); /* it has not waited for ours */
	end_close(&e);
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
		{FRAME_SESSION_END, 0, 0},
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
		end_up(&e);
		end_send_frame(&e, odd[i].type, odd[i].flags, odd[i].length);
		end_indicated(&e, NDX_DISCONNECT_ABORTED);
		end_expect_frame(&e, FRAME_GOODBYE, FRAME_ABORTED, NULL);
		end_expect_no_frame(&e);
		end_disconnects(&e, NDX_E_CONNECTION_ABORTED);
		end_close(&e);
	}
}

static void a_stream_that_ends_or_is_none_ends_it(void **state)
{
	static const char *const streams[] = {"", "N", "NDXN", "NDXN\1\7",
	                                      "GET / HTTP/1.1\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		struct end e;

		end_up(&e);
		end_send_bytes(&e, streams[i], strlen(streams[i]));
		assert_int_equal(shutdown(e.wire, SHUT_WR), 0);
		end_indicated(&e, NDX_DISCONNECT_ABORTED);
		end_disconnects(&e, NDX_E_CONNECTION_ABORTED);
		end_close(&e);
	}
}

/* A frame may come in any pieces; many may come at once. */
static void pieces_are_put_together(void **state)
{
	const struct frame bye = {.type = FRAME_GOODBYE};
	uint8_t bytes[FRAME_HEADER];
	struct end e;

	(void)state;
	end_up(&e);
	for (int i = 0; i < 100; i++)
		end_send_frame(&e, FRAME_ALIVE, 0, 0);
	frame_write_header(bytes, &bye);
	for (size_t i = 0; i < sizeof(bytes); i++)
		end_send_bytes(&e, bytes + i, 1);
	end_indicated(&e, NDX_DISCONNECT_GRACEFUL);
	end_disconnects(&e, NDX_OK);
	end_close(&e);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void an_oob_stream_is_taken_once(void **state)
{
	struct end e;
	int other;

	(void)state;
	end_open(&e, END_PATIENCE_MS);
	assert_int_equal(ndx_connector_connect_peer(e.connector, &e.peer, &e.ov),
	                 NDX_E_INVALID_DEVICE_STATE);
	other = dup(e.fd);
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, -2), NDX_E_INVALID_PARAMETER);
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, e.fd), NDX_OK);
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, other),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, NDX_NO_OOB_STREAM),
	                 NDX_E_INVALID_DEVICE_STATE);
	assert_true(is_open(other));
	(void)close(other);
	assert_int_equal(ndx_connector_connect_peer(e.connector, &e.own, &e.ov),
	                 NDX_E_INVALID_PARAMETER);
	ndx_connector_close(e.connector);
	e.connector = NULL;
	end_expect_no_frame(&e);
	end_close(&e);
}

/* The linker puts these two before the core's. */
struct oob_link *__real_ndx_private_oob_link_create(const struct oob_end_ops *carrier, void *arg);
struct oob_link *__wrap_ndx_private_oob_link_create(const struct oob_end_ops *carrier, void *arg);
bool __real_oob_link_attach(struct oob_link *w, const struct oob_end_ops *ops, void *arg);
bool __wrap_oob_link_attach(struct oob_link *w, const struct oob_end_ops *ops, void *arg);

static struct ndx_connector *rival; /* gets a channel while another one is made for it */
static bool no_tie;

struct oob_link *__wrap_ndx_private_oob_link_create(const struct oob_end_ops *carrier, void *arg)
{
	struct ndx_connector *c = rival;

	rival = NULL;
	if (c != NULL)
		assert_int_equal(ndx_connector_set_oob_stream(c, NDX_NO_OOB_STREAM), NDX_OK);
	return __real_ndx_private_oob_link_create(carrier, arg);
}

bool __wrap_oob_link_attach(struct oob_link *w, const struct oob_end_ops *ops, void *arg)
{
	return !no_tie && __real_oob_link_attach(w, ops, arg);
}

/* Both find that the connector has none, and both make one. */
static void the_later_one_of_two_at_once_is_dropped(void **state)
{
	struct end e;

	(void)state;
	for (int i = 0; i < 2; i++) {
		end_open(&e, END_PATIENCE_MS);
		rival = e.connector;
		assert_int_equal(ndx_connector_set_oob_stream(e.connector,
		                                              i == 0 ? e.fd : NDX_NO_OOB_STREAM),
		                 NDX_E_INVALID_DEVICE_STATE);
		assert_true(is_open(e.fd));
		(void)close(e.fd);
		assert_int_equal(ndx_connector_connect_peer(e.connector, &e.peer, &e.ov),
		                 NDX_PENDING);
		end_completes(&e.ov, NDX_OK);
		end_close(&e);
	}
}

/* Nothing of it stays: the descriptor can be given once more. */
static void a_channel_that_cannot_be_tied_is_dropped(void **state)
{
	struct end e;

	(void)state;
	end_open(&e, END_PATIENCE_MS);
	no_tie = true;
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, e.fd), NDX_E_CONNECTION_ABORTED);
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, NDX_NO_OOB_STREAM),
	                 NDX_E_CONNECTION_ABORTED);
	no_tie = false;
	assert_true(is_open(e.fd));
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, e.fd), NDX_OK);
	end_close(&e);
}

static void peers_that_do_not_go_together_are_refused(void **state)
{
	static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
	struct ndx_peer_description peer;
	struct end e;

	(void)state;
	end_open(&e, END_PATIENCE_MS);
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, e.fd), NDX_OK);
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
	end_close(&e);
}

static void a_peer_without_an_oob_stream_answers_by_itself(void **state)
{
	struct end e;

	(void)state;
	end_open(&e, END_PATIENCE_MS);
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, NDX_NO_OOB_STREAM), NDX_OK);
	assert_int_equal(ndx_connector_connect_peer(e.connector, &e.peer, &e.ov), NDX_PENDING);
	end_completes(&e.ov, NDX_OK);
	end_disconnects(&e, NDX_OK);
	end_close(&e);
	(void)close(e.fd);
	end_open(&e, END_PATIENCE_MS);
	assert_int_equal(ndx_connector_set_oob_stream(e.connector, NDX_NO_OOB_STREAM), NDX_OK);
	end_close(&e);
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
	end_open(&e, END_PATIENCE_MS);
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
	end_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_say_goodbye),
		cmocka_unit_test(a_peer_that_leaves_behind_both_goodbyes_breaks_nothing),
		cmocka_unit_test(a_queue_pair_stays_while_its_provider_needs_it),
		cmocka_unit_test(a_provider_that_never_drains_ends_in_an_abort),
		cmocka_unit_test(in_a_callback_it_ends_at_once),
		cmocka_unit_test(a_goodbye_before_the_refusal_counts),
		cmocka_unit_test(the_peer_is_told_what_we_hold),
		cmocka_unit_test(a_peer_with_another_agreement_is_refused),
		cmocka_unit_test(a_peer_that_does_not_validate_fails_in_time),
		cmocka_unit_test(a_peer_that_disconnects_at_once_was_connected),
		cmocka_unit_test(what_has_no_place_there_ends_it),
		cmocka_unit_test(a_stream_that_ends_or_is_none_ends_it),
		cmocka_unit_test(pieces_are_put_together),
		cmocka_unit_test(an_oob_stream_is_taken_once),
		cmocka_unit_test(the_later_one_of_two_at_once_is_dropped),
		cmocka_unit_test(a_channel_that_cannot_be_tied_is_dropped),
		cmocka_unit_test(peers_that_do_not_go_together_are_refused),
		cmocka_unit_test(a_peer_without_an_oob_stream_answers_by_itself),
		cmocka_unit_test(an_end_sends_from_the_psn_that_it_was_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
