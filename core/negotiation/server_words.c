/* SPDX-License-Identifier: BSD-2-Clause */
/* A client whose connection has no connection manager: the session's transport carries the
 * connection's goodbyes, between the session's own frames, also while the pool has the session. */
#include "server.h"

#include <sys/socket.h>

#include "base_log.h"
#include "connection.h"

/* The wire's lock is held, on the adapter's control thread. */
static void say(void *arg, enum ndx_spi_oob_message message)
{
	struct client *c = arg;

	(void)__atomic_fetch_or(&c->words, 1u << message, __ATOMIC_RELEASE);
	base_loop_post(c->server->loop, &c->words_job);
}

static void over(void *arg)
{
	struct client *c = arg;

	__atomic_store_n(&c->parted, 1, __ATOMIC_RELAXED);
}

static const struct wire_carrier carrier = {.say = say, .over = over};

static void on_words(void *arg)
{
	struct client *c = arg;

	if (c->wire != NULL)
		(void)client_say_words(c);
}

enum ndx_status client_words_open(struct client *c)
{
	enum ndx_status st;

	if (c->session.dialogue.own.kind != NDX_DESCRIPTION_VERBS_RC ||
	    c->resources.connector == NULL)
		return NDX_OK;
	c->words_job = (struct base_job){.fn = on_words, .arg = c};
	c->wire = wire_create(&carrier, c);
	if (c->wire == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "no memory for the queue pair's goodbye");
	st = conn_direct_wire(c->resources.connector, c->wire);
	if (st == NDX_OK)
		return NDX_OK;
	wire_leave(c->wire);
	c->wire = NULL;
	return st;
}

/* Prepare the next goodbye or abort, if there is one. */
static bool begin_word(struct client *c)
{
	static const enum ndx_spi_oob_message order[] = {NDX_OOB_GOODBYE, NDX_OOB_ABORT};
	struct frame f = {.type = FRAME_GOODBYE};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const uint32_t bit = 1u << order[i];

		if ((__atomic_fetch_and(&c->words, ~bit, __ATOMIC_ACQUIRE) & bit) == 0)
			continue;
		f.flags = order[i] == NDX_OOB_ABORT ? FRAME_ABORTED : 0;
		frame_write_header(c->word, &f);
		c->saying = true;
		return true;
	}
	return false;
}

bool client_say_words(struct client *c)
{
	if (c->wire == NULL || c->fd < 0 || c->state == CLIENT_ENDING)
		return true;
	/* A frame of the session that is being sent comes first. */
	while (c->saying || (c->sent == 0 && begin_word(c))) {
		const enum client_io io = client_send(c, c->word, sizeof(c->word));

		if (io == IO_WAIT)
			return false;
		c->saying = false;
		if (io != IO_DONE)
			return true; /* the reader will detect the lost transport */
		if (c->word[7] == 0)
			wire_said(c->wire);
	}
	return true;
}

static bool hear_word(struct client *c, const struct frame *f)
{
	if (c->wire == NULL || f->type != FRAME_GOODBYE || f->length > 0)
		return false;
	wire_heard(c->wire, f->flags & FRAME_ABORTED ? WIRE_ABORT : WIRE_GOODBYE);
	return true;
}

bool client_take_word(struct client *c, const struct frame *f)
{
	if (!hear_word(c, f))
		return false;
	client_consume(c);
	return true;
}

/* The session's frame stays in the inbox and waits for the pool: read the frame after it, and leave
 * it unless it is a goodbye or an abort. */
static void overhear_behind(struct client *c)
{
	uint8_t header[FRAME_HEADER];
	enum client_io io = client_peek(c, header);
	const char *why;
	struct frame f;
	size_t used;

	while (io == IO_DONE &&
	       frame_parse(header, sizeof(header), 0, &f, &used, &why) == FRAME_WHOLE &&
	       hear_word(c, &f)) {
		(void)recv(c->fd, header, sizeof(header), 0);
		io = client_peek(c, header);
	}
	if (io == IO_LOST)
		wire_heard(c->wire, WIRE_LOST);
}

void client_overhear(struct client *c)
{
	const uint32_t most = c->session.dialogue.limits.max_message;
	const char *why;
	struct frame f;

	while (c->wire != NULL && c->fd >= 0) {
		switch (client_read_frame(c, most, &f, &why)) {
		case IO_DONE:
			if (client_take_word(c, &f))
				continue;
			overhear_behind(c); /* the session's frame stays until the pool is done */
			return;
		case IO_LOST:
		case IO_BAD:
			wire_heard(c->wire, WIRE_LOST);
			return;
		case IO_WAIT:
		default:
			return;
		}
	}
}

bool client_words_close(struct client *c, base_loop_fn *then)
{
	struct wire *wire = c->wire;

	c->wire = NULL;
	if (wire == NULL)
		return false;
	wire_leave(wire);
	/* After the jobs that are queued. */
	c->last = (struct base_job){.fn = then, .arg = c};
	base_loop_post(c->server->loop, &c->last);
	return true;
}
