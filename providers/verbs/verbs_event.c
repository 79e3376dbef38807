/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of rdma_cm and of the device go to the connections, listeners and queues. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ndx/spi/log.h>
#include "verbs_conn.h"

#define AT_ONCE 64   /* events in a row before other events get their turn */
#define PORT_MS 2000 /* how long a port may be down: as long as a drain may take */

/* ---- rdma_cm ---- */

static void copy_event(struct verbs_event *to, const struct rdma_cm_event *from)
{
	const struct rdma_conn_param *param = &from->param.conn;

	to->what = from->event;
	to->status = from->status;
	to->id = from->id;
	to->listen_id = from->listen_id;
	to->responder_resources = param->responder_resources;
	to->initiator_depth = param->initiator_depth;
	to->srq = param->srq != 0;
	to->data_len = param->private_data != NULL ? param->private_data_len : 0;
	if (to->data_len > sizeof(to->data))
		to->data_len = sizeof(to->data);
	if (to->data_len > 0)
		memcpy(to->data, param->private_data, to->data_len);
}

static void dispatch_event(const struct verbs_event *event)
{
	enum verbs_owner *owner =
		event->listen_id != NULL ? event->listen_id->context : event->id->context;

	if (owner == NULL)
		return;
	if (*owner == VERBS_LISTENER)
		verbs_listener_on_event((struct verbs_listener *)(void *)owner, event);
	else
		verbs_conn_on_event((struct verbs_conn *)(void *)owner, event);
}

/* Each event is acknowledged at once: handling it may destroy the id, and rdma_destroy_id() waits
 * for the acknowledgement. */
void verbs_cm_on_event(void *arg, uint32_t events)
{
	struct verbs_adapter *adapter = arg;
	struct rdma_cm_event *event;
	struct verbs_event copied;

	(void)events;
	for (int i = 0; i < AT_ONCE && rdma_get_cm_event(adapter->cm, &event) == 0; i++) {
		copy_event(&copied, event);
		(void)rdma_ack_cm_event(event);
		log_debug("rdma_cm: %s, status %d", rdma_event_str(copied.what), copied.status);
		/* for another device, the event belongs to an attempt that used that device */
		if (copied.what == RDMA_CM_EVENT_DEVICE_REMOVAL && verbs_serves(adapter, copied.id))
			verbs_device_lost(adapter, ENODEV);
		else
			dispatch_event(&copied);
	}
}

/* ---- the device ---- */

static void break_qp(struct verbs_qp *qp, const struct ibv_async_event *event)
{
	ndxp_lock_acquire(&qp->base.lock);
	if (qp->conn != NULL && !qp->killed) {
		qp->conn->lost = true;
		if (event->event_type == IBV_EVENT_QP_ACCESS_ERR ||
		    event->event_type == IBV_EVENT_QP_REQ_ERR)
			qp->conn->refused = true;
		verbs_host(qp->adapter)
			->report(&qp->conn->spi, NDX_REPORT_ABORT, event->event_type,
		                 "the device reports that the queue pair has failed");
	}
	ndxp_lock_release(&qp->base.lock);
}

/* The peer's data came before the message that completes the connection: let the data complete
 * it. */
static void on_data_first(struct verbs_qp *qp)
{
	struct verbs_conn *conn;

	ndxp_lock_acquire(&qp->base.lock);
	conn = qp->conn;
	ndxp_lock_release(&qp->base.lock);
	if (conn != NULL && conn->id != NULL)
		(void)rdma_notify(conn->id, IBV_EVENT_COMM_EST);
}

void verbs_device_lost(struct verbs_adapter *adapter, int native)
{
	if (__atomic_exchange_n(&adapter->removed, true, __ATOMIC_RELAXED))
		return;
	verbs_host(adapter)->adapter_event(adapter->spi.front, NDX_ADAPTER_EVENT_DEVICE_REMOVED, 0,
	                                   native, "the device has failed or was removed");
	for (struct ndxp_list *n = adapter->conns.next, *next; n != &adapter->conns; n = next) {
		next = n->next;
		verbs_conn_on_removal(container_of(n, struct verbs_conn, node), native);
	}
	verbs_listeners_on_removal(adapter, native);
	ndxp_lock_acquire(&adapter->lock);
	for (struct ndxp_list *n = adapter->cqs.next; n != &adapter->cqs; n = n->next)
		ndxp_cq_fail(&container_of(n, struct verbs_cq, node)->base, NDX_E_DEVICE_REMOVED);
	ndxp_lock_release(&adapter->lock);
}

