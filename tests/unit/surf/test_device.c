/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport, register by register over TCP, against an FPGA that has numbers and no data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec.h"
#include "device.h"
#include "plugin_wire.h"
#include "serve.h"
#include "setup.h"
#include "srp.h"
#include "stream.h"
#include "words.h"

#define STEPS 6u
#define HOST_QPN 0x11u
#define HOST_PSN 0x22u
#define LONG_MS 20000u

/* Behind every bring-up that fails there are so many requests. */
static const struct {
	const char *name;
	unsigned requests;
} steps[STEPS] = {
	{"PD alloc", 1},   {"MR alloc", 3},  {"QP create", 5},
	{"QP to INIT", 8}, {"QP to RTR", 9}, {"QP to RTS", 10},
};

/* One FPGA, one host. */
struct rig {
	struct serving serving;
	struct ndx_plugin_channel *channel;
	struct surf_order order;
	uint8_t bytes[SURF_FRAME_HEADER + SURF_FRAME_PAYLOAD];
	struct surf_frame heard;
	char text[256]; /* of an ERROR */
};

static const struct ndx_plugin_transport *const transport = &surf_device_transports[0];
static unsigned warnings;

static void count(const struct ndx_plugin_host *host, enum ndx_log_level level, const char *text)
{
	(void)host;
	(void)text;
	warnings += level == NDX_LOG_WARN;
}

static const struct ndx_plugin_host host = {.log = count};
static struct surf_plugin plugin = {.host = &host};

static void rig_begin(struct rig *r)
{
	char why[160];

	memset(r, 0, sizeof(*r));
	warnings = 0;
	assert_true(serving_begin(&r->serving));
	r->order = (struct surf_order){.host_qpn = HOST_QPN,
	                               .host_psn = HOST_PSN,
	                               .host_ip = 0x0a090001,
	                               .udp_client = SURF_FPGA_UDP,
	                               .host_reads_in = 3,
	                               .host_reads_out = 40,
	                               .mr_address = 0x7f0012345000,
	                               .mr_length = 0x230000,
	                               .pmtu = 3,
	                               .min_rnr_timer = 12,
	                               .timeout = 14,
	                               .retry_count = 3,
	                               .rnr_retry = 7,
	                               .step_ms = 5000,
	                               .wrap = 256,
	                               .stream = 1};
	assert_int_equal(transport->connect(&plugin, r->serving.address, LONG_MS, &r->channel, why,
	                                    sizeof(why)),
	                 NDX_OK);
}

/* The host goes; what it left behind has to be none. */
static void hang_up(struct rig *r)
{
	transport->close(r->channel);
	r->channel = NULL;
	serving_end(&r->serving);
}

static void assert_fpga_is_empty(const struct rig *r)
{
	assert_false(r->serving.fpga.pd.used);
	assert_false(r->serving.fpga.qp.used);
	assert_false(r->serving.fpga.stream.on);
	for (unsigned i = 0; i < SURF_FPGA_MRS; i++)
		assert_false(r->serving.fpga.mr[i].used);
}

static void say(struct rig *r, uint8_t type, uint8_t stage, uint32_t round, const void *payload,
                size_t length)
{
	const struct surf_frame f = {.type = type,
	                             .stage = stage,
	                             .round = round,
	                             .length = (uint32_t)length,
	                             .payload = payload};
	const size_t bytes = surf_frame_write(r->bytes, &f);

	serve_in_turn();
	assert_int_equal(transport->send(r->channel, r->bytes, bytes, LONG_MS), NDX_OK);
}

static enum ndx_status hear_within(struct rig *r, uint32_t timeout_ms)
{
	size_t used = 0;
	size_t n;
	enum ndx_status st = NDX_OK;

