/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider closes pending connections when there are too many: from one host, or in all. The
 * epoll set of the event queue is the test's own and contains what the test adds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#undef fail /* cmocka's macro; <ndx/spi/log.h> declares a function of this name */
#include <ndx/spi/system.h>
#include <ndx/spi/sockaddr.h>
#include "base_loop.h"
#include "ofi.h"

#define MAX_PENDING 8u /* pending connections in all; one host may have half of them */
#define ENDS 32u
#define TIMEOUT_MS 10000

struct end {
	int near; /* the accepted socket */
	int far;
	struct sockaddr_in address; /* the address of the far socket */
};

struct rig {
	struct ofi_adapter adapter;
	struct ofi_eq eq;
	struct fid_eq native;
	struct ofi_hello hello;
	int listener;
	struct sockaddr_in address;
	struct end ends[ENDS];
	unsigned count;
	unsigned refused_count;
	struct sockaddr_in latest; /* the latest refused peer ... */
	char why[128];             /* ... and the reason */
};

static ssize_t read_no_event(struct fid_eq *eq, uint32_t *event, void *buffer, size_t length,
                             uint64_t flags)
{
	(void)eq;
	(void)event;
	(void)buffer;
	(void)length;
	(void)flags;
	return -FI_EAGAIN;
}

static struct fi_ops_eq ops = {.size = sizeof(struct fi_ops_eq), .read = read_no_event};

static void record_refusal(void *owner, const struct sockaddr_storage *peer, const char *why)
{
	struct rig *rig = owner;

	rig->refused_count++;
	memcpy(&rig->latest, peer, sizeof(rig->latest));
	(void)snprintf(rig->why, sizeof(rig->why), "%s", why);
}

static struct sockaddr_in loopback(unsigned host)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
	                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK + host)};
}

static void open_hello(void *arg)
{
	struct rig *rig = arg;

	assert_int_equal(ofi_hello_begin(&rig->hello, rig->listener), NDX_OK);
	rig->hello.most = MAX_PENDING;
}

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	socklen_t len = sizeof(rig->address);

	assert_non_null(rig);
	assert_int_equal(base_loop_create("rig", &rig->adapter.spi.loop), NDX_OK);
	rig->adapter.backend = &ofi_tcp;
	rig->adapter.hello_ms = OFI_HELLO_MS;
	rig->native.ops = &ops;
	rig->eq.adapter = &rig->adapter;
	rig->eq.eq = &rig->native;
	rig->eq.watch.fd = ndxp_poll_create();
	rig->hello = (struct ofi_hello){
		.eq = &rig->eq, .refused = record_refusal, .owner = rig, .look = -1};
	rig->address = loopback(0);
	rig->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(rig->listener, (struct sockaddr *)&rig->address, len), 0);
	assert_int_equal(listen(rig->listener, ENDS), 0);
	assert_int_equal(getsockname(rig->listener, (struct sockaddr *)&rig->address, &len), 0);
	assert_int_equal(ndxp_poll_add(rig->eq.watch.fd, rig->listener, EPOLLIN, false, NULL), 0);
	ndxp_loop_call(rig->adapter.spi.loop, open_hello, rig);
	assert_true(rig->hello.look >= 0);
	*state = rig;
	return 0;
}

/* Close both sockets of an end. libfabric closes its own one when it next reads. */
static void close_end(struct end *end)
{
	ndxp_fd_close(end->near);
	ndxp_fd_close(end->far);
	end->near = -1;
	end->far = -1;
}

static void close_all(void *arg)
{
	struct rig *rig = arg;

	for (unsigned i = 0; i < rig->count; i++)
		close_end(&rig->ends[i]);
	ofi_hello_end(&rig->hello);
}

static void nothing(void *arg)
{
	(void)arg;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	ndxp_loop_call(rig->adapter.spi.loop, close_all, rig);
	base_loop_destroy(rig->adapter.spi.loop, nothing, NULL);
	ndxp_fd_close(rig->listener);
	ndxp_fd_close(rig->eq.watch.fd);
	free(rig);
	return 0;
}

/* Connect from 127.0.0.(1 + host). The connection is not in the epoll set yet. */
static struct end *connect_end(struct rig *rig, unsigned host)
{
	struct end *end = &rig->ends[rig->count++];
	socklen_t len = sizeof(end->address);

	assert_true(rig->count <= ENDS);
	end->address = loopback(host);
	end->far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(end->far, (struct sockaddr *)&end->address, len), 0);
	assert_int_equal(connect(end->far, (struct sockaddr *)&rig->address, len), 0);
	assert_int_equal(getsockname(end->far, (struct sockaddr *)&end->address, &len), 0);
	end->near = accept4(rig->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(end->near >= 0);
	return end;
}

/* Run the timer function, on the control thread. */
static void run_timer(void *arg)
{
	struct rig *rig = arg;

	rig->hello.timer.fn(rig->hello.timer.arg);
}

static struct end *add_pending(struct rig *rig, unsigned host)
{
	struct end *end = connect_end(rig, host);

	assert_int_equal(ndxp_poll_add(rig->eq.watch.fd, end->near, EPOLLIN, false, NULL), 0);
	ndxp_loop_call(rig->adapter.spi.loop, run_timer, rig);
	return end;
}

static void expect_all_stay(struct rig *rig, unsigned from)
{
	for (unsigned i = from; i < rig->count; i++) {
		struct pollfd far = {.fd = rig->ends[i].far, .events = POLLIN};

		assert_int_equal(poll(&far, 1, 0), 0);
	}
}

/* `refused_count` refusals in all. The latest one is this end's, and its far socket becomes
 * readable. */
