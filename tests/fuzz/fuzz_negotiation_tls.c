/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A channel of TLS and the frames on it: whatever the peer sends, in pieces of any size, before the
 * handshake has ended and after it.
 *
 * The input is a way, then steps: each step takes a number of bytes, which the peer sends as
 * records or as they are, and then the server reads. What was sent as records has to come out
 * again, whole and in order; behind a failure nothing may come.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame_io.h"
#include "fuzz.h"
#include "tls.h"

enum { MESSAGE = 600, TURNS = 64 };

static const uint8_t *input;
static size_t left;

static uint8_t take_byte(void)
{
	if (left == 0)
		return 0;
	left--;
	return *input++;
}

/* ---- both ends ---- */

static struct tls_context *contexts[2]; /* of the client, of the server */

/* Files are read once, so this one is only in memory. */
static void make_contexts(void)
{
	static const char line[] = "fuzz:000102030405060708090a0b0c0d0e0f\n";
	const int fd = memfd_create("keys", MFD_CLOEXEC);
	struct ndx_tls_attr attr;
	char path[64];

	FUZZ_HOLDS(fd >= 0 && fchmod(fd, 0600) == 0);
	FUZZ_HOLDS(write(fd, line, sizeof(line) - 1) == (ssize_t)sizeof(line) - 1);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ndx_tls_attr_init(&attr);
	attr.psk_file = path;
	FUZZ_HOLDS(tls_context_create(&attr, NDX_ROLE_CLIENT, "fuzz", &contexts[0]) == NDX_OK);
	FUZZ_HOLDS(tls_context_create(&attr, NDX_ROLE_SERVER, "fuzz", &contexts[1]) == NDX_OK);
	(void)close(fd);
}

struct channel {
	int fds[2];
	struct tls *ends[2];
	bool harmed; /* bytes that are no records have come after the handshake */
	/* The server's reader of frames, and what its bytes have to be. */
	struct frame_reader frames;
	size_t expected; /* bytes that were sent as records */
	size_t received;
	uint64_t sent_sum;
	uint64_t received_sum;
	bool over;
};

/* The order counts, too. */
static void add_to(uint64_t *sum, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		*sum = (*sum ^ bytes[i]) * UINT64_C(1099511628211);
}

static enum ndx_status receive(void *arg, void *data, size_t room, size_t *got)
{
	struct channel *c = arg;
	const bool failed = tls_has_failed(c->ends[1]);
	const enum ndx_status st = tls_receive(c->ends[1], data, room, got);

	if (st != NDX_OK)
		return st;
	FUZZ_HOLDS(!failed && *got > 0 && *got <= room);
	FUZZ_HOLDS(tls_is_ready(c->ends[1]));
	c->received += *got;
	add_to(&c->received_sum, data, *got);
	FUZZ_HOLDS(c->received <= c->expected);
	return st;
}

/* The server reads frames until it has to wait. */
static void serve(struct channel *c)
{
	enum ndx_status st = NDX_OK;
	const char *why = "";
	struct frame f;

	for (int i = 0; i < TURNS && !c->over; i++) {
		switch (frame_read(&c->frames, MESSAGE, receive, c, &f, &st, &why)) {
		case FRAME_WHOLE:
			FUZZ_HOLDS(f.length <= MESSAGE);
			frame_reader_consume(&c->frames);
			break;
		case FRAME_MORE:
			c->over = st != NDX_PENDING;
			return;
		case FRAME_BAD:
		default:
			FUZZ_HOLDS(why[0] != '\0');
			c->over = true;
		}
	}
}

static void shake_hands(struct channel *c)
{
	uint8_t byte;
	size_t got;

	for (int i = 0; i < TURNS && !(tls_is_ready(c->ends[0]) && tls_is_ready(c->ends[1])); i++)
		FUZZ_HOLDS(tls_receive(c->ends[i % 2], &byte, 1, &got) == NDX_PENDING);
	FUZZ_HOLDS(tls_is_ready(c->ends[0]) && tls_is_ready(c->ends[1]));
}

/* The peer sends a piece of the input. `plain`: not as records. */
static void send_piece(struct channel *c, bool plain)
{
	size_t length = (size_t)take_byte() + 1;
	size_t sent = 0;

	length = length < left ? length : left;
	if (length == 0)
		return;
	if (plain) {
		(void)send(c->fds[0], input, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		c->harmed = true;
	} else if (tls_send(c->ends[0], input, length, &sent) == NDX_OK && !c->harmed) {
		c->expected += length;
		add_to(&c->sent_sum, input, length);
	}
	input += length;
	left -= length;
}

/* The client says it all, and the server has it all, unless its frames were bad. */
static void look_at_the_end(struct channel *c, bool began)
{
	struct tls_identity who;
	char text[TLS_TEXT];

	FUZZ_HOLDS(c->over || c->harmed || !began || c->received_sum == c->sent_sum);
	FUZZ_HOLDS(strlen(tls_describe(c->ends[1], text, sizeof(text))) < sizeof(text));
	FUZZ_HOLDS(strlen(tls_why(c->ends[1])) < 256);
	if (!tls_is_ready(c->ends[1]))
		return;
	FUZZ_HOLDS(tls_identify(c->ends[1], &who));
	FUZZ_HOLDS(who.kind == TLS_BY_KEY && strcmp(who.name, "fuzz") == 0);
}

static void channel_open(struct channel *c)
{
	if (contexts[0] == NULL)
		make_contexts();
	FUZZ_HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, c->fds) == 0);
	for (int i = 0; i < 2; i++) {
		c->ends[i] = tls_begin(contexts[i], c->fds[i], i == 0 ? "127.0.0.1:1" : NULL);
		FUZZ_HOLDS(c->ends[i] != NULL);
	}
}

/* Behind a failure there is nothing but what is thrown away. */
static void channel_close(struct channel *c)
{
	uint8_t rest[512];
	size_t got;

	if (tls_has_failed(c->ends[1]))
		FUZZ_HOLDS(tls_receive(c->ends[1], rest, sizeof(rest), &got) < 0);
	(void)tls_discard(c->ends[1], rest, sizeof(rest), &got);
	for (int i = 0; i < 2; i++) {
		tls_end(c->ends[i]);
		(void)close(c->fds[i]);
	}
	frame_reader_clear(&c->frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct channel c = {.over = false};
	bool ready;
	uint8_t how;

	input = data;
	left = size;
	how = take_byte();
	ready = (how & 1u) != 0;
	channel_open(&c);
	if (ready)
		shake_hands(&c);
	while (left > 0) {
		/* Before the handshake there is nothing but plain bytes. */
		send_piece(&c, !ready || ((how & 2u) != 0 && (take_byte() & 7u) == 7));
		serve(&c);
	}
	look_at_the_end(&c, ready);
	if ((how & 4u) != 0)
		tls_give_up(c.ends[1]);
	channel_close(&c);
	return 0;
}
