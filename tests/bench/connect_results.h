/* SPDX-License-Identifier: BSD-2-Clause */
/* What ndx-connect has measured: lines of text, JSON, progress, and the end by a signal. */
#ifndef CONNECT_RESULTS_H
#define CONNECT_RESULTS_H

#include <jansson.h>
#include <stdbool.h>

#define RESULTS_WHO "ndx-connect"

/** Where the JSON goes, as sample_json_open(). */
int results_open(const char *json);

/** The run begins; it has so many measurements. From now on signals tell how far it came. */
int results_begin(unsigned total, bool progress);

/** A text line, and the same as a member of the JSON. Takes @p json. */
__attribute__((format(printf, 3, 4))) void results_tell(const char *name, json_t *json,
                                                        const char *format, ...);

/** One more measurement is done. */
void results_step(void);

/** Write the JSON. Returns the exit status. */
int results_end(int rc);

#endif
