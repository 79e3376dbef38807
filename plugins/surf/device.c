/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The session's peer in place of an FPGA, which has no software. It takes the session's frames,
 * performs them over the registers, and answers as a server would. Operations that take time run in
 * receive, within its time limit. The clean-up runs in close, and so after every kind of end.
 *
 *   HELLO                 WELCOME
 *   DATA info 0 (order)   bring-up; the FPGA's queue pair, or ERROR
 *   VALIDATE              the values that both ends use, for the session to compare
 *   DATA ready 0          dispatcher on
 *   DATA done 0           dispatcher off
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "plugin_wire.h"
#include "registers.h"
#include "setup.h"
#include "stream.h"
#include "words.h"

#define TEXT 200u
#define ERROR_HEAD 8u
#define LAYER_PLUGIN 2u
#define BITS_24 0xffffffu

struct ndx_plugin_stream {
	struct surf_registers *registers;
	struct surf_bus bus;
	struct surf_log log;
	struct surf_order order;
	struct surf_answer answer;
	struct surf_connection made;
	bool streams;
	uint8_t in[SURF_FRAME_HEADER + SURF_FRAME_PAYLOAD];
	size_t in_length; /* frames that are not processed yet */
	uint8_t out[SURF_FRAME_HEADER + SURF_FRAME_PAYLOAD];
	size_t out_length;
	size_t out_taken;
};

static void line(void *to, enum ndx_log_level level, const char *text)
{
	const struct surf_plugin *plugin = to;

	if (plugin->host != NULL)
		plugin->host->log(plugin->host, level, text);
}

static enum ndx_status connect_device(void *plugin, const char *address, uint32_t timeout_ms,
                                      struct ndx_plugin_stream **out, char *why, size_t room)
{
	struct ndx_plugin_stream *c = calloc(1, sizeof(*c));
	enum ndx_status st;

	if (c == NULL) {
		(void)snprintf(why, room, "out of memory");
		return NDX_E_NO_MEMORY;
	}
	c->log = (struct surf_log){.line = line, .to = plugin};
	st = surf_registers_open(address, timeout_ms, &c->registers, why, room);
	if (st != NDX_OK) {
		free(c);
		return st;
	}
	c->bus = (struct surf_bus){.ops = &surf_registers_ops, .state = c->registers};
	*out = c;
	return NDX_OK;
}

/* ---- answers ---- */

static void write_answer(struct ndx_plugin_stream *c, uint8_t type, const struct surf_frame *asked,
                         const void *payload, size_t length)
{
	const struct surf_frame f = {.type = type,
	                             .stage = asked->stage,
	                             .flags = type == SURF_DATA ? SURF_FRAME_COMPLETED : 0,
	                             .round = asked->round,
	                             .length = (uint32_t)length,
	                             .payload = payload};

	c->out_length = surf_frame_write(c->out, &f);
	c->out_taken = 0;
}

static void refuse(struct ndx_plugin_stream *c, const struct surf_frame *asked,
                   enum ndx_status status, const char *text)
{
	uint8_t payload[ERROR_HEAD + TEXT] = {LAYER_PLUGIN, NDX_PLUGIN_VENDOR};
	const size_t length = strnlen(text, TEXT);

	wire_put32(payload + 4, (uint32_t)status);
	memcpy(payload + ERROR_HEAD, text, length);
	write_answer(c, SURF_ERROR, asked, payload, ERROR_HEAD + length);
}

static void welcome(struct ndx_plugin_stream *c, const struct surf_frame *asked)
{
	uint8_t payload[12];

	wire_put32(payload, SURF_FRAME_PAYLOAD);
	/* The limits of the session itself apply. */
	wire_put32(payload + 4, UINT32_MAX);
	wire_put32(payload + 8, UINT32_MAX);
	write_answer(c, SURF_WELCOME, asked, payload, sizeof(payload));
}

/* ---- operations ---- */