	/* In pieces, as a stream may come: a part of the header, then of the payload. */
	while (st == NDX_OK && !surf_frame_parse(r->bytes, used, &r->heard)) {
		st = transport->receive(r->channel, r->bytes + used,
		                        used == 0 ? 7 : SURF_FRAME_HEADER, &n, timeout_ms);
		used += st == NDX_OK ? n : 0;
	}
	serve_in_turn();
	if (st == NDX_OK && r->heard.type == SURF_ERROR) {
		assert_int_equal(r->heard.payload[0], 2);
		(void)snprintf(r->text, sizeof(r->text), "%.*s", (int)r->heard.length - 8,
		               (const char *)r->heard.payload + 8);
	}
	return st;
}

static void hear(struct rig *r, uint8_t type)
{
	assert_int_equal(hear_within(r, LONG_MS), NDX_OK);
	if (r->heard.type != type)
		fail_msg("%u came, not %u: %s", r->heard.type, type, r->text);
}

static void say_order(struct rig *r)
{
	uint8_t order[SURF_ORDER_BYTES];

	surf_words_write(order, &r->order, sizeof(order));
	say(r, SURF_DATA, NDX_STAGE_INFO, 0, order, sizeof(order));
}

/* Up to RTS. */
static void bring_up(struct rig *r, struct surf_answer *answer)
{
	rig_begin(r);
	say(r, SURF_HELLO, 0, 0, NULL, 0);
	hear(r, SURF_WELCOME);
	say_order(r);
	hear(r, SURF_DATA);
	assert_int_equal(r->heard.flags, SURF_FRAME_COMPLETED);
	assert_int_equal(r->heard.length, SURF_ANSWER_BYTES);
	surf_words_read(answer, r->heard.payload, SURF_ANSWER_BYTES);
	say(r, SURF_DATA, NDX_STAGE_INFO, 1, NULL, 0);
}

static void a_session_from_hello_to_bye(void **state)
{
	struct surf_answer answer;
	struct rig r;

	(void)state;
	bring_up(&r, &answer);
	assert_int_equal(answer.qpn, r.serving.fpga.qp.qpn);
	assert_int_equal(answer.psn, r.serving.fpga.qp.attributes.sq_psn);
	assert_int_equal(r.serving.fpga.qp.attributes.rq_psn, HOST_PSN);
	assert_int_equal(r.serving.fpga.qp.attributes.dest_qpn, HOST_QPN);
	assert_int_equal(r.serving.fpga.udp.port, 0xb712);
	assert_int_equal(r.serving.fpga.udp.ip, 0x0100090a);
	say(&r, SURF_VALIDATE, NDX_STAGE_VALIDATE, 0, "", 0);
	hear(&r, SURF_VALIDATE);
	assert_int_equal(wire_get32(r.heard.payload), NDX_DESCRIPTION_VERBS_RC);
	assert_int_equal(wire_get32(r.heard.payload + 4), 1024);
	assert_int_equal(wire_get32(r.heard.payload + 8), 16);
	assert_int_equal(wire_get32(r.heard.payload + 12), 3);
	assert_int_equal(wire_get32(r.heard.payload + 16), answer.qpn);
	assert_int_equal(wire_get32(r.heard.payload + 20), answer.psn);
	assert_int_equal(wire_get32(r.heard.payload + 32), HOST_QPN);
	assert_int_equal(wire_get32(r.heard.payload + 36), HOST_PSN);
	assert_false(r.serving.fpga.stream.on);
	say(&r, SURF_DATA, NDX_STAGE_READY, 0, NULL, 0);
	hear(&r, SURF_DATA);
	assert_true(r.serving.fpga.stream.on);
	assert_int_equal(r.serving.fpga.stream.lkey, r.serving.fpga.mr[0].lkey);
	assert_int_equal(r.serving.fpga.stream.qpn, HOST_QPN);
	assert_int_equal(r.serving.fpga.stream.wrap, 256);
	assert_int_equal(r.serving.fpga.stream.cleared, 1);
	say(&r, SURF_DATA, NDX_STAGE_DONE, 0, NULL, 0);
	hear(&r, SURF_DATA);
	assert_false(r.serving.fpga.stream.on);
	say(&r, SURF_BYE, 0, 0, NULL, 0);
	hang_up(&r);
	assert_int_equal(r.serving.fpga.requests, STEPS + 4);
	assert_int_equal(r.serving.fpga.resets, 1);
	assert_int_equal(warnings, 0);
	assert_fpga_is_empty(&r);
}

