/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "verbs.h"

static struct verbs_mr *mr_of(struct ndx_spi_mr *mr)
{
	return (struct verbs_mr *)(void *)mr;
}

enum ndx_status verbs_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out)
{
	struct verbs_mr *mr = calloc(1, sizeof(*mr));

	if (mr == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a memory region");
	mr->adapter = verbs_adapter_of(adapter);
	ndxp_list_init(&mr->node);
	*out = &mr->spi;
	return NDX_OK;
}

void verbs_mr_destroy(struct ndx_spi_mr *spi)
{
	free(mr_of(spi));
}

static int rights_of(uint32_t flags)
{
	int rights = 0;

	if (flags & (NDX_MR_ALLOW_LOCAL_WRITE | NDX_MR_RDMA_READ_SINK))
		rights |= IBV_ACCESS_LOCAL_WRITE;
	if (flags & NDX_MR_ALLOW_REMOTE_READ)
		rights |= IBV_ACCESS_REMOTE_READ;
	if ((flags & NDX_MR_ALLOW_REMOTE_WRITE) == NDX_MR_ALLOW_REMOTE_WRITE)
		rights |= IBV_ACCESS_REMOTE_WRITE;
	return rights;
}

/* For a region to which windows may be bound the kernel requires writable memory, whatever the
 * rights. */
static struct ibv_mr *reg_mr(const struct verbs_adapter *adapter, void *buffer, size_t length,
                             int rights)
{
	struct ibv_mr *mr = NULL;

	if (adapter->has_windows)
		mr = ibv_reg_mr(adapter->pd, buffer, length, rights | IBV_ACCESS_MW_BIND);
	return mr != NULL ? mr : ibv_reg_mr(adapter->pd, buffer, length, rights);
}

/* The device has the region: let requests find it, and set the tokens. */
static void finish_register(struct verbs_mr *mr, uintptr_t start, bool writable)
{
	mr->start = start;
	mr->writable = writable;
	ndxp_lock_acquire(&mr->adapter->regions_lock);
	ndxp_list_add(&mr->adapter->regions, &mr->node);
	ndxp_lock_release(&mr->adapter->regions_lock);
	mr->spi.local_token = mr->native->lkey;
	/* The peer may have another byte order, so the token is kept as a sequence of bytes. Some
	 * devices have no rkey for a region without remote rights: a peer's request with any token
	 * fails then. */
	mr->spi.remote_token = htobe32(mr->native->rkey != 0 ? mr->native->rkey : mr->native->lkey);
}

enum ndx_status verbs_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length,
                                  uint32_t flags)
{
	struct verbs_mr *mr = mr_of(spi);
	const int rights = rights_of(flags);
	const bool write = (rights & IBV_ACCESS_LOCAL_WRITE) != 0;
	const enum ndx_status st = verbs_is_there(mr->adapter, "register memory");
	int err = ndxp_memory_probe(buffer, length, write);

	if (st != NDX_OK)
		return st;
	if (err != 0)
		return fail(NDX_E_ACCESS_VIOLATION, err,
		            "register %zu bytes at %p: not all of it is mapped %s", length, buffer,
		            write ? "for reading and writing" : "for reading");
	mr->native = reg_mr(mr->adapter, buffer, length, rights);
	err = errno;
	if (mr->native == NULL)
		return fail(err == EFAULT ? NDX_E_ACCESS_VIOLATION
		                          : verbs_refusal(mr->adapter, err),
		            err, "register %zu bytes at %p: ibv_reg_mr: %s; see ulimit -l", length,
		            buffer, strerror(err));
	finish_register(mr, (uintptr_t)buffer, write);
	return NDX_OK;
}

/* ---- dma-buf ---- */

/* The kernel looks for the descriptor after it has found that the device can do it. */
bool verbs_mr_has_dmabuf(const struct verbs_adapter *adapter)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(adapter->pd, 0, 1, 0, -1, 0);

	if (mr == NULL)
		return errno == EBADF;
	(void)ibv_dereg_mr(mr);
	return true;
}

