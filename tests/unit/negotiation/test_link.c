/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses; and a peer that has gone without a message is noticed, at both ends. */
#include "scripted.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <ndx/negotiation_server.h>

#include <ndx/spi/system.h>
#include "link.h"

static void addresses_are_taken_apart(void **state)
{
	static const struct {
		const char *address;
		const char *host; /* NULL: malformed */
		const char *port;
	} cases[] = {
		{"host:80", "host", "80"},
		{"[::1]:7471", "::1", "7471"},
		{"[fe80::1%eth0]:1", "fe80::1%eth0", "1"},
		{"10.0.0.1:0", "10.0.0.1", "0"},
		{"::1:80", NULL, NULL},
		{"host", NULL, NULL},
		{":80", NULL, NULL},
		{"[]:80", NULL, NULL},
		{"[::1:80", NULL, NULL},
		{"h:123456", NULL, NULL},
		{"h:8 0", NULL, NULL},
	};
	char longest[LINK_HOST_MAX + 8];
	char host[LINK_HOST_MAX];
	char port[LINK_PORT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(link_address_split(cases[i].address, host, port),
		                 cases[i].host != NULL);
		if (cases[i].host == NULL)
			continue;
		assert_string_equal(host, cases[i].host);
		assert_string_equal(port, cases[i].port);
	}
	memset(longest, 'h', sizeof(longest));
	(void)snprintf(longest + LINK_HOST_MAX, 8, ":80");
	assert_false(link_address_split(longest, host, port));
	assert_true(link_address_split(longest + 1, host, port));
}

/* Whether the option is on. */
static bool has(int fd, int level, int option)
{
	int on = 0;
	socklen_t size = sizeof(on);

	return getsockopt(fd, level, option, &on, &size) == 0 && on != 0;
}

/* Is this descriptor a connection with `port` at either end? */
static bool is_end_of(int fd, uint16_t port)
{
	struct sockaddr_in ends[2];
	socklen_t length = sizeof(ends[0]);

	memset(ends, 0, sizeof(ends));
	if (getsockname(fd, (struct sockaddr *)&ends[0], &length) != 0)
		return false;
	length = sizeof(ends[1]);
	if (getpeername(fd, (struct sockaddr *)&ends[1], &length) != 0)
		return false;
	return ntohs(ends[0].sin_port) == port || ntohs(ends[1].sin_port) == port;
}

/* A connection that is silent is noticed, and a frame does not wait for the answer to another. */
static void both_ends_watch_the_connection_and_send_at_once(void **state)
{
	struct rig *r = *state;
	struct ndx_negotiation_server_attr attr;
	struct ndx_negotiation_server *server;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);
	struct ndx_session *s;
	char address[32];
	const char *servers[1] = {address};
	unsigned ends = 0;

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &r->variant;
	attr.variant_count = 1;
	assert_int_equal(ndx_negotiation_server_create(&attr, &server), NDX_OK);
	assert_int_equal(
		ndx_negotiation_server_get_address(server, (struct sockaddr *)&at, &length),
		NDX_OK);
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	s = rig_session(r, servers, 1, WAIT_MS, WAIT_MS);
	assert_int_equal(ndx_session_run(s), NDX_OK);
	for (int fd = 3; fd < 1024; fd++) {
		if (!is_end_of(fd, ntohs(at.sin_port)))
			continue;
		ends++;
		assert_true(has(fd, SOL_SOCKET, SO_KEEPALIVE));
		assert_true(has(fd, IPPROTO_TCP, TCP_NODELAY));
	}
	assert_int_equal(ends, 2);
	ndx_session_close(s);
	ndx_negotiation_server_close(server);
}

/* ---- no memory for a frame of a plugin's transport ---- */

static _Thread_local bool refuse; /* this thread's next realloc fails */

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	if (!refuse)
		return __real_realloc(memory, size);
	refuse = false;
	return NULL;
}

/* The thread that waits for the call reads from the transport. */
static void a_frame_without_memory_ends_the_session(void **state)
{
	struct rig *r = *state;
	struct ndx_session_attr attr;
	struct ndx_variant *v;
	struct ndx_session *s;
	struct server server;
	char address[32];
	const char *servers[1] = {address};

	server_start(&server, GOOD, r->variant);
	(void)snprintf(address, sizeof(address), "bus %s", strchr(server.address, ':') + 1);
	assert_int_equal(ndx_negotiation_get_variant(r->negotiation, "test", "bus", NULL, 0, &v),
	                 NDX_OK);
	ndx_session_attr_init(&attr);
	attr.variant = v;
	attr.servers = servers;
	attr.server_count = 1;
	assert_int_equal(ndx_session_create(&attr, &s), NDX_OK);
	refuse = true;
	assert_int_equal(ndx_session_connect(s), NDX_E_REMOTE_ERROR);
	assert_false(refuse);
	says("there is no memory for it");
	ndx_session_close(s);
	ndx_variant_close(v);
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_taken_apart),
		cmocka_unit_test_setup_teardown(both_ends_watch_the_connection_and_send_at_once,
	                                        rig_begin, rig_end),
		cmocka_unit_test_setup_teardown(a_frame_without_memory_ends_the_session, rig_begin,
	                                        rig_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