static enum ndx_status make_setup(const struct surf_order *o, struct surf_setup *setup, char *why,
                                  size_t room)
{
	uint32_t psn;
	enum ndx_status st = surf_setup_init(setup);

	if (st != NDX_OK || getrandom(&psn, sizeof(psn), 0) != (ssize_t)sizeof(psn)) {
		(void)snprintf(why, room, "the system gives no random numbers");
		return NDX_E_INTERNAL_ERROR;
	}
	setup->host_qpn = o->host_qpn;
	setup->rq_psn = o->host_psn;
	setup->sq_psn = psn & BITS_24;
	setup->mr_address = o->mr_address;
	setup->mr_length = o->mr_length;
	setup->pmtu = o->pmtu;
	setup->min_rnr_timer = o->min_rnr_timer;
	setup->timeout = o->timeout;
	setup->retry_count = o->retry_count;
	setup->rnr_retry = o->rnr_retry;
	setup->step_ms = (uint32_t)o->step_ms;
	return surf_setup_check(setup, why, room);
}

static enum ndx_status bring_up(struct ndx_plugin_stream *c, char *why, size_t room)
{
	const struct surf_order *o = &c->order;
	struct surf_setup setup;
	enum ndx_status st = make_setup(o, &setup, why, room);

	c->bus.base = (uint32_t)o->base;
	if (st == NDX_OK && o->udp_client != 0)
		st = surf_stream_aim(&c->bus, (uint32_t)o->udp_client, (uint32_t)o->host_ip, why,
		                     room);
	if (st == NDX_OK)
		st = surf_bring_up(&c->bus, &c->log, &setup, &c->made, why, room);
	if (st == NDX_OK)
		c->answer = (struct surf_answer){.qpn = c->made.qpn, .psn = setup.sq_psn};
	return st;
}

static enum ndx_status stream_on(struct ndx_plugin_stream *c, char *why, size_t room)
{
	const struct surf_stream stream = {.lkey = c->made.lkey,
	                                   .qpn = (uint32_t)c->order.host_qpn,
	                                   .wrap = (uint32_t)c->order.wrap};

	if (c->order.stream == 0)
		return NDX_OK;
	c->streams = true; /* also on failure: the write may have taken effect */
	return surf_stream_start(&c->bus, &stream, why, room);
}

static enum ndx_status stream_off(struct ndx_plugin_stream *c, char *why, size_t room)
{
	enum ndx_status st = NDX_OK;

	if (c->streams)
		st = surf_stream_stop(&c->bus, why, room);
	c->streams = c->streams && st != NDX_OK;
	return st;
}

