/* SPDX-License-Identifier: BSD-2-Clause */
/* error.*: failures that come later than the call have a text, too, and never that of another. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "peer.h"
#include "traffic.h"

enum { RECEIVES = 2, TEXT = 512, WORDS = 64, SHORT_MS = 50 };

/* A failure of this thread that has nothing to do with the case. */
static bool leave_a_stale_text(struct check *c)
{
	struct ndx_adapter *none = NULL;

	return check_status(c, ndx_adapter_open("stale", &none), NDX_E_NOT_FOUND,
	                    "open of no provider");
}

static bool has_all(struct check *c, const char *text, const char *what, const char *a,
                    const char *b)
{
	return check_that(c, strstr(text, a) != NULL && strstr(text, b) != NULL,
	                  "the text of %s lacks \"%s\" or \"%s\": \"%s\"", what, a, b, text);
}

static bool connector_says(struct side *s, const char *what, const char *a, const char *b)
{
	char text[TEXT] = "";
	size_t length = sizeof(text);

	return check_status(s->c, ndx_connector_get_error_text(s->conn, text, &length), NDX_OK,
	                    "get_error_text") &&
	       check_that(s->c, length == strlen(text) + 1, "%zu bytes of text, not %zu", length,
	                  strlen(text) + 1) &&
	       has_all(s->c, text, what, a, b);
}

/* "HOST:PORT", "[HOST]:PORT"; of port 0 without the port. */
static const char *address_words(const struct sockaddr_storage *address, char words[WORDS])
{
	const uint16_t port = address_port(address);
	char host[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;
	int used;

	if (address->ss_family == AF_INET6) {
		memcpy(&v6, address, sizeof(v6));
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
		used = snprintf(words, WORDS, "[%s]:", host);
	} else {
		memcpy(&v4, address, sizeof(v4));
		(void)inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
		used = snprintf(words, WORDS, "%s:", host);
	}
	if (port != 0)
		(void)snprintf(words + used, WORDS - (size_t)used, "%u", port);
	return words;
}

/* The own address is before the peer's; as long as it is not known, nothing stands for it. */
static bool no_gap(struct check *c, const char *text, const char *what, const char *to)
{
	char both[WORDS + 8];
	char one[WORDS + 8];

	(void)snprintf(both, sizeof(both), " -> %s", to);
	(void)snprintf(one, sizeof(one), " to %s", to);
	return check_that(c,
	                  (strstr(text, both) != NULL || strstr(text, one) != NULL) &&
	                          strstr(text, " - ") == NULL,
	                  "the text of %s lacks \"%s\", or has a gap: \"%s\"", what, to, text);
}

void case_error_refused_connect_has_a_text(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_connector *conn = NULL;
	char text[TEXT] = "x";
	char to[WORDS];
	size_t length = sizeof(text);

	if (!p)
		return;
	check_status(c, ndx_connector_get_error_text(p->a.conn, text, &length), NDX_OK,
	             "get_error_text of a new connector");
	check_that(c, text[0] == '\0' && length == 1, "a new connector has the text \"%s\"", text);
	if (!pair_without_listener(p) || !leave_a_stale_text(c))
		return;
	check_async(c, side_connect(&p->a, &p->address, NULL, 0), &p->a.ov,
	            NDX_E_CONNECTION_REFUSED, "connect where there is no listener");
	has_all(c, ndx_last_error(), "the wait", "ndx_connector_connect", "REFUSED");
	connector_says(&p->a, "the connector", "NDX_E_CONNECTION_REFUSED",
	               address_words(&p->address, to));
	length = 0;
	check_status(c, ndx_connector_get_error_text(p->a.conn, NULL, &length),
	             NDX_E_BUFFER_OVERFLOW, "get_error_text without room");
	check_that(c, length > 1 && length <= TEXT, "a text of %zu bytes", length);
	if (!leave_a_stale_text(c))
		return;
	check_status(c,
	             ndx_connect_to(p->a.adapter, p->a.qp, address_of(&p->address),
	                            address_length(&p->address), NULL, 0, WAIT_MS, &conn),
	             NDX_E_CONNECTION_REFUSED, "connect_to where there is no listener");
	has_all(c, ndx_last_error(), "ndx_connect_to()", "NDX_E_CONNECTION_REFUSED", to);
	no_gap(c, ndx_last_error(), "ndx_connect_to()", to);
}

/* Which connector, where to, what was missing for how long, and what to look at. */
void case_error_connect_to_without_an_answer_has_a_text(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_connector *conn = NULL;
	char to[WORDS];

	if (!p || !leave_a_stale_text(c))
		return;
	check_status(c,
	             ndx_connect_to(p->a.adapter, p->a.qp, address_of(&p->address),
	                            address_length(&p->address), NULL, 0, SHORT_MS, &conn),
	             NDX_E_IO_TIMEOUT, "connect_to that nobody answers");
	has_all(c, ndx_last_error(), "the time-out", "ndx_connect_to: connector#", " qp#");
	no_gap(c, ndx_last_error(), "the time-out", address_words(&p->address, to));
	has_all(c, ndx_last_error(), "the time-out", ": no answer in 50 ms; ",
	        "; the server has not accepted");
}

void case_error_accept_from_without_a_client_has_a_text(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	struct ndx_connector *conn = NULL;
	char at[WORDS];

	if (!p || !leave_a_stale_text(c))
		return;
	check_status(c,
	             ndx_accept_from(p->b.adapter, p->listener, p->b.qp, NULL, 0, SHORT_MS, &conn),
	             NDX_E_IO_TIMEOUT, "accept_from that nobody calls");
	has_all(c, ndx_last_error(), "the time-out",
	        "ndx_accept_from: ", address_words(&p->address, at));
	has_all(c, ndx_last_error(), "the time-out", ": no client has come in 50 ms; ",
	        "; see that clients connect to this address");
}

/* A bound connector has both addresses. */
void case_error_connect_without_an_answer_has_a_text(struct check *c)
{
	struct side_attr attr;
	struct pair *p;
	char from[WORDS];
	char to[WORDS];
	struct sockaddr_storage own;
	socklen_t room = sizeof(own);

	side_attr_init(&attr);
	attr.connect_ms = SHORT_MS;
	p = pair_open(c, &attr, NULL);
	if (!p)
		return;
	memset(&own, 0, sizeof(own));
	check_status(c,
	             ndx_connector_bind(p->a.conn,
	                                address_of_const(place_address(p->a.place, AF_UNSPEC)),
	                                address_length(place_address(p->a.place, AF_UNSPEC))),
	             NDX_OK, "bind");
	check_status(c, ndx_connector_get_local_address(p->a.conn, address_of(&own), &room), NDX_OK,
	             "get_local_address");
	check_async(c, side_connect(&p->a, &p->address, NULL, 0), &p->a.ov, NDX_E_IO_TIMEOUT,
	            "connect");
	connector_says(&p->a, "the time-out", address_words(&own, from),
	               address_words(&p->address, to));
	connector_says(
		&p->a, "the time-out", "connector#",
		": connecting failed: NDX_E_IO_TIMEOUT: no answer in connect_timeout_ms; the "
		"server has not accepted");
}

void case_error_refusal_has_the_words_of_the_peer(struct check *c)
{
	static const char words[] = "come back later";
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p))
		return;
	check_status(c, ndx_connector_reject(p->b.conn, words, sizeof(words) - 1), NDX_OK,
	             "reject");
	check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect");
	connector_says(&p->a, "a refusal", "NDX_E_CONNECTION_REFUSED", words);
}

