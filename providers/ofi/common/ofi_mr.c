/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions: registration with tokens of this provider, and random keys for the peer. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include <ndx/spi/system.h>
#include <ndx/spi/log.h>
#include "ofi.h"

static struct ofi_mr *mr_of(struct ndx_spi_mr *mr)
{
	return (struct ofi_mr *)(void *)mr;
}

/* ---- local tokens ---- */

static enum ndx_status add_token(struct ofi_mr *mr, void *buffer, size_t length, uint32_t rights)
{
	struct ofi_mr_table *table = &mr->adapter->regions;
	struct ofi_mr_slot *slot;
	enum ndx_status st;
	uint32_t token;

	ndxp_lock_acquire(&table->lock);
	st = ofi_mr_table_take(table, &token);
	if (st == NDX_OK) {
		slot = ofi_mr_table_slot(table, token);
		__atomic_store_n(&slot->start, (uintptr_t)buffer, __ATOMIC_RELAXED);
		__atomic_store_n(&slot->length, length, __ATOMIC_RELAXED);
		__atomic_store_n(&slot->rights, rights, __ATOMIC_RELAXED);
		slot->region = mr;
		__atomic_store_n(&slot->desc, mr->mr != NULL ? fi_mr_desc(mr->mr) : NULL,
		                 __ATOMIC_RELAXED);
		__atomic_store_n(&slot->token, token, __ATOMIC_RELEASE);
		mr->spi.local_token = token;
	}
	ndxp_lock_release(&table->lock);
	if (st != NDX_OK)
		return fail(st, 0, "ndx_mr_register: no room for more than %u regions",
		            OFI_MR_REGIONS);
	return NDX_OK;
}

/* Lock held. */
static void remove_token(struct ofi_mr *mr)
{
	struct ofi_mr_table *table = &mr->adapter->regions;

	__atomic_store_n(&ofi_mr_table_slot(table, mr->spi.local_token)->token, 0,
	                 __ATOMIC_RELEASE);
	ofi_mr_table_put(table, mr->spi.local_token);
	mr->spi.local_token = 0;
}

/* ---- registration ---- */

enum ndx_status ofi_mr_create(struct ndx_spi_adapter *adapter, struct ndx_spi_mr **out)
{
	struct ofi_mr *mr = calloc(1, sizeof(*mr));

	if (mr == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a region");
	mr->adapter = ofi_adapter_of(adapter);
	ndxp_list_init(&mr->windows);
	*out = &mr->spi;
	return NDX_OK;
}

void ofi_mr_destroy(struct ndx_spi_mr *spi)
{
	struct ofi_mr *mr = mr_of(spi);

	ofi_revoke_wait(mr->adapter, &mr->revoking);
	free(mr->revoke);
	free(mr);
}

/* Control thread. */
static void free_revoke(struct ofi_revoke *revoke)
{
	free(revoke);
}

/* The record is allocated with the registration, which can fail for lack of memory; deregistering
 * cannot. Revokes of earlier registrations may still be in progress. */
static enum ndx_status prepare_revoke(struct ofi_mr *mr)
{
	if (mr->revoke == NULL)
		mr->revoke = calloc(1, sizeof(*mr->revoke));
	if (mr->revoke == NULL)
		return fail(NDX_E_NO_MEMORY, ENOMEM, "no memory for a registration");
	mr->revoke->adapter = mr->adapter;
	mr->revoke->going = &mr->revoking;
	mr->revoke->ended = free_revoke;
	return NDX_OK;
}

static uint32_t peer_rights(uint32_t flags)
{
	uint32_t rights = 0;

	if (flags & NDX_MR_ALLOW_REMOTE_READ)
		rights |= OFI_GRANT_READ;
	if ((flags & NDX_MR_ALLOW_REMOTE_WRITE) == NDX_MR_ALLOW_REMOTE_WRITE)
		rights |= OFI_GRANT_WRITE;
	return rights;
}

static uint32_t local_rights(uint32_t flags)
{
	uint32_t rights = OFI_RIGHT_SOURCE;

	if (flags & NDX_MR_ALLOW_LOCAL_WRITE)
		rights |= OFI_RIGHT_RECEIVE | OFI_RIGHT_SINK;
	if (flags & NDX_MR_RDMA_READ_SINK)
		rights |= OFI_RIGHT_SINK;
	return rights;
}

/* The device checks every access itself. The local token is checked before a request is
 * submitted. */
static enum ndx_status register_native(struct ofi_mr *mr, void *buffer, size_t length,
                                       uint32_t flags)
{
	const uint32_t rights = local_rights(flags);
	uint64_t access = FI_SEND | ofi_mr_access(peer_rights(flags));
	uint32_t key = 0;
	enum ndx_status st;
	int err;

	if (rights != OFI_RIGHT_SOURCE)
		access |= FI_RECV | FI_READ;
	err = ofi_mr_reg(mr->adapter, buffer, length, access, &mr->mr, &key);
	if (err != 0)
		return fail(err == EFAULT ? NDX_E_ACCESS_VIOLATION : NDX_E_INSUFFICIENT_RESOURCES,
		            err, "fi_mr_reg of %zu bytes: %s; see ulimit -l", length,
		            fi_strerror(err));
	st = add_token(mr, buffer, length, rights);
	if (st != NDX_OK) {
		(void)fi_close(&mr->mr->fid);
		mr->mr = NULL;
		return st;
	}
	/* A device may give no remote key to a region without remote rights. The local key then
	 * stands in for it: a peer can do as little with it. */
	if (key == 0)
		key = (uint32_t)(uintptr_t)fi_mr_desc(mr->mr);
	mr->spi.remote_token = htobe32(key); /* as verbs does: the four bytes of a packet */
	return NDX_OK;
}

enum ndx_status ofi_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length, uint32_t flags)
{
	struct ofi_mr *mr = mr_of(spi);
	const uint64_t access = ofi_mr_access(peer_rights(flags));
	const uint32_t rights = local_rights(flags);
	uint32_t key = 0;
	enum ndx_status st;
	/* libfabric does not check the memory: the first peer that used such a region would end
	 * this process by SIGSEGV. */
	int err = ndxp_memory_probe(buffer, length, rights != OFI_RIGHT_SOURCE);

