/* SPDX-License-Identifier: BSD-2-Clause */
#include "control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample_clock.h"

#define SLOTS 4u /* of each direction */

static struct ndx_sge slot(const struct control *control, unsigned index, size_t length)
{
	struct ndx_sge sge = {
		.buffer = control->memory + (size_t)index * WIRE_FRAME,
		.length = (uint32_t)length,
		.token = ndx_mr_get_local_token(control->mr),
	};

	return sge;
}

static enum ndx_status post_receive(struct control *control, unsigned index)
{
	struct ndx_sge sge = slot(control, index, WIRE_FRAME);

	return ndx_qp_receive(control->qp, control->memory + (size_t)index * WIRE_FRAME, &sge, 1);
}

enum ndx_status control_make(struct control *control, struct ndx_adapter *adapter,
                             uint32_t keepalive_ms)
{
	const size_t length = (size_t)2 * SLOTS * WIRE_FRAME;
	struct ndx_qp_attr attr;
	enum ndx_status st;

	control->memory = calloc(1, length);
	if (control->memory == NULL)
		return NDX_E_NO_MEMORY;
	st = ndx_mr_register_new(adapter, control->memory, length, NDX_MR_ALLOW_LOCAL_WRITE,
	                         &control->mr);
	if (st == NDX_OK)
		st = ndx_cq_create_depth(adapter, 2 * SLOTS, &control->cq);
	if (st != NDX_OK)
		return st;
	ndx_qp_attr_init(&attr);
	attr.receive_cq = attr.initiator_cq = control->cq;
	attr.receive_depth = attr.initiator_depth = SLOTS;
	attr.keepalive_ms = keepalive_ms;
	st = ndx_qp_create(adapter, &attr, &control->qp);
	for (unsigned i = 0; i < SLOTS && st == NDX_OK; i++)
		st = post_receive(control, i);
	return st;
}

void control_drop(struct control *control, uint32_t timeout_ms)
{
	if (control->connector != NULL && timeout_ms > 0)
		(void)ndx_disconnect(control->connector, timeout_ms);
	ndx_connector_close(control->connector);
	ndx_qp_close(control->qp);
	ndx_mr_close(control->mr);
	ndx_cq_close(control->cq);
	free(control->memory);
	memset(control, 0, sizeof(*control));
}

enum ndx_status control_send(struct control *control, const struct wire_frame *frame)
{
	const unsigned index = SLOTS + control->turn++ % SLOTS;
	const size_t length = wire_put_frame(control->memory + (size_t)index * WIRE_FRAME, frame);
	struct ndx_sge sge = slot(control, index, length);

	return ndx_qp_send(control->qp, NULL, &sge, 1, 0);
}

/* Evaluate one result; CONTROL_NOTHING: that of a send. */
static enum control_got evaluate(struct control *control, const struct ndx_result *result,
                                 struct wire_frame *frame)
{
	const uint8_t *bytes = result->request_context;
	enum control_got got = CONTROL_MALFORMED;

	if (result->status != NDX_OK)
		return CONTROL_ENDED;
	if (result->request_type != NDX_REQUEST_RECEIVE)
		return CONTROL_NOTHING;
	if (wire_get_frame(bytes, result->bytes_transferred, frame))
		got = CONTROL_FRAME;
	if (post_receive(control, (unsigned)((size_t)(bytes - control->memory) / WIRE_FRAME)) !=
	    NDX_OK)
		return CONTROL_ENDED;
	return got;
}

enum control_got control_take(struct control *control, uint32_t timeout_ms,
                              struct wire_frame *frame)
{
	const uint64_t end = sample_now_ns() + timeout_ms * UINT64_C(1000000);

	for (;;) {
		struct ndx_result result;
		enum ndx_status st = NDX_OK;
		enum control_got got;
		size_t n = ndx_cq_get_results(control->cq, &result, 1);

		if (n == 0) {
			const uint64_t now = sample_now_ns();

			if (now >= end)
				return CONTROL_NOTHING;
			st = ndx_cq_wait_results(control->cq, &result, 1,
			                         (uint32_t)((end - now) / 1000000 + 1), &n);
		}
		if (st != NDX_OK && st != NDX_PENDING)
			return CONTROL_ENDED;
		got = n > 0 ? evaluate(control, &result, frame) : CONTROL_NOTHING;
		if (got != CONTROL_NOTHING)
			return got;
	}
}

const char *control_why(struct control *control, char *text, size_t room)
{
	size_t length = room;

	if (control->connector == NULL ||
	    ndx_connector_get_error_text(control->connector, text, &length) != NDX_OK ||
	    text[0] == '\0')
		(void)snprintf(text, room, "the connection has ended");
	return text;
}
