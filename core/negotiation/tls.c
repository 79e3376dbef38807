/* SPDX-License-Identifier: BSD-2-Clause */
/* One channel of TLS. */
#include "tls_private.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <ndx/spi/log.h>
#include "base_socket.h"
#include "link.h"

#define RECORD 16384u
#define READS_OF_A_CALL 4u /* of the socket, 16 KiB each */

/* ---- begin and end ---- */

/* The name that the server's certificate must have. The TLS extension has it, too, so that a host
 * with several names takes the right certificate; it must not have an address. */
static bool expect(struct tls *t, const char *server)
{
	const struct tls_context *c = t->context;
	char host[LINK_HOST_MAX];
	char port[LINK_PORT_MAX];
	const char *name = c->server_name;
	char *zone;
	bool number;

	if (name == NULL && server != NULL && link_address_split(server, host, port))
		name = host;
	(void)snprintf(t->expected, sizeof(t->expected), "%s", name != NULL ? name : "");
	zone = strchr(t->expected, '%');
	if (zone != NULL && memchr(t->expected, ':', (size_t)(zone - t->expected)) != NULL)
		*zone = '\0'; /* of an IPv6 address */
	if (t->expected[0] == '\0')
		return c->verify == NDX_TLS_VERIFY_NONE;
	number = strchr(t->expected, ':') != NULL ||
	         t->expected[strspn(t->expected, "0123456789.")] == '\0';
	return number || SSL_set_tlsext_host_name(t->ssl, t->expected) == 1;
}

struct tls *tls_begin(struct tls_context *c, int fd, const char *server)
{
	struct tls *t = calloc(1, sizeof(*t));
	BIO *b;

	if (t == NULL)
		return NULL;
	t->context = c;
	t->fd = fd;
	t->events = EPOLLIN;
	t->status = NDX_E_CONNECTION_ABORTED;
	t->ssl = SSL_new(c->ssl);
	b = t->ssl != NULL ? BIO_new(c->bio) : NULL;
	if (b == NULL)
		goto fail;
	BIO_set_data(b, t);
	SSL_set_bio(t->ssl, b, b);
	if (SSL_set_app_data(t->ssl, t) != 1)
		goto fail;
	if (c->role == NDX_ROLE_SERVER)
		SSL_set_accept_state(t->ssl);
	else
		SSL_set_connect_state(t->ssl);
	if (c->role == NDX_ROLE_CLIENT && !expect(t, server))
		goto fail;
	if (c->role == NDX_ROLE_CLIENT)
		tls_offer(t);
	return t;
fail:
	SSL_free(t->ssl);
	free(t);
	ERR_clear_error();
	return NULL;
}

void tls_shut(struct tls *t)
{
	if (t->ready && !t->failed && !t->shut) {
		t->shut = true;
		ERR_clear_error();
		(void)SSL_shutdown(t->ssl);
	}
	(void)tls_flush(t);
}

void tls_end(struct tls *t)
{
	if (t == NULL)
		return;
	tls_shut(t);
	tls_end_offer(t);
	SSL_free(t->ssl);
	free(t->out);
	free(t);
	ERR_clear_error();
}

/* ---- what happens ---- */

static enum ndx_status wait_for(struct tls *t, uint32_t events)
{
	t->events = events | (t->out_length > 0 ? (uint32_t)EPOLLOUT : 0);
	return NDX_PENDING;
}

static enum ndx_status lose(struct tls *t)
{
	errno = t->error;
	return t->status;
}

/* An operation of OpenSSL has not succeeded. NDX_OK: its output waits, do it again after a flush.
 */
static enum ndx_status judge(struct tls *t, int result)
{
	const int error = t->restless != NULL ? SSL_ERROR_SSL : SSL_get_error(t->ssl, result);

	switch (error) {
	case SSL_ERROR_WANT_READ:
		return wait_for(t, EPOLLIN);
	case SSL_ERROR_WANT_WRITE:
		if (t->out_length > 0)
			return NDX_OK;
		t->failed = true; /* no memory for its output */
		return lose(t);
	case SSL_ERROR_ZERO_RETURN:
		t->closed = true;
		t->error = 0;
		return lose(t);
	default:
		t->failed = true;
		tls_explain(t, error);
		/* OpenSSL's last words to the peer. To one that speaks plaintext they mean nothing.
		 */
		if (t->plaintext)
			t->out_length = 0;
		(void)tls_flush(t);
		return lose(t);
	}
}

static void begin_call(struct tls *t)
{
	t->reads = READS_OF_A_CALL;
	t->left = false;
}

static void note_ready(struct tls *t)
{
	if (t->ready || !SSL_is_init_finished(t->ssl))
		return;
	t->ready = true;
	tls_end_offer(t);
}

