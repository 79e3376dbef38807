/* SPDX-License-Identifier: BSD-2-Clause */
/* What a listener costs, and what it bears: many requests, pending connections, no descriptor left.
 */
#include "pair.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#undef fail /* cmocka's */
#include "ofi.h"

/* ---- a full backlog ---- */

#define BACKLOG 24

static unsigned searches; /* of all descriptors of the process */
static int no_search;     /* errno of those that fail; 0: none does */

/* The linker puts it before the C library's. */
DIR *__real_opendir(const char *name);
DIR *__wrap_opendir(const char *name);

DIR *__wrap_opendir(const char *name)
{
	(void)__atomic_add_fetch(&searches, 1, __ATOMIC_RELAXED);
	if (no_search == 0)
		return __real_opendir(name);
	errno = no_search;
	return NULL;
}

static void listen_with_a_backlog(struct pair *p, uint32_t most)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	socklen_t len = sizeof(p->address);

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ndx_listener_close(p->listener);
	assert_int_equal(ndx_listen_on(p->b.adapter, (struct sockaddr *)&any, sizeof(any), most,
	                               &p->listener),
	                 NDX_OK);
	assert_int_equal(
		ndx_listener_get_local_address(p->listener, (struct sockaddr *)&p->address, &len),
		NDX_OK);
}

static void ask_as(const struct pair *p, struct pair_side *side)
{
	assert_int_equal(ndx_connector_connect(
				 side->connector, side->qp, (const struct sockaddr *)&p->address,
				 sizeof(struct sockaddr_in), 0, 0, NULL, 0, &side->ov),
	                 NDX_PENDING);
}

static void await_requests(const struct pair *p, uint64_t count)
{
	const uint64_t end = pair_now() + PAIR_PATIENCE_MS;
	struct ndx_adapter_stats stats = {.size = sizeof(stats)};

	while (stats.requests < count && pair_now() < end)
		assert_int_equal(ndx_adapter_get_stats(p->b.adapter, &stats), NDX_OK);
	assert_int_equal(stats.requests, count);
}

static void a_full_backlog_is_looked_at_without_searching_for_sockets(void **state)
{
	struct pair *p = *state;
	static struct pair_side sides[BACKLOG + 1];

	listen_with_a_backlog(p, BACKLOG);
	for (unsigned i = 0; i < BACKLOG; i++) {
		sides[i] = (struct pair_side){.adapter = p->a.adapter};
		pair_make_side(p, &sides[i]);
		ask_as(p, &sides[i]);
	}
	await_requests(p, BACKLOG);
	sides[BACKLOG] = (struct pair_side){.adapter = p->a.adapter};
	pair_make_side(p, &sides[BACKLOG]);
	searches = 0;
	ask_as(p, &sides[BACKLOG]);
	assert_int_equal(pair_wait(&sides[BACKLOG].ov), NDX_E_CONNECTION_REFUSED);
	assert_int_equal(searches, 0);
	for (unsigned i = 0; i <= BACKLOG; i++)
		pair_drop_side(&sides[i]);
}

/* ---- pending connections ---- */

#define PENDING 20
#define FLOOD 400
#define FEW_DESCRIPTORS 256

/* They connect, and say nothing. */
static int dial(const struct pair *p)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 &&
	    connect(fd, (const struct sockaddr *)&p->address, sizeof(struct sockaddr_in)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static unsigned count_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void await_descriptors(unsigned count)
{
	const uint64_t end = pair_now() + PAIR_PATIENCE_MS;

	while (count_descriptors() != count && pair_now() < end)
		(void)poll(NULL, 0, 1);
	assert_int_equal(count_descriptors(), count);
}

/* The listener's side closes it. */
static void assert_is_closed(int fd)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};
	char byte;

	assert_int_equal(poll(&in, 1, (int)PAIR_PATIENCE_MS), 1);
	assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) <= 0);
	(void)close(fd);
}

/* The same, or something was said before. */
static void assert_is_closed_or_answered(int fd)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&in, 1, (int)PAIR_PATIENCE_MS), 1);
	(void)close(fd);
}

static void pending_connections_end_with_their_listener(void **state)
{
	struct pair *p = *state;
	const unsigned before = count_descriptors();
	int fds[PENDING];

	for (int i = 0; i < PENDING; i++)
		fds[i] = dial(p);
	await_descriptors(before + 2 * PENDING);
	ndx_listener_close(p->listener);
	p->listener = NULL;
	for (int i = 0; i < PENDING; i++)
		assert_is_closed(fds[i]);
	/* Another one takes as many as the first. */
	listen_with_a_backlog(p, 0);
	await_descriptors(before);
}

static void pending_connections_end_with_their_listener_when_no_descriptor_is_left(void **state)
{
	struct pair *p = *state;
	struct pair_hoard hoard;
	const unsigned before = count_descriptors();
	const int fd = dial(p);

	await_descriptors(before + 2);
	pair_use_up_descriptors(&hoard);
	ndx_listener_close(p->listener);
	p->listener = NULL;
	/* Nobody listens from now on, ... */
	(void)close(hoard.fds[--hoard.count]);
	assert_int_equal(dial(p), -1);
	/* ... and who was there before is not left alone. */
	assert_is_closed(fd);
	pair_give_back_descriptors(&hoard);
}

