/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who has connected to a listener and asks for nothing is turned away when there are too many: of
 * one host, or in all. The set of the event queue is the test's own, and has what the test puts
 * there.
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

#undef fail /* cmocka's; base_log.h has another */
#include "base_linux.h"
#include "base_sockaddr.h"
#include "ofi.h"

#define MOST 8u /* unknown peers in all; half of them of one host */
#define ENDS 32u
#define PATIENCE_MS 10000

struct end {
	int near; /* accepted */
	int far;
	struct sockaddr_in address; /* of the far one */
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
	unsigned turned;
	struct sockaddr_in latest; /* who was turned away last, ... */
	char why[128];             /* ... and why */
};

static ssize_t find_nothing(struct fid_eq *eq, uint32_t *event, void *buffer, size_t length,
                            uint64_t flags)
{
	(void)eq;
	(void)event;
	(void)buffer;
	(void)length;
	(void)flags;
	return -FI_EAGAIN;
}

static struct fi_ops_eq ops = {.size = sizeof(struct fi_ops_eq), .read = find_nothing};

static void note_turned(void *owner, const struct sockaddr_storage *peer, const char *why)
{
	struct rig *rig = owner;

	rig->turned++;
	memcpy(&rig->latest, peer, sizeof(rig->latest));
	(void)snprintf(rig->why, sizeof(rig->why), "%s", why);
}

static struct sockaddr_in loopback(unsigned host)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
	                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK + host)};
}

static void begin_hello(void *arg)
{
	struct rig *rig = arg;

	assert_int_equal(ofi_hello_begin(&rig->hello, rig->listener), NDX_OK);
	rig->hello.most = MOST;
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
	rig->eq.watch.fd = base_poll_create();
	rig->hello = (struct ofi_hello){
		.eq = &rig->eq, .refused = note_turned, .owner = rig, .look = -1};
	rig->address = loopback(0);
	rig->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(rig->listener, (struct sockaddr *)&rig->address, len), 0);
	assert_int_equal(listen(rig->listener, ENDS), 0);
	assert_int_equal(getsockname(rig->listener, (struct sockaddr *)&rig->address, &len), 0);
	assert_int_equal(base_poll_add(rig->eq.watch.fd, rig->listener, EPOLLIN, false, NULL), 0);
	base_loop_call(rig->adapter.spi.loop, begin_hello, rig);
	assert_true(rig->hello.look >= 0);
	*state = rig;
	return 0;
}

/* The stack closes what is shut down when it looks next. */
static void close_end(struct end *end)
{
	base_fd_close(end->near);
	base_fd_close(end->far);
	end->near = -1;
	end->far = -1;
}

static void end(void *arg)
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

	base_loop_call(rig->adapter.spi.loop, end, rig);
	base_loop_destroy(rig->adapter.spi.loop, nothing, NULL);
	base_fd_close(rig->listener);
	base_fd_close(rig->eq.watch.fd);
	free(rig);
	return 0;
}

/* From 127.0.0.(1 + host); not in the set yet. */
static struct end *dial(struct rig *rig, unsigned host)
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

/* As at its next look; on its thread. */
static void look(void *arg)
{
	struct rig *rig = arg;

	rig->hello.timer.fn(rig->hello.timer.arg);
}

static struct end *join(struct rig *rig, unsigned host)
{
	struct end *end = dial(rig, host);

	assert_int_equal(base_poll_add(rig->eq.watch.fd, end->near, EPOLLIN, false, NULL), 0);
	base_loop_call(rig->adapter.spi.loop, look, rig);
	return end;
}

static void expect_all_stay(struct rig *rig, unsigned from)
{
	for (unsigned i = from; i < rig->count; i++) {
		struct pollfd far = {.fd = rig->ends[i].far, .events = POLLIN};

		assert_int_equal(poll(&far, 1, 0), 0);
	}
}

/* `turned` in all, this one last; its far end sees it. */
static void expect_turned(const struct rig *rig, unsigned turned, const struct end *end,
                          const char *why)
{
	struct pollfd far = {.fd = end->far, .events = POLLIN};

	assert_int_equal(rig->turned, turned);
	assert_memory_equal(&rig->latest, &end->address, sizeof(end->address));
	assert_non_null(strstr(rig->why, why));
	assert_int_equal(poll(&far, 1, PATIENCE_MS), 1);
}

static void one_host_has_half_of_the_places(void **state)
{
	struct rig *rig = *state;

	for (unsigned i = 0; i < MOST / 2; i++)
		(void)join(rig, 1);
	assert_int_equal(rig->turned, 0);
	for (unsigned i = 1; i <= 3; i++) {
		(void)join(rig, 1);
		expect_turned(rig, i, &rig->ends[i - 1], "too many times");
		expect_all_stay(rig, i);
	}
	/* The other half is for others. */
	for (unsigned i = 0; i < MOST / 2; i++)
		(void)join(rig, 2);
	assert_int_equal(rig->turned, 3);
	expect_all_stay(rig, 3);
}

static void many_hosts_have_all_the_places(void **state)
{
	struct rig *rig = *state;

	for (unsigned i = 0; i < MOST; i++)
		(void)join(rig, i);
	assert_int_equal(rig->turned, 0);
	for (unsigned i = 1; i <= 3; i++) {
		(void)join(rig, MOST + i);
		expect_turned(rig, i, &rig->ends[i - 1], "one of too many");
		expect_all_stay(rig, i);
	}
	/* Who goes makes room. */
	for (unsigned i = 0; i < 5; i++)
		close_end(&rig->ends[i]);
	(void)join(rig, 0);
	(void)join(rig, 1);
	assert_int_equal(rig->turned, 3);
	expect_all_stay(rig, 5);
}

struct swap {
	struct rig *rig;
	struct end *old;
	struct end *new;
};

/* The stack closes one, and the next that it accepts gets its descriptor. */
static void take_descriptor(void *arg)
{
	struct swap *swap = arg;
	struct end *old = swap->old;
	struct end *new = swap->new;

	assert_int_equal(dup2(new->near, old->near), old->near);
	base_fd_close(new->near);
	new->near = old->near;
	old->near = -1;
	assert_int_equal(base_poll_add(swap->rig->eq.watch.fd, new->near, EPOLLIN, false, NULL), 0);
	look(swap->rig);
}

static void a_descriptor_used_again_is_another_connection(void **state)
{
	struct rig *rig = *state;
	struct swap swap = {.rig = rig};

	rig->adapter.hello_ms = 0;
	swap.old = join(rig, 1);
	expect_turned(rig, 1, swap.old, "in time");
	swap.new = dial(rig, 2);
	base_loop_call(rig->adapter.spi.loop, take_descriptor, &swap);
	expect_turned(rig, 2, swap.new, "in time");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_host_has_half_of_the_places),
		CASE(many_hosts_have_all_the_places),
		CASE(a_descriptor_used_again_is_another_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