	if (err == ENOMEM || err == EFAULT || err == EINVAL)
		return fail(NDX_E_ACCESS_VIOLATION, err,
		            "ndx_mr_register: %zu bytes at %p are not mapped, or not for %s",
		            length, buffer, rights != OFI_RIGHT_SOURCE ? "writing" : "reading");
	if (err != 0)
		return fail(ofi_status_of(err), err, "ndx_mr_register: %zu bytes at %p", length,
		            buffer);
	st = prepare_revoke(mr);
	if (st != NDX_OK)
		return st;
	if (mr->adapter->backend->native_keys)
		return register_native(mr, buffer, length, flags);
	st = add_token(mr, buffer, length, rights);
	if (st != NDX_OK)
		return st;
	/* a region without remote rights gets a random token that is in no table */
	if (access == 0)
		err = ndxp_random(&key, sizeof(key)) == NDX_OK ? 0 : EIO;
	else
		err = ofi_mr_reg(mr->adapter, buffer, length, access, &mr->mr, &key);
	if (err != 0) {
		ndxp_lock_acquire(&mr->adapter->regions.lock);
		remove_token(mr);
		ndxp_lock_release(&mr->adapter->regions.lock);
		return fail(NDX_E_INSUFFICIENT_RESOURCES, err, "fi_mr_reg of %zu bytes: %s", length,
		            fi_strerror(err));
	}
	if (access != 0) {
		mr->key.grant =
			(struct ofi_grant){(uintptr_t)buffer, length, key, peer_rights(flags)};
		ofi_key_add(&mr->adapter->keys, &mr->key);
	}
	spi->remote_token = key;
	return NDX_OK;
}

/* Withdraw the region's own tokens; nothing can be bound to the region any more. false: windows are
 * bound, and `windows_too` is not set. */
static bool withdraw_tokens(struct ofi_mr *mr, bool windows_too)
{
	struct ofi_mr_table *table = &mr->adapter->regions;
	bool done;

	ndxp_lock_acquire(&table->lock);
	done = mr->bound == 0 || windows_too;
	if (done) {
		mr->revoke->token = mr->spi.local_token;
		remove_token(mr);
	}
	for (struct ndxp_list *n = mr->windows.next; done && n != &mr->windows; n = n->next)
		ofi_mw_revoke(container_of(n, struct ofi_mw, of_mr));
	ndxp_lock_release(&table->lock);
	return done;
}

enum ndx_status ofi_mr_deregister(struct ndx_spi_mr *spi, bool closing)
{
	struct ofi_mr *mr = mr_of(spi);
	struct ofi_revoke *revoke = mr->revoke;
	enum ndx_status st;

	if (!withdraw_tokens(mr, closing))
		return fail(NDX_E_DEVICE_BUSY, 0,
		            "ndx_mr_deregister: windows are bound to the region; invalidate them "
		            "first");
	/* without bound windows, as after ndx_mr_deregister(), this does not wait */
	ofi_revoke_wait(mr->adapter, &mr->bound);
	ofi_key_remove(&mr->adapter->keys, &mr->key, &revoke->users);
	revoke->forget = spi->remote_token;
	revoke->mr = mr->mr;
	mr->mr = NULL;
	spi->remote_token = 0;
	if (mr->adapter->backend->native_keys)
		return ofi_revoke_native(revoke);
	mr->revoke = NULL;
	revoke->region = closing ? NULL : spi;
	st = ofi_revoke(revoke);
	if (st == NDX_OK)
		mr->revoke = revoke; /* for the next registration */
	if (st != NDX_PENDING || !closing)
		return st;
	ofi_revoke_wait(mr->adapter, &mr->revoking);
	return NDX_OK;
}

void ofi_mr_wait_idle(struct ndx_spi_mr *spi)
{
	struct ofi_mr *mr = mr_of(spi);

	ofi_revoke_wait(mr->adapter, &mr->revoking);
}
