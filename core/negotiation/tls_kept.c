/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resumption at a client: what servers gave tickets for, in the context that the sessions of a
 * variant share (tls_share.c), so that all of it ends when a file changes. One session of TLS for
 * each server, the newest, which is offered until it is old: a server gives a ticket for a whole
 * handshake only.
 */
#include "tls_private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ndx/spi/system.h>

#define TICKET_MOST 8192u /* bytes */

static bool is_of_use(const struct tls_context *c, const struct tls_kept *k)
{
	const int64_t age = (int64_t)time(NULL) - SSL_SESSION_get_time(k->session);

	return tls_is_young(c, k->session, k->since_ns) &&
	       age < (int64_t)SSL_SESSION_get_ticket_lifetime_hint(k->session) &&
	       SSL_SESSION_is_resumable(k->session) == 1 && tls_are_valid(k->chain);
}

static void forget(struct tls_kept *k)
{
	SSL_SESSION_free(k->session);
	sk_X509_pop_free(k->chain, X509_free);
	memset(k, 0, sizeof(*k));
}

/* Whose session it is or would be. False: the transport has ended. */
static bool name_server(const struct tls *t, struct tls_server *of)
{
	socklen_t length = sizeof(of->address);

	memset(of, 0, sizeof(*of));
	memcpy(of->name, t->expected, sizeof(of->name));
	return of->name[0] != '\0' &&
	       getpeername(t->fd, (struct sockaddr *)&of->address, &length) == 0;
}

/* The place of this server; NULL: none. Under the lock. */
static struct tls_kept *find(struct tls_context *c, const struct tls_server *of)
{
	for (unsigned i = 0; i < TLS_KEPT_MOST; i++) {
		struct tls_kept *k = &c->kept[i];

		if (k->session != NULL &&
		    memcmp(&k->of.address, &of->address, sizeof(of->address)) == 0 &&
		    strcmp(k->of.name, of->name) == 0)
			return k;
	}
	return NULL;
}

/* Its place, or an empty one, or the one that was filled first. Under the lock. */
static struct tls_kept *make_place(struct tls_context *c, const struct tls_server *of)
{
	struct tls_kept *k = find(c, of);

	for (unsigned i = 0; k == NULL && i < TLS_KEPT_MOST; i++)
		if (c->kept[i].session == NULL)
			k = &c->kept[i];
	if (k == NULL) {
		k = &c->kept[0];
		for (unsigned i = 1; i < TLS_KEPT_MOST; i++)
			if (c->kept[i].number < k->number)
				k = &c->kept[i];
	}
	if (k->session != NULL)
		forget(k);
	return k;
}

/* OpenSSL has a ticket. 0: it keeps nothing; this file has a copy, because OpenSSL changes the
 * session of a channel that breaks. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls *t = SSL_get_app_data(ssl);
	struct tls_context *c = t->context;
	const unsigned char *ticket;
	struct tls_server server;
	STACK_OF(X509) * chain;
	SSL_SESSION *copy;
	struct tls_kept *k;
	size_t length;

	SSL_SESSION_get0_ticket(session, &ticket, &length);
	/* Only a whole handshake has the server prove that it has the key of its certificate. */
	if (t->restless != NULL || SSL_session_reused(ssl) == 1 || length == 0 ||
	    length > TICKET_MOST || SSL_get0_verified_chain(ssl) == NULL ||
	    !tls_is_small(session, SSL_get_peer_cert_chain(ssl)) ||
	    SSL_get_verify_result(ssl) != X509_V_OK || !name_server(t, &server))
		return 0;
	copy = SSL_SESSION_dup(session);
	chain = X509_chain_up_ref(SSL_get0_verified_chain(ssl));
	if (copy == NULL || chain == NULL) {
		SSL_SESSION_free(copy);
		sk_X509_pop_free(chain, X509_free);
		return 0;
	}
	pthread_mutex_lock(&c->resume_lock);
	k = make_place(c, &server);
	k->of = server;
	k->session = copy;
	k->chain = chain;
	k->number = ++c->kept_number;
	k->since_ns = ndxp_now_ns();
	pthread_mutex_unlock(&c->resume_lock);
	return 0;
}

void tls_keep_sessions(struct tls_context *c)
{
	(void)SSL_CTX_set_session_cache_mode(c->ssl, SSL_SESS_CACHE_CLIENT |
	                                                     SSL_SESS_CACHE_NO_INTERNAL |
	                                                     SSL_SESS_CACHE_NO_AUTO_CLEAR);
	SSL_CTX_sess_set_new_cb(c->ssl, on_session);
}

void tls_offer(struct tls *t)
{
	struct tls_context *c = t->context;
	struct tls_server server;
	SSL_SESSION *own = NULL;
	struct tls_kept *k;

	if (!c->resumes || !name_server(t, &server))
		return;
	pthread_mutex_lock(&c->resume_lock);
	k = find(c, &server);
	if (k != NULL && !is_of_use(c, k)) {
		forget(k);
		k = NULL;
	}
	if (k != NULL) {
		own = SSL_SESSION_dup(k->session);
		t->offered = k->number;
	}
	pthread_mutex_unlock(&c->resume_lock);
	if (own == NULL || SSL_set_session(t->ssl, own) != 1)
		t->offered = 0;
	SSL_SESSION_free(own);
}

void tls_end_offer(struct tls *t)
{
	struct tls_context *c = t->context;
	const uint64_t number = t->offered;

	t->offered = 0;
	if (number == 0 || SSL_session_reused(t->ssl) == 1)
		return;
	pthread_mutex_lock(&c->resume_lock);
	for (unsigned i = 0; i < TLS_KEPT_MOST; i++)
		if (c->kept[i].session != NULL && c->kept[i].number == number)
			forget(&c->kept[i]);
	pthread_mutex_unlock(&c->resume_lock);
}

void tls_forget_sessions(struct tls_context *c)
{
	for (unsigned i = 0; i < TLS_KEPT_MOST; i++)
		if (c->kept[i].session != NULL)
			forget(&c->kept[i]);
}