static uint32_t smaller(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

/* Compute the agreement from the values that both ends use, not from the session's frame. */
static void validate(struct ndx_plugin_stream *c, const struct surf_frame *asked)
{
	uint8_t payload[SURF_VALIDATE_BYTES] = {0};

	wire_put32(payload, NDX_DESCRIPTION_VERBS_RC);
	wire_put32(payload + 4, 128u << c->order.pmtu);
	wire_put32(payload + 8, smaller(c->order.host_reads_out, SURF_READS));
	wire_put32(payload + 12, smaller(c->order.host_reads_in, SURF_READS));
	wire_put32(payload + 16, (uint32_t)c->answer.qpn);
	wire_put32(payload + 20, (uint32_t)c->answer.psn);
	wire_put32(payload + 32, (uint32_t)c->order.host_qpn);
	wire_put32(payload + 36, (uint32_t)c->order.host_psn);
	write_answer(c, SURF_VALIDATE, asked, payload, sizeof(payload));
}

static enum ndx_status take_data(struct ndx_plugin_stream *c, const struct surf_frame *asked,
                                 char *why, size_t room)
{
	uint8_t answer[SURF_ANSWER_BYTES];
	size_t length = 0;
	enum ndx_status st = NDX_OK;

	if (asked->round > 0)
		return NDX_OK; /* the variant's confirmation */
	switch (asked->stage) {
	case NDX_STAGE_INFO:
		if (asked->length != SURF_ORDER_BYTES || c->made.has_qp) {
			(void)snprintf(why, room, "the order is malformed or comes twice");
			return NDX_E_INTERNAL_ERROR;
		}
		surf_words_read(&c->order, asked->payload, SURF_ORDER_BYTES);
		st = bring_up(c, why, room);
		surf_words_write(answer, &c->answer, SURF_ANSWER_BYTES);
		length = sizeof(answer);
		break;
	case NDX_STAGE_READY:
		st = stream_on(c, why, room);
		break;
	default:
		st = stream_off(c, why, room);
		break;
	}
	if (st == NDX_OK)
		write_answer(c, SURF_DATA, asked, answer, length);
	return st;
}

/* NDX_E_CANCELED: no answer. */
static enum ndx_status act(struct ndx_plugin_stream *c, const struct surf_frame *asked)
{
	char why[TEXT] = "";
	enum ndx_status st = NDX_OK;

	if (asked->type == SURF_HELLO)
		welcome(c, asked);
	else if (asked->type == SURF_VALIDATE)
		validate(c, asked);
	else if (asked->type == SURF_DATA)
		st = take_data(c, asked, why, sizeof(why));
	if (st != NDX_OK && st != NDX_E_CANCELED)
		refuse(c, asked, st, why);
	return st == NDX_E_CANCELED ? st : NDX_OK;
}

/* Process the received frames until one has an answer. */
static enum ndx_status act_on_all(struct ndx_plugin_stream *c)
{
	struct surf_frame asked;
	enum ndx_status st = NDX_OK;

	while (st == NDX_OK && c->out_taken == c->out_length &&
	       surf_frame_parse(c->in, c->in_length, &asked)) {
		const size_t bytes = SURF_FRAME_HEADER + asked.length;

		st = act(c, &asked);
		c->in_length -= bytes;
		memmove(c->in, c->in + bytes, c->in_length);
	}
	return st;
}

/* ---- the transport ---- */

static enum ndx_status send_device(struct ndx_plugin_stream *c, const void *data, size_t length,
                                   uint32_t timeout_ms)
{
	(void)timeout_ms;
	if (surf_registers_cancelled(c->registers))
		return NDX_E_CANCELED;
	if (length > sizeof(c->in) - c->in_length)
		return NDX_E_BUFFER_OVERFLOW;
	memcpy(c->in + c->in_length, data, length);
	c->in_length += length;
	return NDX_OK;
}

static enum ndx_status receive_device(struct ndx_plugin_stream *c, void *data, size_t room,
                                      size_t *length, uint32_t timeout_ms)
{
	enum ndx_status st;
	char why[TEXT];
	size_t n;

	surf_registers_limit(c->registers, timeout_ms);
	st = act_on_all(c);
	/* No frame to answer: nothing will come, so wait for the whole time. */
	if (st == NDX_OK && c->out_taken == c->out_length)
		st = surf_bus_wait(&c->bus, (uint64_t)timeout_ms + 1, why, sizeof(why));
	if (st != NDX_OK)
		return st;
	n = c->out_length - c->out_taken;
	n = n < room ? n : room;
	memcpy(data, c->out + c->out_taken, n);
	c->out_taken += n;
	*length = n;
	return NDX_OK;
}

static void cancel_device(struct ndx_plugin_stream *c)
{
	surf_registers_cancel(c->registers);
}

static void close_device(struct ndx_plugin_stream *c)
{
	char why[TEXT];

	surf_registers_unlimited(c->registers);
	if (stream_off(c, why, sizeof(why)) != NDX_OK)
		line(c->log.to, NDX_LOG_WARN, why);
	if (c->made.has_qp)
		(void)surf_tear_down(&c->bus, &c->log, &c->made);
	surf_registers_close(c->registers);
	free(c);
}

const struct ndx_plugin_transport surf_device_transports[] = {
	{.name = "registers",
         .connect = connect_device,
         .send = send_device,
         .receive = receive_device,
         .cancel = cancel_device,
         .close = close_device},
	{.name = NULL},
};