static struct ibv_mr *reg_dmabuf(const struct verbs_adapter *adapter, int fd, uint64_t offset,
                                 size_t length, uint64_t iova, int rights)
{
	struct ibv_mr *mr = NULL;

	if (adapter->has_windows)
		mr = ibv_reg_dmabuf_mr(adapter->pd, offset, length, iova, fd,
		                       rights | IBV_ACCESS_MW_BIND);
	return mr != NULL ? mr : ibv_reg_dmabuf_mr(adapter->pd, offset, length, iova, fd, rights);
}

static enum ndx_status dmabuf_refusal(struct verbs_adapter *adapter, int err)
{
	switch (err) {
	case EBADF:
	case EINVAL:
		return NDX_E_INVALID_PARAMETER;
	case EOPNOTSUPP:
		return NDX_E_NOT_SUPPORTED;
	default:
		return verbs_refusal(adapter, err);
	}
}

enum ndx_status verbs_mr_register_dmabuf(struct ndx_spi_mr *spi, int fd, uint64_t offset,
                                         size_t length, uint64_t iova, uint32_t flags)
{
	struct verbs_mr *mr = mr_of(spi);
	const int rights = rights_of(flags);
	const enum ndx_status st = verbs_is_there(mr->adapter, "register a dma-buf");
	int err;

	if (st != NDX_OK)
		return st;
	mr->native = reg_dmabuf(mr->adapter, fd, offset, length, iova, rights);
	err = errno;
	if (mr->native == NULL)
		return fail(
			dmabuf_refusal(mr->adapter, err), err,
			"register %zu bytes of dma-buf %d from offset 0x%llx at address 0x%llx: "
			"ibv_reg_dmabuf_mr: %s; is it a dma-buf, is the range within it, and do "
			"offset and address have the same position in a page?",
			length, fd, (unsigned long long)offset, (unsigned long long)iova,
			strerror(err));
	finish_register(mr, (uintptr_t)iova, (rights & IBV_ACCESS_LOCAL_WRITE) != 0);
	return NDX_OK;
}

/* When the device has forgotten the key, it does not use the memory any more. */
enum ndx_status verbs_mr_deregister(struct ndx_spi_mr *spi, bool closing)
{
	struct verbs_mr *mr = mr_of(spi);
	int err;

	if (!verbs_mw_leave_mr(mr, closing))
		return fail(NDX_E_DEVICE_BUSY, 0,
		            "deregister: windows are bound to the region; invalidate them first");
	ndxp_lock_acquire(&mr->adapter->regions_lock);
	ndxp_list_remove(&mr->node);
	ndxp_lock_release(&mr->adapter->regions_lock);
	err = ibv_dereg_mr(mr->native);
	if (err != 0)
		return fail(NDX_E_DEVICE_BUSY, err, "deregister: ibv_dereg_mr: %s", strerror(err));
	mr->native = NULL;
	spi->local_token = 0;
	spi->remote_token = 0;
	return NDX_OK;
}

static bool mr_covers(const struct verbs_mr *mr, const struct ndx_sge *sge, bool write)
{
	const uintptr_t start = mr->start;
	const uintptr_t at = (uintptr_t)sge->buffer;

	return (mr->writable || !write) && mr->native->lkey == sge->token && at >= start &&
	       sge->length <= mr->native->length && at - start <= mr->native->length - sge->length;
}

bool verbs_list_is_good(struct verbs_adapter *adapter, const struct ndx_sge *sge, size_t count,
                        bool write)
{
	bool good = true;

	ndxp_lock_acquire(&adapter->regions_lock);
	for (size_t i = 0; good && i < count; i++) {
		good = sge[i].length == 0;
		for (struct ndxp_list *n = adapter->regions.next; !good && n != &adapter->regions;
		     n = n->next)
			good = mr_covers(container_of(n, struct verbs_mr, node), &sge[i], write);
	}
	ndxp_lock_release(&adapter->regions_lock);
	return good;
}
