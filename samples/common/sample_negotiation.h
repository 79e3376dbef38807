/* SPDX-License-Identifier: BSD-2-Clause */
/* A framework with one variant of one plugin, as given on a command line. */
#ifndef SAMPLE_NEGOTIATION_H
#define SAMPLE_NEGOTIATION_H

#include <ndx/adapter.h>
#include <ndx/negotiation.h>
#include <ndx/session.h>

struct sample_negotiation {
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
};

/**
 * Create the framework and the variant. Returns an enum sample_exit; a failure was printed.
 *
 * @param variant   "PLUGIN/VARIANT"
 * @param settings  "NAME=VALUE,NAME=VALUE", or NULL
 * @param plugins   absolute directory of plugins; NULL: where the library searches
 * @param option    the program's option for @p plugins, for the error text if the plugin is
 *                  missing; NULL: it has none
 */
int sample_negotiation_open(struct sample_negotiation *n, const char *program, const char *variant,
                            const char *settings, const char *plugins, const char *option);

void sample_negotiation_close(struct sample_negotiation *n);

/**
 * The variant of plugin "roce" that supports this adapter's queue pairs, for example
 * "roce/verbs-rc".
 */
enum ndx_status sample_variant_of(struct ndx_adapter *adapter, const char **variant);

/** Print to stderr why a session failed, and its history. */
void sample_session_failed(const char *program, struct ndx_session *session);

/** Print a session's history to stdout, one line per entry. */
void sample_session_history(const char *program, const struct ndx_session *session);

#endif
