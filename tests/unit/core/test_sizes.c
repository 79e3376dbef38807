/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of a queue pair between a core and a provider of another version, on loop. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#undef fail /* cmocka's; <ndx/spi/log.h> has another */
#include <string.h>

#include <ndx/ndx.h>

#include <ndx/spi/queue_pair.h>
#include "connection.h"

struct opened {
	struct ndx_adapter *adapter;
	struct ndx_cq *cq;
};

static struct opened *open_loop(void)
{
	static struct opened o;

	assert_int_equal(ndx_adapter_open("loop", &o.adapter), NDX_OK);
	assert_int_equal(ndx_cq_create_depth(o.adapter, 16, &o.cq), NDX_OK);
	return &o;
}

static void close_loop(struct opened *o)
{
	ndx_cq_close(o->cq);
	ndx_adapter_close(o->adapter);
}

static void set_attr(struct ndx_qp_attr *attr, struct ndx_cq *cq)
{
	ndx_qp_attr_init(attr);
	attr->receive_cq = cq;
	attr->initiator_cq = cq;
	attr->receive_depth = 4;
	attr->initiator_depth = 4;
	attr->keepalive_ms = 1234;
}

/* The provider was built when the attributes ended with `keepalive_ms`. */
static void attributes_of_an_older_provider_are_not_read_past_their_end(void **state)
{
	struct opened *o = open_loop();
	struct ndx_qp_attr attr;
	struct ndx_qp_attr now = {.size = sizeof(now)};
	struct ndx_qp *qp;
	struct ndx_spi_qp *spi;

	(void)state;
	set_attr(&attr, o->cq);
	assert_int_equal(ndx_qp_create(o->adapter, &attr, &qp), NDX_OK);
	spi = spi_qp(qp);
	spi->attr.size = offsetof(struct ndx_qp_attr, keepalive_ms);
	assert_int_equal(ndx_qp_query(qp, &now, NULL), NDX_OK);
	assert_int_equal(now.receive_depth, 4);
	assert_int_equal(now.keepalive_ms, 0);
	spi->attr.size = sizeof(spi->attr);
	assert_int_equal(ndx_qp_query(qp, &now, NULL), NDX_OK);
	assert_int_equal(now.keepalive_ms, 1234);
	ndx_qp_close(qp);
	close_loop(o);
}

static const struct ndx_qp_ops no_ops = {.size = sizeof(no_ops)};

/* The kit keeps the size of what it has, of a core that is newer, and of one that is older. */
static void the_kit_copies_what_both_have(void **state)
{
	struct {
		struct ndx_qp_attr attr;
		char later[64];
	} granted;
	struct opened *o = open_loop();
	struct ndxp_qp qp = {0};

	(void)state;
	memset(&granted, 0x5a, sizeof(granted));
	set_attr(&granted.attr, o->cq);
	granted.attr.size = sizeof(granted);
	assert_int_equal(ndxp_qp_init(&qp, &no_ops, &granted.attr, 4096, sizeof(struct ndxp_req),
	                              sizeof(struct ndxp_req)),
	                 NDX_OK);
	assert_int_equal(qp.spi.attr.size, sizeof(qp.spi.attr));
	assert_int_equal(qp.spi.attr.keepalive_ms, 1234);
	ndxp_qp_fini(&qp);
	memset(&qp, 0, sizeof(qp));
	granted.attr.size = offsetof(struct ndx_qp_attr, keepalive_ms);
	assert_int_equal(ndxp_qp_init(&qp, &no_ops, &granted.attr, 4096, sizeof(struct ndxp_req),
	                              sizeof(struct ndxp_req)),
	                 NDX_OK);
	assert_int_equal(qp.spi.attr.size, offsetof(struct ndx_qp_attr, keepalive_ms));
	assert_int_equal(qp.spi.attr.receive_depth, 4);
	assert_int_equal(qp.spi.attr.keepalive_ms, 0);
	ndxp_qp_fini(&qp);
	close_loop(o);
}

/* A provider that stands in front of another one hands the whole table of upcalls on. */
static void the_host_behind_another_provider_is_complete(void **state)
{
	typedef void upcall(void);
	const struct ndx_host *host;
	struct ndx_adapter *adapter;
	upcall *fn;

	(void)state;
	if (ndx_adapter_open("fault:loop", &adapter) != NDX_OK)
		skip(); /* this build has no fault */
	host = adapter->native->host;
	assert_int_equal(host->abi, NDX_SPI_ABI);
	assert_int_equal(host->size, sizeof(*host));
	for (size_t at = offsetof(struct ndx_host, complete); at < sizeof(*host);
	     at += sizeof(fn)) {
		memcpy(&fn, (const char *)host + at, sizeof(fn));
		assert_true(fn != NULL);
	}
	ndx_adapter_close(adapter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attributes_of_an_older_provider_are_not_read_past_their_end),
		cmocka_unit_test(the_kit_copies_what_both_have),
		cmocka_unit_test(the_host_behind_another_provider_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