static struct ofi_adapter *adapter_of(const struct pair_side *side)
{
	return ofi_qp_of((struct ndx_spi_qp *)(void *)side->qp)->adapter;
}

static void a_client_without_a_request_is_dropped_in_time(void **state)
{
	struct pair *p = *state;
	int fds[PENDING];

	pair_make(p);
	adapter_of(&p->b)->hello_ms = 300;
	for (int i = 0; i < PENDING; i++)
		fds[i] = dial(p);
	pair_connect(p);
	for (int i = 0; i < PENDING; i++)
		assert_is_closed(fds[i]);
	pair_receive(&p->b, 1, 0, 64);
	pair_send(&p->a, 2, 0, 64, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_part(p);
	pair_drop(p);
}

static void limit_descriptors(rlim_t most)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Another process: this one is to be short of descriptors. It says when it has connected. */
static pid_t flood(const struct pair *p, int ready[2])
{
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child != 0)
		return child;
	limit_descriptors(RLIM_INFINITY);
	for (int i = 0; i < FLOOD; i++) {
		if (dial(p) < 0)
			_exit(1);
	}
	(void)!write(ready[1], "", 1);
	(void)pause();
	_exit(0);
}

static void a_flood_of_pending_connections_keeps_no_client_out(void **state)
{
	struct pair *p = *state;
	struct rlimit before;
	pid_t child;
	int ready[2];
	char byte;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit_descriptors(FEW_DESCRIPTORS);
	listen_with_a_backlog(p, 0);
	child = flood(p, ready);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	for (int i = 0; i < 3; i++) {
		pair_make(p);
		pair_connect(p);
		pair_part(p);
		pair_drop(p);
	}
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	(void)close(ready[0]);
	(void)close(ready[1]);
	limit_descriptors(before.rlim_cur);
}

/* ---- no list of descriptors ---- */

static enum ndx_status listen_without_list(const struct pair *p, int err,
                                           struct ndx_listener **listener)
{
	const struct sockaddr_in any = {.sin_family = AF_INET,
	                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	enum ndx_status st;

	no_search = err;
	st = ndx_listen_on(p->b.adapter, (const struct sockaddr *)&any, sizeof(any), 0, listener);
	no_search = 0;
	return st;
}

static void without_proc_it_listens_nevertheless(void **state)
{
	struct pair *p = *state;
	socklen_t len = sizeof(p->address);
	struct ndx_listener *listener;

	assert_int_equal(listen_without_list(p, ENOENT, &listener), NDX_OK);
	ndx_listener_close(p->listener);
	p->listener = listener;
	assert_int_equal(
		ndx_listener_get_local_address(listener, (struct sockaddr *)&p->address, &len),
		NDX_OK);
	pair_make(p);
	pair_connect(p);
	pair_part(p);
	pair_drop(p);
}

static void without_a_descriptor_it_says_so(void **state)
{
	struct pair *p = *state;
	struct ndx_listener *listener;

	assert_int_equal(listen_without_list(p, EMFILE, &listener), NDX_E_INSUFFICIENT_RESOURCES);
	assert_non_null(strstr(ndx_last_error(), "ulimit -n"));
}

/* ---- other users ---- */

#define SOMEBODY 12345 /* a uid that is nobody's here */
#define HELLO 512      /* bytes; libfabric's header and ours */
#define TIMES 20

/* Before base_diag.c's, as above. */
bool __real_base_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct base_diag_end *out);
bool __wrap_base_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct base_diag_end *out);

/* As older kernels say it: a socket that its process has closed is root's. */
bool __wrap_base_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct base_diag_end *out)
{
	const bool found = __real_base_diag_tcp(fd, near, far, out);

	if (found && !out->owned)
		out->uid = 0;
	return found;
}

static char said[1024]; /* what was last logged of an ofi listener */

static void note(void *arg, const struct ndx_log_record *record)
{
	(void)arg;
	if (strstr(record->text, "refused") != NULL)
		(void)snprintf(said, sizeof(said), "%s", record->text);
}

