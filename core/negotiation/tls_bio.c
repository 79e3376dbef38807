/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket as OpenSSL sees it. OpenSSL's own would raise SIGPIPE. */
#include "tls_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base_socket.h"

/* A sender gives at most one record (16 KiB) to OpenSSL while something waits. */
#define OUT_MOST 65536u

static int read_socket(BIO *b, char *data, int room)
{
	struct tls *t = BIO_get_data(b);
	enum ndx_status st;
	size_t got = 0;

	BIO_clear_retry_flags(b);
	if (data == NULL || room <= 0 || t->restless != NULL)
		return 0;
	/* OpenSSL reads on by itself over messages without data: others have their turn, too. */
	t->left = t->reads == 0;
	st = t->reads > 0 ? base_socket_receive(t->fd, data, (size_t)room, &got) : NDX_PENDING;
	if (st == NDX_OK) {
		t->reads--;
		if (!t->began)
			t->first = (uint8_t)data[0];
		t->began = true;
		return (int)got;
	}
	if (st == NDX_PENDING) {
		BIO_set_retry_read(b);
		return -1;
	}
	t->ended = true;
	t->error = errno;
	return 0;
}

static bool make_room(struct tls *t, size_t more)
{
	const size_t wanted = t->out_length + more;
	uint8_t *grown;

	if (wanted <= t->out_room)
		return true;
	if (wanted > OUT_MOST)
		return false;
	grown = realloc(t->out, wanted);
	if (grown == NULL)
		return false;
	t->out = grown;
	t->out_room = wanted;
	return true;
}

static int write_buffer(BIO *b, const char *data, int length)
{
	struct tls *t = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (data == NULL || length <= 0)
		return 0;
	if (!make_room(t, (size_t)length)) {
		BIO_set_retry_write(b);
		return -1;
	}
	memcpy(t->out + t->out_length, data, (size_t)length);
	t->out_length += (size_t)length;
	return length;
}

static long control(BIO *b, int command, long number, void *pointer)
{
	const struct tls *t = BIO_get_data(b);

	(void)number;
	(void)pointer;
	switch (command) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_EOF:
		return t->ended;
	default:
		return 0;
	}
}

static int create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

BIO_METHOD *tls_bio_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "ndx socket");

	if (m == NULL)
		return NULL;
	if (BIO_meth_set_read(m, read_socket) == 1 && BIO_meth_set_write(m, write_buffer) == 1 &&
	    BIO_meth_set_ctrl(m, control) == 1 && BIO_meth_set_create(m, create) == 1)
		return m;
	BIO_meth_free(m);
	return NULL;
}

enum ndx_status tls_flush(struct tls *t)
{
	enum ndx_status st;

	if (t->out_length == 0)
		return NDX_OK;
	st = base_socket_send(t->fd, t->out, t->out_length, &t->out_sent);
	if (st == NDX_PENDING)
		return st;
	t->error = st == NDX_OK ? t->error : errno;
	free(t->out); /* idle channels are many */
	t->out = NULL;
	t->out_room = 0;
	t->out_length = 0;
	t->out_sent = 0;
	return st;
}