static void whoever_hangs_up_leaves_nothing(void **state)
{
	struct surf_answer answer;
	struct rig r;

	(void)state;
	bring_up(&r, &answer);
	say(&r, SURF_DATA, NDX_STAGE_READY, 0, NULL, 0);
	hear(&r, SURF_DATA);
	assert_true(r.serving.fpga.stream.on);
	hang_up(&r);
	assert_int_equal(r.serving.fpga.requests, STEPS + 4);
	/* Nothing was under way when the queue pair went. */
	assert_int_equal(r.serving.fpga.stream.cut, 0);
	assert_fpga_is_empty(&r);
	rig_begin(&r);
	hang_up(&r);
	assert_int_equal(r.serving.fpga.accesses, 0);
}

static void without_a_stream_the_dispatcher_is_left_alone(void **state)
{
	struct surf_answer answer;
	struct rig r;

	(void)state;
	bring_up(&r, &answer);
	r.order.stream = 0;
	hang_up(&r);
	rig_begin(&r);
	r.order.stream = 0;
	r.order.udp_client = 0;
	say_order(&r);
	hear(&r, SURF_DATA);
	say(&r, SURF_DATA, NDX_STAGE_READY, 0, NULL, 0);
	hear(&r, SURF_DATA);
	hang_up(&r);
	assert_int_equal(r.serving.fpga.stream.cleared, 0);
	assert_int_equal(r.serving.fpga.udp.port, 0);
	assert_fpga_is_empty(&r);
}

static void fail_step(unsigned step, enum surf_fault fault)
{
	struct rig r;

	rig_begin(&r);
	r.serving.fpga.faults[step] = fault;
	say_order(&r);
	hear(&r, SURF_ERROR);
	if (strstr(r.text, steps[step].name) == NULL)
		fail_msg("\"%s\" does not name %s", r.text, steps[step].name);
	assert_int_equal(r.serving.fpga.requests, steps[step].requests);
	hang_up(&r);
	assert_int_equal(r.serving.fpga.requests, steps[step].requests);
	assert_int_equal(r.serving.fpga.resets, 1);
	assert_fpga_is_empty(&r);
}

static void a_step_that_fails_takes_back_those_before(void **state)
{
	(void)state;
	for (unsigned step = 0; step < STEPS; step++)
		fail_step(step, SURF_FAULT_REFUSE);
	for (unsigned step = 3; step < STEPS; step++)
		fail_step(step, SURF_FAULT_LIE);
}

static void a_stuck_fpga_is_told_of_in_time(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.serving.fpga.faults[4] = SURF_FAULT_WEDGE;
	r.order.step_ms = 100;
	say_order(&r);
	hear(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "QP to RTR: the FPGA has not answered within 100 ms"));
	assert_non_null(strstr(r.text, "register 0xf00"));
	assert_non_null(strstr(r.text, "soft reset"));
	assert_int_equal(r.serving.fpga.requests + r.serving.fpga.lost, 9);
	hang_up(&r);
	assert_int_equal(r.serving.fpga.resets, 2);
	assert_int_equal(warnings, 5);
	assert_fpga_is_empty(&r);
}

static void the_time_of_the_stage_is_kept(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.serving.fpga.faults[2] = SURF_FAULT_MUTE;
	say_order(&r);
	/* Less than one step has. Where it ends depends on the machine; the clean-up has time of
	 * its own. */
	assert_int_equal(hear_within(&r, 700), NDX_OK);
	assert_int_equal(r.heard.type, SURF_ERROR);
	assert_non_null(strstr(r.text, "no time is left"));
	assert_non_null(strstr(r.text, "register 0x"));
	hang_up(&r);
	assert_fpga_is_empty(&r);
}

static void *cancel_main(void *arg)
{
	struct rig *r = arg;

	/* Until it waits for the answer that never comes. */
	while (__atomic_load_n(&r->serving.fpga.requests, __ATOMIC_RELAXED) < 3)
		(void)poll(NULL, 0, 1);
	transport->cancel(r->channel);
	return NULL;
}

