/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's counters, and the number of its clients. */
#include <ndx/spi/loop.h>
#include "server.h"

void server_count(struct ndx_negotiation_server *server, uint64_t *counter)
{
	pthread_mutex_lock(&server->lock);
	(*counter)++;
	pthread_mutex_unlock(&server->lock);
}

void server_count_too_fast(struct ndx_negotiation_server *server)
{
	pthread_mutex_lock(&server->lock);
	server->stats.accepted++;
	server->stats.refused++;
	server->stats.refused_handshakes++;
	pthread_mutex_unlock(&server->lock);
}

bool server_is_full(struct ndx_negotiation_server *server)
{
	bool full;

	pthread_mutex_lock(&server->lock);
	server->stats.accepted++;
	full = server->stats.alive >= server->attr.max_sessions;
	if (full)
		server->stats.refused++;
	else
		server->stats.alive++;
	pthread_mutex_unlock(&server->lock);
	return full;
}

void server_gone(struct ndx_negotiation_server *server)
{
	bool finish;

	pthread_mutex_lock(&server->lock);
	server->stats.alive--;
	if (server->stats.alive == 0)
		(void)pthread_cond_broadcast(&server->empty);
	finish = server->stats.alive == 0 && server->closing;
	pthread_mutex_unlock(&server->lock);
	/* A close on another thread may free the server now: `finish` was read under the lock. */
	if (finish)
		ndxp_loop_post(server->engine.loop, &server->finish);
}
