/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated FPGA's registers, over TCP: SRPv3, one client after the other. */
#ifndef TEST_SURF_SERVE_H
#define TEST_SURF_SERVE_H

#include <pthread.h>

#include "surf_fpga.h"

/* Serve one client of the listening socket until it goes, or `stop_fd` is readable. The FPGA's
 * counters begin anew. False: it was to stop. */
bool serve_client(int listener, int stop_fd, struct surf_fpga *fpga);

/* What came before it in one thread is seen behind it in the other one: serve_client() calls it
 * around every access. TCP alone tells no sanitizer of an order. */
void serve_in_turn(void);

/* A thread that serves one client. */
struct serving {
	struct surf_fpga fpga;
	pthread_t thread;
	int listener;
	int stop_fd;
	bool serves;
	char address[32];
};

/* False: there is no socket or thread left. */
bool serving_begin(struct serving *s);
/* Whether its client is gone or not. */
void serving_end(struct serving *s);

/* A socket that listens on 127.0.0.1, any port if that is 0, which is set. -1: there is none. */
int serve_listen(uint16_t *port);

#endif
