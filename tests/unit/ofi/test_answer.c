/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While a connection is made, the peer's provider has a time limit; the peer's consumer has none.
 * The first tests call the decision itself, without time; the others use bare peers that do not
 * answer.
 */
#include "bare.h"
#include <stdlib.h>
#include <string.h>

#include "ofi.h"

#define SHORT_LIMIT_MS 20u

/* ---- the decision ---- */

struct rig {
	struct ofi_adapter adapter;
	struct ofi_conn conn;
	struct ofi_link link;
	unsigned ended;
	enum ndx_status status;
	const char *cause;
	unsigned pings;
};

static struct rig *rig_of(struct ndx_spi_conn *conn)
{
	return container_of(ofi_conn_of(conn), struct rig, conn);
}

static void record_cause(struct ndx_spi_conn *conn, uint32_t bits, int32_t native,
                         const char *cause)
{
	assert_int_equal(bits, 0);
	assert_int_equal(native, ETIMEDOUT);
	rig_of(conn)->cause = cause;
}

static void record_end(struct ndx_spi_conn *conn, enum ndx_status status, int32_t native,
                       const struct ndx_spi_params *params)
{
	assert_int_equal(native, ETIMEDOUT);
	assert_null(params);
	rig_of(conn)->ended++;
	rig_of(conn)->status = status;
}

static int count_ping(struct ofi_link *link, uint8_t type, uint16_t count, struct ofi_op *op)
{
	(void)count;
	(void)op;
	assert_int_equal(type, OFI_CTRL_PING);
	container_of(link, struct rig, link)->pings++;
	return 0;
}

/* The link has no addresses, so the provider queries no socket. */
static int refuse_name(fid_t fid, void *address, size_t *len)
{
	(void)fid;
	(void)address;
	(void)len;
	return -FI_ENOSYS;
}

static struct fi_ops_cm connection = {.size = sizeof(connection), .getname = refuse_name};
static struct fid_ep endpoint = {.cm = &connection};
static const struct ndx_host host = {.report = record_cause, .established = record_end};
static const struct ofi_backend backend = {.device = "none", .send_ctrl = count_ping};

static void rig_open(struct rig *rig, enum ofi_stage stage)
{
	memset(rig, 0, sizeof(*rig));
	rig->adapter.spi.host = &host;
	rig->adapter.backend = &backend;
	rig->adapter.answer_ms = 700;
	rig->link.adapter = &rig->adapter;
	rig->link.conn = &rig->conn;
	rig->link.ep = &endpoint;
	rig->link.stage = stage;
}

static void expect_end(struct rig *rig, const char *words)
{
	assert_int_equal(rig->ended, 1);
	assert_int_equal(rig->status, NDX_E_CONNECTION_ABORTED);
	assert_non_null(strstr(rig->cause, words));
	assert_int_equal(rig->link.stage, OFI_LINK_OVER);
	assert_int_equal(ofi_keepalive_check(&rig->link), 0);
	assert_int_equal(rig->ended, 1);
}

static void an_accept_without_confirmation_ends(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, OFI_LINK_ACCEPTING);
	assert_int_equal(ofi_keepalive_check(&rig.link), 0);
	assert_int_equal(rig.pings, 0); /* there is no open link for a PING */
	expect_end(&rig, "has not confirmed the accept");
}

/* The attempt lasts as long as the peer answers each PING. */
static void a_consumer_may_take_long_while_its_provider_answers(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, OFI_LINK_ACCEPTING);
	rig.link.open = true;
	for (unsigned i = 1; i <= 100; i++) {
		assert_int_equal(ofi_keepalive_check(&rig.link), 700);
		assert_int_equal(rig.pings, i);
		rig.link.pinged = false;
		rig.link.signs_of_life++;
		assert_int_equal(ofi_keepalive_check(&rig.link), 700);
		assert_int_equal(rig.pings, i);
	}
	assert_int_equal(rig.ended, 0);
	assert_int_equal(rig.link.stage, OFI_LINK_ACCEPTING);
}

static void a_control_message_without_an_answer_ends_the_attempt(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, OFI_LINK_COMPLETING);
	rig.link.open = true;
	assert_int_equal(ofi_keepalive_check(&rig.link), 0);
	expect_end(&rig, "does not acknowledge READY");
}

/* A timer that was set before the decision expires after it. */
static void a_decided_attempt_does_not_change(void **state)
{
	static const enum ofi_stage stages[] = {OFI_LINK_UP, OFI_LINK_CONNECTING, OFI_LINK_ANSWERED,
	                                        OFI_LINK_OVER};
	struct rig rig;

	(void)state;
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		rig_open(&rig, stages[i]);
		rig.link.open = true;
		assert_int_equal(ofi_keepalive_check(&rig.link), 0);
		assert_int_equal(rig.ended, 0);
		assert_int_equal(rig.pings, 0);
		assert_int_equal(rig.link.stage, stages[i]);
	}
}

/* ---- with peers ---- */

static void set_answer_limit(struct ndx_qp *qp, uint32_t ms)
{
	ofi_qp_of((struct ndx_spi_qp *)(void *)qp)->adapter->answer_ms = ms;
}

/* Shorten the time limit, for peers that never answer. */
static void shorten_answer_limit(struct pair *p, struct pair_side *side)
{
	pair_make_side(p, side);
	set_answer_limit(side->qp, SHORT_LIMIT_MS);
	pair_drop_side(side);
}

