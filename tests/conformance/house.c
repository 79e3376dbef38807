/* SPDX-License-Identifier: BSD-2-Clause */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include "house.h"

static enum ndx_status on_open(void *arg, struct ndx_session *session,
                               struct ndx_session_resources *resources)
{
	struct house *h = arg;
	uint32_t next;

	(void)session;
	for (int ms = 0; ms < WAIT_MS && __atomic_load_n(&h->held, __ATOMIC_SEQ_CST) != 0; ms++)
		(void)poll(NULL, 0, 1);
	next = __atomic_fetch_add(&h->given, 1, __ATOMIC_SEQ_CST);
	if (next >= __atomic_load_n(&h->count, __ATOMIC_ACQUIRE))
		return NDX_E_INSUFFICIENT_RESOURCES;
	resources->connector = h->sides[next]->conn;
	resources->qp = h->sides[next]->qp;
	return NDX_OK;
}

bool house_open(struct house *h, struct check *c, const struct ndx_plugin *plugin)
{
	memset(h, 0, sizeof(*h));
	h->c = c;
	return check_status(c, ndx_negotiation_create(&h->negotiation), NDX_OK, "a framework") &&
	       check_status(c, ndx_negotiation_register(h->negotiation, plugin), NDX_OK,
	                    "register") &&
	       check_status(c,
	                    ndx_negotiation_get_variant(h->negotiation, plugin->name, "as-it-is",
	                                                NULL, 0, &h->variant),
	                    NDX_OK, "get_variant");
}

bool house_serve(struct house *h, const char *address)
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in at;
	socklen_t length = sizeof(at);

	ndx_negotiation_server_attr_init(&attr);
	attr.address = address;
	attr.variants = &h->variant;
	attr.variant_count = 1;
	attr.tls = h->tls;
	attr.events = (struct ndx_negotiation_server_events){.open = on_open, .arg = h};
	if (h->tune != NULL)
		h->tune(&attr);
	if (!check_status(h->c, ndx_negotiation_server_create(&attr, &h->server), NDX_OK,
	                  "a server"))
		return false;
	(void)ndx_negotiation_server_get_address(h->server, (struct sockaddr *)&at, &length);
	(void)snprintf(h->address, sizeof(h->address), "127.0.0.1:%u", ntohs(at.sin_port));
	return true;
}

void house_give(struct house *h, struct side *side)
{
	const uint32_t count = __atomic_load_n(&h->count, __ATOMIC_RELAXED);

	h->sides[count] = side;
	__atomic_store_n(&h->count, count + 1, __ATOMIC_RELEASE);
}

void house_session_attr(const struct house *h, const struct side *side, const char *const *address,
                        struct ndx_session_attr *attr)
{
	ndx_session_attr_init(attr);
	attr->variant = h->variant;
	attr->servers = address;
	attr->server_count = 1;
	attr->attempts = 1;
	attr->backoff_ms = 5;
	attr->connector = side->conn;
	attr->qp = side->qp;
}

bool house_session(const struct house *h, const struct side *side, struct ndx_session **out)
{
	const char *const address = h->address;
	struct ndx_session_attr attr;

	house_session_attr(h, side, &address, &attr);
	return check_status(h->c, ndx_session_create(&attr, out), NDX_OK, "a session");
}

void house_stop(struct house *h)
{
	ndx_negotiation_server_close(h->server);
	h->server = NULL;
	h->given = 0;
	h->count = 0;
}

void house_close(struct house *h)
{
	house_stop(h);
	ndx_variant_close(h->variant);
	if (h->negotiation)
		check_status(h->c, ndx_negotiation_close(h->negotiation), NDX_OK,
		             "close the framework");
}

bool house_await(const struct house *h, uint32_t alive)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};

	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (ndx_negotiation_server_get_stats(h->server, &stats) == NDX_OK &&
		    stats.alive == alive)
			return true;
		(void)poll(NULL, 0, 1);
	}
	return check_that(h->c, false, "the server has %u sessions, not %u", stats.alive, alive);
}

bool house_key_file(char path[HOUSE_PATH], const char *line)
{
	ssize_t wrote = -1;
	int fd;

	(void)snprintf(path, HOUSE_PATH, "/tmp/ndx-conformance-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return false;
	if (fchmod(fd, S_IRUSR | S_IWUSR) == 0)
		wrote = write(fd, line, strlen(line));
	(void)close(fd);
	return wrote == (ssize_t)strlen(line);
}

int house_reserve(char address[32])
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	                         .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(at);
	const int on = 1;

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&at, &length) == 0) {
		(void)snprintf(address, 32, "127.0.0.1:%u", ntohs(at.sin_port));
		return fd;
	}
	if (fd >= 0)
		(void)close(fd);
	return -1;
}
