/* SPDX-License-Identifier: BSD-2-Clause */
/* negotiated.*: connections whose ends were told of each other out of band. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cases.h"
#include "traffic.h"

enum { TOGETHER = 24, ROUNDS = 20 };

static bool describe(struct side *s, enum ndx_role role, struct ndx_peer_description *out)
{
	return check_status(s->c,
	                    ndx_connector_describe(s->conn, s->qp, role, s->attr.inbound_reads,
	                                           s->attr.outbound_reads, out),
	                    NDX_OK, "describe");
}

static bool meet(struct side *s, const struct ndx_peer_description *peer)
{
	return check_status(s->c, ndx_connector_connect_peer(s->conn, peer, &s->ov), NDX_PENDING,
	                    "connect_peer");
}

/* Where there is no connection manager the two ends need a channel. */
static bool join(struct pair *p)
{
	int fd[2];

	if (!check_that(p->c, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0,
	                "socketpair"))
		return false;
	if (!check_status(p->c, ndx_connector_set_oob_stream(p->a.conn, fd[0]), NDX_OK,
	                  "set_oob_stream of the client")) {
		(void)close(fd[0]);
		(void)close(fd[1]);
		return false;
	}
	if (check_status(p->c, ndx_connector_set_oob_stream(p->b.conn, fd[1]), NDX_OK,
	                 "set_oob_stream of the server"))
		return true;
	(void)close(fd[1]);
	return false;
}

/* A is the client, as everywhere. */
static bool describe_both(struct pair *p, struct ndx_peer_description *a,
                          struct ndx_peer_description *b)
{
	return describe(&p->a, NDX_ROLE_CLIENT, a) && describe(&p->b, NDX_ROLE_SERVER, b) &&
	       (a->kind != NDX_DESCRIPTION_VERBS_RC || join(p));
}

static bool negotiate(struct pair *p)
{
	struct ndx_peer_description a;
	struct ndx_peer_description b;

	return describe_both(p, &a, &b) && meet(&p->a, &b) && meet(&p->b, &a) &&
	       check_ends(p->c, &p->a.ov, NDX_OK, "connect_peer of the client") &&
	       check_ends(p->c, &p->b.ov, NDX_OK, "connect_peer of the server");
}

void case_negotiated_moves_data_and_disconnects(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (p && negotiate(p) && message_passes(&p->a, &p->b, 1000) &&
	    message_passes(&p->b, &p->a, 1))
		(void)pair_disconnect(p);
}

/* Where a connection manager, or the provider, tells of the end, nothing else is needed. */
static bool has_no_use_for_channels(struct pair *p)
{
	return check_status(p->c, ndx_connector_set_oob_stream(p->a.conn, NDX_NO_OOB_STREAM),
	                    NDX_E_NOT_SUPPORTED, "set_oob_stream") &&
	       check_status(p->c, ndx_connector_set_oob_stream(p->b.conn, NDX_NO_OOB_STREAM),
	                    NDX_E_NOT_SUPPORTED, "set_oob_stream");
}

static bool without_channel(struct side *s)
{
	return check_status(s->c, ndx_connector_set_oob_stream(s->conn, NDX_NO_OOB_STREAM), NDX_OK,
	                    "set_oob_stream without one") &&
	       check_status(s->c, ndx_connector_set_oob_stream(s->conn, NDX_NO_OOB_STREAM),
	                    NDX_E_INVALID_DEVICE_STATE, "set_oob_stream once more");
}

