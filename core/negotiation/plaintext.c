/* SPDX-License-Identifier: BSD-2-Clause */
/* Where sessions in plaintext may go. */
#include "plaintext.h"

#include <netdb.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "server.h"

enum ndx_status plaintext_check(const struct ndx_negotiation_server *server,
                                const struct sockaddr_storage *at, size_t count)
{
	char text[NDXP_SOCKADDR_TEXT];
	size_t i = 0;

	while (i < count && ndxp_sockaddr_is_loopback(&at[i]))
		i++;
	if (i == count || server->tls != NULL)
		return NDX_OK;
	(void)ndxp_sockaddr_text(&at[i], text);
	if (!server->attr.allow_plaintext)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "ndx_negotiation_server_create: will not listen at %s (%.128s) in "
		            "plaintext: set tls, or allow_plaintext if all who reach the port, and "
		            "all on the way, may have the keys of the memory",
		            text, server->attr.address);
	log_warn(0,
	         "negotiation server: listens at %s in plaintext (allow_plaintext): any host that "
	         "reaches the port gets a session, and all on the way can read and change the "
	         "addresses and keys of memory",
	         text);
	return NDX_OK;
}

static void name_risk(struct ndx_session *s, const struct sockaddr_storage *to)
{
	char text[NDXP_SOCKADDR_TEXT];

	if (__atomic_exchange_n(&s->link.plugin->negotiation->plaintext_said, 1,
	                        __ATOMIC_RELAXED) != 0)
		return;
	log_warn(0,
	         "session %llu: connects to %s in plaintext (allow_plaintext): all on the way can "
	         "read and change the addresses and keys of memory, and any program can answer; "
	         "later sessions in plaintext are not logged",
	         (unsigned long long)s->id, ndxp_sockaddr_text(to, text));
}

bool plaintext_may_connect(struct ndx_session *s, const struct addrinfo *at,
                           struct sockaddr_storage *barred)
{
	struct sockaddr_storage to;

	if (s->tls != NULL)
		return true;
	ndxp_sockaddr_copy(&to, at->ai_addr, at->ai_addrlen);
	if (ndxp_sockaddr_is_loopback(&to))
		return true;
	if (s->attr.allow_plaintext)
		name_risk(s, &to);
	else
		*barred = to;
	return s->attr.allow_plaintext;
}

enum ndx_status plaintext_bar(const struct ndx_session *s, const struct sockaddr_storage *barred)
{
	char text[NDXP_SOCKADDR_TEXT];

	return fail(NDX_E_INVALID_CONFIG, 0,
	            "will not connect to %s (%.100s) in plaintext: set tls, or allow_plaintext if "
	            "all on the way may have the keys of the memory",
	            ndxp_sockaddr_text(barred, text), s->servers[s->reach.index]);
}
