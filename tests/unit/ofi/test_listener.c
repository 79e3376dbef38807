/* SPDX-License-Identifier: BSD-2-Clause */
/* The cost of a listener, and its limits: many requests, pending connections, no free
 * descriptor. */
#include "pair.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#undef fail /* cmocka's macro */
#include "ofi.h"

/* ---- a full backlog ---- */

#define BACKLOG 24

static unsigned opendir_calls; /* calls of opendir(), which lists the process's descriptors */
static int opendir_errno;      /* the errno with which opendir() fails; 0: success */

/* The linker resolves opendir to __wrap_opendir. */
DIR *__real_opendir(const char *name);
DIR *__wrap_opendir(const char *name);

DIR *__wrap_opendir(const char *name)
{
	(void)__atomic_add_fetch(&opendir_calls, 1, __ATOMIC_RELAXED);
	if (opendir_errno == 0)
		return __real_opendir(name);
	errno = opendir_errno;
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

static void request_from(const struct pair *p, struct pair_side *side)
{
	assert_int_equal(ndx_connector_connect(side->connector, side->qp,
	                                       (const struct sockaddr *)&p->address,
	                                       sizeof(struct sockaddr_in), NULL, &side->ov),
	                 NDX_PENDING);
}

static void await_requests(const struct pair *p, uint64_t count)
{
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;
	struct ndx_adapter_stats stats = {.size = sizeof(stats)};

	while (stats.requests < count && pair_now() < end)
		assert_int_equal(ndx_adapter_get_stats(p->b.adapter, &stats), NDX_OK);
	assert_int_equal(stats.requests, count);
}

static void a_full_backlog_needs_no_search_for_sockets(void **state)
{
	struct pair *p = *state;
	static struct pair_side sides[BACKLOG + 1];

	listen_with_a_backlog(p, BACKLOG);
	for (unsigned i = 0; i < BACKLOG; i++) {
		sides[i] = (struct pair_side){.adapter = p->a.adapter};
		pair_make_side(p, &sides[i]);
		request_from(p, &sides[i]);
	}
	await_requests(p, BACKLOG);
	sides[BACKLOG] = (struct pair_side){.adapter = p->a.adapter};
	pair_make_side(p, &sides[BACKLOG]);
	opendir_calls = 0;
	request_from(p, &sides[BACKLOG]);
	assert_int_equal(pair_wait(&sides[BACKLOG].ov), NDX_E_CONNECTION_REFUSED);
	assert_int_equal(opendir_calls, 0);
	for (unsigned i = 0; i <= BACKLOG; i++)
		pair_drop_side(&sides[i]);
}

/* ---- pending connections ---- */

#define PENDING 20
#define FLOOD 400
#define FEW_DESCRIPTORS 256

/* Connect and send nothing. Returns -1 on failure. */
static int connect_socket(const struct pair *p)
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
	const uint64_t end = pair_now() + PAIR_TIMEOUT_MS;

	while (count_descriptors() != count && pair_now() < end)
		(void)poll(NULL, 0, 1);
	assert_int_equal(count_descriptors(), count);
}

/* The listener's side closes this connection. */
static void assert_is_closed(int fd)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};
	char byte;

	assert_int_equal(poll(&in, 1, (int)PAIR_TIMEOUT_MS), 1);
	assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) <= 0);
	(void)close(fd);
}

/* The same, or data arrive before the close. */
static void assert_is_closed_or_answered(int fd)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&in, 1, (int)PAIR_TIMEOUT_MS), 1);
	(void)close(fd);
}

static void pending_connections_end_with_their_listener(void **state)
{
	struct pair *p = *state;
	const unsigned before = count_descriptors();
	int fds[PENDING];

	for (int i = 0; i < PENDING; i++)
		fds[i] = connect_socket(p);
	await_descriptors(before + 2 * PENDING);
	ndx_listener_close(p->listener);
	p->listener = NULL;
	for (int i = 0; i < PENDING; i++)
		assert_is_closed(fds[i]);
	/* A second listener uses as many descriptors as the first one. */
	listen_with_a_backlog(p, 0);
	await_descriptors(before);
}