enum ndx_status tls_receive(struct tls *t, void *data, size_t room, size_t *got)
{
	enum ndx_status st;
	int result;

	/* What comes behind a failure need not be the peer's. */
	if (t->failed)
		return lose(t);
	begin_call(t);
	for (;;) {
		st = tls_flush(t);
		if (st != NDX_OK && st != NDX_PENDING)
			return lose(t);
		ERR_clear_error();
		result = SSL_read_ex(t->ssl, data, room, got);
		note_ready(t);
		if (result == 1 && t->restless == NULL)
			break;
		st = judge(t, result);
		if (st != NDX_OK && st != NDX_PENDING)
			return st;
		if (st == NDX_PENDING) {
			/* What it answers, a handshake for example, is what the peer waits for. */
			st = tls_flush(t);
			if (st != NDX_OK && st != NDX_PENDING)
				return lose(t);
			return wait_for(t, EPOLLIN);
		}
		/* OpenSSL reads nothing more until the peer has taken what waits here */
		if (tls_flush(t) == NDX_PENDING)
			return wait_for(t, 0);
	}
	return NDX_OK;
}

enum ndx_status tls_discard(struct tls *t, void *data, size_t room, size_t *got)
{
	if (!t->failed)
		return tls_receive(t, data, room, got);
	t->events = EPOLLIN;
	return base_socket_receive(t->fd, data, room, got);
}

/* Give OpenSSL the next record's bytes. NDX_OK: flush. */
static enum ndx_status write_some(struct tls *t, const uint8_t *bytes, size_t length, size_t *sent)
{
	const size_t left = length - *sent;
	size_t written = 0;
	int result;

	ERR_clear_error();
	result = SSL_write_ex(t->ssl, bytes + *sent, left < RECORD ? left : RECORD, &written);
	note_ready(t);
	if (result == 1) {
		*sent += written;
		return NDX_OK;
	}
	return judge(t, result);
}

enum ndx_status tls_send(struct tls *t, const uint8_t *bytes, size_t length, size_t *sent)
{
	enum ndx_status st;

	if (t->plaintext)
		return base_socket_send(t->fd, bytes, length, sent);
	begin_call(t);
	for (;;) {
		st = tls_flush(t);
		if (st == NDX_PENDING)
			return wait_for(t, 0);
		if (st != NDX_OK)
			return lose(t);
		if (t->failed) /* OpenSSL's last words are sent, and nothing else is */
			return lose(t);
		if (*sent >= length)
			return NDX_OK;
		st = write_some(t, bytes, length, sent);
		if (st == NDX_PENDING && tls_flush(t) == NDX_PENDING)
			return wait_for(t, EPOLLIN);
		if (st == NDX_PENDING)
			return wait_for(t, t->events);
		if (st != NDX_OK)
			return st;
	}
}

void tls_give_up(struct tls *t)
{
	if (t->ready)
		return;
	t->failed = true;
	t->status = NDX_E_IO_TIMEOUT;
	(void)snprintf(t->why, sizeof(t->why), "the TLS handshake did not end in time");
}

/* ---- what others ask ---- */

uint32_t tls_events(const struct tls *t)
{
	return t->events;
}

bool tls_has_left(const struct tls *t)
{
	return !t->failed && t->left;
}

bool tls_export(struct tls *t, uint8_t key[TLS_EXPORTED])
{
	static const char label[] = "EXPORTER-ndx-validate";

	ERR_clear_error();
	return t->ready && SSL_export_keying_material(t->ssl, key, TLS_EXPORTED, label,
	                                              sizeof(label) - 1, NULL, 0, 0) == 1;
}

bool tls_is_ready(const struct tls *t)
{
	return t->ready;
}

bool tls_has_failed(const struct tls *t)
{
	return t->failed && t->why[0] != '\0';
}

const char *tls_why(const struct tls *t)
{
	return t->why;
}

bool tls_is_resumed(const struct tls *t)
{
	return SSL_session_reused(t->ssl) == 1 && !tls_is_by_key(t);
}

const char *tls_describe(const struct tls *t, char *text, size_t room)
{
	X509 *cert = SSL_get0_peer_certificate(t->ssl);
	char subject[TLS_TEXT / 2] = "";

	if (cert != NULL)
		(void)X509_NAME_oneline(X509_get_subject_name(cert), subject, sizeof(subject));
	if (tls_is_by_key(t))
		(void)snprintf(text, room, "%s, pre-shared key of \"%.80s\"",
		               SSL_get_cipher_name(t->ssl), t->identity);
	else
		(void)snprintf(text, room, "%s%s, %s%s", tls_is_resumed(t) ? "resumed, " : "",
		               SSL_get_cipher_name(t->ssl),
		               cert != NULL ? "certificate of " : "the peer has no certificate",
		               subject);
	return text;
}
