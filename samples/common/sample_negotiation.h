/* SPDX-License-Identifier: BSD-2-Clause */
/* A framework with one variant of one plugin, as a command line names them. */
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
 * Make it. Returns an enum sample_exit; a failure was explained.
 *
 * @param variant   "PLUGIN/VARIANT"
 * @param settings  "NAME=VALUE,NAME=VALUE", or NULL
 * @param plugins   absolute directory of plugins, or NULL for where the library looks
 * @param option    the program's option for @p plugins, to be named where there is no such plugin;
 *                  NULL: it has none
 */
int sample_negotiation_open(struct sample_negotiation *n, const char *program, const char *variant,
                            const char *settings, const char *plugins, const char *option);

void sample_negotiation_close(struct sample_negotiation *n);

/** The variant of plugin "roce" that can tell of this adapter's queue pairs: "roce/verbs-rc", ...
 */
enum ndx_status sample_variant_of(struct ndx_adapter *adapter, const char **variant);

/** Why a session failed, and what it went through, on stderr. */
void sample_session_failed(const char *program, struct ndx_session *session);

/** A session's history on stdout, a line for each entry. */
void sample_session_history(const char *program, const struct ndx_session *session);

#endif
