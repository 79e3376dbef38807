/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the peer's certificate is what is demanded. */
#include "tls_private.h"

#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#define NOT_AN_ADDRESS (-2) /* X509_check_ip_asc(3): the text cannot be read */

/* Whether a subject alternative name of the certificate is this URI. */
static bool has_uri(X509 *cert, const char *uri)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	bool found = false;

	for (int i = 0; !found && i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);
		const ASN1_IA5STRING *text;

		if (n->type != GEN_URI)
			continue;
		text = n->d.uniformResourceIdentifier;
		found = (size_t)ASN1_STRING_length(text) == strlen(uri) &&
		        memcmp(ASN1_STRING_get0_data(text), uri, strlen(uri)) == 0;
	}
	GENERAL_NAMES_free(names);
	return found;
}

bool tls_match_name(X509 *cert, const char *name, unsigned more)
{
	const unsigned flags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | more;
	const int ip = X509_check_ip_asc(cert, name, 0);

	/* OpenSSL finds 127.0.0.1 among names of hosts, too, even for *.0.0.1 (RFC 9110 4.3.5) */
	if (ip != NOT_AN_ADDRESS)
		return ip == 1;
	if (strchr(name, '@') != NULL && strchr(name, ':') == NULL)
		return X509_check_email(cert, name, 0, flags) == 1;
	if (strchr(name, ':') != NULL)
		return has_uri(cert, name);
	return X509_check_host(cert, name, 0, flags, NULL) == 1;
}

bool tls_is_for(X509 *cert, const struct tls *t)
{
	const struct tls_context *c = t->context;
	bool found = c->name_count == 0;

	if (c->role == NDX_ROLE_CLIENT)
		return t->expected[0] != '\0' && tls_match_name(cert, t->expected, 0);
	/* the holder of a wildcard is not every client */
	for (size_t i = 0; !found && i < c->name_count; i++)
		found = tls_match_name(cert, c->names[i], X509_CHECK_FLAG_NO_WILDCARDS);
	return found;
}

static void set_fault(struct tls *t, X509 *cert, const char *text)
{
	char subject[100] = "";
	char clean[sizeof(subject)];

	if (cert != NULL)
		(void)X509_NAME_oneline(X509_get_subject_name(cert), subject, sizeof(subject));
	tls_copy_text(clean, sizeof(clean), subject, strlen(subject));
	(void)snprintf(t->fault, sizeof(t->fault), "the peer's certificate %s: %s", clean, text);
}

static int name_mismatch(struct tls *t, X509_STORE_CTX *x, X509 *cert)
{
	char text[128];

	if (t->expected[0] != '\0')
		(void)snprintf(text, sizeof(text), "name mismatch: it is not for \"%.80s\"",
		               t->expected);
	else
		(void)snprintf(text, sizeof(text), "name mismatch: none of its names is allowed");
	set_fault(t, cert, text);
	X509_STORE_CTX_set_error(x, X509_V_ERR_HOSTNAME_MISMATCH);
	return 0;
}

static bool is_unknown_ca(int error)
{
	return error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
	       error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
	       error == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
	       error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
	       error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE ||
	       error == X509_V_ERR_CERT_SIGNATURE_FAILURE;
}

/* A client whose certificate a server has verified may resume. */
static void give_ticket(SSL *ssl, const struct tls *t)
{
	if (t->context->role == NDX_ROLE_SERVER && t->context->resumes)
		(void)SSL_set_num_tickets(ssl, 1);
}

static int check(int good, X509_STORE_CTX *x)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(x, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tls *t = SSL_get_app_data(ssl);
	X509 *cert = X509_STORE_CTX_get_current_cert(x);
	const int error = X509_STORE_CTX_get_error(x);
	char text[128];

	if (good == 1) {
		if (X509_STORE_CTX_get_error_depth(x) > 0)
			return 1;
		if (!tls_is_for(cert, t))
			return name_mismatch(t, x, cert);
		give_ticket(ssl, t);
		return 1;
	}
	if (is_unknown_ca(error))
		(void)snprintf(text, sizeof(text), "unknown CA: %s (%s)",
		               X509_verify_cert_error_string(error),
		               t->context->has_ca ? "no certificate of the CA file has signed it"
		                                  : "there is no CA file");
	else
		(void)snprintf(text, sizeof(text), "%s", X509_verify_cert_error_string(error));
	set_fault(t, cert, text);
	return 0;
}

void tls_demand(struct tls_context *c)
{
	int mode = SSL_VERIFY_PEER;

	if (c->verify == NDX_TLS_VERIFY_NONE)
		mode = SSL_VERIFY_NONE;
	else if (c->verify == NDX_TLS_VERIFY_REQUIRED)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(c->ssl, mode, c->verify == NDX_TLS_VERIFY_NONE ? NULL : check);
}
