/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: servers of the negotiation. */
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include <ndx/ndx.h>

/* A server that answers sessions of one variant on this host; `events` makes the queue pairs. */
enum ndx_status example_serve(struct ndx_variant *variant,
                              const struct ndx_negotiation_server_events *events,
                              struct ndx_negotiation_server **out)
{
	struct ndx_negotiation_server_attr attr;
	struct sockaddr_in own;
	socklen_t length = sizeof(own);
	enum ndx_status st;

	ndx_negotiation_server_attr_init(&attr);
	attr.address = "127.0.0.1:0";
	attr.variants = &variant;
	attr.variant_count = 1;
	attr.events = *events;
	st = ndx_negotiation_server_create(&attr, out);
	if (st != NDX_OK)
		return st;
	st = ndx_negotiation_server_get_address(*out, (struct sockaddr *)&own, &length);
	if (st == NDX_OK)
		printf("port %u\n", ntohs(own.sin_port));
	else
		ndx_negotiation_server_close(*out);
	return st;
}

/* How many sessions there were, and what those of now are doing, as JSON. */
enum ndx_status example_sessions(struct ndx_negotiation_server *server)
{
	struct ndx_negotiation_server_stats stats = {.size = sizeof(stats)};
	char *json;
	enum ndx_status st = ndx_negotiation_server_get_stats(server, &stats);

	if (st != NDX_OK)
		return st;
	printf("%" PRIu64 " accepted, %" PRIu64 " failed\n", stats.accepted, stats.failed);
	st = ndx_negotiation_server_snapshot(server, &json);
	if (st == NDX_OK) {
		puts(json);
		free(json);
	}
	return st;
}

/* What a binding for another language calls. */
void example_server_sizes(struct ndx_negotiation_server_attr *attr, size_t size)
{
	ndx_negotiation_server_attr_init_sized(attr, size);
}