void case_negotiated_peers_without_an_oob_stream(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_peer_description a;
	struct ndx_peer_description b;

	if (!p || !describe(&p->a, NDX_ROLE_CLIENT, &a) || !describe(&p->b, NDX_ROLE_SERVER, &b))
		return;
	if (a.kind != NDX_DESCRIPTION_VERBS_RC) {
		(void)has_no_use_for_channels(p);
		return;
	}
	if (!without_channel(&p->a) || !without_channel(&p->b) || !meet(&p->a, &b) ||
	    !meet(&p->b, &a) || !check_ends(c, &p->a.ov, NDX_OK, "connect_peer of the client") ||
	    !check_ends(c, &p->b.ov, NDX_OK, "connect_peer of the server"))
		return;
	/* "The own goodbye counts as answered": each side goes when it likes, and no one is told.
	 */
	if (message_passes(&p->a, &p->b, 1000) && message_passes(&p->b, &p->a, 1) &&
	    side_disconnect(&p->a, NDX_OK))
		(void)side_disconnect(&p->b, NDX_OK);
}

void case_negotiated_server_may_come_first(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_peer_description a;
	struct ndx_peer_description b;

	if (!p || !describe_both(p, &a, &b) || !meet(&p->b, &a))
		return;
	(void)check_pending(c, &p->b.ov, "connect_peer of the server, alone");
	if (meet(&p->a, &b) && check_ends(c, &p->a.ov, NDX_OK, "connect_peer of the client") &&
	    check_ends(c, &p->b.ov, NDX_OK, "connect_peer of the server"))
		(void)pair_disconnect(p);
}

void case_negotiated_client_may_come_first(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_peer_description a;
	struct ndx_peer_description b;

	if (!p || !describe_both(p, &a, &b) || !meet(&p->a, &b))
		return;
	(void)check_pending(c, &p->a.ov, "connect_peer of the client, alone");
	if (meet(&p->b, &a) && check_ends(c, &p->a.ov, NDX_OK, "connect_peer of the client") &&
	    check_ends(c, &p->b.ov, NDX_OK, "connect_peer of the server"))
		(void)message_passes(&p->b, &p->a, 100);
}

/* Others are still expected at the same address: the client need not wait for one of them. */
void case_negotiated_connect_fails_when_the_peer_is_closed(struct check *c)
{
	struct ndx_peer_description a[2];
	struct ndx_peer_description b[2];
	struct pair *p[2];

	if (!pairs_open(c, p, 2, NULL, NULL))
		return;
	for (int i = 0; i < 2; i++)
		if (!describe_both(p[i], &a[i], &b[i]))
			return;
	if (!meet(&p[0]->a, &b[0]))
		return;
	(void)check_pending(c, &p[0]->a.ov, "connect_peer of the client, alone");
	side_close_connector(&p[0]->b);
	if (b[0].kind == NDX_DESCRIPTION_RENDEZVOUS)
		check_ends(c, &p[0]->a.ov, NDX_E_CONNECTION_REFUSED, "connect_peer of the client");
	if (meet(&p[1]->a, &b[1]) && meet(&p[1]->b, &a[1]) &&
	    check_ends(c, &p[1]->a.ov, NDX_OK, "connect_peer of the other client"))
		(void)check_ends(c, &p[1]->b.ov, NDX_OK, "connect_peer of its server");
}

void case_negotiated_read_limits_are_crossed(struct check *c)
{
	struct side_attr a;
	struct side_attr b;
	struct pair *p;
	uint32_t in = 0;
	uint32_t out = 0;

	side_attr_init(&a);
	a.inbound_reads = 1;
	a.outbound_reads = 3;
	b = a;
	b.inbound_reads = 2;
	b.outbound_reads = 4;
	p = pair_open(c, &a, &b);
	if (!p || !negotiate(p))
		return;
	check_status(c, ndx_connector_get_read_limits(p->a.conn, &in, &out), NDX_OK,
	             "get_read_limits");
	check_that(c, in == 1 && out == 2, "A may serve %u and have %u, not 1 and 2", in, out);
	check_status(c, ndx_connector_get_read_limits(p->b.conn, &in, &out), NDX_OK,
	             "get_read_limits");
	check_that(c, in == 2 && out == 1, "B may serve %u and have %u, not 2 and 1", in, out);
}

