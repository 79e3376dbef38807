/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire.*: what happens to cables. The guest of tests/vm has a program `wire` that does it to the
 * packets between its two devices; where there is none, or both sides stand at one address, nothing
 * runs.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "cases.h"
#include "peer.h"
#include "traffic.h"

#define OUTAGE_TEXT "200"

extern char **environ;

enum {
	SHORT_MS = 400, /* a disconnect time-out that a case can wait for */
	DRAIN_MS = 200,
	KEEPALIVE_MS = 1000,
	OFTEN_MS = 200, /* a keepalive that asks a few times in a case */
	OUTAGE_MS = 200,
	TOO_LONG = 3, /* what `wire outage` says if it was more than twice that */
	/* Software RoCE does not let go of a queue pair while its packets wait for a neighbour that
	 * the kernel looks up: 3 s. */
	CLOSING_MS = 4000,
	MESSAGE = 256,
	COUNT = 8,
};

/* Start `wire VERB [VALUE]`; 0 if there is none. */
static pid_t wire_start(const char *verb, const char *value)
{
	char name[] = "wire";
	char one[16];
	char two[16];
	char *argv[] = {name, one, value ? two : NULL, NULL};
	pid_t pid = 0;

	(void)snprintf(one, sizeof(one), "%s", verb);
	(void)snprintf(two, sizeof(two), "%s", value ? value : "");
	return posix_spawnp(&pid, name, NULL, NULL, argv, environ) == 0 ? pid : 0;
}

