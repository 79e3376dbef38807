/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points of memory regions and windows. */
#include <ndx/mr.h>

#include "adapter.h"
#include "base_linux.h"
#include "base_log.h"
#include "base_ov.h"

/* Enough for another thread to leave a call that has ended, even on a busy host. */
#define MOMENT_MS 1000u
#define KNOWN_FLAGS (NDX_MR_ALLOW_REMOTE_WRITE | NDX_MR_ALLOW_REMOTE_READ | NDX_MR_RDMA_READ_SINK)
/* NDX_MR_ALLOW_REMOTE_WRITE without its bit for local write. */
#define REMOTE_WRITE_ONLY (NDX_MR_ALLOW_REMOTE_WRITE & ~NDX_MR_ALLOW_LOCAL_WRITE)

static struct ndx_spi_mr *spi_mr(struct ndx_mr *mr)
{
	return (struct ndx_spi_mr *)(void *)mr;
}

static const struct ndx_spi_mr *const_mr(const struct ndx_mr *mr)
{
	return (const struct ndx_spi_mr *)(const void *)mr;
}

enum ndx_status ndx_mr_create(struct ndx_adapter *adapter, struct ndx_mr **out)
{
	struct ndx_spi_mr *mr = NULL;
	enum ndx_status st;

	if (adapter == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_mr_create: NULL argument");
	st = adapter->ops->mr_create(adapter->native, &mr);
	if (st != NDX_OK)
		return st;
	adapter_add_object(adapter, &mr->object, CORE_MR);
	*out = (struct ndx_mr *)(void *)mr;
	return NDX_OK;
}

/* Lock held. A thread that sees the completion of an operation may be faster than the thread that
 * began the operation and is about to release the region. */
static void wait_idle(struct ndx_spi_mr *mr, uint32_t ms)
{
	uint64_t deadline = base_deadline(ms);

	while (mr->busy && adapter_wait(mr->object.adapter, deadline))
		;
}

/* Reserve the region: one register or deregister at a time, and only in the right state. */
static enum ndx_status claim(struct ndx_spi_mr *mr, bool registered, const char *call)
{
	struct ndx_adapter *adapter = mr->object.adapter;
	enum ndx_status st = NDX_OK;

	adapter_lock(adapter);
	wait_idle(mr, MOMENT_MS);
	if (mr->busy)
		st = NDX_E_DEVICE_BUSY;
	else if (mr->registered != registered)
		st = NDX_E_INVALID_DEVICE_STATE;
	else
		mr->busy = true;
	adapter_unlock(adapter);
	if (st == NDX_E_DEVICE_BUSY)
		return fail(st, 0, "%s: another thread registers or deregisters the region", call);
	if (st != NDX_OK)
		return fail(st, 0, "%s: the region is %s", call,
		            registered ? "not registered" : "registered already");
	return NDX_OK;
}

static void unclaim(struct ndx_spi_mr *mr, bool registered)
{
	struct ndx_adapter *adapter = mr->object.adapter;

	adapter_lock(adapter);
	mr->busy = false;
	mr->registered = registered;
	(void)pthread_cond_broadcast(&adapter->changed);
	adapter_unlock(adapter);
}

static enum ndx_status check_register(const struct ndx_mr *mr, const void *buffer, size_t length,
                                      uint32_t flags)
{
	const struct ndx_adapter_info *info;

	if (mr == NULL || buffer == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_mr_register: NULL argument");
	info = &const_mr(mr)->object.adapter->info;
	if (length == 0)
		return fail(NDX_E_INVALID_BUFFER_SIZE, 0, "ndx_mr_register: length is 0");
	if (length > info->max_registration_size)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_mr_register: %zu bytes, %s takes at most %llu", length, info->uri,
		            (unsigned long long)info->max_registration_size);
	if (flags & ~(uint32_t)KNOWN_FLAGS)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_mr_register: unknown flags 0x%x",
		            flags & ~(uint32_t)KNOWN_FLAGS);
	if ((flags & REMOTE_WRITE_ONLY) && !(flags & NDX_MR_ALLOW_LOCAL_WRITE))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "ndx_mr_register: flags 0x%x ask for remote write without local "
		            "write; use NDX_MR_ALLOW_REMOTE_WRITE, which contains both",
		            flags);
	return NDX_OK;
}

enum ndx_status ndx_mr_register(struct ndx_mr *mr, void *buffer, size_t length, uint32_t flags,
                                struct ndx_overlapped *ov)
{
	struct ndx_spi_mr *region = spi_mr(mr);
	enum ndx_status st = check_register(mr, buffer, length, flags);

