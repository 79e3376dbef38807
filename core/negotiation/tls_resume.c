/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resumption at a server (RFC 8446, 2.2). A ticket is given only by a handshake in which a client's
 * certificate was checked. When the ticket comes back, what can be different by then is checked
 * anew. What fails is not known here, and a whole handshake follows.
 *
 * The ticket is a random number, and the sessions stay in the context, in a table of fixed size.
 * Tickets with the session in them would have the certificate read for each: that takes longer than
 * what a ticket saves (OpenSSL 3.0).
 */
#include "tls_private.h"

#include <openssl/err.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ndx/spi/system.h>

#define LIFETIME_S 300u
#define FORGET_MOST 512u  /* places that are looked at in one call */
#define LOOKED_UP_MOST 2u /* of a client, in one handshake */

/* ---- the table ---- */

static void forget(struct tls_given *g)
{
	SSL_SESSION_free(g->session);
	sk_X509_pop_free(g->chain, X509_free);
	g->session = NULL;
	g->chain = NULL;
}

static bool is_young(const struct tls_context *c, const struct tls_given *g)
{
	return tls_is_young(c, g->session, g->since_ns);
}

static struct tls_given *place_of(const struct tls_context *c, const unsigned char *id)
{
	return &c->given[((unsigned)id[0] << 8 | id[1]) % TLS_GIVEN_MOST];
}

/* The places are filled in turn. Under the lock. */
static void forget_old(struct tls_context *c)
{
	for (unsigned n = 0; n < FORGET_MOST && c->given_oldest < c->given_next;
	     n++, c->given_oldest++) {
		struct tls_given *g = &c->given[c->given_oldest % TLS_GIVEN_MOST];

		if (g->session != NULL && is_young(c, g) &&
		    c->given_next - c->given_oldest <= TLS_GIVEN_MOST)
			return;
		if (g->session != NULL && !is_young(c, g))
			forget(g);
	}
}

void tls_forget_old(struct tls_context *c)
{
	if (c == NULL || c->given == NULL)
		return;
	pthread_mutex_lock(&c->resume_lock);
	forget_old(c);
	pthread_mutex_unlock(&c->resume_lock);
}

/* The next place, and 30 random bytes. 0: the handshake fails. */
static int on_id(SSL *ssl, unsigned char *id, unsigned int *length)
{
	struct tls *t = SSL_get_app_data(ssl);
	struct tls_context *c = t->context;
	unsigned place;

	pthread_mutex_lock(&c->resume_lock);
	place = (unsigned)(c->given_next++ % TLS_GIVEN_MOST);
	pthread_mutex_unlock(&c->resume_lock);
	if (RAND_bytes(id, (int)*length) != 1)
		return 0;
	id[0] = (unsigned char)(place >> 8);
	id[1] = (unsigned char)place;
	return 1;
}

/* A ticket is on its way. 0: OpenSSL keeps nothing; the table has a copy, because OpenSSL changes
 * the session of a channel that breaks. */
static int on_given(SSL *ssl, SSL_SESSION *session)
{
	struct tls *t = SSL_get_app_data(ssl);
	struct tls_context *c = t->context;
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	struct tls_given fresh = {.since_ns = ndxp_now_ns()};
	const unsigned char *id;
	struct tls_given *g;
	unsigned length;

	if (!tls_is_small(session, SSL_get_peer_cert_chain(ssl)))
		return 0; /* the ticket will not be known */
	fresh.session = SSL_SESSION_dup(session);
	if (chain != NULL)
		fresh.chain = X509_chain_up_ref(chain);
	id = SSL_SESSION_get_id(session, &length);
	if (fresh.session == NULL || (chain != NULL && fresh.chain == NULL) ||
	    length != SSL_MAX_SSL_SESSION_ID_LENGTH) {
		forget(&fresh);
		return 0;
	}
	pthread_mutex_lock(&c->resume_lock);
	g = place_of(c, id);
	forget(g);
	*g = fresh;
	forget_old(c);
	pthread_mutex_unlock(&c->resume_lock);
	return 0;
}

