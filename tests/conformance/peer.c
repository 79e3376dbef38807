/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer in another process, both ends of it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"
#include "traffic.h"

enum {
	SAY_CONNECTED = 'C',
	SAY_REFUSED = 'R',
	SAY_DISCONNECTED = 'D',
	SAY_FAILED = 'F',
	STREAM_WINDOW = 8,
	TICK_MS = 20,
	ARGUMENTS = 7, /* program --peer uri address port role keepalive */
};

/* ---- the process that is the peer ---- */

struct service {
	struct check check;
	struct world world;
	struct side side;
	enum peer_role role;
	unsigned outstanding; /* sends of the stream */
	bool ended;
};

static bool parse_address(struct sockaddr_storage *address, const char *host, const char *port)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct sockaddr_in v4 = {.sin_family = AF_INET};

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, host, &v4.sin_addr) == 1)
		memcpy(address, &v4, sizeof(v4));
	else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1)
		memcpy(address, &v6, sizeof(v6));
	else
		return false;
	address_set_port(address, (uint16_t)strtoul(port, NULL, 10));
	return true;
}

static void stream_more(struct service *v)
{
	while (v->role == PEER_STREAM && !v->ended && v->outstanding < STREAM_WINDOW &&
	       send_raw(&v->side, PEER_DEPTH, 0, PEER_MESSAGE, 0) == NDX_OK)
		v->outstanding++;
}

static void handle(struct service *v, const struct ndx_result *r)
{
	size_t slot = (size_t)((const char *)r->request_context - v->side.tags);

	if (r->status != NDX_OK) {
		v->ended = true;
		return;
	}
	if (r->request_type == NDX_REQUEST_RECEIVE && v->role == PEER_ECHO)
		(void)send_raw(&v->side, slot, slot * PEER_MESSAGE, r->bytes_transferred, 0);
	else if (r->request_type == NDX_REQUEST_RECEIVE || v->role == PEER_ECHO)
		(void)receive_raw(&v->side, slot, slot * PEER_MESSAGE, PEER_MESSAGE);
	else
		v->outstanding--;
}

static void serve(struct service *v)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	struct ndx_result results[16];
	size_t got;
	char byte;

	while (poll(&input, 1, v->role == PEER_BLOCKED ? -1 : 0) == 0) {
		stream_more(v);
		(void)ndx_cq_wait_results(v->side.cq, results, 16, TICK_MS, &got);
		for (size_t i = 0; i < got; i++)
			handle(v, &results[i]);
	}
	if (v->role == PEER_LEAVER)
		return;
	if (read(STDIN_FILENO, &byte, 1) != 1)
		_exit(0); /* the end of file asks for an end without goodbye */
	child_write(ndx_disconnect(v->side.conn, WAIT_MS) == NDX_OK ? SAY_DISCONNECTED
	                                                            : SAY_FAILED);
}

static bool service_connect(struct service *v, const char *host, const char *port)
{
	struct sockaddr_storage to;
	enum ndx_status status;

	if (!parse_address(&to, host, port) ||
	    !receives_ok(&v->side, 0, PEER_DEPTH, 0, PEER_MESSAGE) ||
	    side_connect(&v->side, &to, NULL, 0) != NDX_PENDING)
		return false;
	status = ndx_overlapped_wait(&v->side.ov, WAIT_MS);
	if (status == NDX_E_CONNECTION_REFUSED || status == NDX_E_HOST_UNREACHABLE ||
	    status == NDX_E_NETWORK_UNREACHABLE)
		child_write(SAY_REFUSED);
	if (status != NDX_OK ||
	    ndx_connector_complete_connect(v->side.conn, &v->side.ov) != NDX_PENDING ||
	    ndx_overlapped_wait(&v->side.ov, WAIT_MS) != NDX_OK)
		return false;
	child_write(SAY_CONNECTED);
	return true;
}

bool peer_wanted(int argc, char **argv)
{
	return argc == ARGUMENTS && strcmp(argv[1], "--peer") == 0;
}

int peer_main(int argc, char **argv)
{
	static struct service *v; /* what is left open at the end stays reachable */
	struct side_attr attr;

	v = calloc(1, sizeof(*v));

	(void)argc;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a stopped peer must not outlive the case */
	if (!v || !world_open(&v->world, argv[2], NULL)) {
		free(v);
		child_write(SAY_FAILED);
		return EXIT_FAILURE;
	}
	v->role = (enum peer_role)strtoul(argv[5], NULL, 10);
	check_begin(&v->check, &v->world, 1);
	side_attr_init(&attr);
	attr.receive_depth = PEER_DEPTH;
	attr.keepalive_ms = (uint32_t)strtoul(argv[6], NULL, 10);
	if (side_open(&v->check, &v->side, 0, &attr, "peer")) {
		if (service_connect(v, argv[3], argv[4]))
			serve(v);
		else
			child_write(SAY_FAILED);
		if (v->role == PEER_LEAVER)
			return EXIT_SUCCESS;
		side_close(&v->side);
	}
	check_end(&v->check);
	world_close(&v->world);
	free(v);
	return EXIT_SUCCESS;
}

