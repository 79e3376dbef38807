/* SPDX-License-Identifier: BSD-2-Clause */
/* The identity of the peer of a channel. */
#include "tls_private.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* SHA-256 of a kind and bytes. False: no memory. */
static bool digest(uint8_t out[TLS_DIGEST], char kind, const void *bytes, size_t length)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	const bool done = ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1 &&
	                  EVP_DigestUpdate(ctx, &kind, 1) == 1 &&
	                  EVP_DigestUpdate(ctx, bytes, length) == 1 &&
	                  EVP_DigestFinal_ex(ctx, out, NULL) == 1;

	EVP_MD_CTX_free(ctx);
	return done;
}

/* The first name of a host, a person or a service. */
static bool find_name(X509 *cert, char *out, size_t room)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	bool found = false;

	for (int i = 0; !found && i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);
		const ASN1_IA5STRING *text = n->d.ia5;

		if (n->type != GEN_DNS && n->type != GEN_URI && n->type != GEN_EMAIL)
			continue;
		tls_copy_text(out, room, (const char *)ASN1_STRING_get0_data(text),
		              (size_t)ASN1_STRING_length(text));
		found = true;
	}
	GENERAL_NAMES_free(names);
	return found;
}

static void name_subject(X509 *cert, char *out, size_t room)
{
	char subject[TLS_NAME] = "";

	(void)X509_NAME_oneline(X509_get_subject_name(cert), subject, sizeof(subject));
	tls_copy_text(out, room, subject, strlen(subject));
}

/* Certificates with the same names are of the same principal: a renewed one has its budget. */
static bool digest_names(X509 *cert, uint8_t out[TLS_DIGEST])
{
	const int at = X509_get_ext_by_NID(cert, NID_subject_alt_name, -1);
	const unsigned char *subject = NULL;
	const ASN1_OCTET_STRING *names;
	size_t length = 0;

	if (at >= 0) {
		names = X509_EXTENSION_get_data(X509_get_ext(cert, at));
		return digest(out, 'n', ASN1_STRING_get0_data(names),
		              (size_t)ASN1_STRING_length(names));
	}
	return X509_NAME_get0_der(X509_get_subject_name(cert), &subject, &length) == 1 &&
	       digest(out, 's', subject, length);
}

/* The peer's certificate, if this end has verified it. */
static X509 *verified(const struct tls *t)
{
	if (t->context->verify == NDX_TLS_VERIFY_NONE || SSL_get_verify_result(t->ssl) != X509_V_OK)
		return NULL;
	return SSL_get0_peer_certificate(t->ssl);
}

bool tls_is_by_key(const struct tls *t)
{
	return t->key != NULL && SSL_session_reused(t->ssl) == 1;
}

bool tls_identify(const struct tls *t, struct tls_identity *out)
{
	X509 *cert = verified(t);
	unsigned length = TLS_DIGEST;

	memset(out, 0, sizeof(*out));
	ERR_clear_error();
	if (tls_is_by_key(t)) {
		const char *identity = t->key->identity;

		out->kind = TLS_BY_KEY;
		tls_copy_text(out->name, sizeof(out->name), identity, strlen(identity));
		if (!digest(out->proof, 'k', identity, strlen(identity)))
			return false;
		memcpy(out->principal, out->proof, TLS_DIGEST);
		return true;
	}
	if (cert == NULL) {
		out->kind = TLS_ANONYMOUS;
		(void)snprintf(out->name, sizeof(out->name), "no certificate");
		return digest(out->principal, 'a', "", 0);
	}
	out->kind = TLS_BY_CERTIFICATE;
	if (!find_name(cert, out->name, sizeof(out->name)))
		name_subject(cert, out->name, sizeof(out->name));
	ERR_clear_error();
	return X509_digest(cert, EVP_sha256(), out->proof, &length) == 1 &&
	       digest_names(cert, out->principal);
}

bool tls_is_same(const struct tls_identity *a, const struct tls_identity *b)
{
	return a->kind == b->kind && CRYPTO_memcmp(a->proof, b->proof, TLS_DIGEST) == 0;
}

bool tls_has_name(const struct tls *t, const char *name)
{
	X509 *cert = verified(t);
	bool found;

	if (cert == NULL || tls_is_by_key(t))
		return false;
	found = tls_match_name(cert, name, X509_CHECK_FLAG_NO_WILDCARDS);
	ERR_clear_error();
	return found;
}

bool tls_has_key(const struct tls *t, const char *identity)
{
	return tls_is_by_key(t) && strcmp(t->key->identity, identity) == 0;
}
