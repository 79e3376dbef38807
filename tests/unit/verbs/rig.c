/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include <ndx/spi/container_of.h>
#include "base_loop.h"
#include "rig.h"

static void on_report(struct ndx_spi_conn *spi, uint32_t bits, int32_t native, const char *cause)
{
	struct rig *rig = container_of(verbs_conn_of(spi), struct rig, conn);

	(void)native;
	rig->reports |= bits;
	if (cause != NULL)
		rig->cause = cause;
}

/* The adapter's front is the rig itself. */
static void on_adapter_event(struct ndx_adapter *front, enum ndx_adapter_event_type type,
                             uint32_t port, int32_t native, const char *text)
{
	struct rig *rig = (struct rig *)(void *)front;

	rig->event_count++;
	rig->event = (struct ndx_adapter_event){.type = type, .port = port, .native = native};
	(void)snprintf(rig->event.text, sizeof(rig->event.text), "%s", text);
}

void rig_open(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	fake_open(&rig->device);
	rig->host.report = on_report;
	rig->host.adapter_event = on_adapter_event;
	rig->adapter.spi.front = (struct ndx_adapter *)(void *)rig;
	rig->adapter.spi.host = &rig->host;
	rig->adapter.context = &rig->device.context;
	rig->adapter.pd = &rig->device.pd;
	rig->adapter.max_transfer = UINT32_C(1) << 30;
	rig->adapter.max_inline = VERBS_MAX_INLINE;
	rig->adapter.max_sge = 4;
	for (size_t i = 0; i < VERBS_COUNTERS; i++)
		rig->adapter.counter_fds[i] = -1;
	ndxp_list_init(&rig->adapter.cqs);
	ndxp_list_init(&rig->adapter.regions);
	ndxp_list_init(&rig->adapter.windows);
	ndxp_list_init(&rig->adapter.conns);
	ndxp_list_init(&rig->adapter.listeners);
	ndxp_list_init(&rig->adapter.mailboxes);
	assert_int_equal(base_loop_create("rig", &rig->adapter.spi.loop), NDX_OK);
	assert_int_equal(
		verbs_cq_create(&rig->adapter.spi, &(struct ndx_cq_attr){.depth = 2}, &rig->cq),
		NDX_OK);
}

void rig_connect(struct rig *rig, uint32_t depth, struct ndx_spi_srq *srq)
{
	const struct ndx_qp_attr attr = {
		.size = sizeof(attr),
		.receive_cq = &rig->cq->pub,
		.initiator_cq = &rig->cq->pub,
		.srq = srq != NULL ? &srq->pub : NULL,
		.context = rig,
		.receive_depth = depth,
		.initiator_depth = depth,
		.max_receive_sge = 4,
		.max_initiator_sge = 4,
		.no_receive_timeout_ms = NDX_INFINITE,
		.rnr_timer = NDX_RNR_TIMER_DEFAULT,
	};

	assert_int_equal(verbs_qp_create(&rig->adapter.spi, &attr, &rig->qp), NDX_OK);
	rig->conn = (struct verbs_conn){.adapter = &rig->adapter,
	                                .qp = rig_qp(rig),
	                                .spi = {.inbound_read_limit = 4, .outbound_read_limit = 4}};
	ndxp_list_init(&rig->conn.node);
	rig->conn.work = (struct ndxp_job){.fn = verbs_end_on_work, .arg = &rig->conn};
	rig_qp(rig)->conn = &rig->conn;
	assert_int_equal(verbs_qp_bring_up(rig_qp(rig), &rig->conn), 0);
	rig_native(rig)->state = IBV_QPS_RTS;
	rig_qp(rig)->base.state = NDXP_QP_UP;
	rig_qp(rig)->noop_write = (struct verbs_ctrl_write){.length = 1};
}

static void nothing(void *arg)
{
	(void)arg;
}

void rig_close(struct rig *rig)
{
	ndxp_loop_call(rig->adapter.spi.loop, nothing, NULL);
	if (rig->qp != NULL)
		verbs_qp_destroy(rig->qp);
	verbs_cq_destroy(rig->cq);
	verbs_mailbox_close_all(&rig->adapter);
	base_loop_destroy(rig->adapter.spi.loop, nothing, NULL);
	assert_int_equal(rig->device.queues, 0);
	assert_int_equal(rig->device.pairs, 0);
	assert_int_equal(rig->device.regions, 0);
	assert_int_equal(rig->device.zero_byte_writes, 0);
}

enum ndx_status rig_send(struct rig *rig, uintptr_t context, uint32_t flags)
{
	const struct ndx_sge sge = {rig->memory, sizeof(rig->memory), 1};

	return ndx_qp_send(&rig->qp->pub, (void *)context, &sge, 1, flags);
}

enum ndx_status rig_receive(struct rig *rig, uintptr_t context)
{
	const struct ndx_sge sge = {rig->memory, sizeof(rig->memory), 1};

	return ndx_qp_receive(&rig->qp->pub, (void *)context, &sge, 1);
}

bool rig_next(struct rig *rig, uintptr_t *context, enum ndx_status *status)
{
	struct ndx_result result;

	if (ndx_cq_get_results(&rig->cq->pub, &result, 1) == 0)
		return false;
	*context = (uintptr_t)result.request_context;
	*status = result.status;
	return true;
}

void rig_expect(struct rig *rig, uintptr_t context, enum ndx_status status)
{
	enum ndx_status got = NDX_PENDING;
	uintptr_t got_context = 0;

	assert_true(rig_next(rig, &got_context, &got));
	assert_int_equal(got_context, context);
	assert_int_equal(got, status);
}

void rig_expect_none(struct rig *rig)
{
	enum ndx_status got;
	uintptr_t got_context;

	assert_false(rig_next(rig, &got_context, &got));
}
