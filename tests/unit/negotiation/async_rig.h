/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of session calls that do not block share. */
#ifndef TEST_ASYNC_RIG_H
#define TEST_ASYNC_RIG_H

#include "scripted.h"

#include <ndx/negotiation_server.h>

/* A session with long time-outs. */
struct ndx_session *session_with(struct rig *r, const char *address);
/* A session over the plugin's transport; the caller closes the variant afterwards. */
struct ndx_session *bus_session(struct rig *r, struct ndx_variant **v, const struct server *server);
/* A session of which the plugin's function is running. */
struct ndx_session *busy_session(struct rig *r, const char *address, struct ndx_overlapped *ov);
/* A server of the library. */
struct ndx_negotiation_server *many_server(struct rig *r, char address[32]);

void completes(struct ndx_overlapped *ov, enum ndx_status status);
/* A client has connected. */
void await_served(struct server *server);

#endif