static void a_cancel_ends_the_wait_and_cleans_up(void **state)
{
	pthread_t thread;
	uint8_t byte = 0;
	size_t n;
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.serving.fpga.faults[2] = SURF_FAULT_MUTE;
	say_order(&r);
	assert_int_equal(pthread_create(&thread, NULL, cancel_main, &r), 0);
	assert_int_equal(hear_within(&r, LONG_MS), NDX_E_CANCELED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(transport->send(r.channel, &byte, 1, LONG_MS), NDX_E_CANCELED);
	assert_int_equal(transport->receive(r.channel, &byte, 1, &n, LONG_MS), NDX_E_CANCELED);
	hang_up(&r);
	assert_int_equal(r.serving.fpga.requests, 5);
	assert_fpga_is_empty(&r);
}

/* A session that is cancelled while the FPGA streams leaves it as any other does. */
static void a_cancel_keeps_no_close_from_its_work(void **state)
{
	struct surf_answer answer;
	struct rig r;

	(void)state;
	bring_up(&r, &answer);
	say(&r, SURF_DATA, NDX_STAGE_READY, 0, NULL, 0);
	hear(&r, SURF_DATA);
	transport->cancel(r.channel);
	hang_up(&r);
	assert_int_equal(r.serving.fpga.requests, STEPS + 4);
	assert_int_equal(r.serving.fpga.stream.cut, 0);
	assert_int_equal(warnings, 0);
	assert_fpga_is_empty(&r);
}

static void an_order_is_whole_and_comes_once(void **state)
{
	const uint8_t bytes[SURF_ORDER_BYTES - 1] = {0};
	struct surf_answer answer;
	struct rig r;

	(void)state;
	rig_begin(&r);
	say(&r, SURF_DATA, NDX_STAGE_INFO, 0, bytes, sizeof(bytes));
	hear(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "the order is malformed"));
	assert_int_equal(r.serving.fpga.accesses, 0);
	hang_up(&r);
	bring_up(&r, &answer);
	say_order(&r);
	hear(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "comes twice"));
	assert_int_equal(r.serving.fpga.requests, STEPS);
	hang_up(&r);
	assert_fpga_is_empty(&r);
}

static void what_is_sent_has_its_room_and_what_is_heard_its_time(void **state)
{
	uint8_t bytes[SURF_FRAME_HEADER + SURF_FRAME_PAYLOAD + 1] = {0};
	struct rig r;
	size_t n;

	(void)state;
	rig_begin(&r);
	assert_int_equal(transport->receive(r.channel, bytes, 1, &n, 20), NDX_E_IO_TIMEOUT);
	assert_int_equal(transport->send(r.channel, bytes, 1, LONG_MS), NDX_OK);
	assert_int_equal(transport->send(r.channel, bytes, sizeof(bytes) - 1, LONG_MS),
	                 NDX_E_BUFFER_OVERFLOW);
	hang_up(&r);
}

static void what_is_out_of_range_touches_no_register(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.order.mr_length = UINT64_C(1) << 32;
	say_order(&r);
	hear(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "mr_length"));
	assert_int_equal(r.serving.fpga.accesses, 0);
	hang_up(&r);
}

static void a_bus_that_goes_away_is_named_with_its_register(void **state)
{
	struct surf_answer answer;
	struct rig r;

	(void)state;
	bring_up(&r, &answer);
	serving_end(&r.serving);
	say(&r, SURF_DATA, NDX_STAGE_READY, 0, NULL, 0);
	hear(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "dispatch on: register 0x200c cannot be written: "));
	hang_up(&r);
	/* The dispatcher, the four steps and the soft reset: each has its line. */
	assert_in_range(warnings, 6, 7);
}

static void an_address_without_registers_is_told_of(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.order.base = 0x100000;
	r.order.udp_client = 0;
	say_order(&r);
	hear(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "register 0x100f50 cannot be written"));
	assert_non_null(strstr(r.text, "is the base address right?"));
	hang_up(&r);
}