static void pending_connections_end_with_their_listener_when_no_descriptor_is_left(void **state)
{
	struct pair *p = *state;
	struct pair_used_fds used_fds;
	const unsigned before = count_descriptors();
	const int fd = connect_socket(p);

	await_descriptors(before + 2);
	pair_use_up_descriptors(&used_fds);
	ndx_listener_close(p->listener);
	p->listener = NULL;
	/* The listening socket is closed now, ... */
	(void)close(used_fds.fds[--used_fds.count]);
	assert_int_equal(connect_socket(p), -1);
	/* ... and the connection that was pending is closed, too. */
	assert_is_closed(fd);
	pair_give_back_descriptors(&used_fds);
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
		fds[i] = connect_socket(p);
	pair_connect(p);
	for (int i = 0; i < PENDING; i++)
		assert_is_closed(fds[i]);
	pair_receive(&p->b, 1, 0, 64);
	pair_send(&p->a, 2, 0, 64, 0);
	pair_expect(&p->b, NDX_REQUEST_RECEIVE, 1, NDX_OK);
	pair_disconnect(p);
	pair_drop(p);
}

static void limit_descriptors(rlim_t most)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Connect from a child process, because this process is to run out of descriptors. The child
 * reports when it has connected. */
static pid_t connect_from_child(const struct pair *p, int ready[2])
{
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child != 0)
		return child;
	limit_descriptors(RLIM_INFINITY);
	for (int i = 0; i < FLOOD; i++) {
		if (connect_socket(p) < 0)
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
	child = connect_from_child(p, ready);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	for (int i = 0; i < 3; i++) {
		pair_make(p);
		pair_connect(p);
		pair_disconnect(p);
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

	opendir_errno = err;
	st = ndx_listen_on(p->b.adapter, (const struct sockaddr *)&any, sizeof(any), 0, listener);
	opendir_errno = 0;
	return st;
}

static void a_listener_needs_no_proc(void **state)
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
	pair_disconnect(p);
	pair_drop(p);
}

static void a_listener_without_a_descriptor_fails_with_the_reason(void **state)
{
	struct pair *p = *state;
	struct ndx_listener *listener;

	assert_int_equal(listen_without_list(p, EMFILE, &listener), NDX_E_INSUFFICIENT_RESOURCES);
	assert_non_null(strstr(ndx_last_error(), "ulimit -n"));
}

/* ---- other users ---- */

#define OTHER_UID 12345 /* a uid that is not this process's */
#define HELLO 512       /* bytes; the headers of libfabric and of NDX */
#define TIMES 20

/* The linker resolves ndxp_diag_tcp to __wrap_ndxp_diag_tcp. */
bool __real_ndxp_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct ndxp_diag_end *out);
bool __wrap_ndxp_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct ndxp_diag_end *out);

/* Older kernels report uid 0 for a socket that its process has closed. */
bool __wrap_ndxp_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct ndxp_diag_end *out)
{
	const bool found = __real_ndxp_diag_tcp(fd, near, far, out);

	if (found && !out->owned)
		out->uid = 0;
	return found;
}

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char refusal[1024]; /* the latest log line about a refusal, ... */
static unsigned refusals;  /* ... and their number */

static void record_log(void *arg, const struct ndx_log_record *record)
{
	(void)arg;
	if (strstr(record->text, "refused") == NULL)
		return;
	(void)pthread_mutex_lock(&log_lock);
	(void)snprintf(refusal, sizeof(refusal), "%s", record->text);
	refusals++;
	(void)pthread_mutex_unlock(&log_lock);
}

static void assert_refusal_has(const char *text)
{
	(void)pthread_mutex_lock(&log_lock);
	assert_non_null(strstr(refusal, text));
	(void)pthread_mutex_unlock(&log_lock);
}

/* Record the first bytes that NDX sends to a socket of this test, which stays open until they are
 * read. */
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
	                                       NULL, &side.ov),
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

/* A socket belongs to the user of its thread at the time of socket(). */
static int connect_as(const struct pair *p, uid_t uid)
{
	int fd;

	(void)setfsuid(uid);
	fd = connect_socket(p);
	(void)setfsuid(geteuid());
	assert_true(fd >= 0);
	return fd;
}

static void listen_as(struct pair *p, const char *uri)
{
	assert_int_equal(ndx_adapter_open(uri, &p->b.adapter), NDX_OK);
	listen_with_a_backlog(p, 0);
}

static void restore_listener(struct pair *p, struct ndx_listener *listener,
                             struct ndx_adapter *adapter)
{
	ndx_listener_close(p->listener);
	ndx_adapter_close(p->b.adapter);
	p->listener = listener;
	p->b.adapter = adapter;
}

/* The version of NDX's protocol follows the mark. */
static void change_version(unsigned char *hello, size_t len)
{
	unsigned char *mark = memmem(hello, len, "NDXo", 4);

	assert_non_null(mark);
	mark[4] ^= 0xff;
}

