/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport and a register bus that is none of the emulated FPGA's, or none at all. */
#include "rig.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "closed_port.h"
#include "srp.h"

enum manner {
	BABBLES,   /* says what no request asks for */
	HOLDS,     /* the first word of a request: until the time of the stage is over */
	IS_CALLED, /* off by the session, at the same word */
};

#define HELD_MS 400u

struct strange {
	enum manner manner;
	int listener;
	struct ndx_plugin_stream *stream; /* its client's */
	pthread_t thread;
	unsigned accesses; /* behind the one that was held */
	bool held;
};

/* Everything is answered, and ready at once: nothing gives cause to wait. The FPGA says no. */
static void answer_one(struct strange *s, int fd, const struct srp_request *asked)
{
	uint8_t bytes[SRP_RESPONSE_BYTES];
	const bool first = asked->address == SURF_REG_REQUEST && !s->held;

	s->accesses += s->held;
	s->held = s->held || first;
	if (first && s->manner == HOLDS)
		(void)poll(NULL, 0, (int)HELD_MS);
	if (first && s->manner == IS_CALLED)
		rig_transport->cancel(s->stream);
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
	rig_end(r);
	r->order.udp_client = 0;
	*s = (struct strange){.manner = manner, .listener = serve_listen(&port)};
	assert_true(s->listener >= 0);
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	assert_int_equal(rig_transport->connect(&rig_plugin, address, RIG_LONG_MS, &r->stream, why,
	                                        sizeof(why)),
	                 NDX_OK);
	s->stream = r->stream;
	assert_int_equal(pthread_create(&s->thread, NULL, strange_main, s), 0);
	rig_send_order(r);
	st = rig_receive_within(r, manner == HOLDS ? HELD_MS : RIG_LONG_MS);
	rig_transport->close(r->stream);
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	(void)close(s->listener);
	return st;
}

static void a_bus_that_talks_nonsense_is_reported(void **state)
{
	struct strange s;
	struct rig r;

	(void)state;
	assert_int_equal(visit(&s, BABBLES, &r), NDX_OK);
	assert_non_null(strstr(r.text, "it is no answer in SRPv3"));
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

static void a_missing_server_is_reported(void **state)
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
	struct ndx_plugin_stream *stream = NULL;
	char address[CLOSED_PORT_TEXT];
	char why[160];
	const int fd = closed_port(address);

	(void)state;
	assert_int_equal(rig_transport->connect(&rig_plugin, address, RIG_LONG_MS, &stream, why,
	                                        sizeof(why)),
	                 NDX_E_CONNECTION_REFUSED);
	assert_non_null(strstr(why, "the register bus cannot be reached: "));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(rig_transport->connect(&rig_plugin, bad[i], RIG_LONG_MS, &stream,
		                                        why, sizeof(why)),
		                 NDX_E_INVALID_ADDRESS);
		assert_non_null(strstr(why, "HOST:PORT"));
	}
	assert_null(stream);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bus_that_talks_nonsense_is_reported),
		cmocka_unit_test(accesses_keep_the_time_of_the_stage),
		cmocka_unit_test(a_cancel_lets_no_other_access_begin),
		cmocka_unit_test(a_missing_server_is_reported),
	};

	return cmocka_run_group_tests_name("register buses that are none", tests, NULL, NULL);
}
