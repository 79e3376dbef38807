/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapters: open by name, close, query. */
#include <ndx/adapter.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "base_struct.h"
#include "base_thread.h"
#include "connection.h"
#include "control_thread.h"

static enum ndx_status init_sync(struct ndx_adapter *adapter)
{
	pthread_condattr_t attr;

	if (pthread_mutex_init(&adapter->lock, NULL) != 0)
		return fail(NDX_E_INSUFFICIENT_RESOURCES, ENOMEM, "no mutex for an adapter");
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (pthread_cond_init(&adapter->changed, &attr) != 0) {
		(void)pthread_mutex_destroy(&adapter->lock);
		(void)pthread_condattr_destroy(&attr);
		return fail(NDX_E_INSUFFICIENT_RESOURCES, ENOMEM, "no condition for an adapter");
	}
	(void)pthread_condattr_destroy(&attr);
	return NDX_OK;
}

static enum ndx_status open_native(struct ndx_adapter *adapter)
{
	const struct selection *how = &adapter->selection;
	const struct ndx_spi_adapter head = {
		.provider = how->provider,
		.host = &core_host,
		.front = adapter,
		.loop = adapter->loop,
	};
	const struct ndx_spi_open open = {
		.device = how->device,
		.options = how->options,
		.option_count = how->option_count,
	};
	enum ndx_status st;

	ndxp_set_last_error("%s", ""); /* so that a text afterwards is the provider's */
	st = adapter->ops->adapter_open(&head, &open, &adapter->native);
	if (st != NDX_OK) {
		adapter->native = NULL;
		if (ndx_last_error()[0] == '\0')
			return fail(st, 0,
			            "%s: provider \"%s\" could not open it and did not say why",
			            how->uri, how->provider->name);
		return st;
	}
	adapter->info.size = sizeof(adapter->info);
	adapter->ops->adapter_query(adapter->native, &adapter->info);
	adapter->info.size = sizeof(adapter->info);
	(void)snprintf(adapter->info.provider, sizeof(adapter->info.provider), "%s",
	               how->provider->name);
	return NDX_OK;
}

/* Owns the selection from now on, also on failure. */
static enum ndx_status open_selection(struct selection *how, struct ndx_adapter **out)
{
	struct ndx_adapter *adapter = calloc(1, sizeof(*adapter));
	enum ndx_status st;

	if (adapter == NULL) {
		selection_free(how);
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for an adapter");
	}
	adapter->selection = *how;
	adapter->ops = how->provider->ops;
	adapter->refs = 1;
	ndxp_list_init(&adapter->connectors);
	ndxp_list_init(&adapter->listeners);
	ndxp_list_init(&adapter->described);
	adapter->rendezvous_job = (struct ndxp_job){.fn = conn_rendezvous_close, .arg = adapter};
	st = init_sync(adapter);
	if (st != NDX_OK)
		goto free_adapter;
	st = control_thread_start(how->options + how->option_count, how->thread_option_count,
	                          &adapter->loop);
	if (st != NDX_OK)
		goto destroy_sync;
	st = open_native(adapter);
	if (st != NDX_OK) {
		adapter_destroy(adapter);
		return st;
	}
	log_info("opened %s", adapter->info.uri);
	*out = adapter;
	return NDX_OK;

destroy_sync:
	(void)pthread_cond_destroy(&adapter->changed);
	(void)pthread_mutex_destroy(&adapter->lock);
free_adapter:
	selection_free(&adapter->selection);
	free(adapter);
	return st;
}

static enum ndx_status open_first(const char *uri, struct ndx_adapter **out)
{
	struct selection *tries = NULL;
	size_t count = 0;
	enum ndx_status st;

	st = select_adapter(uri, &tries, &count);
	if (st != NDX_OK)
		return st;
	st = NDX_E_NOT_FOUND;
	/* Only the automatic choice has more than one: use the first that opens. */
	for (size_t i = 0; i < count; i++) {
		if (st != NDX_OK)
			st = open_selection(&tries[i], out);
		else
			selection_free(&tries[i]);
	}
	free(tries);
	return st;
}

enum ndx_status ndx_adapter_open(const char *uri, struct ndx_adapter **out)
{
	enum ndx_status st;
	sigset_t before;

	if (out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_adapter_open: out is NULL");
	/* While a stack searches for devices it holds locks of the process that the process's exit
	 * needs, too: a signal handler that exits would wait for the thread that it interrupted. */
	base_signals_block(&before);
	st = open_first(uri, out);
	base_signals_restore(&before);
	return st;
}

void ndx_adapter_close(struct ndx_adapter *adapter)
{
	if (adapter == NULL)
		return;
	adapter_events_close(&adapter->events);
	adapter_flush_callbacks(adapter);
	adapter_lock(adapter);
	/* Goodbyes end by their own timers, so this loop ends. In a callback, of any adapter,
	 * waiting would keep the peer from answering them. */
	while (adapter->refs > 1 && adapter->handles == 0 && !ndxp_loop_on_any())
		(void)adapter_wait(adapter, ndxp_deadline(1000));
	adapter_unlock(adapter);
	adapter_put(adapter, false);
}

enum ndx_status ndx_adapter_query(struct ndx_adapter *adapter, struct ndx_adapter_info *info)
{
	static const struct base_struct layout = BASE_STRUCT(
		struct ndx_adapter_info, NDX_ADAPTER_INFO_SIZE_0_1, "set `size` to sizeof(*info)");

	if (adapter == NULL || info == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_adapter_query: NULL argument");
	return base_struct_out(&layout, "ndx_adapter_query", info, info->size, &adapter->info);
}

enum ndx_status ndx_adapter_query_addresses(struct ndx_adapter *adapter,
                                            struct sockaddr_storage *list, size_t *count)
{
	size_t room;
	size_t there;

	if (adapter == NULL || count == NULL || (list == NULL && *count > 0))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_adapter_query_addresses: NULL argument");
	room = *count;
	there = adapter->ops->adapter_addresses(adapter->native, NULL, 0);
	if (there <= room)
		there = adapter->ops->adapter_addresses(adapter->native, list, room);
	*count = there;
	/* an address may have come in between */
	return there <= room
	               ? NDX_OK
	               : ndxp_fail_room("ndx_adapter_query_addresses", "addresses", there, room);
}
