/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of several queue pairs with peers that speak otherwise. */
#include "many_rig.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* Read a frame; false: the end. */
static bool next(int fd, uint8_t bytes[FRAME_HEADER + MESSAGE], struct frame *f)
{
	const char *why = NULL;
	size_t used = FRAME_HEADER;
	size_t have = 0;
	ssize_t n = 1;

	while (n > 0) {
		const enum frame_verdict v = frame_parse(bytes, have, MESSAGE, f, &used, &why);

		if (v == FRAME_BAD)
			fail_msg("%s", why);
		if (v == FRAME_WHOLE)
			return true;
		n = recv(fd, bytes + have, used - have, 0);
		have += n > 0 ? (size_t)n : 0;
	}
	return false;
}

static void send_frame(int fd, const struct frame *f, const void *payload)
{
	uint8_t bytes[FRAME_HEADER + MESSAGE];

	frame_write_header(bytes, f);
	memcpy(bytes + FRAME_HEADER, payload, f->length);
	(void)send(fd, bytes, FRAME_HEADER + f->length, MSG_NOSIGNAL);
}

struct other {
	pthread_t thread;
	int fd;
	const char *words; /* refuses with these; NULL: welcomes, and closes in stage info */
	enum ndx_status status;
	unsigned served; /* connections */
	uint32_t asked;  /* queue pairs, of the latest hello */
	uint32_t told;   /* mask of the queue pairs that have spoken in stage info */
};

static void answer_one(struct other *o, int fd)
{
	const struct frame_welcome w = {MESSAGE, 1000, 1000};
	struct frame_error e = {.layer = NDX_LAYER_FRAMEWORK, .status = o->status};
	uint8_t bytes[FRAME_HEADER + MESSAGE];
	uint8_t payload[FRAME_ERROR_SIZE_MAX];
	struct frame f = {.type = o->words != NULL ? FRAME_ERROR : FRAME_WELCOME};
	struct frame_hello hello;
	struct frame got;
	const char *why;

	assert_true(next(fd, bytes, &got));
	assert_true(frame_parse_hello(&got, &hello, &why));
	o->asked = hello.queue_pairs;
	if (o->words != NULL)
		(void)snprintf(e.text, sizeof(e.text), "%s", o->words);
	f.length = o->words != NULL ? frame_write_error(payload, &e)
	                            : frame_write_welcome(payload, &w);
	send_frame(fd, &f, payload);
	for (uint32_t i = 0; o->words == NULL && i < o->asked && next(fd, bytes, &got); i++) {
		assert_int_equal(got.type, FRAME_DATA);
		assert_true(got.numbered);
		o->told |= 1u << got.queue_pair;
	}
}

static void *other_main(void *arg)
{
	struct other *o = arg;
	int fd;

	while ((fd = accept(o->fd, NULL, NULL)) >= 0) {
		o->served++;
		answer_one(o, fd);
		(void)close(fd);
	}
	return NULL;
}