/* Here a word of the third request: what the first two made is taken back over the same bus. */
static void an_access_that_is_refused_fails_alone(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	r.serving.fpga.fail_write = 37;
	r.serving.fpga.error = NDX_E_INVALID_PARAMETER;
	say_order(&r);
	hear(&r, SURF_ERROR);
	assert_non_null(strstr(r.text, "QP create: register 0xf"));
	assert_non_null(strstr(r.text, "cannot be written: the FPGA's register bus tells of an"));
	hang_up(&r);
	assert_int_equal(r.serving.fpga.requests, 4);
	assert_int_equal(r.serving.fpga.resets, 1);
	assert_int_equal(warnings, 0);
	assert_fpga_is_empty(&r);
}

/* ---- a bus that is none of the emulated FPGA's ---- */

enum manner {
	BABBLES,   /* says what no request asks for */
	IS_DEAF,   /* says nothing */
	HOLDS,     /* the first word of a request: until the time of the stage is over */
	IS_CALLED, /* off by the session, at the same word */
};

#define HELD_MS 400u

struct strange {
	enum manner manner;
	int listener;
	struct ndx_plugin_channel *channel; /* its client's */
	pthread_t thread;
	unsigned heard;    /* requests */
	unsigned accesses; /* behind the one that was held */
	bool held;
};

/* Everything is answered, and ready at once: nothing gives cause to wait. The FPGA says no. */
static void answer_one(struct strange *s, int fd, const struct srp_request *asked)
{
	uint8_t bytes[SRP_RESPONSE_BYTES];
	const bool first = asked->address == SURF_REG_REQUEST && !s->held;

	s->heard++;
	if (s->manner == IS_DEAF)
		return;
	s->accesses += s->held;
	s->held = s->held || first;
	if (first && s->manner == HOLDS)
		(void)poll(NULL, 0, (int)HELD_MS);
	if (first && s->manner == IS_CALLED)
		transport->cancel(s->channel);
	srp_response_write(bytes, asked, s->accesses % 2 == 0 ? SURF_CONTROL_READY : 0, 0);
	(void)send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
}

static bool take_one(struct strange *s, int fd)
{
	uint8_t bytes[SRP_WRITE_BYTES];
	struct srp_request asked;
	size_t length;

	if (recv(fd, bytes, SRP_READ_BYTES, MSG_WAITALL) != (ssize_t)SRP_READ_BYTES)
		return false;
	length = srp_request_length(bytes) - SRP_READ_BYTES;
	if (length > 0 && recv(fd, bytes + SRP_READ_BYTES, length, MSG_WAITALL) != (ssize_t)length)
		return false;
	srp_request_parse(bytes, &asked);
	serve_in_turn();
	answer_one(s, fd, &asked);
	return true;
}

static void *strange_main(void *arg)
{
	struct strange *s = arg;
	uint8_t rubbish[SRP_RESPONSE_BYTES];
	const int fd = accept(s->listener, NULL, NULL);

	memset(rubbish, 0xa5, sizeof(rubbish));
	if (s->manner == BABBLES)
		(void)send(fd, rubbish, sizeof(rubbish), MSG_NOSIGNAL);
	while (take_one(s, fd))
		;
	(void)close(fd);
	return NULL;
}

/* What the session hears when it has given its order. */
static enum ndx_status visit(struct strange *s, enum manner manner, struct rig *r)
{
	uint16_t port = 0;
	enum ndx_status st;
	char address[32];
	char why[160];

	rig_begin(r);
	hang_up(r);
	r->order.udp_client = 0;
	*s = (struct strange){.manner = manner, .listener = serve_listen(&port)};
	assert_true(s->listener >= 0);
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	assert_int_equal(
		transport->connect(&plugin, address, LONG_MS, &r->channel, why, sizeof(why)),
		NDX_OK);
	s->channel = r->channel;
	assert_int_equal(pthread_create(&s->thread, NULL, strange_main, s), 0);
	say_order(r);
	st = hear_within(r, manner == HOLDS ? HELD_MS : LONG_MS);
	transport->close(r->channel);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	(void)close(s->listener);
	return st;
}

