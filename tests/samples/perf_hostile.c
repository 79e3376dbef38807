/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of ndx-perf's server that does not keep to the protocol. usage: perf-hostile URI
 * HOST:PORT. Exit status 0: the server refused or ended every connection, and lives.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/ndx.h>

#include "control.h"
#include "sample_address.h"
#include "sample_latency.h"

#define TIMEOUT_MS 5000u
#define TRIES 50u

static struct ndx_adapter *adapter;
static struct sample_address server;
static unsigned faults;

static void fault(const char *what)
{
	fprintf(stderr, "perf-hostile: %s\n", what);
	faults++;
}

/* Connect with this private data; the status of the connect. */
static enum ndx_status connect_with(struct control *control, const void *bytes, size_t length)
{
	enum ndx_status st = control_make(control, adapter, 0);

	if (st == NDX_OK)
		st = ndx_connect_to(adapter, control->qp, (const struct sockaddr *)&server.storage,
		                    server.length, bytes, length, TIMEOUT_MS, &control->connector);
	return st;
}

/* A connection as a client's; the server may still be busy with the one before. */
static bool become_client(struct control *control)
{
	const struct wire_hello_data hello = {.kind = WIRE_CONTROL};
	uint8_t bytes[WIRE_HELLO];

	wire_put_hello(bytes, &hello);
	for (unsigned i = 0; i < TRIES; i++) {
		struct control idle = {0};
		struct wire_frame frame;

		if (connect_with(control, bytes, sizeof(bytes)) == NDX_OK)
			return true;
		control_drop(control, 0);
		/* Nothing comes here: it only takes its time. */
		if (control_make(&idle, adapter, 0) == NDX_OK)
			(void)control_take(&idle, 100, &frame);
		control_drop(&idle, 0);
	}
	fault("the server takes no client any more");
	return false;
}

/* Private data of any length, and of any content. */
static void bad_hellos(void)
{
	struct wire_hello_data data = {.kind = WIRE_DATA, .session = 1, .index = 0xffffffff};
	uint8_t bytes[WIRE_HELLO];

	for (size_t length = 0; length <= WIRE_HELLO; length++) {
		struct control control = {0};

		wire_put_hello(bytes, &data); /* of no session */
		if (length < WIRE_HELLO && length > 0)
			bytes[length - 1] ^= 0x55;
		if (connect_with(&control, bytes, length) == NDX_OK)
			fault("the server accepts a connection without a valid hello");
		control_drop(&control, 0);
	}
}

/* Send these bytes on a control connection: the server must end it. */
static void bad_message(const uint8_t *bytes, size_t length, const char *what)
{
	struct control control = {0};
	struct wire_frame frame;
	struct ndx_sge sge;
	enum control_got got;

	if (!become_client(&control))
		return;
	memcpy(control.memory + (size_t)7 * WIRE_FRAME, bytes, length);
	sge = (struct ndx_sge){control.memory + (size_t)7 * WIRE_FRAME, (uint32_t)length,
	                       ndx_mr_get_local_token(control.mr)};
	if (ndx_qp_send(control.qp, NULL, &sge, 1, 0) != NDX_OK)
		fault("a send cannot be posted");
	do
		got = control_take(&control, TIMEOUT_MS, &frame);
	while (got == CONTROL_FRAME && frame.type != WIRE_REFUSED);
	if (got != CONTROL_ENDED && got != CONTROL_FRAME)
		fault(what);
	control_drop(&control, 500);
}

static void bad_frames(void)
{
	const struct wire_frame good = {
		.type = WIRE_TEST,
		.test = {.size = 64, .depth = 1, .qps = 1, .threads = 1, .seconds = 1}};
	static const enum wire_type early[] = {WIRE_GO, WIRE_STOP, WIRE_GOING, WIRE_RESULT,
	                                       WIRE_READY};
	uint8_t bytes[WIRE_FRAME];
	size_t whole;

	memset(bytes, 0, sizeof(bytes));
	whole = wire_put_frame(bytes, &good);
	for (size_t length = 0; length <= whole + 16; length += 4) {
		if (length != whole)
			bad_message(bytes, length, "a frame of a wrong length is answered");
	}
	bad_message(bytes, WIRE_FRAME, "a frame with rubbish behind it is answered");
	for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++) {
		const struct wire_frame frame = {.type = early[i]};
		const size_t length = wire_put_frame(bytes, &frame);

		bad_message(bytes, length, "a frame out of turn is answered");
	}
}

/* Parameters that no server can have. */
static void bad_tests(void)
{
	static const struct perf_test tests[] = {
		{.size = 0, .depth = 1, .qps = 1, .threads = 1},
		{.size = 64, .depth = 0, .qps = 1, .threads = 1},
		{.size = 64, .depth = 1, .qps = 0, .threads = 1},
		{.size = 64, .depth = 1, .qps = 1, .threads = 0},
		{.size = 64, .depth = 1, .qps = 1, .threads = 2},
		{.size = UINT32_MAX, .depth = UINT32_MAX, .qps = UINT32_MAX, .threads = UINT32_MAX},
		{.size = UINT32_MAX, .depth = 1, .qps = 1, .threads = 1},
		{.size = 1u << 30, .depth = 1, .qps = 256, .threads = 1},
		{.size = 64, .depth = UINT32_MAX, .qps = 1, .threads = 1},
		{.size = 64, .depth = 1, .qps = UINT32_MAX, .threads = 1},
		{.op = PERF_WRITE, .wait = true, .size = 64, .depth = 1, .qps = 1, .threads = 1},
	};
	uint8_t bytes[WIRE_FRAME];

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		const struct wire_frame frame = {.type = WIRE_TEST, .test = tests[i]};
		const size_t length = wire_put_frame(bytes, &frame);

		bad_message(bytes, length, "an impossible test is not refused");
	}
	{
		/* A test whose queue pairs never come: GO must end it. */
		const struct wire_frame test = {
			.type = WIRE_TEST,
			.test = {.size = 64, .depth = 1, .qps = 4, .threads = 1, .seconds = 1}};
		const struct wire_frame go = {.type = WIRE_GO};
		struct control control = {0};
		struct wire_frame frame;

		if (!become_client(&control))
			return;
		if (control_send(&control, &test) != NDX_OK ||
		    control_take(&control, TIMEOUT_MS, &frame) != CONTROL_FRAME ||
		    frame.type != WIRE_READY)
			fault("a valid test is not answered");
		if (control_send(&control, &go) != NDX_OK ||
		    control_take(&control, TIMEOUT_MS, &frame) != CONTROL_ENDED)
			fault("GO without queue pairs is answered");
		control_drop(&control, 500);
	}
}

int main(int argc, char **argv)
{
	const char *why;

	if (argc != 3 || !sample_address_parse(argv[2], &server, &why)) {
		fprintf(stderr, "usage: perf-hostile URI HOST:PORT\n");
		return 2;
	}
	if (ndx_adapter_open(argv[1], &adapter) != NDX_OK) {
		fprintf(stderr, "perf-hostile: %s\n", ndx_last_error());
		return 3;
	}
	bad_hellos();
	bad_frames();
	bad_tests();
	ndx_adapter_close(adapter);
	return faults == 0 ? 0 : 1;
}
