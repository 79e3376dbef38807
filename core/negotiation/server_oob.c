/* SPDX-License-Identifier: BSD-2-Clause */
/* A client whose connection has no connection manager: the session's transport carries the
 * connection's goodbyes, between the session's own frames, also while the pool has the session. */
#include "server.h"

#include <sys/socket.h>

#include <ndx/spi/log.h>
#include "connection.h"

/* The link's lock is held, on the adapter's control thread. */
static void send_message(void *arg, enum ndx_spi_oob_message message)
{
	struct client *c = arg;

	(void)__atomic_fetch_or(&c->oob_pending, 1u << message, __ATOMIC_RELEASE);
	ndxp_loop_post(c->server->loop, &c->oob_job);
}

static void on_connection_end(void *arg)
{
	struct client *c = arg;

	__atomic_store_n(&c->oob_ended, 1, __ATOMIC_RELAXED);
}

static const struct oob_carrier carrier = {.send = send_message, .end = on_connection_end};

static void on_oob_job(void *arg)
{
	struct client *c = arg;

	if (c->oob != NULL)
		(void)client_oob_send(c);
}

enum ndx_status client_oob_open(struct client *c)
{
	enum ndx_status st;

	if (c->session.dialogue.own.kind != NDX_DESCRIPTION_VERBS_RC ||
	    c->resources.connector == NULL)
		return NDX_OK;
	c->oob_job = (struct ndxp_job){.fn = on_oob_job, .arg = c};
	c->oob = oob_link_create(&carrier, c);
	if (c->oob == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "no memory for the queue pair's goodbye");
	st = conn_oob_set_link(c->resources.connector, c->oob);
	if (st == NDX_OK)
		return NDX_OK;
	oob_link_leave(c->oob);
	c->oob = NULL;
	return st;
}

/* Prepare the next goodbye or abort, if there is one. */
static bool begin_oob_frame(struct client *c)
{
	static const enum ndx_spi_oob_message order[] = {NDX_OOB_GOODBYE, NDX_OOB_ABORT};
	struct frame f = {.type = FRAME_GOODBYE};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const uint32_t bit = 1u << order[i];

		if ((__atomic_fetch_and(&c->oob_pending, ~bit, __ATOMIC_ACQUIRE) & bit) == 0)
			continue;
		f.flags = order[i] == NDX_OOB_ABORT ? FRAME_ABORTED : 0;
		frame_write_header(c->oob_frame, &f);
		c->oob_sending = true;
		return true;
	}
	return false;
}

bool client_oob_send(struct client *c)
{
	if (c->oob == NULL || c->fd < 0 || c->state == CLIENT_ENDING)
		return true;
	/* A frame of the session that is being sent comes first. */
	while (c->oob_sending || (c->sent == 0 && begin_oob_frame(c))) {
		const enum client_io io = client_send(c, c->oob_frame, sizeof(c->oob_frame));

		if (io == IO_WAIT)
			return false;
		c->oob_sending = false;
		if (io != IO_DONE)
			return true; /* the reader will detect the lost transport */
		if (c->oob_frame[7] == 0)
			oob_link_sent(c->oob);
	}
	return true;
}

static bool handle_oob_frame(struct client *c, const struct frame *f)
{
	if (c->oob == NULL || f->type != FRAME_GOODBYE || f->length > 0)
		return false;
	oob_link_received(c->oob, f->flags & FRAME_ABORTED ? OOB_ABORT : OOB_GOODBYE);
	return true;
}

bool client_oob_handle(struct client *c, const struct frame *f)
{
	if (!handle_oob_frame(c, f))
		return false;
	client_consume(c);
	return true;
}

/* The session's frame stays in the inbox and waits for the pool: read the frame after it, and leave
 * it unless it is a goodbye or an abort. */
static void receive_behind(struct client *c)
{
	uint8_t header[FRAME_HEADER];
	enum client_io io = client_peek(c, header);
	const char *why;
	struct frame f;
	size_t used;

	while (io == IO_DONE &&
	       frame_parse(header, sizeof(header), 0, &f, &used, &why) == FRAME_WHOLE &&
	       handle_oob_frame(c, &f)) {
		(void)recv(c->fd, header, sizeof(header), 0);
		io = client_peek(c, header);
	}
	if (io == IO_LOST)
		oob_link_received(c->oob, OOB_LOST);
}

void client_oob_receive(struct client *c)
{
	const uint32_t most = c->session.dialogue.limits.max_message;
	const char *why;
	struct frame f;

	while (c->oob != NULL && c->fd >= 0) {
		switch (client_read_frame(c, most, &f, &why)) {
		case IO_DONE:
			if (client_oob_handle(c, &f))
				continue;
			receive_behind(c); /* the session's frame stays until the pool is done */
			return;
		case IO_LOST:
		case IO_BAD:
			oob_link_received(c->oob, OOB_LOST);
			return;
		case IO_WAIT:
		default:
			return;
		}
	}
}

bool client_oob_close(struct client *c, ndxp_loop_fn *then)
{
	struct oob_link *link = c->oob;

	c->oob = NULL;
	if (link == NULL)
		return false;
	oob_link_leave(link);
	/* After the jobs that are queued. */
	c->last = (struct ndxp_job){.fn = then, .arg = c};
	ndxp_loop_post(c->server->loop, &c->last);
	return true;
}
