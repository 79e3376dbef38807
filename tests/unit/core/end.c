/* SPDX-License-Identifier: BSD-2-Clause */
#include "end.h"

#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "fake_direct.h"
#include "agree.h"

void end_open(struct end *e, uint32_t connect_timeout_ms)
{
	const struct timeval patience = {.tv_sec = END_PATIENCE_MS / 1000};
	struct ndx_connector_attr how;
	struct ndx_qp_attr attr;
	int pair[2];

	memset(e, 0, sizeof(*e));
	assert_int_equal(ndx_adapter_open("loop", &e->adapter), NDX_OK);
	fake_direct(e->adapter);
	assert_int_equal(ndx_cq_create_depth(e->adapter, 4, &e->cq), NDX_OK);
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = e->cq;
	assert_int_equal(ndx_qp_create(e->adapter, &attr, &e->qp), NDX_OK);
	ndx_connector_attr_init(&how);
	how.connect_timeout_ms = connect_timeout_ms;
	how.disconnect_timeout_ms = 6 * END_PATIENCE_MS; /* it is never this that ends something */
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

void end_close(struct end *e)
{
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
	ndx_adapter_close(e->adapter);
	(void)close(e->wire);
}

void end_completes(struct ndx_overlapped *ov, enum ndx_status status)
{
	assert_int_equal(ndx_overlapped_wait(ov, END_PATIENCE_MS), status);
}

void end_send_bytes(const struct end *e, const void *bytes, size_t length)
{
	assert_int_equal(send(e->wire, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

void end_send_frame(const struct end *e, enum frame_type type, uint8_t flags, uint32_t length)
{
	const struct frame f = {.type = type, .flags = flags, .length = length};
	uint8_t bytes[FRAME_HEADER + 64] = {0};

	frame_write_header(bytes, &f);
	end_send_bytes(e, bytes, FRAME_HEADER + length);
}

void end_send_validate(const struct end *e, const struct frame_validate *v)
{
	uint8_t bytes[FRAME_HEADER + FRAME_VALIDATE_SIZE];
	const struct frame f = {.type = FRAME_VALIDATE,
	                        .stage = NDX_STAGE_VALIDATE,
	                        .length = frame_write_validate(bytes + FRAME_HEADER, v)};

	frame_write_header(bytes, &f);
	end_send_bytes(e, bytes, sizeof(bytes));
}

struct frame_validate end_peers_view(const struct end *e)
{
	struct frame_validate v;
	char why[160];

	assert_int_equal(
		agree_compute(NDX_ROLE_SERVER, &e->peer, &e->own, &v.agreed, why, sizeof(why)),
		NDX_OK);
	agree_identity(&e->peer, v.own);
	agree_identity(&e->own, v.peer);
	return v;
}

void end_expect_frame(const struct end *e, enum frame_type type, uint8_t flags, uint8_t *payload)
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

void end_expect_no_frame(const struct end *e)
{
	uint8_t byte;
	const ssize_t n = recv(e->wire, &byte, 1, 0);

	/* Reset, if something was left unread there. */
	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
}

void end_begin(struct end *e)
{
	assert_int_equal(ndx_connector_set_oob_stream(e->connector, e->fd), NDX_OK);
	assert_int_equal(ndx_connector_connect_peer(e->connector, &e->peer, &e->ov), NDX_PENDING);
}

void end_up(struct end *e)
{
	struct frame_validate v;

	end_open(e, END_PATIENCE_MS);
	v = end_peers_view(e);
	end_begin(e);
	end_expect_frame(e, FRAME_VALIDATE, 0, NULL);
	end_send_validate(e, &v);
	end_completes(&e->ov, NDX_OK);
	assert_int_equal(ndx_connector_notify_disconnect(e->connector, &e->notify), NDX_PENDING);
}

void end_indicated(struct end *e, enum ndx_disconnect_reason reason)
{
	end_completes(&e->notify, NDX_OK);
	assert_int_equal(e->notify.information, reason);
}

void end_disconnects(struct end *e, enum ndx_status status)
{
	memset(&e->ov, 0, sizeof(e->ov));
	assert_int_equal(ndx_connector_disconnect(e->connector, &e->ov), NDX_PENDING);
	end_completes(&e->ov, status);
}
