/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames that a session's driver holds, to send them with those that follow: what becomes of them
 * when the transport breaks, or is given up. */
#include "says.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/spi/loop.h>
#include "session.h"

enum { MOST = 64 };

/* A session that is no more than its driver; `fd` is the peer's end of its transport. */
struct rig {
	struct engine *engine;
	struct ndx_session s;
	int fd;
	enum driver_io read[3];
	bool faulty; /* what the loop's thread has found; it cannot fail the test itself */
};

static bool never(struct ndx_session *s)
{
	(void)s;
	return false;
}

static const struct driver_role role = {.step = never};

static void check(struct rig *r, bool holds)
{
	r->faulty = r->faulty || !holds;
}

static void attach(struct rig *r)
{
	int pair[2];

	check(r, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	r->fd = pair[1];
	check(r, driver_attach(&r->s, pair[0]));
	r->s.driver.reads = 8;
}

static void begin_on_loop(void *arg)
{
	struct rig *r = arg;

	driver_init(&r->s, &role, r->engine);
	attach(r);
}

static void hold_frame(struct rig *r)
{
	const struct frame f = {.type = FRAME_ALIVE, .stage = NDX_STAGE_READY};
	uint8_t bytes[FRAME_HEADER];

	frame_write_header(bytes, &f);
	check(r, driver_send_soon(&r->s, bytes, sizeof(bytes)) == IO_DONE);
}

/* The peer sends a frame. */
static void speak(struct rig *r)
{
	const struct frame f = {.type = FRAME_SESSION_END};
	uint8_t bytes[FRAME_HEADER];

	frame_write_header(bytes, &f);
	check(r, send(r->fd, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes));
}

static enum driver_io read_one(struct rig *r)
{
	const char *why;
	struct frame f;
	const enum driver_io io = driver_read_frame(&r->s, MOST, &f, &why);

	if (io == IO_DONE)
		driver_consume(&r->s);
	return io;
}

static void end(void *arg)
{
	struct rig *r = arg;

	driver_detach(&r->s);
	driver_fini(&r->s);
	(void)close(r->fd);
}

static int rig_up(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	assert_int_equal(engine_create(&r->engine), NDX_OK);
	ndxp_loop_call(r->engine->loop, begin_on_loop, r);
	*state = r;
	return 0;
}

static int rig_down(void **state)
{
	struct rig *r = *state;

	ndxp_loop_call(r->engine->loop, end, r);
	engine_put(r->engine);
	free(r);
	return 0;
}

static void run(void **state, ndxp_loop_fn *fn)
{
	struct rig *r = *state;

	ndxp_loop_call(r->engine->loop, fn, r);
	assert_false(r->faulty);
}

/* ---- */

static void break_and_read(void *arg)
{
	struct rig *r = arg;

	speak(r);
	speak(r);
	hold_frame(r);
	/* Only sends fail: the peer's end of the transport stays open. */
	check(r, shutdown(r->s.driver.fd, SHUT_WR) == 0);
	for (int i = 0; i < 3; i++)
		r->read[i] = read_one(r);
}

static void what_is_not_sent_is_a_lost_transport_behind_what_has_come(void **state)
{
	struct rig *r = *state;

	run(state, break_and_read);
	assert_int_equal(r->read[0], IO_DONE);
	assert_int_equal(r->read[1], IO_DONE);
	assert_int_equal(r->read[2], IO_LOST);
	assert_int_equal(r->s.driver.io_status, NDX_E_CONNECTION_ABORTED);
	assert_int_equal(r->s.driver.io_errno, EPIPE);
}

/* Other sessions have their turn first. */
static void break_and_read_without_a_turn(void *arg)
{
	struct rig *r = arg;

	speak(r);
	hold_frame(r);
	check(r, shutdown(r->s.driver.fd, SHUT_WR) == 0);
	r->s.driver.drained = true; /* the event of the peer's frame is on its way */
	driver_flush(&r->s);
	r->s.driver.reads = 0;
	r->read[0] = read_one(r);
	r->s.driver.reads = 8;
	r->read[1] = read_one(r);
	r->read[2] = read_one(r);
}

static void but_not_before_there_was_a_turn_to_read(void **state)
{
	struct rig *r = *state;

	run(state, break_and_read_without_a_turn);
	assert_int_equal(r->read[0], IO_WAIT);
	assert_int_equal(r->read[1], IO_DONE);
	assert_int_equal(r->read[2], IO_LOST);
}

static void break_and_replace(void *arg)
{
	struct rig *r = arg;

	hold_frame(r);
	check(r, shutdown(r->s.driver.fd, SHUT_WR) == 0);
	r->read[0] = read_one(r);
	driver_detach(&r->s);
	(void)close(r->fd);
	attach(r);
	r->read[1] = read_one(r);
	speak(r);
	r->s.driver.drained = false; /* its event */
	r->read[2] = read_one(r);
}

static void the_next_transport_is_not_lost_for_it(void **state)
{
	struct rig *r = *state;

	run(state, break_and_replace);
	assert_int_equal(r->read[0], IO_LOST);
	assert_int_equal(r->read[1], IO_WAIT);
	assert_int_equal(r->read[2], IO_DONE);
}

static void hold_and_detach(void *arg)
{
	struct rig *r = arg;

	hold_frame(r);
	hold_frame(r);
	driver_detach(&r->s);
}

static void the_end_of_a_transport_sends_them(void **state)
{
	struct rig *r = *state;
	uint8_t bytes[3 * FRAME_HEADER];

	run(state, hold_and_detach);
	assert_int_equal(recv(r->fd, bytes, sizeof(bytes), 0), 2 * FRAME_HEADER);
	assert_int_equal(bytes[5], FRAME_ALIVE);
	assert_int_equal(recv(r->fd, bytes, sizeof(bytes), 0), 0); /* the end */
}

static void fill_hold_and_detach(void *arg)
{
	static const uint8_t filler[4096];
	struct rig *r = arg;

	while (send(r->s.driver.fd, filler, sizeof(filler), MSG_DONTWAIT) > 0)
		;
	while (send(r->s.driver.fd, filler, 1, MSG_DONTWAIT) > 0)
		;
	hold_frame(r);
	driver_detach(&r->s);
	r->read[0] = r->s.driver.held == NULL ? IO_DONE : IO_BAD;
}

/* No wait has an end that nothing drives any more. */
static void unless_the_socket_is_full(void **state)
{
	struct rig *r = *state;
	uint8_t bytes[4096];
	ssize_t n;
	bool heard = false;

	run(state, fill_hold_and_detach);
	assert_int_equal(r->read[0], IO_DONE);
	while ((n = recv(r->fd, bytes, sizeof(bytes), 0)) > 0)
		heard = heard || memchr(bytes, 'N', (size_t)n) != NULL;
	assert_int_equal(n, 0);
	assert_false(heard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_is_not_sent_is_a_lost_transport_behind_what_has_come, rig_up,
			rig_down),
		cmocka_unit_test_setup_teardown(but_not_before_there_was_a_turn_to_read, rig_up,
	                                        rig_down),
		cmocka_unit_test_setup_teardown(the_next_transport_is_not_lost_for_it, rig_up,
	                                        rig_down),
		cmocka_unit_test_setup_teardown(the_end_of_a_transport_sends_them, rig_up,
	                                        rig_down),
		cmocka_unit_test_setup_teardown(unless_the_socket_is_full, rig_up, rig_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