/* What an NDX says first; the socket that it says it to, which has to stay open meanwhile. */
static size_t record_hello(struct pair *p, unsigned char hello[HELLO])
{
	const struct sockaddr_in any = {.sin_family = AF_INET,
	                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct pair_side side = {.adapter = p->a.adapter};
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at;
	socklen_t len = sizeof(at);
	ssize_t n;
	int fd;

	pair_make_side(p, &side);
	assert_int_equal(bind(listener, (const struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(ndx_connector_connect(side.connector, side.qp, (struct sockaddr *)&at, len,
	                                       0, 0, NULL, 0, &side.ov),
	                 NDX_PENDING);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	n = recv(fd, hello, HELLO, 0);
	assert_true(n > 0);
	(void)close(fd);
	(void)close(listener);
	(void)pair_wait(&side.ov);
	pair_drop_side(&side);
	return (size_t)n;
}

/* A socket has the user whom its thread had when the socket was made. */
static int dial_as(const struct pair *p, uid_t uid)
{
	int fd;

	(void)setfsuid(uid);
	fd = dial(p);
	(void)setfsuid(geteuid());
	assert_true(fd >= 0);
	return fd;
}

static void listen_as(struct pair *p, const char *uri)
{
	assert_int_equal(ndx_adapter_open(uri, &p->b.adapter), NDX_OK);
	listen_with_a_backlog(p, 0);
}

static void unlisten(struct pair *p, struct ndx_listener *listener, struct ndx_adapter *adapter)
{
	ndx_listener_close(p->listener);
	ndx_adapter_close(p->b.adapter);
	p->listener = listener;
	p->b.adapter = adapter;
}

static void another_user_is_not_let_in(void **state)
{
	struct pair *p = *state;
	unsigned char hello[HELLO];
	size_t len;
	int fd;

	if (geteuid() != 0)
		skip(); /* only root may make sockets for others */
	ndx_log_set_sink(note, NULL, NDX_LOG_WARN);
	len = record_hello(p, hello);
	fd = dial_as(p, SOMEBODY);
	assert_int_equal(send(fd, hello, len, 0), (ssize_t)len);
	assert_is_closed_or_answered(fd);
	assert_non_null(strstr(said, "refused 127.0.0.1:"));
	assert_non_null(strstr(said, "uid 12345"));
	assert_non_null(strstr(said, "peers=any"));
	/* The own user is. */
	fd = dial(p);
	assert_int_equal(send(fd, hello, len, 0), (ssize_t)len);
	await_requests(p, 1);
	(void)close(fd);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_WARN);
}

static sem_t held;
static sem_t go;

/* The control thread does nothing meanwhile. */
static void hold_on(struct ndx_overlapped *ov)
{
	struct timespec until;

	(void)ov;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PAIR_PATIENCE_MS / 1000;
	(void)sem_post(&held);
	(void)sem_timedwait(&go, &until);
}

/* The kernel then says that its socket is root's, or this test does. */
static void another_user_that_closes_at_once_is_refused(void **state)
{
	struct pair *p = *state;
	unsigned char hello[HELLO];
	unsigned descriptors;
	size_t len;
	int own[2];

	if (geteuid() != 0)
		skip(); /* only root may make sockets for others */
	len = record_hello(p, hello);
	pair_make_side(p, &p->b);
	p->b.ov.callback = hold_on;
	assert_int_equal(ndx_listener_get_connection_request(p->listener, p->b.connector, &p->b.ov),
	                 NDX_PENDING);
	own[0] = dial(p);
	assert_int_equal(send(own[0], hello, len, 0), (ssize_t)len);
	assert_int_equal(sem_wait(&held), 0);
	descriptors = count_descriptors();
	for (int i = 0; i < TIMES; i++) {
		const int fd = dial_as(p, SOMEBODY);

		assert_int_equal(send(fd, hello, len, 0), (ssize_t)len);
		(void)close(fd);
	}
	own[1] = dial(p);
	assert_int_equal(send(own[1], hello, len, 0), (ssize_t)len);
	assert_int_equal(sem_post(&go), 0);
	/* The last one's: all before it have been accepted then. One that is let in keeps its
	 * descriptor, one that is not loses it. */
	await_requests(p, 2);
	await_descriptors(descriptors + 2);
	await_requests(p, 2);
	(void)close(own[0]);
	(void)close(own[1]);
	pair_drop_side(&p->b);
}

static void another_user_is_let_in_if_the_uri_says_so(void **state)
{
	struct pair *p = *state;
	struct ndx_listener *listener = p->listener;
	struct ndx_adapter *adapter = p->b.adapter;
	unsigned char hello[HELLO];
	const size_t len = record_hello(p, hello);
	int fd;

	if (geteuid() != 0)
		skip();
	p->listener = NULL;
	listen_as(p, "ofi:tcp?iface=lo&peers=any");
	fd = dial_as(p, SOMEBODY);
	assert_int_equal(send(fd, hello, len, 0), (ssize_t)len);
	await_requests(p, 1);
	(void)close(fd);
	unlisten(p, listener, adapter);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_full_backlog_is_looked_at_without_searching_for_sockets),
		CASE(pending_connections_end_with_their_listener),
		CASE(pending_connections_end_with_their_listener_when_no_descriptor_is_left),
		CASE(a_client_without_a_request_is_dropped_in_time),
		CASE(a_flood_of_pending_connections_keeps_no_client_out),
		CASE(without_proc_it_listens_nevertheless),
		CASE(without_a_descriptor_it_says_so),
		CASE(another_user_is_not_let_in),
		CASE(another_user_that_closes_at_once_is_refused),
		CASE(another_user_is_let_in_if_the_uri_says_so),
	};

	if (sem_init(&held, 0, 0) != 0 || sem_init(&go, 0, 0) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