/* Its exit status; -1: it is still running, with `flags` WNOHANG, or died. */
static int wire_status(pid_t pid, int flags)
{
	int status = -1;
	pid_t ended = -1;

	do {
		ended = waitpid(pid, &status, flags);
	} while (ended < 0 && errno == EINTR);
	return ended == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool wire_ended(pid_t pid)
{
	return pid > 0 && wire_status(pid, 0) == 0;
}

/* Also when the check is over: a wire that was cut has to be healed. */
static bool wire(struct check *c, const char *verb, const char *value)
{
	const bool done = wire_ended(wire_start(verb, value));

	return check_that(c, done, "wire %s does not work", verb);
}

/* Is there a wire between the two sides? */
static bool has_wire(struct check *c)
{
	const struct sockaddr_storage *a = place_address(&c->world->places[0], AF_UNSPEC);
	const struct sockaddr_storage *b = place_address(&c->world->places[1], AF_UNSPEC);

	if (!a || !b || address_equal(a, b))
		check_skip(c, "there is no wire between the two sides: they have one address");
	else if (!wire_ended(wire_start("heal", NULL)))
		check_skip(c, "no program `wire` here that can cut one; tests/vm has it");
	return !check_over(c);
}

static struct pair *wired_pair(struct check *c, uint32_t keepalive_ms)
{
	struct side_attr attr;

	if (!has_wire(c))
		return NULL;
	side_attr_init(&attr);
	attr.drain_ms = DRAIN_MS;
	attr.disconnect_ms = SHORT_MS;
	attr.keepalive_ms = keepalive_ms;
	return pair_up(c, &attr);
}

/* For a while nothing is told of the end. */
static void nothing_for(struct check *c, struct side *s, uint64_t ms)
{
	for (uint64_t until = now_ms() + ms; now_ms() < until;) {
		if (!check_pending(c, &s->notify, "notification during an outage"))
			return;
	}
}

static void fails_in_time(struct side *s)
{
	const uint64_t start = now_ms();

	side_disconnect(s, NDX_E_CONNECTION_ABORTED);
	check_that(s->c, now_ms() - start < SHORT_MS + DRAIN_MS + CLOSING_MS,
	           "%s: the disconnect took %u ms", s->name, (unsigned)(now_ms() - start));
}

void case_wire_cut_for_good_ends_the_sender(struct check *c)
{
	struct pair *p = wired_pair(c, 0);
	struct ndx_result result = {.status = NDX_OK};
	unsigned sends = 0;
	unsigned late = 0;

	if (!p)
		return;
	receives_ok(&p->a, 16, 4, 8192, MESSAGE);
	receives_ok(&p->b, 0, COUNT, 0, MESSAGE);
	side_start_notify(&p->a);
	(void)wire(c, "cut", NULL);
	sends_ok(&p->a, 0, COUNT, 0, MESSAGE);
	/* Of sends, one at the most has had its time: the first, or the first without a receive. */
	for (size_t i = 0; i < COUNT + 4 && take(&p->a, p->a.cq, &result); i++) {
		const bool sent = result.request_type == NDX_REQUEST_SEND;

		sends += sent;
		late += result.status == NDX_E_IO_TIMEOUT;
		check_either(c, result.status, NDX_E_CANCELED,
		             sent && late == 1 ? NDX_E_IO_TIMEOUT : NDX_E_CANCELED,
		             "work on a cut wire");
	}
	check_that(c, sends == COUNT, "%u of %d sends have a result", sends, COUNT);
	side_indicated(&p->a, NDX_DISCONNECT_ABORTED);
	fails_in_time(&p->a);
	fails_in_time(&p->b); /* it could not know */
	expect_all_there(&p->b, COUNT, NDX_E_CANCELED);
	(void)wire(c, "heal", NULL);
}

void case_wire_cut_for_good_is_noticed_by_keepalive(struct check *c)
{
	struct pair *p = wired_pair(c, KEEPALIVE_MS);

	if (!p)
		return;
	receives_ok(&p->b, 0, COUNT, 0, MESSAGE);
	side_start_notify(&p->a);
	side_start_notify(&p->b);
	(void)wire(c, "cut", NULL);
	side_indicated(&p->a, NDX_DISCONNECT_ABORTED);
	side_indicated(&p->b, NDX_DISCONNECT_ABORTED);
	expect_run(&p->b, NDX_REQUEST_RECEIVE, 0, COUNT, NDX_E_CANCELED);
	side_disconnect(&p->a, NDX_E_CONNECTION_ABORTED);
	side_disconnect(&p->b, NDX_E_CONNECTION_ABORTED);
	(void)wire(c, "heal", NULL);
}

void case_wire_cut_while_both_disconnect(struct check *c)
{
	struct pair *p = wired_pair(c, 0);

	if (!p)
		return;
	receives_ok(&p->a, 0, COUNT, 0, MESSAGE);
	receives_ok(&p->b, 0, COUNT, 0, MESSAGE);
	(void)wire(c, "cut", NULL);
	sends_ok(&p->b, 16, COUNT, 8192, MESSAGE);
	side_start_disconnect(&p->a);
	side_start_disconnect(&p->b);
	check_ends(c, &p->a.disc, NDX_E_CONNECTION_ABORTED, "A's disconnect");
	check_ends(c, &p->b.disc, NDX_E_CONNECTION_ABORTED, "B's disconnect");
	expect_all_there(&p->a, COUNT, NDX_E_CANCELED);
	check_that(c, discard(&p->b) == (size_t)2 * COUNT, "not every request has its result");
	(void)wire(c, "heal", NULL);
	expect_silence(&p->a);
	expect_silence(&p->b);
}

static bool passes(struct side *from, struct side *to)
{
	struct ndx_result sent = {.status = NDX_PENDING};
	struct ndx_result received = {.status = NDX_PENDING};

	return receive_ok(to, 1, 0, MESSAGE) && send_ok(from, 2, 0, MESSAGE, 0) &&
	       take(from, from->cq, &sent) && sent.status == NDX_OK &&
	       take(to, to->cq, &received) && received.status == NDX_OK;
}

/* Messages both ways, until the wire is whole again. How long one took at the most. */
static uint64_t talk_meanwhile(struct check *c, struct pair *p, pid_t outage)
{
	uint64_t longest = 0;
	uint64_t began;
	int status = -1;
	bool well = true;

	while (well && status < 0) {
		began = now_ms();
		well = passes(&p->a, &p->b) && passes(&p->b, &p->a);
		if (now_ms() - began > longest)
			longest = now_ms() - began;
		status = wire_status(outage, WNOHANG);
	}
	if (status < 0)
		status = wire_status(outage, 0);
	/* After half a second or one, depending on the device, a silent peer counts as dead. */
	if (!well && status == TOO_LONG)
		check_skip(c, "the machine is slow: the wire was cut for more than %d ms",
		           2 * OUTAGE_MS);
	check_that(c, status == 0 || status == TOO_LONG, "wire outage does not work");
	check_that(c, well, "a message was lost");
	return longest;
}

/* By one process, which has all that it needs when it cuts: two would take too long. */
void case_wire_short_outage_does_no_harm(struct check *c)
{
	struct pair *p = wired_pair(c, 0);
	uint64_t longest;

	if (!p)
		return;
	side_start_notify(&p->a);
	side_start_notify(&p->b);
	longest = talk_meanwhile(c, p, wire_start("outage", OUTAGE_TEXT));
	check_that(c, longest >= OUTAGE_MS / 2, "no message met the outage: %u ms at the most",
	           (unsigned)longest);
	check_pending(c, &p->a.notify, "notification after an outage");
	if (!check_over(c) && message_passes(&p->a, &p->b, MESSAGE))
		(void)message_passes(&p->b, &p->a, MESSAGE);
	side_start_disconnect(&p->a);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->b, NDX_OK);
	check_ends(c, &p->a.disc, NDX_OK, "A's disconnect");
}

