/* SPDX-License-Identifier: BSD-2-Clause */
/* ndx-reqresp --negotiated: the ends exchange their descriptions over TCP, out of band. */
#ifndef NEGOTIATED_H
#define NEGOTIATED_H

#include "reqresp.h"

struct negotiated;

/**
 * Connect an existing end with a session with the server at options->address. Returns an enum
 * sample_exit; on SAMPLE_EXIT_OK call negotiated_end() after the disconnect.
 */
int negotiated_connect(struct end *end, struct negotiated **out);
void negotiated_end(struct negotiated *n);

/** As server_run(). */
int negotiated_server_run(const struct reqresp_options *options, sample_ready_fn *ready, void *arg);

#endif
