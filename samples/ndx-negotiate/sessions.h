/* SPDX-License-Identifier: BSD-2-Clause */
/* What a server told over its control socket. */
#ifndef SESSIONS_H
#define SESSIONS_H

#include <jansson.h>

/** The parts of a snapshot that are shown; docs/observing-sessions.md describes them. */
struct told {
	json_t *root; /* owns the rest */
	const char *address;
	json_int_t accepted, refused, without_hello, completed, failed, resumed;
	/* parts of `refused`; 0 from a server that does not tell them */
	json_int_t refused_addresses, refused_principals, refused_variants, refused_identities;
	json_int_t refused_handshakes;
	json_int_t max_sessions, workers_most;
	json_int_t threads, idle, queued;
	json_int_t total, listed, closing;
	json_t *waits; /* an object: how many sessions wait for what */
	json_t *list;  /* an array */
};

/** Print the counters in the text format 0.0.4 of Prometheus; write errors are left to stdout. */
void metrics_print(const struct told *told);

#endif