void case_wire_link_down_and_up_does_no_harm(struct check *c)
{
	struct pair *p = wired_pair(c, 0);

	if (!p)
		return;
	receives_ok(&p->b, 0, COUNT, 0, MESSAGE);
	side_start_notify(&p->a);
	(void)wire(c, "down", NULL);
	nothing_for(c, &p->a, OUTAGE_MS);
	(void)wire(c, "up", NULL);
	sends_ok(&p->a, 16, COUNT, 8192, MESSAGE);
	expect_run(&p->a, NDX_REQUEST_SEND, 16, COUNT, NDX_OK);
	for (size_t i = 0; i < COUNT; i++)
		expect_received(&p->b, i, MESSAGE);
	side_disconnect(&p->a, NDX_OK);
	side_disconnect(&p->b, NDX_OK);
	p = pair_up(c, NULL); /* new ones can be made, too */
	if (p && message_passes(&p->a, &p->b, MESSAGE))
		pair_disconnect(p);
}

/* The next event of this type. Others come, too: addresses go with the link. */
static void expect_event(struct check *c, struct ndx_adapter *adapter,
                         enum ndx_adapter_event_type type)
{
	struct ndx_adapter_event event = {.size = sizeof(event)};
	struct ndx_overlapped ov = {0};

	while (!check_over(c) && event.type != type) {
		event.size = sizeof(event);
		check_status(c, ndx_adapter_get_event(adapter, &event, &ov), NDX_PENDING,
		             "get_event");
		check_ends(c, &ov, NDX_OK, ndx_adapter_event_name(type));
		check_that(c, event.lost == 0, "%llu events were lost",
		           (unsigned long long)event.lost);
	}
	if (check_over(c))
		(void)ndx_adapter_cancel(adapter);
	check_that(c, event.port != 0 && event.text[0] != '\0' && event.time_ns != 0,
	           "the event is of port %u, \"%s\"", event.port, event.text);
}

void case_wire_link_down_and_up_are_events(struct check *c)
{
	struct ndx_adapter *adapter = NULL;

	if (!has_wire(c) ||
	    !check_status(c, ndx_adapter_open(c->world->places[0].uri, &adapter), NDX_OK, "open"))
		return;
	(void)wire(c, "down", NULL);
	expect_event(c, adapter, NDX_ADAPTER_EVENT_PORT_DOWN);
	(void)wire(c, "up", NULL);
	expect_event(c, adapter, NDX_ADAPTER_EVENT_PORT_UP);
	ndx_adapter_close(adapter);
}