/* The right queue pair, which expects another peer. */
static void wrong_numbers(struct pair *p, struct ndx_peer_description *a,
                          struct ndx_peer_description *b)
{
	b->psn ^= 1;
	if (!meet(&p->a, b) || !meet(&p->b, a))
		return;
	(void)check_either(p->c, check_result_of(p->c, NDX_PENDING, &p->a.ov),
	                   NDX_E_CONNECTION_REFUSED, NDX_E_CONNECTION_ABORTED,
	                   "connect_peer with a wrong number");
	(void)check_either(p->c, check_result_of(p->c, NDX_PENDING, &p->b.ov),
	                   NDX_E_CONNECTION_REFUSED, NDX_E_CONNECTION_ABORTED,
	                   "connect_peer of the peer");
	if (side_new_connector(&p->a) && side_new_connector(&p->b) && negotiate(p))
		(void)message_passes(&p->a, &p->b, 10);
}

void case_negotiated_unknown_peers_are_refused(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_peer_description a;
	struct ndx_peer_description b;
	struct ndx_peer_description wrong;

	if (!p || !describe_both(p, &a, &b))
		return;
	if (b.kind == NDX_DESCRIPTION_VERBS_RC) {
		wrong_numbers(p, &a, &b);
		return;
	}
	if (!meet(&p->b, &a))
		return;
	/* The right address, the cookie of another end. */
	wrong = b;
	wrong.cookie[15] ^= 1;
	if (!meet(&p->a, &wrong) ||
	    !check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect with a wrong cookie"))
		return;
	/* An ordinary connect does not get in, either. */
	if (!check_async(c, side_connect(&p->a, &b.address, "hello", 5), &p->a.ov,
	                 NDX_E_CONNECTION_REFUSED, "an ordinary connect"))
		return;
	(void)check_pending(c, &p->b.ov, "connect_peer of the server");
	/* Refused, both may still meet; the client has a new description by now. */
	check_status(c, ndx_connector_cancel(p->b.conn), NDX_OK, "cancel");
	(void)check_ends(c, &p->b.ov, NDX_E_CANCELED, "connect_peer, cancelled");
	if (side_new_connector(&p->b) && negotiate(p))
		(void)message_passes(&p->a, &p->b, 10);
}

void case_negotiated_descriptions_are_checked(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_peer_description a;
	struct ndx_peer_description b;
	struct ndx_peer_description wrong;

	if (!p)
		return;
	memset(&wrong, 0, sizeof(wrong));
	check_status(c, ndx_connector_connect_peer(p->a.conn, &wrong, &p->a.ov),
	             NDX_E_CONNECTION_INVALID, "connect_peer before describe");
	if (!describe_both(p, &a, &b))
		return;
	check_status(c, ndx_connector_connect_peer(p->a.conn, &wrong, &p->a.ov),
	             NDX_E_INVALID_PARAMETER, "connect_peer to nothing");
	check_status(c, ndx_connector_connect_peer(p->a.conn, &a, &p->a.ov),
	             NDX_E_INVALID_PARAMETER, "connect_peer to itself");
	wrong = b;
	memset(&wrong.address, 0, sizeof(wrong.address));
	memset(&wrong.gid, 0, sizeof(wrong.gid));
	check_status(c, ndx_connector_connect_peer(p->a.conn, &wrong, &p->a.ov),
	             NDX_E_INVALID_PARAMETER, "connect_peer without an address");
	wrong = b;
	wrong.stack[0] = '?';
	wrong.mtu = 1000;
	check_status(c, ndx_connector_connect_peer(p->a.conn, &wrong, &p->a.ov),
	             NDX_E_INVALID_PARAMETER, "connect_peer to another stack");
	check_status(c, ndx_connector_describe(p->a.conn, p->a.qp, NDX_ROLE_CLIENT, 1, 1, &wrong),
	             NDX_E_CONNECTION_ACTIVE, "describe twice");
	check_status(c, ndx_connector_describe(p->a.conn, NULL, NDX_ROLE_CLIENT, 1, 1, &wrong),
	             NDX_E_INVALID_PARAMETER, "describe without a queue pair");
	if (meet(&p->a, &b) && meet(&p->b, &a) && check_ends(c, &p->a.ov, NDX_OK, "connect_peer"))
		(void)check_ends(c, &p->b.ov, NDX_OK, "connect_peer");
}

void case_negotiated_no_peer_comes_in_time(struct check *c)
{
	struct side_attr attr[2];
	struct ndx_peer_description a;
	struct ndx_peer_description b;
	char text[512] = "";
	size_t length = sizeof(text);
	struct pair *p;

	side_attr_init(&attr[0]);
	attr[1] = attr[0];
	attr[1].connect_ms = 60; /* the server's; its client has time to hear the answer */
	p = pair_open(c, &attr[0], &attr[1]);
	if (!p || !describe_both(p, &a, &b) || !meet(&p->b, &a))
		return;
	(void)check_ends(c, &p->b.ov, NDX_E_IO_TIMEOUT, "connect_peer of the server, alone");
	check_status(c, ndx_connector_get_error_text(p->b.conn, text, &length), NDX_OK,
	             "get_error_text");
	check_that(c, strstr(text, "; it has not called ndx_connector_connect_peer()") != NULL,
	           "the text names no next step: \"%s\"", text);
	/* The server gave up: its client is refused, or cut off if it comes while that happens. */
	if (meet(&p->a, &b))
		(void)check_either(c, check_result_of(c, NDX_PENDING, &p->a.ov),
		                   NDX_E_CONNECTION_REFUSED, NDX_E_CONNECTION_ABORTED,
		                   "connect_peer, too late");
}

void case_negotiated_ends_early_in_any_state(struct check *c)
{
	for (int i = 0; i < ROUNDS && !check_over(c); i++) {
		struct pair *p = pair_open(c, NULL, NULL);
		struct side *s;
		struct ndx_peer_description a;
		struct ndx_peer_description b;

		if (!p || !describe_both(p, &a, &b))
			return;
		s = check_chance(c, 50) ? &p->a : &p->b;
		if (check_chance(c, 50) && !meet(&p->a, &b))
			return;
		if (check_chance(c, 50) && !meet(&p->b, &a))
			return;
		switch (check_below(c, 3)) {
		case 0:
			side_close_qp(s);
			break;
		case 1:
			side_close_connector(s);
			break;
		default:
			check_status(c, ndx_connector_cancel(s->conn), NDX_OK, "cancel");
		}
		pair_close_all(c);
	}
}

void case_negotiated_many_at_once(struct check *c)
{
	struct ndx_peer_description a[TOGETHER];
	struct ndx_peer_description b[TOGETHER];
	struct pair *p[TOGETHER];

	if (!pairs_open(c, p, TOGETHER, NULL, NULL))
		return;
	for (int i = 0; i < TOGETHER; i++)
		if (!describe_both(p[i], &a[i], &b[i]))
			return;
	for (int i = 0; i < TOGETHER; i++)
		if (!meet(&p[i]->a, &b[i]) || !meet(&p[TOGETHER - 1 - i]->b, &a[TOGETHER - 1 - i]))
			return;
	for (int i = 0; i < TOGETHER; i++)
		if (!check_ends(c, &p[i]->a.ov, NDX_OK, "connect_peer") ||
		    !check_ends(c, &p[i]->b.ov, NDX_OK, "connect_peer"))
			return;
	/* Each is connected to its own peer. */
	for (int i = 0; i < TOGETHER; i++) {
		pattern_fill(p[i]->a.buf, 64, (uint64_t)i + 1);
		memset(p[i]->b.buf, 0, 64);
		if (!receive_ok(&p[i]->b, 1, 0, 64) || !send_ok(&p[i]->a, 1, 0, 64, 0) ||
		    !expect_received(&p[i]->b, 1, 64))
			return;
		(void)pattern_there(c, p[i]->b.buf, 64, (uint64_t)i + 1, "the message");
	}
}
