/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a channel of TLS is lost, in words that say what to do. */
#include "tls_private.h"

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <stdio.h>
#include <string.h>

struct cause {
	int reason; /* of OpenSSL */
	enum ndx_status status;
	const char *text;
};

#define PROTOCOL NDX_E_INVALID_CONFIG
#define REFUSED NDX_E_CONNECTION_REFUSED

static const struct cause causes[] = {
	{SSL_R_UNSUPPORTED_PROTOCOL, PROTOCOL, "the peer does not speak TLS 1.3"},
	{SSL_R_WRONG_SSL_VERSION, PROTOCOL, "the peer does not speak TLS 1.3"},
	{SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, PROTOCOL,
         "the peer says that it does not speak TLS 1.3"},
	{SSL_R_INAPPROPRIATE_FALLBACK, PROTOCOL, "the peer falls back to an older TLS"},
	{SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, REFUSED,
         "the peer gave no certificate, and one is demanded"},
	{SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, REFUSED,
         "the peer demands a certificate, and this end has none"},
	{SSL_R_TLSV1_ALERT_UNKNOWN_CA, REFUSED,
         "the peer does not know the CA of this end's certificate"},
	{SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, REFUSED,
         "the peer says that this end's certificate has expired"},
	{SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, REFUSED,
         "the peer says that this end's certificate is revoked"},
	{SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, REFUSED,
         "the peer does not admit this end's certificate: perhaps its names"},
	{SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, REFUSED,
         "the peer says that this end's certificate is for another purpose"},
	{SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, REFUSED,
         "the peer does not admit this end's certificate"},
	{SSL_R_TLSV1_ALERT_ACCESS_DENIED, REFUSED, "the peer denies access"},
	{SSL_R_TLSV1_ALERT_UNKNOWN_PSK_IDENTITY, REFUSED,
         "the peer does not know this end's pre-shared key"},
	{SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, REFUSED,
         "the peer refuses: no common way to prove who the ends are; look at certificates and "
         "pre-shared keys"},
	{SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, REFUSED,
         "the client has no pre-shared key that is known here, and this end has no certificate"},
	{SSL_R_NO_SHARED_CIPHER, PROTOCOL, "the ends have no cipher in common"},
};

void tls_copy_text(char *out, size_t room, const char *text, size_t length)
{
	size_t i;

	for (i = 0; i < length && i + 1 < room; i++)
		out[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
	out[i] = '\0';
}

static void set(struct tls *t, enum ndx_status status, const char *text)
{
	t->status = status;
	(void)snprintf(t->why, sizeof(t->why), "TLS: %s", text);
}

/* The peer's first byte was that of a frame. */
static bool is_plaintext(const struct tls *t)
{
	return !t->ready && t->began && t->first == 'N';
}

static void explain_plaintext(struct tls *t)
{
	t->plaintext = true;
	set(t, NDX_E_INVALID_CONFIG,
	    t->context->role == NDX_ROLE_SERVER
	            ? "the client speaks plaintext, this server takes TLS only; give the client "
	              "its TLS attributes"
	            : "the server speaks plaintext, and this session does not go on without TLS; "
	              "give the server its TLS attributes");
}

/* The binder of a pre-shared key is a MAC by that key. */
static bool is_wrong_key(const struct tls *t, int reason)
{
	if (t->identity[0] == '\0')
		return false;
	return reason == SSL_R_BINDER_DOES_NOT_VERIFY ||
	       (t->context->role == NDX_ROLE_CLIENT && !t->ready &&
	        (reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER ||
	         reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR));
}

static void explain_key(struct tls *t)
{
	char text[TLS_WHY - 8];

	(void)snprintf(text, sizeof(text),
	               "wrong pre-shared key: the ends have different keys for \"%s\"",
	               t->identity);
	set(t, NDX_E_CONNECTION_REFUSED, text);
}

static void explain_reason(struct tls *t, unsigned long code)
{
	const char *text = code != 0 ? ERR_reason_error_string(code) : NULL;

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (causes[i].reason != ERR_GET_REASON(code))
			continue;
		set(t, causes[i].status, causes[i].text);
		return;
	}
	set(t, t->ready ? NDX_E_CONNECTION_ABORTED : NDX_E_INVALID_CONFIG,
	    text != NULL ? text : "the channel failed");
}

static void add_unknown_key(struct tls *t)
{
	const size_t used = strlen(t->why);

	(void)snprintf(t->why + used, sizeof(t->why) - used,
	               "; the pre-shared key's identity \"%.60s\" is not known here", t->identity);
}

void tls_explain(struct tls *t, int error)
{
	const unsigned long code = ERR_peek_error();

	if (t->restless != NULL) {
		set(t, NDX_E_CONNECTION_ABORTED, t->restless);
	} else if (is_plaintext(t)) {
		explain_plaintext(t);
	} else if (t->fault[0] != '\0') {
		set(t, NDX_E_CONNECTION_REFUSED, t->fault);
	} else if (t->ended || error == SSL_ERROR_SYSCALL) {
		t->status = NDX_E_CONNECTION_ABORTED;
		if (t->ready && t->error == 0)
			(void)snprintf(t->why, sizeof(t->why),
			               "TLS: the transport was cut off: it ended without the "
			               "peer's word");
	} else if (is_wrong_key(t, ERR_GET_REASON(code))) {
		explain_key(t);
	} else {
		explain_reason(t, code);
	}
	if (t->no_such_key && t->why[0] != '\0' && !t->ready)
		add_unknown_key(t);
	ERR_clear_error();
}
