/* SPDX-License-Identifier: BSD-2-Clause */
/* An entry of a session's history as JSON: the same for a client and in a server's snapshot. */
#ifndef NEGOTIATION_HISTORY_JSON_H
#define NEGOTIATION_HISTORY_JSON_H

#include <ndx/session.h>

#include "base_json.h"

json_t *history_entry_json(struct base_json *j, const struct ndx_history_entry *e);

#endif