void case_error_abort_has_a_text_with_its_results(struct check *c)
{
	struct ndx_result result = {.status = NDX_OK};
	struct pair *p = pair_open(c, NULL, NULL);
	const uint64_t end = now_ms() + WAIT_MS;
	struct peer peer;

	if (!p || !receives_ok(&p->b, 0, RECEIVES, 0, PEER_MESSAGE))
		return;
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		peer_signal(&peer, SIGKILL);
		while (result.status != NDX_E_CANCELED && now_ms() < end)
			(void)ndx_cq_get_results(p->b.cq, &result, 1);
		connector_says(&p->b, "an abort", "aborted", "NDX_E_CONNECTION_ABORTED");
		leave_a_stale_text(c);
		check_status(c, ndx_disconnect(p->b.conn, WAIT_MS), NDX_E_CONNECTION_ABORTED,
		             "disconnect after the abort");
		has_all(c, ndx_last_error(), "ndx_disconnect()", "NDX_E_CONNECTION_ABORTED",
		        " -> ");
	}
	peer_end(&peer);
}

void case_error_graceful_end_has_a_text(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !receives_ok(&p->b, 0, RECEIVES, 0, 64) || !pair_connect(p))
		return;
	connector_says(&p->b, "a connection", "", "");
	if (!side_start_disconnect(&p->a))
		return;
	check_ends(c, &p->a.disc, NDX_OK, "disconnect");
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, RECEIVES, NDX_E_CANCELED);
	connector_says(&p->b, "a graceful end", " -> ", "the peer has disconnected");
	connector_says(&p->a, "an own disconnect", " -> ", "disconnected by its own side");
}