void case_wire_lost_packets_are_sent_again(struct check *c)
{
	struct pair *p = wired_pair(c, 0);

	if (!p)
		return;
	pattern_fill(p->a.buf, (size_t)16 * 2048, 5);
	receives_ok(&p->b, 0, 16, 0, 2048);
	(void)wire(c, "loss", "5");
	sends_ok(&p->a, 16, 16, 0, 2048);
	expect_run(&p->a, NDX_REQUEST_SEND, 16, 16, NDX_OK);
	for (size_t i = 0; i < 16; i++)
		expect_received(&p->b, i, 2048);
	pattern_there(c, p->b.buf, (size_t)16 * 2048, 5, "what was sent");
	(void)wire(c, "heal", NULL);
	side_disconnect(&p->a, NDX_OK);
	side_disconnect(&p->b, NDX_OK);
}

/* Both goodbyes are on their way at the same time. */
void case_wire_goodbyes_cross_on_a_slow_one(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	if (!has_wire(c))
		return;
	side_attr_init(&attr);
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->a, 0, COUNT, 0, MESSAGE);
	receives_ok(&p->b, 0, COUNT, 0, MESSAGE);
	(void)wire(c, "delay", "25");
	sends_ok(&p->a, 16, COUNT, 8192, MESSAGE);
	sends_ok(&p->b, 16, COUNT, 8192, MESSAGE);
	side_start_disconnect(&p->a);
	side_start_disconnect(&p->b);
	check_ends(c, &p->a.disc, NDX_OK, "A's disconnect");
	check_ends(c, &p->b.disc, NDX_OK, "B's disconnect");
	expect_all_there(&p->a, (size_t)2 * COUNT, NDX_OK);
	expect_all_there(&p->b, (size_t)2 * COUNT, NDX_OK);
	(void)wire(c, "heal", NULL);
}

/* Silent requests, one of no bytes, and an idle connection that is asked now and then. */
static void use_and_idle(struct check *c, struct pair *p)
{
	for (size_t i = 0; i < 3; i++)
		(void)write_ok(&p->a, i, 0, MESSAGE, &p->b, 0, NDX_OP_SILENT_SUCCESS);
	if (write_ok(&p->a, 8, 0, 0, &p->b, 0, 0))
		expect(&p->a, NDX_REQUEST_WRITE, 8, NDX_OK);
	nothing_for(c, &p->a, 5 * OFTEN_MS);
	check_pending(c, &p->b.notify, "notification of an idle connection");
	if (!check_over(c) && message_passes(&p->a, &p->b, MESSAGE))
		(void)message_passes(&p->b, &p->a, MESSAGE);
}

/* Some virtual networks do that. No connection depends on a request that has no bytes. */
void case_wire_requests_without_bytes_get_lost(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	if (!has_wire(c))
		return;
	(void)wire(c, "empty", NULL);
	side_attr_init(&attr);
	attr.drain_ms = DRAIN_MS;
	attr.keepalive_ms = OFTEN_MS;
	p = pair_up(c, &attr);
	if (p) {
		side_start_notify(&p->a);
		side_start_notify(&p->b);
		use_and_idle(c, p);
		/* They wait for receives, and its goodbye behind them: B has to ask. */
		sends_ok(&p->a, 16, COUNT, 8192, MESSAGE);
		side_start_disconnect(&p->a);
		side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
		side_disconnect(&p->b, NDX_OK);
		check_ends(c, &p->a.disc, NDX_OK, "A's disconnect");
		expect_all_there(&p->a, COUNT, NDX_E_CANCELED);
	}
	(void)wire(c, "heal", NULL);
}