/* ---- the process of the case ---- */

static bool format_address(const struct sockaddr_storage *address, char *host, char *port)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	(void)snprintf(port, 8, "%u", address_port(address));
	if (address->ss_family == AF_INET6) {
		memcpy(&v6, address, sizeof(v6));
		return inet_ntop(AF_INET6, &v6.sin6_addr, host, INET6_ADDRSTRLEN) != NULL;
	}
	memcpy(&v4, address, sizeof(v4));
	return inet_ntop(AF_INET, &v4.sin_addr, host, INET6_ADDRSTRLEN) != NULL;
}

/* Its request comes to the listener, or it says that it cannot reach it. */
static bool wait_request(struct peer *peer, struct pair *p)
{
	uint64_t deadline = now_ms() + WAIT_MS;
	int heard = CHILD_SILENT;

	while (ndx_overlapped_status(&p->b.ov) == NDX_PENDING && heard == CHILD_SILENT &&
	       now_ms() < deadline)
		heard = child_read(&peer->child, 5);
	if (heard == SAY_REFUSED)
		check_skip(peer->c, "another process cannot reach this adapter");
	else
		(void)check_that(peer->c, heard == CHILD_SILENT,
		                 "the peer process failed to start");
	return check_ends(peer->c, &p->b.ov, NDX_OK, "request of the peer process");
}

bool peer_launch(struct peer *peer, struct pair *p, enum peer_role role, uint32_t keepalive_ms)
{
	char program[] = "ndx-conformance";
	char option[] = "--peer";
	char host[INET6_ADDRSTRLEN];
	char port[8];
	char role_text[8];
	char keepalive[16];
	char uri[256];
	char *argv[] = {program, option, uri, host, port, role_text, keepalive, NULL};
	struct check *c = p->c;

	memset(peer, 0, sizeof(*peer));
	peer->c = c;
	/* where side A would be */
	(void)snprintf(uri, sizeof(uri), "%s", p->a.place->uri);
	(void)snprintf(role_text, sizeof(role_text), "%d", (int)role);
	(void)snprintf(keepalive, sizeof(keepalive), "%u", keepalive_ms);
	return check_that(c, format_address(&p->address, host, port), "no address for the peer") &&
	       check_that(c, child_start(&peer->child, argv), "cannot start the peer: %s",
	                  strerror(errno));
}

bool peer_start(struct peer *peer, struct pair *p, enum peer_role role, uint32_t keepalive_ms)
{
	struct check *c = p->c;

	memset(peer, 0, sizeof(*peer));
	peer->c = c;
	if (!check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &p->b.ov),
	                  NDX_PENDING, "get_connection_request") ||
	    !peer_launch(peer, p, role, keepalive_ms))
		return false;
	return wait_request(peer, p) &&
	       check_async(c, side_accept(&p->b, NULL, 0), &p->b.ov, NDX_OK,
	                   "accept of the peer") &&
	       check_that(c, child_read(&peer->child, WAIT_MS) == SAY_CONNECTED,
	                  "the peer is not connected");
}

void peer_signal(struct peer *peer, int signal_number)
{
	if (peer->child.pid <= 0)
		return;
	if (signal_number != SIGSTOP) {
		(void)kill(peer->child.pid, signal_number);
	} else if (!child_stop(&peer->child)) {
		child_forget(&peer->child);
		check_fail(peer->c, "the peer process ended before it could be stopped");
	}
}

void peer_ask_to_disconnect(struct peer *peer)
{
	char byte = 'q';

	if (!check_over(peer->c))
		(void)check_that(peer->c, write(peer->child.to, &byte, 1) == 1,
		                 "the peer process is gone");
}

bool peer_disconnect(struct peer *peer)
{
	peer_ask_to_disconnect(peer);
	return check_that(peer->c, child_read(&peer->child, WAIT_MS) == SAY_DISCONNECTED,
	                  "the peer's disconnect did not succeed");
}

bool peer_leaves(struct peer *peer)
{
	char byte = 'q';
	int status = 0;
	bool ended;

	if (check_over(peer->c) ||
	    !check_that(peer->c, write(peer->child.to, &byte, 1) == 1, "the peer process is gone"))
		return false;
	ended = child_read(&peer->child, WAIT_MS) == CHILD_ENDED &&
	        waitpid(peer->child.pid, &status, 0) == peer->child.pid;
	if (!check_that(peer->c, ended, "the peer process does not end"))
		return false;
	child_forget(&peer->child);
	return check_that(peer->c, WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS,
	                  "the peer process ended with status %#x", (unsigned)status);
}

void peer_end(struct peer *peer)
{
	child_kill(&peer->child);
}