/* A queue pair whose attempt has failed connects with a new connector, and its receives are still
 * posted. */
static void expect_reconnect(struct pair *p, struct pair_side *side)
{
	struct pair_side *other = side == &p->a ? &p->b : &p->a;

	set_answer_limit(side->qp, OFI_ANSWER_MS);
	ndx_connector_close(side->connector);
	assert_int_equal(ndx_connector_create(side->adapter, NULL, &side->connector), NDX_OK);
	memset(&side->ov, 0, sizeof(side->ov));
	pair_make_side(p, other);
	pair_connect(p);
	pair_send(other, 7, 0, 16, 0);
	pair_expect(side, NDX_REQUEST_RECEIVE, 0, NDX_OK);
	pair_expect(other, NDX_REQUEST_SEND, 7, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
}

static void an_accept_ends_though_its_peer_never_answers(void **state)
{
	struct pair *p = *state;
	struct bare b;

	shorten_answer_limit(p, &p->b);
	bare_connect_to_b(&b, p);
	assert_int_equal(pair_wait(&p->b.ov), NDX_E_CONNECTION_ABORTED);
	bare_write_ctrl(&b, bare_encode_ctrl(&b, OFI_CTRL_READY, 0)); /* too late */
	while (bare_wait_event(&b, NULL) != FI_SHUTDOWN) {
		/* until the link has ended */
	}
	assert_int_equal(ndx_overlapped_status(&p->b.ov), NDX_E_CONNECTION_ABORTED);
	bare_close(&b);
	expect_reconnect(p, &p->b);
}

static void an_accept_can_be_cancelled_before_its_limit(void **state)
{
	struct pair *p = *state;
	struct bare b;

	bare_connect_to_b(&b, p);
	assert_int_equal(ndx_connector_cancel(p->b.connector), NDX_OK);
	assert_int_equal(ndx_overlapped_status(&p->b.ov), NDX_E_CANCELED);
	bare_close(&b);
	expect_reconnect(p, &p->b);
}

/* Connect a of the pair to a bare passive side, which accepts. */
static void bare_accept(struct bare *b, struct pair *p)
{
	struct sockaddr_in address;
	struct fi_info *request = NULL;
	uint8_t bytes[OFI_CM_SIZE];
	struct ofi_cm own;

	bare_listen(b, &address);
	pair_make_side(p, &p->a);
	for (uintptr_t i = 0; i < 4; i++)
		pair_receive(&p->a, i, i * 64, 64);
	assert_int_equal(ndx_connector_connect(
				 p->a.connector, p->a.qp, (struct sockaddr *)&address,
				 sizeof(address),
				 &(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                                    .inbound_read_limit = 4,
	                                                    .outbound_read_limit = 4},
				 &p->a.ov),
	                 NDX_PENDING);
	assert_int_equal(bare_wait_event(b, &request), FI_CONNREQ);
	assert_null(ofi_cm_decode(b->data, b->len, OFI_CM_CONNECT, &b->peer));
	request->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	bare_endpoint(b, request);
	own = bare_cm(b, OFI_CM_ACCEPT);
	assert_int_equal(fi_accept(b->ep, bytes, ofi_cm_encode(&own, bytes)), 0);
	assert_int_equal(bare_wait_event(b, NULL), FI_CONNECTED);
	assert_int_equal(pair_wait(&p->a.ov), NDX_OK);
	fi_freeinfo(request);
}

static void a_provider_answers_before_its_consumer_does(void **state)
{
	struct pair *p = *state;
	struct bare b;

	bare_accept(&b, p);
	for (unsigned i = 0; i < 3; i++) {
		bare_write_ctrl(&b, bare_encode_ctrl(&b, OFI_CTRL_PING, 0));
		assert_int_equal(bare_read_ctrl(&b).type, OFI_CTRL_PONG);
	}
	assert_int_equal(ndx_connector_complete_connect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(bare_read_ctrl(&b).type, OFI_CTRL_READY);
	while (ndx_overlapped_status(&p->a.ov) == NDX_PENDING)
		(void)fi_cq_read(b.cq, NULL, 0);
	assert_int_equal(ndx_overlapped_status(&p->a.ov), NDX_OK);
	bare_close(&b);
	pair_drop_side(&p->a);
}

static void complete_connect_ends_without_an_answer(void **state)
{
	struct pair *p = *state;
	struct bare b;

	shorten_answer_limit(p, &p->a);
	bare_accept(&b, p);
	assert_int_equal(ndx_connector_complete_connect(p->a.connector, &p->a.ov), NDX_PENDING);
	assert_int_equal(pair_wait(&p->a.ov), NDX_E_CONNECTION_ABORTED);
	bare_close(&b);
	expect_reconnect(p, &p->a);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_accept_without_confirmation_ends),
		cmocka_unit_test(a_consumer_may_take_long_while_its_provider_answers),
		cmocka_unit_test(a_control_message_without_an_answer_ends_the_attempt),
		cmocka_unit_test(a_decided_attempt_does_not_change),
		CASE(an_accept_ends_though_its_peer_never_answers),
		CASE(an_accept_can_be_cancelled_before_its_limit),
		CASE(a_provider_answers_before_its_consumer_does),
		CASE(complete_connect_ends_without_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