	if (st != NDX_OK)
		return st;
	st = base_ov_begin(ov, region->object.adapter->loop);
	if (st != NDX_OK)
		return st;
	st = claim(region, false, "ndx_mr_register");
	if (st != NDX_OK)
		goto abandon_ov;
	st = region->object.adapter->ops->mr_register(region, buffer, length, flags, ov);
	unclaim(region, st == NDX_OK || st == NDX_PENDING);
	if (st == NDX_OK)
		base_ov_complete(ov, NDX_OK, 0, 0);
	else if (st != NDX_PENDING)
		goto abandon_ov;
	return NDX_PENDING;

abandon_ov:
	base_ov_abandon(ov);
	return st;
}

enum ndx_status ndx_mr_deregister(struct ndx_mr *mr, struct ndx_overlapped *ov)
{
	struct ndx_spi_mr *region = spi_mr(mr);
	enum ndx_status st;

	if (mr == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_mr_deregister: mr is NULL");
	st = base_ov_begin(ov, region->object.adapter->loop);
	if (st != NDX_OK)
		return st;
	st = claim(region, true, "ndx_mr_deregister");
	if (st != NDX_OK)
		goto abandon_ov;
	st = region->object.adapter->ops->mr_deregister(region, ov);
	unclaim(region, st != NDX_OK && st != NDX_PENDING);
	if (st == NDX_OK)
		base_ov_complete(ov, NDX_OK, 0, 0);
	else if (st != NDX_PENDING)
		goto abandon_ov;
	return NDX_PENDING;

abandon_ov:
	base_ov_abandon(ov);
	return st;
}

void ndx_mr_close(struct ndx_mr *mr)
{
	struct ndx_spi_mr *region = spi_mr(mr);
	struct ndx_adapter *adapter;
	bool registered;

	if (mr == NULL)
		return;
	adapter = region->object.adapter;
	adapter_lock(adapter);
	wait_idle(region, CORE_PROVIDER_PATIENCE_MS);
	registered = region->registered;
	adapter_unlock(adapter);
	if (registered)
		(void)adapter->ops->mr_deregister(region, NULL);
	adapter_flush_callbacks(adapter);
	adapter_remove_object(adapter, &region->object, CORE_MR);
	adapter->ops->mr_destroy(region);
	/* Run the callback of a deregistration for which the close may have waited, too. */
	adapter_flush_callbacks(adapter);
	adapter_put(adapter, true);
}

enum ndx_status ndx_mr_cancel(struct ndx_mr *mr)
{
	struct ndx_adapter *adapter;

	if (mr == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_mr_cancel: mr is NULL");
	adapter = spi_mr(mr)->object.adapter;
	/* Operations in progress end soon by themselves, and a half of one would be useless. */
	if (adapter->ops->mr_wait_idle != NULL)
		adapter->ops->mr_wait_idle(spi_mr(mr));
	adapter_flush_callbacks(adapter);
	return NDX_OK;
}

uint32_t ndx_mr_get_local_token(const struct ndx_mr *mr)
{
	return mr != NULL && const_mr(mr)->registered ? const_mr(mr)->local_token : 0;
}

uint32_t ndx_mr_get_remote_token(const struct ndx_mr *mr)
{
	return mr != NULL && const_mr(mr)->registered ? const_mr(mr)->remote_token : 0;
}

enum ndx_status ndx_mw_create(struct ndx_adapter *adapter, struct ndx_mw **out)
{
	struct ndx_spi_mw *mw = NULL;
	enum ndx_status st;

	if (adapter == NULL || out == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_mw_create: NULL argument");
	if (!(adapter->info.capabilities & NDX_CAP_MEMORY_WINDOW) ||
	    adapter->ops->mw_create == NULL)
		return fail(NDX_E_NOT_SUPPORTED, 0, "ndx_mw_create: %s has no memory windows",
		            adapter->info.uri);
	st = adapter->ops->mw_create(adapter->native, &mw);
	if (st != NDX_OK)
		return st;
	adapter_add_object(adapter, &mw->object, CORE_MW);
	*out = (struct ndx_mw *)(void *)mw;
	return NDX_OK;
}

void ndx_mw_close(struct ndx_mw *mw)
{
	struct ndx_spi_mw *spi = (struct ndx_spi_mw *)(void *)mw;
	struct ndx_adapter *adapter;

	if (mw == NULL)
		return;
	adapter = spi->object.adapter;
	adapter_remove_object(adapter, &spi->object, CORE_MW);
	adapter->ops->mw_destroy(spi);
	adapter_put(adapter, true);
}

uint32_t ndx_mw_get_remote_token(const struct ndx_mw *mw)
{
	return mw != NULL ? ((const struct ndx_spi_mw *)(const void *)mw)->remote_token : 0;
}
