/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters: those of the inner provider, opened with the host of this provider. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "fault.h"

/* A fault adapter is opened by its URI only: it is never listed, resolved or chosen. */
enum ndx_status fault_list_nothing(const struct ndx_provider *self,
                                   const struct ndx_spi_open *defaults, ndx_spi_list_fn *each,
                                   void *arg)
{
	(void)self;
	(void)defaults;
	(void)each;
	(void)arg;
	return NDX_OK;
}

/* ---- delayed upcalls and notifications ---- */

static void on_timer(void *arg)
{
	struct fault_adapter *fa = arg;
	const uint64_t now = ndxp_now_ns();

	ndxp_lock_acquire(&fa->timer_lock);
	fa->timer_due = UINT64_MAX;
	ndxp_lock_release(&fa->timer_lock);
	fault_wake_at(fa, fault_events_tick(fa, now));
	fault_wake_at(fa, fault_cqs_tick(fa, now));
}

/* ---- create and destroy ---- */

static enum ndx_status open_inner(struct fault_adapter *fa, const struct ndx_spi_adapter *head,
                                  const struct ndx_spi_open *how, struct ndx_spi_adapter **out)
{
	const struct ndx_spi_adapter inner_head = {
		.provider = fa->inner.provider,
		.host = &fa->host,
		.front = head->front,
		.loop = head->loop,
	};
	const enum ndx_status st = fault_inject(fa, FAULT_CALL_adapter_open);

	if (st != NDX_OK) {
		*out = fault_bad_pointer();
		return st;
	}
	return fa->ops->adapter_open(&inner_head, how, out);
}

static void init_adapter(struct fault_adapter *fa, const struct ndx_spi_adapter *head)
{
	fa->ops = fa->inner.provider->ops;
	fa->core = head->host;
	fa->front = head->front;
	fa->loop = head->loop;
	fa->process = head->provider->state;
	fa->plan.nth = fa->options.nth;
	fa->plan.times = fa->options.times;
	fa->plan.latest = FAULT_CALLS;
	fa->plan.random = fa->options.seed;
	fa->timer_due = UINT64_MAX;
	fa->timer = (struct ndxp_timer){.fn = on_timer, .arg = fa};
	ndxp_list_init(&fa->conns);
	ndxp_list_init(&fa->requests);
	ndxp_list_init(&fa->cqs);
	fault_events_init(fa);
}

/* `room` has space for the inner provider's options. */
static enum ndx_status open_with(struct fault_adapter *fa, struct ndx_spi_option *room,
                                 const struct ndx_spi_adapter *head, const struct ndx_spi_open *how,
                                 struct ndx_spi_adapter **out)
{
	struct ndx_spi_open inner = {.device = ""};
	enum ndx_status st =
		fault_options_read(how, &fa->inner, &fa->options, fa->text, &inner, room);

	if (st != NDX_OK)
		return st;
	init_adapter(fa, head);
	st = open_inner(fa, head, &inner, out);
	if (st != NDX_OK) {
		ndxp_binding.services->provider_close(fa->inner.file);
		return st;
	}
	fault_process_add(fa);
	return NDX_OK;
}

enum ndx_status fault_adapter_open(const struct ndx_spi_adapter *head,
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

void fault_adapter_close(struct ndx_spi_adapter *native)
{
	struct fault_adapter *fa = fault_of(native);

	fault_process_remove(fa);
	fa->ops->adapter_close(native);
	ndxp_timer_cancel(fa->loop, &fa->timer);
	log_info("fault:%s: %llu calls counted, %llu of them made to fail",
	         fa->inner.provider->name, (unsigned long long)fa->plan.calls,
	         (unsigned long long)fa->plan.failed);
	ndxp_binding.services->provider_close(fa->inner.file);
	free(fa);
}

/* "ofi:tcp?iface=lo" -> "fault:ofi:tcp?iface=lo&fault_nth=3" */
void fault_adapter_query(struct ndx_spi_adapter *native, struct ndx_adapter_info *info)
{
	const struct fault_adapter *fa = fault_of(native);
	char inner[sizeof(info->uri)];
	int len;

	fa->ops->adapter_query(native, info);
	info->capabilities |= NDX_CAP_EVENTS; /* fault_report_event() */
	memcpy(inner, info->uri, sizeof(inner));
	len = snprintf(info->uri, sizeof(info->uri), "fault:%s%s%s", inner,
	               fa->text[0] == '\0'          ? ""
	               : strchr(inner, '?') != NULL ? "&"
	                                            : "?",
	               fa->text);
	if (len < 0 || (size_t)len >= sizeof(info->uri))
		log_warn(0, "fault:%s: its URI is too long to be reported", inner);
}

size_t fault_adapter_addresses(struct ndx_spi_adapter *native, struct sockaddr_storage *list,
                               size_t room)
{
	return fault_of(native)->ops->adapter_addresses(native, list, room);
}
