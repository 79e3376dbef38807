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

/* The variant, of a framework of its own. */
void sessions_variant(struct ndx_negotiation **negotiation, struct ndx_variant **variant);

/* A session of a client that has one attempt. `tls` NULL: plaintext. */
struct ndx_session *sessions_make(struct ndx_variant *variant, const char *server,
                                  const struct ndx_tls_attr *tls);

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
	uint64_t cpu_ns;   /* processor time of the process */
};

/* `tls` NULL: plaintext. */
struct sessions_server sessions_server_start(unsigned most, const struct ndx_tls_attr *tls);
struct sessions_report sessions_server_ask(const struct sessions_server *server);
void sessions_server_stop(struct sessions_server *server);

/* Clients that do no good, four kinds in turn: one says nothing, one sends rubbish, one sends a
 * hello byte by byte, one stops after its hello. Each begins again when the server has ended it. */
struct hostile;
struct hostile *hostile_start(uint16_t port, unsigned count, unsigned again_ms);
/* How often rubbish was sent. */
uint64_t hostile_stop(struct hostile *h);

/* Clients that speak TLS with the wrong attributes, and try again `again_ms` after each refusal. A
 * client that the server takes ends the program. `tls` stays until intruders_stop(). */
struct intruders;
struct intruders *intruders_start(uint16_t port, const struct ndx_tls_attr *tls, unsigned count,
                                  unsigned again_ms);
/* How often they were refused. */
uint64_t intruders_stop(struct intruders *all);

#endif