/* The events of a port that the program gets. */
static const struct {
	enum ibv_event_type native;
	enum ndx_adapter_event_type type;
	const char *text;
} port_events[] = {
	{IBV_EVENT_PORT_ACTIVE, NDX_ADAPTER_EVENT_PORT_UP, "is up"},
	{IBV_EVENT_PORT_ERR, NDX_ADAPTER_EVENT_PORT_DOWN, "is down"},
	{IBV_EVENT_LID_CHANGE, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, "has another LID"},
	{IBV_EVENT_GID_CHANGE, NDX_ADAPTER_EVENT_ADDRESS_CHANGE, "has other GIDs"},
	{IBV_EVENT_PKEY_CHANGE, NDX_ADAPTER_EVENT_SUBNET_CHANGE, "has other partition keys"},
	{IBV_EVENT_SM_CHANGE, NDX_ADAPTER_EVENT_SUBNET_CHANGE, "has another subnet manager"},
	{IBV_EVENT_CLIENT_REREGISTER, NDX_ADAPTER_EVENT_SUBNET_CHANGE,
         "is asked by the subnet manager to register anew"},
};

/* Report an event of the adapter's own port; a device may have others. */
static void report_port(const struct verbs_adapter *adapter, const struct ibv_async_event *event)
{
	const int port = event->element.port_num;
	char text[sizeof(((struct ndx_adapter_event *)NULL)->text)];

	for (size_t i = 0; i < sizeof(port_events) / sizeof(port_events[0]); i++) {
		if (port_events[i].native != event->event_type)
			continue;
		(void)snprintf(text, sizeof(text), "port %d %s", port, port_events[i].text);
		verbs_host(adapter)->adapter_event(adapter->spi.front, port_events[i].type,
		                                   (uint32_t)port, event->event_type, text);
	}
}

/* A port that is down for a short time does no harm. */
static void on_port(struct verbs_adapter *adapter, const struct ibv_async_event *event)
{
	if ((unsigned)event->element.port_num != adapter->options.port)
		return;
	report_port(adapter, event);
	if (event->event_type != IBV_EVENT_PORT_ACTIVE && event->event_type != IBV_EVENT_PORT_ERR)
		return;
	if (event->event_type == IBV_EVENT_PORT_ACTIVE)
		ndxp_timer_cancel(adapter->spi.loop, &adapter->port_down);
	else
		ndxp_timer_set(adapter->spi.loop, &adapter->port_down, PORT_MS);
}

void verbs_port_on_timer(void *arg)
{
	struct verbs_adapter *adapter = arg;

	for (struct ndxp_list *n = adapter->conns.next; n != &adapter->conns; n = n->next) {
		struct verbs_conn *conn = container_of(n, struct verbs_conn, node);

		if (conn->state != VERBS_CONN_UP)
			continue;
		conn->lost = true;
		verbs_host(adapter)->report(&conn->spi, NDX_REPORT_ABORT, IBV_EVENT_PORT_ERR,
		                            "the port stays down");
	}
}

static void on_async(struct verbs_adapter *adapter, const struct ibv_async_event *event)
{
	switch ((int)event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_PATH_MIG_ERR:
		break_qp(event->element.qp->qp_context, event);
		break;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		verbs_qp_on_last_receive(event->element.qp->qp_context);
		break;
	case IBV_EVENT_COMM_EST:
		on_data_first(event->element.qp->qp_context);
		break;
	case IBV_EVENT_CQ_ERR: {
		struct verbs_cq *cq = event->element.cq->cq_context;

		log_error(event->event_type, "verbs:%s: a completion queue has failed",
		          adapter->options.device);
		ndxp_cq_fail(&cq->base, NDX_E_BUFFER_OVERFLOW);
		break;
	}
	case IBV_EVENT_DEVICE_FATAL:
		verbs_device_lost(adapter, event->event_type);
		break;
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
		on_port(adapter, event);
		break;
	default:
		break;
	}
}

/* Acknowledged after handling: until then the object of the event is not destroyed. */
void verbs_async_on_event(void *arg, uint32_t events)
{
	struct verbs_adapter *adapter = arg;
	struct ibv_async_event event;

	(void)events;
	for (int i = 0; i < AT_ONCE && ibv_get_async_event(adapter->context, &event) == 0; i++) {
		on_async(adapter, &event);
		ibv_ack_async_event(&event);
	}
}
