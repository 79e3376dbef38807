/* SPDX-License-Identifier: BSD-2-Clause */
/* Pre-shared keys (RFC 8446, 4.2.11): the file, and OpenSSL's questions for a key. */
#include "tls_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>

#define KEYS_MOST 1024u
#define ASKED_MOST 8u /* identities of a client that are looked up */

/* ---- the file ---- */

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* NULL: done; otherwise what is wrong with the line. */
static const char *read_line(const char *line, size_t length, struct tls_key *key)
{
	const char *colon = memchr(line, ':', length);
	const char *hex;
	size_t digits;

	if (colon == NULL)
		return "is not \"identity:key\"";
	if (colon == line || (size_t)(colon - line) > TLS_IDENTITY_MAX)
		return "has no identity of 1 to 128 bytes";
	memcpy(key->identity, line, (size_t)(colon - line));
	key->identity[colon - line] = '\0';
	if (strlen(key->identity) != (size_t)(colon - line))
		return "has a null byte";
	hex = colon + 1;
	digits = length - (size_t)(hex - line);
	if (digits % 2 != 0 || digits < (size_t)2 * TLS_KEY_LEAST ||
	    digits > (size_t)2 * TLS_KEY_MAX)
		return "has no key of 32 to 128 hexadecimal digits";
	key->length = digits / 2;
	for (size_t i = 0; i < key->length; i++) {
		const int high = digit(hex[2 * i]);
		const int low = digit(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return "has a key that is not hexadecimal";
		key->bytes[i] = (uint8_t)(high * 16 + low);
	}
	return NULL;
}

static const struct tls_key *find_key(const struct tls_context *c, const char *identity,
                                      size_t length)
{
	for (size_t i = 0; i < c->key_count; i++) {
		const struct tls_key *k = &c->keys[i];

		if (strlen(k->identity) == length && memcmp(k->identity, identity, length) == 0)
			return k;
	}
	return NULL;
}

static enum ndx_status add_key(struct tls_context *c, const struct tls_source *from,
                               unsigned number, const char *line, size_t length)
{
	struct tls_key *key = &c->keys[c->key_count];
	const char *fault;

	if (c->key_count == KEYS_MOST)
		return fail(NDX_E_INVALID_CONFIG, 0, "%s: %.128s has more than %u keys", from->call,
		            from->path, KEYS_MOST);
	fault = read_line(line, length, key);
	if (fault == NULL && find_key(c, key->identity, strlen(key->identity)) != NULL)
		fault = "has an identity for the second time";
	if (fault != NULL)
		return fail(NDX_E_INVALID_CONFIG, 0, "%s: %.128s: line %u %s", from->call,
		            from->path, number, fault);
	c->key_count++;
	return NDX_OK;
}

static enum ndx_status read_lines(struct tls_context *c, const struct tls_source *from,
                                  const char *text, size_t length)
{
	enum ndx_status st = NDX_OK;
	const char *end = text + length;
	unsigned number = 0;

	while (st == NDX_OK && text < end) {
		const char *next = memchr(text, '\n', (size_t)(end - text));
		size_t here = (size_t)((next != NULL ? next : end) - text);

		number++;
		if (here > 0 && text[here - 1] == '\r')
			here--;
		if (here > 0 && text[0] != '#')
			st = add_key(c, from, number, text, here);
		text = next != NULL ? next + 1 : end;
	}
	return st;
}

/* ---- OpenSSL asks ---- */

/* The cipher decides on the hash; this one's is the one that RFC 8446 has for such keys. */
static SSL_SESSION *as_session(SSL *ssl, const struct tls_key *key)
{
	static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
	SSL_SESSION *s = SSL_SESSION_new();

	if (s != NULL && cipher != NULL && SSL_SESSION_set_cipher(s, cipher) == 1 &&
	    SSL_SESSION_set1_master_key(s, key->bytes, key->length) == 1 &&
	    SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) == 1)
		return s;
	SSL_SESSION_free(s);
	return NULL;
}