static void a_bus_that_talks_nonsense_is_told_of(void **state)
{
	struct strange s;
	struct rig r;

	(void)state;
	assert_int_equal(visit(&s, BABBLES, &r), NDX_OK);
	assert_non_null(strstr(r.text, "it is no answer in SRPv3"));
	assert_int_equal(s.heard, 1);
}

/* It costs the time of one access, not of each that a bring-up and a clean-up have. */
static void a_bus_that_is_deaf_is_asked_once(void **state)
{
	struct strange s;
	struct rig r;

	(void)state;
	assert_int_equal(visit(&s, IS_DEAF, &r), NDX_OK);
	assert_non_null(strstr(r.text, "does not answer: is the FPGA on"));
	assert_int_equal(s.heard, 1);
}

/* With a bus that is slow and an FPGA that is not, accesses are all that takes time. */
static void accesses_keep_the_time_of_the_stage(void **state)
{
	struct strange s;
	struct rig r;

	(void)state;
	assert_int_equal(visit(&s, HOLDS, &r), NDX_OK);
	assert_non_null(strstr(r.text, "no time is left"));
	assert_int_equal(s.accesses, 0);
}

static void a_cancel_lets_no_other_access_begin(void **state)
{
	struct strange s;
	struct rig r;

	(void)state;
	assert_int_equal(visit(&s, IS_CALLED, &r), NDX_E_CANCELED);
	assert_int_equal(s.accesses, 0);
}

static void nobody_there_is_told_of(void **state)
{
	static const char *const bad[] = {"",
	                                  ":",
	                                  "host",
	                                  "127.0.0.1:",
	                                  ":80",
	                                  "[:80",
	                                  "[]:80",
	                                  "::1:80",
	                                  "127.0.0.1:0",
	                                  "127.0.0.1:65536",
	                                  "127.0.0.1:http",
	                                  "[::1:80"};
	struct ndx_plugin_channel *channel = NULL;
	uint16_t port = 0;
	char address[32];
	char why[160];
	const int fd = serve_listen(&port);

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	assert_int_equal(transport->connect(&plugin, address, LONG_MS, &channel, why, sizeof(why)),
	                 NDX_E_CONNECTION_REFUSED);
	assert_non_null(strstr(why, "the register bus cannot be reached: "));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(
			transport->connect(&plugin, bad[i], LONG_MS, &channel, why, sizeof(why)),
			NDX_E_INVALID_ADDRESS);
		assert_non_null(strstr(why, "HOST:PORT"));
	}
	assert_null(channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_from_hello_to_bye),
		cmocka_unit_test(whoever_hangs_up_leaves_nothing),
		cmocka_unit_test(without_a_stream_the_dispatcher_is_left_alone),
		cmocka_unit_test(a_step_that_fails_takes_back_those_before),
		cmocka_unit_test(a_stuck_fpga_is_told_of_in_time),
		cmocka_unit_test(the_time_of_the_stage_is_kept),
		cmocka_unit_test(a_cancel_ends_the_wait_and_cleans_up),
		cmocka_unit_test(a_cancel_keeps_no_close_from_its_work),
		cmocka_unit_test(an_order_is_whole_and_comes_once),
		cmocka_unit_test(what_is_sent_has_its_room_and_what_is_heard_its_time),
		cmocka_unit_test(what_is_out_of_range_touches_no_register),
		cmocka_unit_test(a_bus_that_goes_away_is_named_with_its_register),
		cmocka_unit_test(an_address_without_registers_is_told_of),
		cmocka_unit_test(an_access_that_is_refused_fails_alone),
		cmocka_unit_test(a_bus_that_talks_nonsense_is_told_of),
		cmocka_unit_test(a_bus_that_is_deaf_is_asked_once),
		cmocka_unit_test(accesses_keep_the_time_of_the_stage),
		cmocka_unit_test(a_cancel_lets_no_other_access_begin),
		cmocka_unit_test(nobody_there_is_told_of),
	};

	return cmocka_run_group_tests_name("the FPGA in a session", tests, NULL, NULL);
}
