/* SPDX-License-Identifier: BSD-2-Clause */
/* The provider itself and its adapters: the inner provider's, with a host of ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base_linux.h"
#include "base_log.h"
#include "builtin.h"
#include "fault.h"

#define NS_PER_MS UINT64_C(1000000)

/* Nothing is found unasked: neither listed nor resolved nor chosen. */
static enum ndx_status list_nothing(const struct ndx_provider *self,
                                    const struct ndx_spi_open *defaults, ndx_spi_list_fn *each,
                                    void *arg)
{
	(void)self;
	(void)defaults;
	(void)each;
	(void)arg;
	return NDX_OK;
}

/* ---- what is held back ---- */

void fault_wake_at(struct fault_adapter *fa, uint64_t due)
{
	const uint64_t now = base_now_ns();

	if (due == UINT64_MAX)
		return;
	base_lock_acquire(&fa->timer_lock);
	if (due < fa->timer_due) {
		fa->timer_due = due;
		base_timer_set(fa->loop, &fa->timer,
		               due > now ? (uint32_t)((due - now) / NS_PER_MS + 1) : 0);
	}
	base_lock_release(&fa->timer_lock);
}

static void tick(void *arg)
{
	struct fault_adapter *fa = arg;
	const uint64_t now = base_now_ns();

	base_lock_acquire(&fa->timer_lock);
	fa->timer_due = UINT64_MAX;
	base_lock_release(&fa->timer_lock);
	fault_wake_at(fa, fault_events_tick(fa, now));
	fault_wake_at(fa, fault_cqs_tick(fa, now));
}

/* ---- life ---- */

static enum ndx_status open_inner(struct fault_adapter *fa, const struct ndx_spi_adapter *head,
                                  const struct ndx_spi_open *how, struct ndx_spi_adapter **out)
{
	const struct ndx_spi_adapter inner_head = {
		.provider = fa->provider,
		.host = &fa->host,
		.front = head->front,
		.loop = head->loop,
	};
	const enum ndx_status st = fault_strike(fa, FAULT_CALL_adapter_open);

	if (st != NDX_OK) {
		*out = fault_scribble();
		return st;
	}
	return fa->ops->adapter_open(&inner_head, how, out);
}

static void init(struct fault_adapter *fa, const struct ndx_spi_adapter *head)
{
	fa->ops = fa->provider->ops;
	fa->core = head->host;
	fa->front = head->front;
	fa->loop = head->loop;
	fa->process = head->provider->state;
	fa->plan.nth = fa->options.nth;
	fa->plan.times = fa->options.times;
	fa->plan.latest = FAULT_CALLS;
	fa->plan.random = fa->options.seed;
	fa->timer_due = UINT64_MAX;
	fa->timer = (struct base_timer){.fn = tick, .arg = fa};
	base_list_init(&fa->conns);
	base_list_init(&fa->requests);
	base_list_init(&fa->cqs);
	fault_events_init(fa);
}

/* `room` is for the inner provider's options. */
static enum ndx_status open_with(struct fault_adapter *fa, struct ndx_spi_option *room,
                                 const struct ndx_spi_adapter *head, const struct ndx_spi_open *how,
                                 struct ndx_spi_adapter **out)
{
	struct ndx_spi_open inner = {.device = ""};
	enum ndx_status st =
		fault_options_read(how, &fa->provider, &fa->options, fa->text, &inner, room);

	if (st != NDX_OK)
		return st;
	init(fa, head);
	st = open_inner(fa, head, &inner, out);
	if (st != NDX_OK)
		return st;
	fault_process_add(fa);
	return NDX_OK;
}

static enum ndx_status adapter_open(const struct ndx_spi_adapter *head,
                                    const struct ndx_spi_open *how, struct ndx_spi_adapter **out)
{
	struct fault_adapter *fa = calloc(1, sizeof(*fa));
	struct ndx_spi_option *room = calloc(how->option_count + 1, sizeof(*room));
	enum ndx_status st = NDX_E_NO_MEMORY;

	if (fa != NULL && room != NULL)
		st = open_with(fa, room, head, how, out);
	else
		(void)fail(st, 0, "fault adapter: out of memory");
	free(room);
	if (st != NDX_OK)
		free(fa);
	return st;
}