/* A random number (tls_resume.c), and not an identity whose key is missing here. */
static bool is_ticket(const struct tls_context *c, const unsigned char *bytes, size_t length)
{
	bool printable = true;

	for (size_t i = 0; printable && i < length; i++)
		printable = bytes[i] >= ' ' && bytes[i] <= '~';
	return c->resumes && length == SSL_MAX_SSL_SESSION_ID_LENGTH && !printable;
}

/* At a server. Without a session the handshake goes on to certificates. */
static int on_client_key(SSL *ssl, const unsigned char *identity, size_t length,
                         SSL_SESSION **session)
{
	struct tls *t = SSL_get_app_data(ssl);

	*session = NULL;
	t->key = NULL;
	/* a client offers as many identities as it likes, and each costs a search */
	if (t->asked++ < ASKED_MOST)
		t->key = find_key(t->context, (const char *)identity, length);
	if (t->key == NULL && is_ticket(t->context, identity, length))
		return 1;
	tls_copy_text(t->identity, sizeof(t->identity), (const char *)identity, length);
	t->no_such_key = t->key == NULL;
	if (t->key != NULL)
		*session = as_session(ssl, t->key);
	return t->key == NULL || *session != NULL;
}

static int on_use_key(SSL *ssl, const EVP_MD *md, const unsigned char **identity, size_t *length,
                      SSL_SESSION **session)
{
	struct tls *t = SSL_get_app_data(ssl);
	const struct tls_key *key = &t->context->keys[0];

	*session = NULL;
	if (md != NULL && EVP_MD_is_a(md, "SHA2-256") != 1)
		return 1;
	*session = as_session(ssl, key);
	if (*session == NULL)
		return 0;
	tls_copy_text(t->identity, sizeof(t->identity), key->identity, strlen(key->identity));
	t->key = key;
	*identity = (const unsigned char *)key->identity;
	*length = strlen(key->identity);
	return 1;
}

/* ---- */

void tls_forget_keys(struct tls_context *c)
{
	/* Not the whole table, of which most pages were never touched; the line behind the last key
	 * may have been read in part. */
	if (c->keys != NULL)
		OPENSSL_cleanse(c->keys, (c->key_count < KEYS_MOST ? c->key_count + 1 : KEYS_MOST) *
		                                 sizeof(*c->keys));
	free(c->keys);
	c->keys = NULL;
	c->key_count = 0;
}

enum ndx_status tls_load_keys(struct tls_context *c, const char *call, const char *psk_file)
{
	const struct tls_source from = {call, psk_file, &c->stamps[TLS_FILE_PSK]};
	enum ndx_status st;
	size_t length = 0;
	char *text = NULL;

	c->keys = calloc(KEYS_MOST, sizeof(*c->keys));
	if (c->keys == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", call);
	st = tls_read_file(&from, true, &text, &length);
	if (st != NDX_OK)
		return st;
	st = read_lines(c, &from, text, length);
	tls_forget(text, length);
	if (st != NDX_OK)
		return st;
	if (c->key_count == 0 || (c->role == NDX_ROLE_CLIENT && c->key_count > 1))
		return fail(NDX_E_INVALID_CONFIG, 0, "%s: %.128s has %zu keys, %s", call, psk_file,
		            c->key_count,
		            c->key_count == 0 ? "one is needed" : "a client takes one");
	/* A cipher with another hash would exclude the keys. */
	if (SSL_CTX_set_ciphersuites(c->ssl, "TLS_AES_128_GCM_SHA256:"
	                                     "TLS_CHACHA20_POLY1305_SHA256") != 1)
		return fail(NDX_E_INTERNAL_ERROR, 0, "%s: OpenSSL lacks the ciphers", call);
	if (c->role == NDX_ROLE_SERVER)
		SSL_CTX_set_psk_find_session_callback(c->ssl, on_client_key);
	else
		SSL_CTX_set_psk_use_session_callback(c->ssl, on_use_key);
	return NDX_OK;
}
