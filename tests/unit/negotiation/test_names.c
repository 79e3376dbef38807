/* SPDX-License-Identifier: BSD-2-Clause */
/* Names: of a server that has several addresses, and of one that the resolver cannot find. */
#include "scripted.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ndx/negotiation_server.h>

#include <ndx/spi/sockaddr.h>
#include "fake_names.h"

static uint32_t get(const uint32_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

/* ---- the client ---- */

static int set_up(void **state)
{
	names_reset();
	return rig_begin(state);
}

/* The framework ends behind its last lookup. */
static int end(void **state)
{
	names_go();
	if (rig_end(state) != 0)
		return -1;
	return get(&names.hanging) == get(&names.answered) ? 0 : -1;
}

static void a_name_becomes_an_address(void **state)
{
	struct rig *r = *state;
	struct ndx_session *s;
	struct server server;
	char address[32];
	const char *servers[1] = {address};

	server_start(&server, GOOD, r->variant);
	(void)snprintf(address, sizeof(address), "one.test%s", strchr(server.address, ':'));
	s = rig_session(r, servers, 1, WAIT_MS, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	ndx_session_close(s);
	assert_int_equal(get(&names.asked), 1);
	/* A number needs no resolver. */
	servers[0] = server.address;
	s = rig_session(r, servers, 1, WAIT_MS, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	ndx_session_close(s);
	assert_int_equal(get(&names.asked), 1);
	server_stop(&server);
}

/* The addresses of a name may be of a family that no network of this host has: loopback's alone. */
static void a_name_that_no_network_of_this_host_reaches_is_asked_for_again(void **state)
{
	static const struct {
		const char *host;
		enum ndx_status status;
		uint32_t asked;
	} cases[] = {
		{"family.test", NDX_OK, 2},
		{"noname.test", NDX_OK, 2},
		/* Another question would bring no more. */
		{"again.test", NDX_E_HOST_UNREACHABLE, 1},
	};
	struct rig *r = *state;
	struct server server;
	char address[32];
	const char *servers[1] = {address};

	server_start(&server, GOOD, r->variant);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ndx_session_attr attr;
		struct ndx_session *s;
		enum ndx_status st;

		names_reset();
		(void)snprintf(address, sizeof(address), "%s%s", cases[i].host,
		               strchr(server.address, ':'));
		ndx_session_attr_init(&attr);
		attr.variant = r->variant;
		attr.servers = servers;
		attr.server_count = 1;
		attr.attempts = 1;
		assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
		st = ndx_session_run(s);
		if (st != cases[i].status)
			fail_msg("%s: %s: %s", address, ndx_status_name(st), ndx_last_error());
		assert_int_equal(get(&names.asked), cases[i].asked);
		ndx_session_close(s);
	}
	server_stop(&server);
}

static void an_attempt_ends_though_the_resolver_hangs(void **state)
{
	const char *address = "hangs.test:1";
	struct rig *r = *state;
	struct ndx_session_error e;
	struct ndx_session *s = rig_session(r, &address, 1, 60, WAIT_MS);

	assert_int_equal(ndx_session_run(s), NDX_E_IO_TIMEOUT);
	says("server hangs.test:1: the system's resolver has no answer in time");
	e.size = sizeof(e);
	assert_int_equal(ndx_session_get_error(s, &e), NDX_OK);
	assert_int_equal(e.layer, NDX_LAYER_TRANSPORT);
	ndx_session_close(s);
	assert_int_equal(get(&names.answered), 0);
	/* Three attempts have waited for one lookup. */
	assert_int_equal(get(&names.hanging), 1);
}

static void the_backup_is_reached_though_the_resolver_hangs(void **state)
{
	struct rig *r = *state;
	struct ndx_session *s;
	struct server server;
	const char *addresses[2] = {"hangs.test:1", server.address};

	server_start(&server, GOOD, r->variant);
	s = rig_session(r, addresses, 2, 1000, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	assert_string_equal(ndx_session_get_server(s), server.address);
	assert_int_equal(get(&names.answered), 0);
	ndx_session_close(s);
	server_stop(&server);
}

static void *run_session(void *arg)
{
	return (void *)(intptr_t)ndx_session_run(arg);
}

static void a_cancel_ends_the_wait_for_the_resolver(void **state)
{
	const char *address = "hangs.test:1";
	struct rig *r = *state;
	struct ndx_session *s[2];
	pthread_t threads[2];
	void *result;

	for (int i = 0; i < 2; i++) {
		s[i] = rig_session(r, &address, 1, WAIT_MS, WAIT_MS);
		assert_int_equal(pthread_create(&threads[i], NULL, run_session, s[i]), 0);
	}
	while (get(&names.hanging) == 0)
		(void)poll(NULL, 0, 1);
	for (int i = 0; i < 2; i++) {
		ndx_session_cancel(s[i]);
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_int_equal((intptr_t)result, NDX_E_CANCELED);
		ndx_session_close(s[i]);
	}
	assert_int_equal(get(&names.answered), 0);
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	(void)closedir(dir);
	return count;
}

/* An answer that comes late is of use to the next session that asks for the name. */
static void a_late_answer_is_taken(void **state)
{
	struct rig *r = *state;
	struct ndx_session *s[2];
	struct server server;
	char address[32] = "127.0.0.1:1";
	const char *servers[1] = {address};
	unsigned before;
	pthread_t thread;
	void *result;

	/* The framework's loop comes with its first session, and stays. */
	ndx_session_close(rig_session(r, servers, 1, WAIT_MS, WAIT_MS));
	before = count_descriptors();
	server_start(&server, GOOD, r->variant);
	(void)snprintf(address, sizeof(address), "hangs.test%s", strchr(server.address, ':'));
	s[0] = rig_session(r, servers, 1, 30, WAIT_MS);
	assert_int_equal(ndx_session_run(s[0]), NDX_E_IO_TIMEOUT);
	s[1] = rig_session(r, servers, 1, WAIT_MS, WAIT_MS);
	assert_int_equal(pthread_create(&thread, NULL, run_session, s[1]), 0);
	names_go();
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((intptr_t)result, NDX_OK);
	for (int i = 0; i < 2; i++)
		ndx_session_close(s[i]);
	server_stop(&server);
	/* No session waits for the lookup any more, and it is not kept. */
	assert_int_equal(count_descriptors(), before);
}

/* ---- the server ---- */

static enum ndx_status serve(struct rig *r, const char *address,
                             struct ndx_negotiation_server **server, struct sockaddr_storage *at)
{
	struct ndx_negotiation_server_attr attr;
	socklen_t length = sizeof(*at);
	enum ndx_status st;

	ndx_negotiation_server_attr_init(&attr);
	attr.address = address;
	attr.variants = &r->variant;
	attr.variant_count = 1;
	attr.allow_plaintext = true;
	st = ndx_negotiation_server_create(&attr, server);
	if (st != NDX_OK)
		return st;
	assert_int_equal(
		ndx_negotiation_server_get_address(*server, (struct sockaddr *)at, &length),
		NDX_OK);
	return NDX_OK;
}

/* The first address is 127.0.0.1. */
static enum ndx_status serve_at(struct rig *r, const char *address,
                                struct ndx_negotiation_server **server, uint16_t *port)
{
	struct sockaddr_storage at;
	enum ndx_status st = serve(r, address, server, &at);

	if (st != NDX_OK)
		return st;
	assert_int_equal(((const struct sockaddr_in *)&at)->sin_addr.s_addr,
	                 htonl(INADDR_LOOPBACK));
	*port = ndxp_sockaddr_port(&at);
	return NDX_OK;
}

static enum ndx_status call(struct rig *r, const char *host, uint16_t port)
{
	char address[32];
	const char *servers[1] = {address};
	struct ndx_session *s;
	enum ndx_status st;

	(void)snprintf(address, sizeof(address), "%s:%u", host, port);
	s = rig_session(r, servers, 1, WAIT_MS, WAIT_MS);
	st = ndx_session_run(s);
	ndx_session_close(s);
	return st;
}

struct heard {
	uint32_t listens; /* atomic: records of an address that is listened at, ... */
	uint32_t not ;    /* ... and of one that is not */
};

static void on_record(void *arg, const struct ndx_log_record *record)
{
	struct heard *heard = arg;

	if (strstr(record->text, "negotiation server: listens at 127.0.0.") != NULL)
		(void)__atomic_add_fetch(&heard->listens, 1, __ATOMIC_SEQ_CST);
	if (strstr(record->text, "negotiation server: does not listen at 192.0.2.1") != NULL)
		(void)__atomic_add_fetch(&heard->not, 1, __ATOMIC_SEQ_CST);
}

static void a_server_listens_at_all_addresses_of_its_name(void **state)
{
	struct ndx_negotiation_server *server;
	struct rig *r = *state;
	struct heard heard = {0};
	uint16_t port = 0;

	ndx_log_set_sink(on_record, &heard, NDX_LOG_INFO);
	/* Now and then a number that is free at one address is taken at the other. */
	for (int round = 0; round < 8; round++) {
		if (serve_at(r, "two.test:0", &server, &port) != NDX_OK)
			fail_msg("%s", ndx_last_error());
		assert_int_equal(call(r, "127.0.0.1", port), NDX_OK);
		assert_int_equal(call(r, "127.0.0.2", port), NDX_OK);
		ndx_negotiation_server_close(server);
	}
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	assert_int_equal(get(&heard.listens), 16);
	assert_int_equal(get(&heard.not ), 0);
}

static void an_address_of_another_host_is_left_out(void **state)
{
	struct ndx_negotiation_server *server = NULL;
	struct rig *r = *state;
	struct heard heard = {0};
	uint16_t port = 0;

	ndx_log_set_sink(on_record, &heard, NDX_LOG_INFO);
	assert_int_equal(serve_at(r, "half.test:0", &server, &port), NDX_OK);
	ndx_log_set_sink(NULL, NULL, NDX_LOG_ERROR);
	assert_int_equal(get(&heard.listens), 1);
	assert_int_equal(get(&heard.not ), 1);
	assert_int_equal(call(r, "127.0.0.1", port), NDX_OK);
	ndx_negotiation_server_close(server);
	assert_int_equal(serve_at(r, "twice.test:0", &server, &port), NDX_OK);
	assert_int_equal(call(r, "127.0.0.1", port), NDX_OK);
	ndx_negotiation_server_close(server);
	assert_int_equal(serve_at(r, "away.test:0", &server, &port), NDX_E_INVALID_ADDRESS);
	says("cannot listen at 192.0.2.1:0 (away.test:0)");
}

/* Does a socket at :: take IPv4 as well? Negative: there is no IPv6. */
static int takes_both(void)
{
	const struct sockaddr_in6 at = {.sin6_family = AF_INET6,
	                                .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(int);
	int only = 0;
	int both = -1;

	if (fd < 0)
		return -1;
	/* Before bind(): an address other than :: makes every socket one of IPv6 only. */
	if (getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &length) == 0 &&
	    bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
		both = only == 0;
	(void)close(fd);
	return both;
}

/* A socket at :: takes IPv4 as well, unless the name has addresses of IPv4, which want the port. */
static void a_server_listens_at_all_addresses_of_both_families(void **state)
{
	static const char *const addresses[] = {"both.test:0", "htob.test:0", "[::]:0"};
	struct ndx_negotiation_server *server;
	struct rig *r = *state;
	struct sockaddr_storage at;
	const int both = takes_both();

	if (both < 0) {
		print_message("this host has no IPv6\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		const bool named = i < 2;

		if (serve(r, addresses[i], &server, &at) != NDX_OK)
			fail_msg("%s: %s", addresses[i], ndx_last_error());
		if (named || both > 0)
			assert_int_equal(call(r, "127.0.0.1", ndxp_sockaddr_port(&at)), NDX_OK);
		assert_int_equal(call(r, "[::1]", ndxp_sockaddr_port(&at)), NDX_OK);
		ndx_negotiation_server_close(server);
	}
}

/* Bound, and not listening: no other socket has the number, but for one that shares it. */
static int reserve(in_addr_t host, uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_port = htons(*port),
	                         .sin_addr = {.s_addr = htonl(host)}};
	socklen_t length = sizeof(at);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
		(void)close(fd);
		return -1;
	}
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

/* One number at both addresses of two.test. */
static uint16_t reserve_both(int fds[2])
{
	for (int tried = 0; tried < 100; tried++) {
		uint16_t port = 0;

		fds[0] = reserve(INADDR_LOOPBACK, &port);
		assert_true(fds[0] >= 0);
		fds[1] = reserve(INADDR_LOOPBACK + 1, &port);
		if (fds[1] >= 0)
			return port;
		(void)close(fds[0]);
	}
	fail_msg("no number is free at both addresses");
	return 0;
}

/* Half a server would send half of its clients to another server. */
static void a_port_that_is_taken_at_one_address_is_taken(void **state)
{
	struct ndx_negotiation_server *server = NULL;
	struct rig *r = *state;
	int reserved[2];
	uint16_t port = reserve_both(reserved);
	const int fd = reserve(INADDR_LOOPBACK + 1, &port);
	char address[32];
	char text[64];

	assert_true(fd >= 0);
	assert_int_equal(listen(fd, 1), 0);
	(void)snprintf(address, sizeof(address), "two.test:%u", port);
	(void)snprintf(text, sizeof(text), "cannot listen at 127.0.0.2:%u", port);
	assert_int_equal(serve_at(r, address, &server, &port), NDX_E_SHARING_VIOLATION);
	says(text);
	assert_null(server);
	(void)close(fd);
	assert_int_equal(serve_at(r, address, &server, &port), NDX_OK);
	ndx_negotiation_server_close(server);
	(void)close(reserved[0]);
	(void)close(reserved[1]);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, end)
	const struct CMUnitTest tests[] = {
		T(a_name_becomes_an_address),
		T(a_name_that_no_network_of_this_host_reaches_is_asked_for_again),
		T(an_attempt_ends_though_the_resolver_hangs),
		T(the_backup_is_reached_though_the_resolver_hangs),
		T(a_cancel_ends_the_wait_for_the_resolver),
		T(a_late_answer_is_taken),
		T(a_server_listens_at_all_addresses_of_its_name),
		T(an_address_of_another_host_is_left_out),
		T(a_server_listens_at_all_addresses_of_both_families),
		T(a_port_that_is_taken_at_one_address_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
