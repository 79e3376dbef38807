/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: overlapped work. */
#include <stdio.h>

#include <ndx/ndx.h>

/* Wait for an operation that a call has returned NDX_PENDING for, and have a look before. */
enum ndx_status example_outcome(struct ndx_overlapped *ov)
{
	if (ndx_overlapped_status(ov) == NDX_PENDING)
		fprintf(stderr, "still under way\n");
	return ndx_overlapped_wait(ov, NDX_INFINITE);
}

/* Operations complete into a port: take them, and a wake-up of the program's own. */
enum ndx_status example_port(struct ndx_connector *connector)
{
	struct ndx_overlapped gone, wake, *done[8];
	struct ndx_port *port;
	size_t got;
	enum ndx_status st = ndx_port_create(&port);

	if (st != NDX_OK)
		return st;
	ndx_overlapped_init(&gone);
	ndx_overlapped_init(&wake);
	gone.port = port;
	printf("readable when something completed: %d\n", ndx_port_get_fd(port));
	st = ndx_connector_notify_disconnect(connector, &gone);
	ndx_port_post(port, &wake); /* as if it had completed */
	got = ndx_port_get(port, done, 8, 1000);
	printf("%zu completed\n", got);
	if (st == NDX_PENDING) {
		(void)ndx_connector_cancel(connector);
		st = ndx_overlapped_status(&gone);
	}
	ndx_port_close(port);
	return st;
}

/* A queue of the program's own takes what completes; called by the adapter's control thread. */
void example_take(struct ndx_overlapped *ov)
{
	*(bool *)ov->context = true;
}

/* A port that hands everything to that function. */
enum ndx_status example_sink_port(struct ndx_port **out)
{
	return ndx_port_create_sink(example_take, out);
}
