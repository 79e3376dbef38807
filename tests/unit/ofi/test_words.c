/* SPDX-License-Identifier: BSD-2-Clause */
/* The words for a failure name its cause, and no other one. */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ndx/spi/tcp_diag.h>
#include "pair.h"

#define SERVERS_UID 12345 /* uids that are not this process's */
#define CLIENTS_UID 12346
#define MOST_DESCRIPTORS 128

static uint32_t servers_uid; /* that the kernel tells of the listener's socket; 0: the real one */

/* The linker resolves ndxp_diag_tcp to __wrap_ndxp_diag_tcp. */
bool __real_ndxp_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct ndxp_diag_end *out);
bool __wrap_ndxp_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct ndxp_diag_end *out);

bool __wrap_ndxp_diag_tcp(int fd, const struct sockaddr_storage *near,
                          const struct sockaddr_storage *far, struct ndxp_diag_end *out)
{
	const bool found = __real_ndxp_diag_tcp(fd, near, far, out);

	if (found && far == NULL && servers_uid != 0)
		out->uid = servers_uid;
	return found;
}

/* The program of another user refuses with these bytes; the text of the client. */
static void refuse_with(struct pair *p, const void *data, size_t data_length, char text[512])
{
	size_t length = 512;

	servers_uid = SERVERS_UID;
	pair_make(p);
	pair_request(p);
	assert_int_equal(ndx_connector_reject(p->b.connector, data, data_length), NDX_OK);
	assert_int_equal(pair_wait(&p->a.ov), NDX_E_CONNECTION_REFUSED);
	assert_int_equal(ndx_connector_get_error_text(p->a.connector, text, &length), NDX_OK);
	pair_drop(p);
	servers_uid = 0;
}

static void words_of_another_users_program_are_the_cause(void **state)
{
	char text[512];

	refuse_with(*state, "go away", 7, text);
	assert_non_null(strstr(text, "the peer's program refused; the peer says: go away ("));
	assert_null(strstr(text, "another user"));
	refuse_with(*state, "\001\002", 2, text);
	assert_non_null(
		strstr(text, "the peer's program refused; it sent 2 bytes of private data ("));
}

static void root_is_not_refused_for_its_user(void **state)
{
	char text[512];

	if (geteuid() != 0)
		skip(); /* this process is not root */
	refuse_with(*state, NULL, 0, text);
	assert_non_null(strstr(text, "the peer refused ("));
}

static void another_user_is_told_of_the_peers_user(void **state)
{
	const uid_t uid = geteuid();
	char text[512];

	if (uid == 0)
		assert_int_equal(seteuid(CLIENTS_UID), 0);
	refuse_with(*state, NULL, 0, text);
	assert_int_equal(seteuid(uid), 0);
	assert_non_null(strstr(text, "it runs as another user"));
	assert_non_null(strstr(text, "peers=any"));
}

/* The status of a connect, and the text of the failure. */
static enum ndx_status connect_in_vain(const char *uri, const struct sockaddr *to, socklen_t len,
                                       char text[512])
{
	size_t length = 512;

	struct pair_side side = {0};
	struct pair p = {0};
	enum ndx_status st;

	ndx_qp_attr_init(&p.attr);
	assert_int_equal(ndx_adapter_open(uri, &side.adapter), NDX_OK);
	pair_make_side(&p, &side);
	st = ndx_connector_connect(side.connector, side.qp, to, len, NULL, &side.ov);
	if (st == NDX_PENDING)
		st = pair_wait(&side.ov);
	assert_int_equal(ndx_connector_get_error_text(side.connector, text, &length), NDX_OK);
	pair_drop_side(&side);
	ndx_adapter_close(side.adapter);
	return st;
}

static void the_loopback_reaches_this_host_only(void **state)
{
	char text[512];
	/* 203.0.113.0/24 is for documentation */
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(0xcb007101)};
	const enum ndx_status st = connect_in_vain("ofi:tcp?iface=lo&trust=lan",
	                                           (const struct sockaddr *)&to, sizeof(to), text);

	(void)state;
	if (st == NDX_E_NETWORK_UNREACHABLE)
		skip(); /* a host without a route */
	assert_int_equal(st, NDX_E_INVALID_ADDRESS);
	assert_non_null(strstr(text, "reaches this host only; use ofi:tcp?trust=lan"));
}

