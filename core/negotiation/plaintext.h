/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions in plaintext stay on the loopback, unless the attributes of an end permit more; then the
 * log names the risk. The rule is of the built-in TCP: where a plugin's own transport leads, NDX
 * does not know. */
#ifndef NEGOTIATION_PLAINTEXT_H
#define NEGOTIATION_PLAINTEXT_H

#include <stdbool.h>
#include <sys/socket.h>

#include <ndx/status.h>

struct ndx_negotiation_server;
struct ndx_session;

/* Before a server listens there. */
enum ndx_status plaintext_check(const struct ndx_negotiation_server *server,
                                const struct sockaddr_storage *at, size_t count);
/* Whether the session must not connect to that address. */
bool plaintext_is_barred(const struct ndx_session *s, const struct sockaddr_storage *to);
/* Set ndx_last_error() for such an address. */
enum ndx_status plaintext_bar(const struct ndx_session *s, const struct sockaddr_storage *to);
/* The session connects there: log the risk, if there is one, once for a framework. */
void plaintext_name_risk(struct ndx_session *s, const struct sockaddr_storage *to);

#endif
