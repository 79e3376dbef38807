/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits the log records of clients without a session, and of queue pairs that are not added: some
 * in full, then only their number. A port scanner, or a client that asks in a loop, must not fill a
 * disk. Loop thread. */
#include "server.h"

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>

#define LOGGED_MOST 10u
#define PERIOD_MS 10000u

static bool is_over(const struct server_log_limit *s, uint64_t now)
{
	return now - s->since_ns >= (uint64_t)PERIOD_MS * 1000000;
}

/* Forget what is over, after its number was logged. */
static void log_rest(struct server_log_limit *s, const char *what, uint64_t now, bool last)
{
	if (!last && !is_over(s, now))
		return;
	if (s->left_out > 0)
		log_warn(0,
		         "negotiation server: %llu more %s within %u s; %u were logged one by one",
		         (unsigned long long)s->left_out, what, PERIOD_MS / 1000, LOGGED_MOST);
	*s = (struct server_log_limit){.since_ns = now};
}

static bool may_log(struct server_log_limit *s, const char *what)
{
	log_rest(s, what, ndxp_now_ns(), false);
	if (s->logged < LOGGED_MOST) {
		s->logged++;
		return true;
	}
	s->left_out++;
	return false;
}

static const char of_clients[] = "clients without a session were turned away";
static const char of_batches[] = "batches of queue pairs were not added";

void server_log_left_out(struct ndx_negotiation_server *server, bool last)
{
	const uint64_t now = ndxp_now_ns();

	log_rest(&server->log_limit, of_clients, now, last);
	log_rest(&server->batch_log_limit, of_batches, now, last);
}

bool server_may_log(struct ndx_negotiation_server *server)
{
	return may_log(&server->log_limit, of_clients);
}

bool server_may_log_batch(struct ndx_negotiation_server *server)
{
	return may_log(&server->batch_log_limit, of_batches);
}