/* As when a gateway fails over: kernels tell of it as if the peer were out of reach. */
void case_wire_neighbour_changes_while_connected_and_closing(struct check *c)
{
	struct pair *p;

	if (!has_wire(c))
		return;
	p = pair_up(c, NULL);
	if (!p || !message_passes(&p->a, &p->b, MESSAGE))
		return;
	side_start_notify(&p->a);
	side_start_notify(&p->b);
	(void)wire(c, "move", NULL);
	nothing_for(c, &p->a, OUTAGE_MS);
	check_pending(c, &p->b.notify, "notification after a neighbour's change");
	if (check_over(c) || !message_passes(&p->b, &p->a, MESSAGE) ||
	    !message_passes(&p->a, &p->b, MESSAGE))
		return;
	sends_ok(&p->a, 16, 1, 8192,
	         MESSAGE); /* without a receive: the disconnect takes its time */
	side_start_disconnect(&p->a);
	(void)wire(c, "move", NULL);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->b, NDX_OK);
	check_ends(c, &p->a.disc, NDX_OK, "A's disconnect");
	expect_all_there(&p->a, 1, NDX_E_CANCELED);
	expect_silence(&p->a);
	expect_silence(&p->b);
	p = pair_up(c, NULL);
	if (p && message_passes(&p->a, &p->b, MESSAGE))
		pair_disconnect(p);
}

/* A machine or a path that is slow makes no abort of a graceful end. */
void case_wire_queue_pair_closed_on_a_slow_one(struct check *c)
{
	struct side_attr attr;
	struct pair *p;

	if (!has_wire(c))
		return;
	side_attr_init(&attr);
	attr.drain_ms = DRAIN_MS;
	p = pair_up(c, &attr);
	if (!p)
		return;
	receives_ok(&p->a, 8, 4, 1024, MESSAGE);
	side_start_notify(&p->b);
	(void)wire(c, "delay", "200");
	side_start_disconnect(&p->a);
	side_close_qp(&p->a);
	check_ends(c, &p->a.disc, NDX_OK, "disconnect");
	expect_all_there(&p->a, 4, NDX_E_CANCELED);
	side_indicated(&p->b, NDX_DISCONNECT_GRACEFUL);
	side_disconnect(&p->b, NDX_OK);
	(void)wire(c, "heal", NULL);
}

/* Nothing tells of it, not even the peer's kernel. */
static void peer_killed(struct check *c, bool healed)
{
	struct side_attr attr;
	struct peer peer = {.child = {.pid = 0}};
	struct pair *p;
	enum ndx_status status;

	if (!has_wire(c))
		return;
	side_attr_init(&attr);
	attr.drain_ms = DRAIN_MS;
	attr.disconnect_ms = SHORT_MS;
	p = pair_open(c, &attr, NULL);
	if (!p)
		return;
	receives_ok(&p->b, 0, 4, 0, PEER_MESSAGE);
	if (peer_start(&peer, p, PEER_IDLE, 0)) {
		side_start_notify(&p->b);
		(void)wire(c, "cut", NULL);
		peer_signal(&peer, SIGKILL);
		nothing_for(c, &p->b, OUTAGE_MS);
		if (healed)
			(void)wire(c, "heal", NULL);
		status = check_result_of(c, ndx_connector_disconnect(p->b.conn, &p->b.disc),
		                         &p->b.disc);
		/* A stack that cannot tell takes the answer of the dead one's kernel for a goodbye.
		 */
		check_either(c, status, NDX_E_CONNECTION_ABORTED,
		             healed && !has_capability(&p->b, NDX_CAP_DISCONNECT_REASON)
		                     ? NDX_OK
		                     : NDX_E_CONNECTION_ABORTED,
		             "disconnect from a peer that was killed");
		expect_all_there(&p->b, 4, NDX_E_CANCELED);
	}
	peer_end(&peer);
	(void)wire(c, "heal", NULL);
}

void case_wire_peer_killed_while_it_is_cut(struct check *c)
{
	peer_killed(c, false);
}

void case_wire_peer_killed_before_it_heals(struct check *c)
{
	peer_killed(c, true);
}