/* Copy what the table has of a ticket, for the caller. False: nothing. */
static bool look_up(struct tls_context *c, const unsigned char *id, struct tls_given *out)
{
	const unsigned char *known = NULL;
	struct tls_given *g;
	unsigned length = 0;

	pthread_mutex_lock(&c->resume_lock);
	g = place_of(c, id);
	if (g->session != NULL)
		known = SSL_SESSION_get_id(g->session, &length);
	if (known != NULL && length == SSL_MAX_SSL_SESSION_ID_LENGTH &&
	    CRYPTO_memcmp(known, id, length) == 0 && is_young(c, g)) {
		out->session = SSL_SESSION_dup(g->session);
		out->chain = g->chain != NULL ? X509_chain_up_ref(g->chain) : NULL;
	}
	pthread_mutex_unlock(&c->resume_lock);
	return out->session != NULL;
}

/* ---- a ticket comes back ---- */

/* What may have changed since the whole handshake: the time, and in principle the names. The CAs
 * and the level of security are those of the context as long as it lives, so the signatures, which
 * take most of the time of a check, would be found good again. */
static bool is_admitted_still(const struct tls *t, const struct tls_given *g)
{
	X509 *cert = SSL_SESSION_get0_peer(g->session);

	return cert != NULL && sk_X509_num(g->chain) > 0 && tls_are_valid(g->chain) &&
	       tls_is_for(cert, t);
}

/* The session of a ticket, which is the caller's. NULL: none, a whole handshake follows. */
static SSL_SESSION *on_ticket(SSL *ssl, const unsigned char *id, int length, int *copy)
{
	struct tls *t = SSL_get_app_data(ssl);
	struct tls_given g = {0};
	bool admitted;

	*copy = 0;
	if (length != SSL_MAX_SSL_SESSION_ID_LENGTH || t->looked_up++ >= LOOKED_UP_MOST ||
	    !look_up(t->context, id, &g))
		return NULL;
	(void)ERR_set_mark();
	admitted = is_admitted_still(t, &g);
	(void)ERR_pop_to_mark();
	sk_X509_pop_free(g.chain, X509_free);
	if (admitted)
		return g.session;
	SSL_SESSION_free(g.session);
	return NULL;
}

/* ---- */

void tls_forget_given(struct tls_context *c)
{
	for (unsigned i = 0; c->given != NULL && i < TLS_GIVEN_MOST; i++)
		forget(&c->given[i]);
	free(c->given);
	c->given = NULL;
}

/* At a client, OpenSSL would offer its pre-shared key beside a ticket, and the channel could not
 * tell which of the two the server has taken. */
bool tls_let_resume(struct tls_context *c)
{
	c->ticket_s = LIFETIME_S;
	c->resumes = !c->no_resumption && c->has_cert && c->has_ca &&
	             c->verify != NDX_TLS_VERIFY_NONE &&
	             (c->role == NDX_ROLE_SERVER || c->key_count == 0);
	if (c->resumes && c->role == NDX_ROLE_CLIENT)
		tls_keep_sessions(c);
	if (!c->resumes || c->role == NDX_ROLE_CLIENT)
		return true;
	c->given = calloc(TLS_GIVEN_MOST, sizeof(*c->given));
	if (c->given == NULL)
		return false;
	/* SSL_OP_NO_TICKET stays: no tickets with a session in them. The number of tickets stays 0,
	 * tls_verify.c raises that of a channel. */
	(void)SSL_CTX_set_timeout(c->ssl, (long)c->ticket_s);
	(void)SSL_CTX_set_session_cache_mode(c->ssl, SSL_SESS_CACHE_SERVER |
	                                                     SSL_SESS_CACHE_NO_INTERNAL |
	                                                     SSL_SESS_CACHE_NO_AUTO_CLEAR);
	SSL_CTX_sess_set_new_cb(c->ssl, on_given);
	SSL_CTX_sess_set_get_cb(c->ssl, on_ticket);
	return SSL_CTX_set_generate_session_id(c->ssl, on_id) == 1;
}
