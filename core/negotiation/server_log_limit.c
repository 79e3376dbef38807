/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits the log records of clients without a session: some in full, then only their number. A port
 * scanner, or a client that reconnects in a loop, must not fill a disk. Loop thread. */
#include "server.h"

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>

#define LOGGED_MOST 10u
#define PERIOD_MS 10000u

static bool is_over(const struct server_log_limit *s, uint64_t now)
{
	return now - s->since_ns >= (uint64_t)PERIOD_MS * 1000000;
}

void server_log_left_out(struct ndx_negotiation_server *server, bool last)
{
	struct server_log_limit *s = &server->log_limit;
	const uint64_t now = ndxp_now_ns();

	if (s->left_out == 0 || !(last || is_over(s, now)))
		return;
	log_warn(0,
	         "negotiation server: %llu more clients without a session were turned away within "
	         "%u s; %u were logged one by one",
	         (unsigned long long)s->left_out, PERIOD_MS / 1000, LOGGED_MOST);
	*s = (struct server_log_limit){.since_ns = now};
}

bool server_may_log(struct ndx_negotiation_server *server)
{
	struct server_log_limit *s = &server->log_limit;
	const uint64_t now = ndxp_now_ns();

	server_log_left_out(server, false);
	if (is_over(s, now))
		*s = (struct server_log_limit){.since_ns = now};
	if (s->logged < LOGGED_MOST) {
		s->logged++;
		return true;
	}
	s->left_out++;
	return false;
}
