/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points of memory regions and windows. */
#include <ndx/mr.h>

#include "adapter.h"
#include <ndx/spi/log.h>
#include "region.h"

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

static enum ndx_status check_register(const char *call, const struct ndx_mr *mr, size_t length,
                                      uint32_t flags)
{
	const struct ndx_adapter_info *info = &const_mr(mr)->object.adapter->info;

	if (length == 0)
		return fail(NDX_E_INVALID_BUFFER_SIZE, 0, "%s: length is 0", call);
	if (length > info->max_registration_size)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: %zu bytes, %s takes at most %llu",
		            call, length, info->uri,
		            (unsigned long long)info->max_registration_size);
	if (flags & ~(uint32_t)KNOWN_FLAGS)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: unknown flags 0x%x", call,
		            flags & ~(uint32_t)KNOWN_FLAGS);
	if ((flags & REMOTE_WRITE_ONLY) && !(flags & NDX_MR_ALLOW_LOCAL_WRITE))
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "%s: flags 0x%x ask for remote write without local "
		            "write; use NDX_MR_ALLOW_REMOTE_WRITE, which contains both",
		            call, flags);
	return NDX_OK;
}

/* The provider has ended the operation, has failed at once, or will report the end. In the last
 * case it may have done so, and another thread may have closed the region. */
static enum ndx_status get_end(struct ndx_spi_mr *mr, enum ndx_status st)
{
	if (st == NDX_OK)
		region_ended(mr, NDX_OK, 0);
	else if (st != NDX_PENDING)
		region_abandon(mr);
	return st == NDX_OK ? NDX_PENDING : st;
}

static enum ndx_status begin_register(const char *call, struct ndx_spi_mr *mr, const void *buffer,
                                      size_t length, uint32_t flags, struct ndx_overlapped *ov)
{
	const enum ndx_status st = region_begin(mr, false, ov, call);

	if (st != NDX_OK)
		return st;
	adapter_lock(mr->object.adapter);
	region_set_memory(mr, buffer, length, flags);
	adapter_unlock(mr->object.adapter);
	return NDX_OK;
}

enum ndx_status ndx_mr_register(struct ndx_mr *mr, const void *buffer, size_t length,
                                uint32_t flags, struct ndx_overlapped *ov)
{
	struct ndx_spi_mr *region = spi_mr(mr);
	enum ndx_status st;

	if (mr == NULL || buffer == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_mr_register: NULL argument");
	st = check_register("ndx_mr_register", mr, length, flags);
	if (st == NDX_OK)
		st = begin_register("ndx_mr_register", region, buffer, length, flags, ov);
	if (st != NDX_OK)
		return st;
	return get_end(region, region->object.adapter->ops->mr_register(
				       region, (void *)(uintptr_t)buffer, length, flags));
}

enum ndx_status ndx_mr_register_dmabuf(struct ndx_mr *mr, int fd, uint64_t offset, size_t length,
                                       uint64_t iova, uint32_t flags, struct ndx_overlapped *ov)
{
	static const char call[] = "ndx_mr_register_dmabuf";
	struct ndx_spi_mr *region = spi_mr(mr);
	const struct ndx_adapter *adapter;
	enum ndx_status st;

	if (mr == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: mr is NULL", call);
	adapter = region->object.adapter;
	if (!(adapter->info.capabilities & NDX_CAP_DMABUF) ||
	    adapter->ops->mr_register_dmabuf == NULL)
		return fail(NDX_E_NOT_SUPPORTED, 0,
		            "%s: %s cannot register the memory of a dma-buf", call,
		            adapter->info.uri);
	st = check_register(call, mr, length, flags);
	if (st != NDX_OK)
		return st;
	if (fd < 0 || length - 1 > UINT64_MAX - offset || length - 1 > UINTPTR_MAX - iova)
		return fail(NDX_E_INVALID_PARAMETER, 0,
		            "%s: descriptor %d, %zu bytes from offset 0x%llx at address 0x%llx: no "
		            "descriptor, or the range overflows",
		            call, fd, length, (unsigned long long)offset, (unsigned long long)iova);
	st = begin_register(call, region, (const void *)(uintptr_t)iova, length, flags, ov);
	if (st != NDX_OK)
		return st;
	return get_end(region,
	               adapter->ops->mr_register_dmabuf(region, fd, offset, length, iova, flags));
}

enum ndx_status ndx_mr_deregister(struct ndx_mr *mr, struct ndx_overlapped *ov)
{
	struct ndx_spi_mr *region = spi_mr(mr);
	enum ndx_status st;

	if (mr == NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "ndx_mr_deregister: mr is NULL");
	st = region_begin(region, true, ov, "ndx_mr_deregister");
	if (st != NDX_OK)
		return st;
	return get_end(region, region->object.adapter->ops->mr_deregister(region, false));
}

/* Wait for the operation in flight; false if the provider does not end it. */
static bool await_end(struct ndx_spi_mr *mr)
{
	const struct ndx_provider_ops *ops = mr->object.adapter->ops;

	if (region_is_busy(mr) && ops->mr_wait_idle != NULL)
		ops->mr_wait_idle(mr);
	return region_await_end(mr, CORE_PROVIDER_PATIENCE_MS);
}

void ndx_mr_close(struct ndx_mr *mr)
{
	struct ndx_spi_mr *region = spi_mr(mr);
	struct ndx_adapter *adapter;

	if (mr == NULL)
		return;
	adapter = region->object.adapter;
	if (!await_end(region)) {
		/* A leak is better than freeing memory to which a device may still write. */
		log_error(0,
		          "ndx_mr_close: the provider has not ended a registration or "
		          "deregistration of mr#%u in %u ms; the region is leaked",
		          region->object.id, CORE_PROVIDER_PATIENCE_MS);
		return;
	}
	if (region_has_tokens(region))
		(void)adapter->ops->mr_deregister(region, true);
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
	return mr != NULL && region_has_tokens(const_mr(mr)) ? const_mr(mr)->local_token : 0;
}

uint32_t ndx_mr_get_remote_token(const struct ndx_mr *mr)
{
	return mr != NULL && region_has_tokens(const_mr(mr)) ? const_mr(mr)->remote_token : 0;
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
