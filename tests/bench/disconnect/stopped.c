/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer process that connects, and is stopped: this program once more. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "child.h"
#include "stage.h"

enum {
	ARGUMENTS = 6, /* program --peer uri host port count */
	CONNECTIONS_MAX = 32,
	PAGE = 4096,
	SAY_CONNECTED = 'C',
	SAY_REFUSED = 'R',
	TICK_MS = 20,
};

/* Connects, then waits for the end of its input; it is killed before that. */
int stopped_main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct line lines[CONNECTIONS_MAX];
	struct stage stage;
	size_t count;
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(lines, 0, sizeof(lines));
	if (argc != ARGUMENTS || inet_pton(AF_INET, argv[3], &to.sin_addr) != 1 ||
	    !stage_open(&stage, argv[2], PAGE))
		return EXIT_FAILURE;
	to.sin_port = htons((uint16_t)strtoul(argv[4], NULL, 10));
	count = strtoul(argv[5], NULL, 10);
	for (size_t i = 0; i < count && i < CONNECTIONS_MAX; i++) {
		if (!line_open(&lines[i], &stage.ends[0], NULL) ||
		    ndx_connect_to(stage.ends[0].adapter, lines[i].qp, (struct sockaddr *)&to,
		                   sizeof(to), NULL, 0, WAIT_MS, &lines[i].connector) != NDX_OK) {
			child_write(SAY_REFUSED);
			return EXIT_FAILURE;
		}
	}
	child_write(SAY_CONNECTED);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		continue;
	return EXIT_SUCCESS;
}

/* Accept one connection of the child; *refused when it cannot come. */
static bool accept_child(struct stage *stage, struct line *line, struct child *child, bool *refused)
{
	enum ndx_status status;

	if (!line_open(line, &stage->ends[1], NULL))
		return false;
	status = ndx_listener_get_connection_request(stage->listener, line->connector, &line->ov);
	if (status != NDX_PENDING)
		return went_wrong("get_connection_request", status);
	while (ndx_overlapped_wait(&line->ov, TICK_MS) == NDX_PENDING) {
		const int heard = child_read(child, 0);

		if (heard == SAY_REFUSED || heard == CHILD_ENDED) {
			*refused = true;
			return false;
		}
	}
	status = ndx_connector_accept(
		line->connector, line->qp,
		&(struct ndx_connect_attr){.size = sizeof(struct ndx_connect_attr),
	                                   .inbound_read_limit = 1,
	                                   .outbound_read_limit = 1},
		&line->ov);
	if (status == NDX_PENDING)
		status = ndx_overlapped_wait(&line->ov, WAIT_MS);
	return status == NDX_OK || went_wrong("accept of the peer process", status);
}

static bool stop_and_disconnect(struct stage *stage, struct child *child, struct line *lines,
                                size_t count, struct timing *timing)
{
	bool refused = false;

	for (size_t i = 0; i < count; i++) {
		if (accept_child(stage, &lines[i], child, &refused))
			continue;
		if (refused)
			timing->skipped = "another process cannot reach this adapter";
		return refused;
	}
	if (child_read(child, WAIT_MS) != SAY_CONNECTED)
		return went_wrong("the peer process", NDX_E_UNSUCCESSFUL);
	if (!child_stop(child)) {
		child_forget(child);
		return went_wrong("stopping the peer process", NDX_E_UNSUCCESSFUL);
	}
	return batch_disconnect(lines, count, 1, timing);
}

bool stopped_run(const char *uri, size_t count, struct timing *timing)
{
	char program[] = "ndx-disconnect-figures";
	char option[] = "--peer";
	char adapter[256];
	char host[INET_ADDRSTRLEN] = "";
	char port[8];
	char number[16];
	char *argv[] = {program, option, adapter, host, port, number, NULL};
	struct line lines[CONNECTIONS_MAX];
	struct sockaddr_in address;
	struct child child = {.pid = 0};
	struct stage stage;
	bool good;

	memset(lines, 0, sizeof(lines));
	if (count > CONNECTIONS_MAX)
		count = CONNECTIONS_MAX;
	if (!stage_open(&stage, uri, PAGE))
		return false;
	memcpy(&address, &stage.address, sizeof(address));
	(void)snprintf(adapter, sizeof(adapter), "%s", uri);
	(void)snprintf(port, sizeof(port), "%u", ntohs(address.sin_port));
	(void)snprintf(number, sizeof(number), "%zu", count);
	if (address.sin_family != AF_INET ||
	    !inet_ntop(AF_INET, &address.sin_addr, host, sizeof(host))) {
		timing->skipped = "no IPv4 address";
		stage_close(&stage);
		return true;
	}
	good = child_start(&child, argv) ||
	       went_wrong("starting the peer process", NDX_E_UNSUCCESSFUL);
	if (good) {
		good = stop_and_disconnect(&stage, &child, lines, count, timing);
		child_kill(&child);
	}
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		line_close(&lines[i]);
	stage_close(&stage);
	return good;
}
