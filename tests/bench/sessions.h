/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of ndx-sessions share. */
#ifndef SESSIONS_H
#define SESSIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <ndx/negotiation_server.h>

/* A plugin of the program's own: three rounds of 96 bytes in stage info. */
extern const struct ndx_plugin sessions_plugin;
#define SESSIONS_PLUGIN "bench"
#define SESSIONS_VARIANT "three-rounds"

_Noreturn void sessions_die(const char *what, const char *why);

/* The server, a process of its own. */
struct sessions_server {
	pid_t pid;
	int to;
	int from;
	uint16_t port;
};

struct sessions_report {
	struct ndx_negotiation_server_stats stats;
	uint64_t resident; /* bytes of the process */
	uint64_t heap;     /* bytes that are allocated */
};

struct sessions_server sessions_server_start(unsigned most);
struct sessions_report sessions_server_ask(const struct sessions_server *server);
void sessions_server_stop(struct sessions_server *server);

/* Clients that do no good: half of them say nothing, half rubbish, again and again. */
struct hostile;
struct hostile *hostile_start(uint16_t port, unsigned count, unsigned again_ms);
/* How often rubbish was sent. */
uint64_t hostile_stop(struct hostile *h);

#endif