static void other_start(struct other *o, const char *words, enum ndx_status status,
                        char address[32])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);

	*o = (struct other){
		.words = words, .status = status, .fd = socket(AF_INET, SOCK_STREAM, 0)};
	assert_int_equal(bind(o->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(o->fd, 8), 0);
	assert_int_equal(getsockname(o->fd, (struct sockaddr *)&at, &length), 0);
	(void)snprintf(address, 32, "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&o->thread, NULL, other_main, o), 0);
}

static void other_stop(struct other *o)
{
	(void)shutdown(o->fd, SHUT_RDWR);
	assert_int_equal(pthread_join(o->thread, NULL), 0);
	(void)close(o->fd);
}

/* That of version 1, as it was, and one that may come: its words do not matter. */
static void a_server_that_does_not_know_version_2_is_named(void **state)
{
	static const char *const words[] = {
		"another version of the protocol",
		"version 2 of the protocol; versions 3 and 4 are known"};
	struct ndx_session_error e = {.size = sizeof(e)};
	struct other o;
	struct rig r;

	(void)state;
	for (int i = 0; i < 2; i++) {
		rig_up(&r, 5);
		ndx_session_close(r.session);
		other_start(&o, words[i], NDX_E_REMOTE_ERROR, r.address);
		make_session(&r);
		assert_int_equal(ndx_session_run(r.session), NDX_E_NOT_SUPPORTED);
		assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
		assert_non_null(strstr(e.text,
		                       "the server does not know version 2 of the protocol, "
		                       "which several queue pairs in one session need"));
		assert_non_null(strstr(e.text, words[i]));
		assert_int_equal(e.of_queue_pair, 0);
		other_stop(&o);
		assert_int_equal(o.served, 1); /* not tried again */
		assert_int_equal(o.asked, 5);
		rig_down(&r);
	}
}

/* A server that knows it, and refuses for a cause of its own: the client tries again. */
static void any_other_refusal_is_what_the_server_says(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	struct other o;
	struct rig r;

	(void)state;
	rig_up(&r, 5);
	ndx_session_close(r.session);
	other_start(&o, "another version of the protocol", NDX_E_INSUFFICIENT_RESOURCES, r.address);
	make_session(&r);
	assert_int_equal(ndx_session_run(r.session), NDX_E_CONNECTION_REFUSED);
	assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
	assert_null(strstr(e.text, "version 2"));
	other_stop(&o);
	assert_int_equal(o.served, 3);
	rig_down(&r);
}

/* The variant could: but keys and cookies of an earlier life must not come back. */
static void a_broken_session_is_not_resumed(void **state)
{
	struct ndx_session_error e = {.size = sizeof(e)};
	struct other o;
	struct rig r;

	(void)state;
	rig_up(&r, 5);
	ndx_session_close(r.session);
	other_start(&o, NULL, NDX_OK, r.address);
	make_session(&r);
	assert_int_equal(ndx_session_run(r.session), NDX_E_CONNECTION_ABORTED);
	assert_int_equal(ndx_session_get_error(r.session, &e), NDX_OK);
	assert_int_equal(e.layer, NDX_LAYER_TRANSPORT);
	assert_int_equal(e.stage, NDX_STAGE_INFO);
	other_stop(&o);
	assert_int_equal(o.served, 1);
	assert_int_equal(o.told, 0x1f);
	rig_down(&r);
}

static int join(const struct rig *r)
{
	struct sockaddr_in at;
	socklen_t length = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)ndx_negotiation_server_get_address(r->server, (struct sockaddr *)&at, &length);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* What the server answers, in the end, to a client that says hello and then this frame. */
static void answers(const struct rig *r, uint32_t count, const struct frame *then, unsigned times,
                    const char *text)
{
	struct frame_hello hello = {.max_message = MESSAGE,
	                            .queue_pairs = count,
	                            .plugin = "same",
	                            .variant = "as-it-is"};
	struct frame f = {.type = FRAME_HELLO, .numbered = count > 1};
	uint8_t bytes[FRAME_HEADER + MESSAGE] = {0};
	const int fd = join(r);
	struct frame_error e;
	const char *why;

	memset(hello.session, (int)count, sizeof(hello.session));
	f.length = frame_write_hello(bytes, &hello);
	send_frame(fd, &f, bytes);
	for (unsigned i = 0; i < times; i++)
		send_frame(fd, then, bytes);
	do
		assert_true(next(fd, bytes, &f));
	while (f.type != FRAME_ERROR);
	assert_true(frame_parse_error(&f, &e, &why));
	if (strstr(e.text, text) == NULL)
		fail_msg("\"%s\"", e.text);
	(void)close(fd);
}

static void frames_that_are_of_no_queue_pair_end_the_session(void **state)
{
	const struct frame foreign = {.type = FRAME_DATA, .numbered = true, .queue_pair = 3};
	const struct frame wrong = {
		.type = FRAME_DATA, .numbered = true, .queue_pair = 2, .round = 7};
	const struct frame whole = {.type = FRAME_DATA};
	struct rig r;

	(void)state;
	rig_up(&r, 3);
	answers(&r, 3, &foreign, 1, "a frame of a queue pair that the session does not have");
	answers(&r, 1, &foreign, 1, "a frame of one of several queue pairs; the session has one");
	answers(&r, 65, &whole, 0, "asks for 65 queue pairs, this server takes 64 at most");
	rig_down(&r);
	rig_up(&r, 3);
	answers(&r, 3, &wrong, 1, "queue pair 2: the peer's message is not of this stage");
	rig_down(&r);
	rig_up(&r, 3);
	answers(&r, 3, &whole, 1, "a frame without the number of its queue pair");
	rig_down(&r);
}

/* A frame behind those that are there already. */
static void append(uint8_t *bytes, size_t *length, const struct frame *f, const void *payload)
{
	frame_write_header(bytes + *length, f);
	memcpy(bytes + *length + FRAME_HEADER, payload, f->length);
	*length += FRAME_HEADER + f->length;
}

/* All that a client says in its life. */
static size_t write_life(uint8_t *bytes, uint32_t count)
{
	static const uint8_t nothing[sizeof(struct ndx_peer_description)];
	const struct frame rounds[] = {
		{.type = FRAME_DATA, .length = sizeof(nothing)},
		{.type = FRAME_DATA, .round = 1, .flags = FRAME_COMPLETED},
		{.type = FRAME_VALIDATE,
	         .stage = NDX_STAGE_VALIDATE,
	         .length = FRAME_VALIDATE_SIZE},
		{.type = FRAME_DATA, .stage = NDX_STAGE_READY, .flags = FRAME_COMPLETED},
	};
	const struct frame_hello hello = {.max_message = MESSAGE,
	                                  .queue_pairs = count,
	                                  .plugin = "same",
	                                  .variant = "as-it-is"};
	struct frame f = {.type = FRAME_HELLO, .numbered = true};
	uint8_t payload[FRAME_HELLO_SIZE_MAX];
	size_t length = 0;

	f.length = frame_write_hello(payload, &hello);
	append(bytes, &length, &f, payload);
	for (size_t k = 0; k < sizeof(rounds) / sizeof(rounds[0]); k++)
		for (uint32_t i = 0; i < count; i++) {
			f = rounds[k];
			f.numbered = true;
			f.queue_pair = (uint16_t)i;
			append(bytes, &length, &f, nothing);
		}
	f = (struct frame){.type = FRAME_SESSION_END};
	append(bytes, &length, &f, nothing);
	return length;
}

/* What comes behind the last frame of a stage does not overtake the end of the stage. */
static void all_frames_of_a_session_may_come_at_once(void **state)
{
	enum { TIMES = 50, PAIRS = 8 };
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	uint8_t bytes[PAIRS * (MESSAGE + 4 * FRAME_HEADER)];
	const size_t length = write_life(bytes, PAIRS);
	struct rig r;

	(void)state;
	bare = true;
	rig_up(&r, 2);
	for (int i = 0; i < TIMES; i++) {
		const int fd = join(&r);

		assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
		while (__atomic_load_n(&r.closed, __ATOMIC_SEQ_CST) <= i)
			(void)poll(NULL, 0, 1);
		(void)close(fd);
	}
	assert_int_equal(ndx_negotiation_server_get_stats(r.server, &stats), NDX_OK);
	assert_int_equal(stats.completed, TIMES);
	assert_int_equal(stats.failed, 0);
	rig_down(&r);
	bare = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_does_not_know_version_2_is_named),
		cmocka_unit_test(any_other_refusal_is_what_the_server_says),
		cmocka_unit_test(a_broken_session_is_not_resumed),
		cmocka_unit_test(frames_that_are_of_no_queue_pair_end_the_session),
		cmocka_unit_test(all_frames_of_a_session_may_come_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
