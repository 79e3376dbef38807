/* SPDX-License-Identifier: BSD-2-Clause */
/* connection.*: what a connector may be used for, and when no longer. */
#include <string.h>

#include "cases.h"
#include "traffic.h"

/* A connector that carried an attempt as the passive side: it takes nothing any more. */
static void is_used_up(struct check *c, struct pair *p)
{
	struct ndx_overlapped ov;

	ndx_overlapped_init(&ov);
	check_status(c, side_accept(&p->b, NULL, 0), NDX_E_CONNECTION_INVALID, "accept again");
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 0), NDX_E_CONNECTION_INVALID,
	             "reject afterwards");
	check_status(c, ndx_connector_complete_connect(p->b.conn, &ov), NDX_E_CONNECTION_INVALID,
	             "complete_connect at the passive side");
	check_status(c, ndx_listener_get_connection_request(p->listener, p->b.conn, &ov),
	             NDX_E_INVALID_DEVICE_STATE, "another request into it");
	check_status(c, side_connect(&p->b, &p->address, NULL, 0), NDX_E_INVALID_DEVICE_STATE,
	             "connect with it");
	check_status(c, ndx_connector_disconnect(p->b.conn, &ov), NDX_E_CONNECTION_INVALID,
	             "disconnect of what was never connected");
}

void case_connection_failed_accept_uses_its_connector_up(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p) || !pair_answer(p))
		return;
	check_status(c, ndx_connector_reject(p->a.conn, NULL, 0), NDX_OK, "reject of the answer");
	check_ends(c, &p->b.ov, NDX_E_CONNECTION_REFUSED, "accept");
	is_used_up(c, p);
}

void case_connection_cancelled_accept_uses_its_connector_up(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p) || !pair_answer(p))
		return;
	check_status(c, ndx_connector_cancel(p->b.conn), NDX_OK, "cancel");
	check_status(c, ndx_overlapped_status(&p->b.ov), NDX_E_CANCELED, "accept");
	is_used_up(c, p);
}

void case_connection_rejecting_uses_its_connector_up(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);

	if (!p || !pair_ask(p))
		return;
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 0), NDX_OK, "reject");
	check_ends(c, &p->a.ov, NDX_E_CONNECTION_REFUSED, "connect");
	is_used_up(c, p);
	/* the other side's may try again, and its queue pair, too */
	side_new_connector(&p->b);
	(void)(pair_connect(p) && message_passes(&p->a, &p->b, 64));
}

/* Data that are announced and not there are refused, and nothing has changed by it. */
void case_connection_private_data_has_to_be_there(struct check *c)
{
	struct pair *p = pair_open(c, NULL, NULL);
	size_t length = 4;

	if (!p)
		return;
	check_status(c, side_connect(&p->a, &p->address, NULL, 4), NDX_E_ACCESS_VIOLATION,
	             "connect with 4 bytes at NULL");
	pair_ask(p);
	check_status(c, side_accept(&p->b, NULL, 4), NDX_E_ACCESS_VIOLATION,
	             "accept with 4 bytes at NULL");
	check_status(c, ndx_connector_reject(p->b.conn, NULL, 4), NDX_E_ACCESS_VIOLATION,
	             "reject with 4 bytes at NULL");
	check_status(c, ndx_connector_get_private_data(p->b.conn, NULL, &length),
	             NDX_E_INVALID_PARAMETER, "get_private_data into 4 bytes at NULL");
	check_status(c, ndx_connector_get_private_data(p->b.conn, NULL, NULL),
	             NDX_E_INVALID_PARAMETER, "get_private_data without a length");
	(void)(pair_answer(p) && pair_complete(p) && message_passes(&p->a, &p->b, 64));
}

/* The listener goes while the request is on its way: the attempt ends, whichever was faster. */
void case_connection_listener_closed_while_a_request_comes(struct check *c)
{
	struct ndx_adapter *own = NULL; /* of B, so that the sides run at the same time */
	struct side_attr attr[2];
	enum ndx_status status;

	side_attr_init(&attr[0]);
	attr[1] = attr[0];
	check_status(c, ndx_adapter_open(c->world->places[1].uri, &own), NDX_OK, "open");
	attr[1].adapter = own;
	for (unsigned i = 0; i < 60 && own && !check_over(c); i++) {
		struct pair *p = pair_open(c, &attr[0], &attr[1]);
		uint32_t spins = check_below(c, 20000);

		if (!p)
			break;
		check_status(c, side_connect(&p->a, &p->address, NULL, 0), NDX_PENDING, "connect");
		for (volatile uint32_t n = 0; n < spins; n++)
			continue;
		ndx_listener_close(p->listener);
		p->listener = NULL;
		status = check_result_of(c, NDX_PENDING, &p->a.ov);
		check_either(c, status, NDX_E_CONNECTION_REFUSED, NDX_E_CONNECTION_ABORTED,
		             "connect to a listener that goes");
		pair_close_all(c);
	}
	pair_close_all(c);
	ndx_adapter_close(own);
}