static void adapter_close(struct ndx_spi_adapter *native)
{
	struct fault_adapter *fa = fault_of(native);

	fault_process_remove(fa);
	fa->ops->adapter_close(native);
	base_timer_cancel(fa->loop, &fa->timer);
	log_info("fault:%s: %llu calls counted, %llu of them made to fail", fa->provider->name,
	         (unsigned long long)fa->plan.calls, (unsigned long long)fa->plan.failed);
	free(fa);
}

/* "ofi:tcp?iface=lo" -> "fault:ofi:tcp?iface=lo&fault_nth=3" */
static void adapter_query(struct ndx_spi_adapter *native, struct ndx_adapter_info *info)
{
	const struct fault_adapter *fa = fault_of(native);
	char inner[sizeof(info->uri)];
	int len;

	fa->ops->adapter_query(native, info);
	memcpy(inner, info->uri, sizeof(inner));
	len = snprintf(info->uri, sizeof(info->uri), "fault:%s%s%s", inner,
	               fa->text[0] == '\0'          ? ""
	               : strchr(inner, '?') != NULL ? "&"
	                                            : "?",
	               fa->text);
	if (len < 0 || (size_t)len >= sizeof(info->uri))
		log_warn(0, "fault:%s: its URI is too long to be told", inner);
}

static size_t adapter_addresses(struct ndx_spi_adapter *native, struct sockaddr_storage *list,
                                size_t room)
{
	return fault_of(native)->ops->adapter_addresses(native, list, room);
}

static const struct ndx_provider_ops fault_ops = {
	.list = list_nothing,
	.adapter_open = adapter_open,
	.adapter_close = adapter_close,
	.adapter_query = adapter_query,
	.adapter_addresses = adapter_addresses,
	.cq_create = fault_cq_create,
	.cq_destroy = fault_cq_destroy,
	.cq_notify = fault_cq_notify,
	.cq_cancel = fault_cq_cancel,
	.cq_get_fd = fault_cq_get_fd,
	.cq_wake = fault_cq_wake,
	.cq_resize = fault_cq_resize,
	.cq_affinity = fault_cq_affinity,
	.mr_create = fault_mr_create,
	.mr_destroy = fault_mr_destroy,
	.mr_register = fault_mr_register,
	.mr_deregister = fault_mr_deregister,
	.mr_settle = fault_mr_settle,
	.mw_create = fault_mw_create,
	.mw_destroy = fault_mw_destroy,
	.srq_create = fault_srq_create,
	.srq_destroy = fault_srq_destroy,
	.srq_modify = fault_srq_modify,
	.srq_notify = fault_srq_notify,
	.srq_cancel = fault_srq_cancel,
	.srq_affinity = fault_srq_affinity,
	.qp_create = fault_qp_create,
	.qp_destroy = fault_qp_destroy,
	.qp_cancel = fault_qp_cancel,
	.conn_create = fault_conn_create,
	.conn_destroy = fault_conn_destroy,
	.conn_bind = fault_conn_bind,
	.conn_connect = fault_conn_connect,
	.conn_complete = fault_conn_complete,
	.conn_take = fault_conn_take,
	.conn_accept = fault_conn_accept,
	.conn_reject = fault_conn_reject,
	.conn_abandon = fault_conn_abandon,
	.conn_drain = fault_conn_drain,
	.conn_cancel_initiator = fault_conn_cancel_initiator,
	.conn_send_disc = fault_conn_send_disc,
	.conn_finish = fault_conn_finish,
	.conn_abort = fault_conn_abort,
	.conn_detach = fault_conn_detach,
	.listener_create = fault_listener_create,
	.listener_destroy = fault_listener_destroy,
	.listener_bind = fault_listener_bind,
	.listener_listen = fault_listener_listen,
	.request_refuse = fault_request_refuse,
};

/* Of the process: a test names an adapter by its public handle, which is all that it has. */
static struct fault_process process = {
	.adapters = {&process.adapters, &process.adapters},
};

/* The inner provider's keys, too. */
static const struct ndx_spi_key fault_keys[] = {
	{NDX_SPI_KEY_ANY, "those of fault and of the provider inside"},
	{NULL, NULL},
};

const struct ndx_provider ndx_provider_fault = {
	.abi = NDX_SPI_ABI,
	.name = "fault",
	.ops = &fault_ops,
	.keys = fault_keys,
	.devices = "for tests: the URI of another adapter",
	.state = &process,
};
