/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: listeners. */
#include <netinet/in.h>
#include <stdio.h>

#include <ndx/ndx.h>

/* Listen at any free port of an address, without the helpers, and print the port. */
enum ndx_status example_listen(struct ndx_adapter *adapter, struct in_addr own,
                               struct ndx_listener **out)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = own};
	socklen_t length = sizeof(address);
	enum ndx_status st = ndx_listener_create(adapter, out);

	if (st != NDX_OK)
		return st;
	st = ndx_listener_bind(*out, (struct sockaddr *)&address, length);
	if (st == NDX_OK)
		st = ndx_listener_listen(*out, 64);
	if (st == NDX_OK)
		st = ndx_listener_get_local_address(*out, (struct sockaddr *)&address, &length);
	if (st == NDX_OK)
		printf("port %u\n", ntohs(address.sin_port));
	else
		ndx_listener_close(*out);
	return st;
}

/* Wait a minute for a request; the connector holds it then. */
enum ndx_status example_wait_request(struct ndx_listener *listener, struct ndx_connector *connector)
{
	struct ndx_overlapped ov = {0};
	enum ndx_status st = ndx_listener_get_connection_request(listener, connector, &ov);

	if (st == NDX_PENDING)
		st = ndx_overlapped_wait(&ov, 60000);
	if (st == NDX_PENDING) {
		(void)ndx_listener_cancel(listener);
		st = ndx_overlapped_status(&ov); /* NDX_E_CANCELED, or a request came just then */
	}
	return st;
}
