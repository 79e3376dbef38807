/* SPDX-License-Identifier: BSD-2-Clause */
/* The role `both`: a server in a thread, and a client that calls it. */
#ifndef SAMPLE_BOTH_H
#define SAMPLE_BOTH_H

/** Called with the server's address, "HOST:PORT", when the server listens. */
typedef void sample_ready_fn(void *arg, const char *address);

/** The two halves of a program; each returns an enum sample_exit. */
struct sample_both {
	const char *program;
	/** Serve until the end. Calls @p ready, unless it is NULL, once it listens. */
	int (*server)(const void *options, sample_ready_fn *ready, void *arg);
	const void *server_options;
	int (*client)(const void *options, const char *address);
	const void *client_options;
	/** Called when the client has failed: the server has to end. */
	void (*stop)(void);
};

/** Run both halves. Returns the client's exit status if it failed, else the server's. */
int sample_run_both(const struct sample_both *both);

#endif
