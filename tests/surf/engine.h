/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What moves the emulated FPGA's data: a queue pair of an adapter, connected by numbers alone, with
 * a receiver that checks what the host sends and a sender that streams frames while the dispatcher
 * is on. Used by the thread that serves the registers; the stream has a thread of its own.
 */
#ifndef TEST_SURF_ENGINE_H
#define TEST_SURF_ENGINE_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include <ndx/ndx.h>

#include "surf_fpga.h"

struct engine {
	/* To be set: */
	struct ndx_adapter *adapter;
	struct in_addr ip;      /* the FPGA's own */
	struct in_addr host_ip; /* the host's, unless the UDP engine is told; else 0 */
	uint64_t frames;        /* to be sent; 0: as long as it may */
	uint32_t size;          /* of a frame */

	/* To be looked at; they go on over several sessions: */
	atomic_uint_least64_t sent;
	atomic_uint_least64_t received;
	atomic_uint_least64_t bad;
	unsigned made;     /* queue pairs */
	unsigned unmade;   /* queue pairs */
	char failure[160]; /* the last one, or "" */

	/* Its own: */
	struct surf_fpga_engine ops;
	struct ndx_receiver *receiver;
	struct ndx_connector *connector;
	uint64_t expected;
	uint32_t wrap;
	pthread_t stream;
	bool streams;
	atomic_bool stop;
};

/* Whether the adapter's queue pairs are connected by their numbers; explained on stderr if not. */
bool engine_fits(struct ndx_adapter *adapter);

/* Fills in `ops`, for the FPGA. */
void engine_init(struct engine *e);

#endif