static void refusals_are_logged_once_a_second(void **state)
{
	struct pair *p = *state;
	const uint64_t begin = pair_now();
	unsigned char hello[HELLO];
	const size_t len = record_hello(p, hello);

	change_version(hello, len);
	refusals = 0;
	ndx_log_set_sink(record_log, NULL, NDX_LOG_WARN);
	for (int i = 0; i < TIMES; i++) {
		const int fd = connect_socket(p);

		assert_true(fd >= 0);
		assert_int_equal(send(fd, hello, len, 0), (ssize_t)len);
		assert_is_closed_or_answered(fd);
	}
	ndx_log_set_sink(NULL, NULL, NDX_LOG_WARN);
	(void)pthread_mutex_lock(&log_lock);
	assert_in_range(refusals, 1, 1 + (pair_now() - begin) / 1000);
	(void)pthread_mutex_unlock(&log_lock);
	assert_refusal_has("refused 127.0.0.1:");
}

static void another_user_is_refused(void **state)
{
	struct pair *p = *state;
	unsigned char hello[HELLO];
	size_t len;
	int fd;

	if (geteuid() != 0)
		skip(); /* only root may create sockets of other users */
	ndx_log_set_sink(record_log, NULL, NDX_LOG_WARN);
	len = record_hello(p, hello);
	fd = connect_as(p, OTHER_UID);
	assert_int_equal(send(fd, hello, len, 0), (ssize_t)len);
	assert_is_closed_or_answered(fd);
	assert_refusal_has("refused 127.0.0.1:");
	assert_refusal_has("uid 12345");
	assert_refusal_has("peers=any");
	/* A connection of the own user is accepted. */
	fd = connect_socket(p);
	assert_int_equal(send(fd, hello, len, 0), (ssize_t)len);
	await_requests(p, 1);
	(void)close(fd);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_WARN);
}

static sem_t blocked;
static sem_t released;

/* Block the control thread until the test releases it. */
static void block_thread(struct ndx_overlapped *ov)
{
	struct timespec until;

	(void)ov;
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PAIR_TIMEOUT_MS / 1000;
	(void)sem_post(&blocked);
	(void)sem_timedwait(&released, &until);
}

/* The kernel, or this test in its place, reports that the socket belongs to root. */
static void another_user_that_closes_at_once_is_refused(void **state)
{
	struct pair *p = *state;
	unsigned char hello[HELLO];
	unsigned descriptors;
	size_t len;
	int own[2];

	if (geteuid() != 0)
		skip(); /* only root may create sockets of other users */
	len = record_hello(p, hello);
	pair_make_side(p, &p->b);
	p->b.ov.callback = block_thread;
	assert_int_equal(ndx_listener_get_connection_request(p->listener, p->b.connector, &p->b.ov),
	                 NDX_PENDING);
	own[0] = connect_socket(p);
	assert_int_equal(send(own[0], hello, len, 0), (ssize_t)len);
	assert_int_equal(sem_wait(&blocked), 0);
	descriptors = count_descriptors();
	for (int i = 0; i < TIMES; i++) {
		const int fd = connect_as(p, OTHER_UID);

		assert_int_equal(send(fd, hello, len, 0), (ssize_t)len);
		(void)close(fd);
	}
	own[1] = connect_socket(p);
	assert_int_equal(send(own[1], hello, len, 0), (ssize_t)len);
	assert_int_equal(sem_post(&released), 0);
	/* When the last request has arrived, the listener has accepted all connections before it.
	 * An accepted client keeps its descriptor; a refused one loses it. */
	await_requests(p, 2);
	await_descriptors(descriptors + 2);
	await_requests(p, 2);
	(void)close(own[0]);
	(void)close(own[1]);
	pair_drop_side(&p->b);
}

static void another_user_is_accepted_with_peers_any(void **state)
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
	fd = connect_as(p, OTHER_UID);
	assert_int_equal(send(fd, hello, len, 0), (ssize_t)len);
	await_requests(p, 1);
	(void)close(fd);
	restore_listener(p, listener, adapter);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_full_backlog_needs_no_search_for_sockets),
		CASE(pending_connections_end_with_their_listener),
		CASE(pending_connections_end_with_their_listener_when_no_descriptor_is_left),
		CASE(a_client_without_a_request_is_dropped_in_time),
		CASE(a_flood_of_pending_connections_keeps_no_client_out),
		CASE(a_listener_needs_no_proc),
		CASE(a_listener_without_a_descriptor_fails_with_the_reason),
		CASE(refusals_are_logged_once_a_second),
		CASE(another_user_is_refused),
		CASE(another_user_that_closes_at_once_is_refused),
		CASE(another_user_is_accepted_with_peers_any),
	};

	if (sem_init(&blocked, 0, 0) != 0 || sem_init(&released, 0, 0) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
