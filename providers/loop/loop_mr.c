/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions. */
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "loop.h"

static struct loop_mr *loop_mr_of(struct ndx_spi_mr *mr)
{
	return container_of(mr, struct loop_mr, spi);
}

enum ndx_status loop_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out)
{
	struct loop_mr *mr = calloc(1, sizeof(*mr));

	if (mr == NULL)
		return fail(NDX_E_NO_MEMORY, 0, "memory region: out of memory");
	mr->adapter = loop_adapter_of(adapter);
	ndxp_list_init(&mr->windows);
	*out = &mr->spi;
	return NDX_OK;
}

void loop_mr_destroy(struct ndx_spi_mr *spi)
{
	free(loop_mr_of(spi));
}

static uint32_t local_rights(uint32_t flags)
{
	uint32_t rights = LOOP_LOCAL_READ;

	if ((flags & NDX_MR_ALLOW_LOCAL_WRITE) != 0)
		rights |= LOOP_LOCAL_WRITE | LOOP_READ_SINK;
	if ((flags & NDX_MR_RDMA_READ_SINK) != 0)
		rights |= LOOP_READ_SINK;
	return rights;
}

static uint32_t remote_rights(uint32_t flags)
{
	uint32_t rights = 0;

	if ((flags & NDX_MR_ALLOW_REMOTE_READ) != 0)
		rights |= LOOP_REMOTE_READ;
	if ((flags & NDX_MR_ALLOW_REMOTE_WRITE) == NDX_MR_ALLOW_REMOTE_WRITE)
		rights |= LOOP_REMOTE_WRITE;
	return rights;
}

static enum ndx_status add_key(struct loop_adapter *adapter, struct loop_key *key, void *buffer,
                               size_t length, uint32_t rights)
{
	enum ndx_status st = loop_key_new_token(adapter, &key->token);

	if (st != NDX_OK)
		return st;
	key->start = (uintptr_t)buffer;
	key->length = length;
	key->rights = rights;
	loop_key_add(adapter, key);
	return NDX_OK;
}

static enum ndx_status add_keys(struct loop_mr *mr, void *buffer, size_t length, uint32_t flags)
{
	enum ndx_status st;

	st = add_key(mr->adapter, &mr->local, buffer, length, local_rights(flags));
	if (st != NDX_OK)
		return st;
	st = add_key(mr->adapter, &mr->remote, buffer, length, remote_rights(flags));
	if (st != NDX_OK)
		loop_key_remove(&mr->local);
	return st;
}

enum ndx_status loop_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length,
                                 uint32_t flags)
{
	struct loop_mr *mr = loop_mr_of(spi);
	bool write = (flags & (NDX_MR_ALLOW_LOCAL_WRITE | NDX_MR_RDMA_READ_SINK)) != 0;
	int err = ndxp_memory_probe(buffer, length, write);
	enum ndx_status st;

	if (err != 0)
		return fail(NDX_E_ACCESS_VIOLATION, err,
		            "register %zu bytes at %p: not all of it is mapped %s", length, buffer,
		            write ? "for reading and writing" : "for reading");
	loop_switch_lock(mr->adapter->sw);
	st = add_keys(mr, buffer, length, flags);
	loop_switch_unlock(mr->adapter->sw);
	if (st != NDX_OK)
		return fail(st, 0, "register %zu bytes: no token left", length);
	spi->local_token = mr->local.token;
	spi->remote_token = mr->remote.token;
	return NDX_OK;
}

/* Data is copied under the lock: when this returns, no copy uses the region, and none will. */
enum ndx_status loop_mr_deregister(struct ndx_spi_mr *spi, bool closing)
{
	struct loop_mr *mr = loop_mr_of(spi);
	bool busy;

	loop_switch_lock(mr->adapter->sw);
	busy = !closing && !ndxp_list_empty(&mr->windows);
	if (!busy) {
		while (!ndxp_list_empty(&mr->windows))
			loop_mw_unbind(container_of(mr->windows.next, struct loop_mw, of_mr));
		loop_key_remove(&mr->local);
		loop_key_remove(&mr->remote);
	}
	loop_switch_unlock(mr->adapter->sw);
	if (busy)
		return fail(NDX_E_DEVICE_BUSY, 0,
		            "deregister: windows are bound to the region; invalidate them first");
	spi->local_token = 0;
	spi->remote_token = 0;
	return NDX_OK;
}