static void expect_refused(const struct rig *rig, unsigned refused_count, const struct end *end,
                           const char *why)
{
	struct pollfd far = {.fd = end->far, .events = POLLIN};

	assert_int_equal(rig->refused_count, refused_count);
	assert_memory_equal(&rig->latest, &end->address, sizeof(end->address));
	assert_non_null(strstr(rig->why, why));
	assert_int_equal(poll(&far, 1, TIMEOUT_MS), 1);
}

static void one_host_has_half_of_the_places(void **state)
{
	struct rig *rig = *state;

	for (unsigned i = 0; i < MAX_PENDING / 2; i++)
		(void)add_pending(rig, 1);
	assert_int_equal(rig->refused_count, 0);
	for (unsigned i = 1; i <= 3; i++) {
		(void)add_pending(rig, 1);
		expect_refused(rig, i, &rig->ends[i - 1], "too many times");
		expect_all_stay(rig, i);
	}
	/* The other half of the places is for other hosts. */
	for (unsigned i = 0; i < MAX_PENDING / 2; i++)
		(void)add_pending(rig, 2);
	assert_int_equal(rig->refused_count, 3);
	expect_all_stay(rig, 3);
}

static void many_hosts_have_all_the_places(void **state)
{
	struct rig *rig = *state;

	for (unsigned i = 0; i < MAX_PENDING; i++)
		(void)add_pending(rig, i);
	assert_int_equal(rig->refused_count, 0);
	for (unsigned i = 1; i <= 3; i++) {
		(void)add_pending(rig, MAX_PENDING + i);
		expect_refused(rig, i, &rig->ends[i - 1], "one of too many");
		expect_all_stay(rig, i);
	}
	/* A closed connection frees its place. */
	for (unsigned i = 0; i < 5; i++)
		close_end(&rig->ends[i]);
	(void)add_pending(rig, 0);
	(void)add_pending(rig, 1);
	assert_int_equal(rig->refused_count, 3);
	expect_all_stay(rig, 5);
}

#define FLOOD 28u
#define ROUNDS 10u
#define TICKS_MS 20 /* several ticks of the clock by which the kernel knows ages */

static void add_all(struct rig *rig)
{
	for (unsigned i = 0; i < rig->count; i++)
		assert_int_equal(
			ndxp_poll_add(rig->eq.watch.fd, rig->ends[i].near, EPOLLIN, false, NULL),
			0);
	ndxp_loop_call(rig->adapter.spi.loop, run_timer, rig);
}

/* The event queue's descriptor lists its sockets in the order of their addresses in the kernel, so
 * several rounds have the youngest at several places. */
static void the_youngest_of_one_look_stay(void **state)
{
	struct rig *rig = *state;

	rig->hello.room = MAX_PENDING; /* more than that have to be noted */
	for (unsigned round = 0; round < ROUNDS; round++) {
		rig->refused_count = 0;
		for (unsigned i = 0; i < FLOOD; i++)
			(void)connect_end(rig, 1);
		(void)poll(NULL, 0, TICKS_MS);
		(void)connect_end(rig, 1);
		add_all(rig);
		assert_int_equal(rig->refused_count, FLOOD + 1 - MAX_PENDING / 2);
		expect_all_stay(rig, FLOOD);
		for (unsigned i = 0; i < rig->count; i++)
			close_end(&rig->ends[i]);
		ndxp_loop_call(rig->adapter.spi.loop, run_timer, rig);
		rig->count = 0;
	}
}

/* The connection may have waited for libfabric to accept. */
static void the_last_to_be_found_is_the_youngest(void **state)
{
	struct rig *rig = *state;
	const struct end *last = connect_end(rig, 1);

	(void)poll(NULL, 0, TICKS_MS);
	for (unsigned i = 0; i < MAX_PENDING / 2; i++)
		(void)add_pending(rig, 1);
	assert_int_equal(rig->refused_count, 0);
	assert_int_equal(ndxp_poll_add(rig->eq.watch.fd, last->near, EPOLLIN, false, NULL), 0);
	ndxp_loop_call(rig->adapter.spi.loop, run_timer, rig);
	expect_refused(rig, 1, &rig->ends[1], "too many times");
}

struct swap {
	struct rig *rig;
	struct end *old;
	struct end *new;
};

/* libfabric closes a connection, and the next accepted one gets the same descriptor. */
static void reuse_descriptor(void *arg)
{
	struct swap *swap = arg;
	struct end *old = swap->old;
	struct end *new = swap->new;

	assert_int_equal(dup2(new->near, old->near), old->near);
	ndxp_fd_close(new->near);
	new->near = old->near;
	old->near = -1;
	assert_int_equal(ndxp_poll_add(swap->rig->eq.watch.fd, new->near, EPOLLIN, false, NULL), 0);
	run_timer(swap->rig);
}

static void a_descriptor_used_again_is_another_connection(void **state)
{
	struct rig *rig = *state;
	struct swap swap = {.rig = rig};

	rig->adapter.hello_ms = 0;
	swap.old = add_pending(rig, 1);
	expect_refused(rig, 1, swap.old, "in time");
	swap.new = connect_end(rig, 2);
	ndxp_loop_call(rig->adapter.spi.loop, reuse_descriptor, &swap);
	expect_refused(rig, 2, swap.new, "in time");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_host_has_half_of_the_places),
		CASE(many_hosts_have_all_the_places),
		CASE(the_youngest_of_one_look_stay),
		CASE(the_last_to_be_found_is_the_youngest),
		CASE(a_descriptor_used_again_is_another_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