/* Without trust=lan, which would not help an adapter that the URI has bound to the loopback. */
static void the_adapter_that_reaches_another_host_is_named(void **state)
{
	static const char *const bound[] = {"ofi:tcp?iface=lo", "ofi:tcp?addr=127.0.0.1"};
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(0xcb007101)};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bound) / sizeof(bound[0]); i++) {
		assert_int_equal(
			connect_in_vain(bound[i], (const struct sockaddr *)&to, sizeof(to), text),
			NDX_E_INVALID_ADDRESS);
		assert_non_null(strstr(text, "this adapter is the loopback's"));
		assert_non_null(strstr(text, "use ofi:tcp?trust=lan"));
		assert_null(strstr(text, "add trust=lan"));
	}
	assert_int_equal(connect_in_vain("ofi:tcp", (const struct sockaddr *)&to, sizeof(to), text),
	                 NDX_E_INVALID_ADDRESS);
	assert_non_null(strstr(text, "add trust=lan to the adapter's URI"));
}

static void a_link_local_address_needs_its_interface(void **state)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(1)};
	enum ndx_status st;
	char text[512];

	(void)state;
	to.sin6_addr.s6_addr[0] = 0xfe;
	to.sin6_addr.s6_addr[1] = 0x80;
	to.sin6_addr.s6_addr[15] = 1;
	st = connect_in_vain("ofi:tcp?trust=lan", (const struct sockaddr *)&to, sizeof(to), text);
	if (st == NDX_E_NETWORK_UNREACHABLE || st == NDX_E_HOST_UNREACHABLE)
		skip(); /* a host without IPv6 */
	assert_int_equal(st, NDX_E_INVALID_ADDRESS);
	assert_non_null(strstr(text, "needs %INTERFACE"));
}

static void a_peer_that_does_not_answer_is_named(void **state)
{
	struct pair *p = *state;
	struct ndx_connector *c = NULL;
	char peer[48], own[80];

	(void)snprintf(peer, sizeof(peer), " to 127.0.0.1:%u: no answer in 30 ms; ",
	               ntohs(((struct sockaddr_in *)&p->address)->sin_port));
	assert_int_equal(ndx_get_request(p->b.adapter, p->listener, 0, &c), NDX_E_IO_TIMEOUT);
	(void)snprintf(own, sizeof(own),
	               "ndx_get_request: 127.0.0.1:%u: no client has come in 0 ms; ",
	               ntohs(((struct sockaddr_in *)&p->address)->sin_port));
	assert_non_null(strstr(ndx_last_error(), own));
	pair_make(p);
	assert_int_equal(ndx_connect_to(p->a.adapter, p->a.qp, (struct sockaddr *)&p->address,
	                                sizeof(struct sockaddr_in), NULL, 0, 30, &c),
	                 NDX_E_IO_TIMEOUT);
	assert_non_null(strstr(ndx_last_error(), peer));
	assert_non_null(strstr(ndx_last_error(), "firewall"));
	assert_non_null(strstr(ndx_last_error(), " qp#"));
	pair_drop(p);
}

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static bool told; /* the log has said that no descriptor is left for a connection */

static void record_log(void *arg, const struct ndx_log_record *record)
{
	(void)arg;
	if (strstr(record->text, "no connection is accepted at the moment: Too many") == NULL)
		return;
	(void)pthread_mutex_lock(&log_lock);
	told = true;
	(void)pthread_mutex_unlock(&log_lock);
}

static bool is_told(void)
{
	bool is;

	(void)pthread_mutex_lock(&log_lock);
	is = told;
	(void)pthread_mutex_unlock(&log_lock);
	return is;
}

/* libfabric does not report that its accept() failed. */
static void a_listener_without_a_descriptor_says_so(void **state)
{
	struct pair *p = *state;
	const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int taken[MOST_DESCRIPTORS];
	struct rlimit limit, low;
	size_t count = 0;

	assert_true(socket_fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = MOST_DESCRIPTORS;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	told = false;
	ndx_log_set_sink(record_log, NULL, NDX_LOG_WARN);
	while (count < MOST_DESCRIPTORS && (taken[count] = dup(socket_fd)) >= 0)
		count++;
	assert_in_range(count, 1, MOST_DESCRIPTORS - 1);
	assert_int_equal(connect(socket_fd, (const struct sockaddr *)&p->address,
	                         sizeof(struct sockaddr_in)),
	                 0);
	for (int i = 0; i < 1000 && !is_told(); i++)
		(void)poll(NULL, 0, 10);
	while (count > 0)
		(void)close(taken[--count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	assert_true(is_told());
	/* the listener goes on */
	pair_make(p);
	pair_connect(p);
	pair_disconnect(p);
	pair_drop(p);
	(void)close(socket_fd);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(words_of_another_users_program_are_the_cause),
		CASE(root_is_not_refused_for_its_user),
		CASE(another_user_is_told_of_the_peers_user),
		cmocka_unit_test(the_loopback_reaches_this_host_only),
		cmocka_unit_test(the_adapter_that_reaches_another_host_is_named),
		cmocka_unit_test(a_link_local_address_needs_its_interface),
		CASE(a_peer_that_does_not_answer_is_named),
		CASE(a_listener_without_a_descriptor_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
