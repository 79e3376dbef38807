/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions in plaintext stay on the loopback, unless the attributes of an end permit more; then the
 * log names the risk. The rule is of the built-in TCP: where a plugin's own transport leads, NDX
 * does not know. */
#ifndef NEGOTIATION_PLAINTEXT_H
#define NEGOTIATION_PLAINTEXT_H

#include <stdbool.h>
#include <sys/socket.h>

#include <ndx/status.h>

struct addrinfo;
struct ndx_negotiation_server;
struct ndx_session;

/* Before a server listens there. */
enum ndx_status plaintext_check(const struct ndx_negotiation_server *server,
                                const struct sockaddr_storage *at, size_t count);
/* Whether the session may connect there; logs the risk, if there is one, once for a framework.
 * False: *barred is set. */
bool plaintext_may_connect(struct ndx_session *s, const struct addrinfo *at,
                           struct sockaddr_storage *barred);
/* Set ndx_last_error() for such an address. */
enum ndx_status plaintext_bar(const struct ndx_session *s, const struct sockaddr_storage *barred);

#endif
