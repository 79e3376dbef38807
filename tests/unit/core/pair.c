/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

int pair_open(void **state)
{
	static struct pair pair;

	memset(&pair, 0, sizeof(pair));
	*state = &pair;
	if (ndx_adapter_open("loop", &pair.a) != NDX_OK)
		return -1;
	return ndx_adapter_open("loop", &pair.b) == NDX_OK ? 0 : -1;
}

int pair_close(void **state)
{
	struct pair *p = *state;

	ndx_listener_close(p->listener);
	ndx_adapter_close(p->a);
	ndx_adapter_close(p->b);
	return 0;
}

struct ndx_listener *pair_listen(struct ndx_adapter *adapter, uint32_t backlog,
                                 struct sockaddr_in *address)
{
	struct ndx_listener *listener = NULL;
	socklen_t len = sizeof(*address);

	*address = (struct sockaddr_in){.sin_family = AF_INET};
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(
		ndx_listen_on(adapter, (const struct sockaddr *)address, len, backlog, &listener),
		NDX_OK);
	assert_int_equal(ndx_listener_get_local_address(listener, (struct sockaddr *)address, &len),
	                 NDX_OK);
	return listener;
}

void pair_make_end(struct ndx_adapter *adapter, uint32_t drain_ms, struct end *e)
{
	struct ndx_connector_attr ends;
	struct ndx_qp_attr attr;

	memset(e, 0, sizeof(*e));
	ndx_qp_attr_init(&attr);
	assert_int_equal(ndx_cq_create_depth(adapter, 16, &e->cq), NDX_OK);
	attr.receive_cq = e->cq;
	attr.initiator_cq = e->cq;
	assert_int_equal(ndx_qp_create(adapter, &attr, &e->qp), NDX_OK);
	ndx_connector_attr_init(&ends);
	if (drain_ms != 0)
		ends.drain_timeout_ms = drain_ms;
	assert_int_equal(ndx_connector_create(adapter, &ends, &e->connector), NDX_OK);
	(void)snprintf(e->name, sizeof(e->name), "connector#%u ",
	               ndx_connector_get_id(e->connector));
}

void pair_drop_end(struct end *e)
{
	ndx_connector_close(e->connector);
	ndx_qp_close(e->qp);
	ndx_cq_close(e->cq);
}

enum ndx_status pair_connect(struct end *e, const struct sockaddr_in *address)
{
	return ndx_connector_connect(e->connector, e->qp, (const struct sockaddr *)address,
	                             sizeof(*address), NULL, &e->ov);
}
