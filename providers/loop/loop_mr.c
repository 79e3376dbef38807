/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens, what they open, and memory regions. */
#include <stdlib.h>

#include "base_linux.h"
#include "base_log.h"
#include "loop.h"

#define TOKEN_TRIES 64

static struct loop_key **bucket_of(struct loop_adapter *adapter, uint32_t token)
{
	return &adapter->keys[token % LOOP_KEY_BUCKETS];
}

static struct loop_key *find(const struct loop_adapter *adapter, uint32_t token)
{
	struct loop_key *key = adapter->keys[token % LOOP_KEY_BUCKETS];

	while (key != NULL && key->token != token)
		key = key->next;
	return key;
}

/* A bind that was posted has its token before the key is in the table. */
static bool is_promised(const struct loop_adapter *adapter, uint32_t token)
{
	struct base_list *node = adapter->pending.next;

	for (; node != &adapter->pending; node = node->next) {
		if (container_of(node, struct loop_req, pending)->remote_token == token)
			return true;
	}
	return false;
}

enum ndx_status loop_key_new_token(struct loop_adapter *adapter, uint32_t *token)
{
	uint32_t candidate;

	for (int i = 0; i < TOKEN_TRIES; i++) {
		if (base_random(&candidate, sizeof(candidate)) != NDX_OK)
			break;
		if (candidate == 0 || find(adapter, candidate) != NULL ||
		    is_promised(adapter, candidate))
			continue;
		*token = candidate;
		return NDX_OK;
	}
	return NDX_E_INSUFFICIENT_RESOURCES;
}

void loop_key_add(struct loop_adapter *adapter, struct loop_key *key)
{
	struct loop_key **bucket = bucket_of(adapter, key->token);

	key->next = *bucket;
	*bucket = key;
}

void loop_key_remove(struct loop_adapter *adapter, struct loop_key *key)
{
	struct loop_key **p;

	if (key->token == 0)
		return;
	p = bucket_of(adapter, key->token);
	while (*p != key)
		p = &(*p)->next;
	*p = key->next;
	key->token = 0;
}

static bool covers(const struct loop_key *key, uint64_t address, size_t length)
{
	return address >= key->start && length <= key->length &&
	       address - key->start <= key->length - length;
}

bool loop_key_admits(const struct loop_adapter *adapter, uint32_t token, uint64_t address,
                     size_t length, enum loop_right right, const struct loop_qp *via)
{
	const struct loop_key *key = find(adapter, token);

	return key != NULL && (key->rights & right) != 0 && covers(key, address, length) &&
	       (key->only == NULL || key->only == via);
}

bool loop_key_admits_list(const struct loop_adapter *adapter, const struct ndx_sge *sge,
                          uint32_t bytes, enum loop_right right)
{
	for (; bytes > 0; sge++) {
		uint32_t len = sge->length < bytes ? sge->length : bytes;

		/* an empty piece may have any token */
		if (len > 0 &&
		    !loop_key_admits(adapter, sge->token, (uintptr_t)sge->buffer, len, right, NULL))
			return false;
		bytes -= len;
	}
	return true;
}

struct loop_mr *loop_mr_find(const struct loop_adapter *adapter, uint32_t local_token)
{
	struct loop_key *key = find(adapter, local_token);

	if (key == NULL || (key->rights & LOOP_LOCAL_READ) == 0)
		return NULL;
	return container_of(key, struct loop_mr, local);
}

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
	base_list_init(&mr->windows);
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
		loop_key_remove(mr->adapter, &mr->local);
	return st;
}

enum ndx_status loop_mr_register(struct ndx_spi_mr *spi, void *buffer, size_t length,
                                 uint32_t flags, struct ndx_overlapped *ov)
{
	struct loop_mr *mr = loop_mr_of(spi);
	bool write = (flags & (NDX_MR_ALLOW_LOCAL_WRITE | NDX_MR_RDMA_READ_SINK)) != 0;
	int err = base_memory_probe(buffer, length, write);
	enum ndx_status st;

	(void)ov;
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

/* Data move under the lock: when this returns, none of the region's does or will. */
enum ndx_status loop_mr_deregister(struct ndx_spi_mr *spi, struct ndx_overlapped *ov)
{
	struct loop_mr *mr = loop_mr_of(spi);
	bool busy;

	loop_switch_lock(mr->adapter->sw);
	busy = ov != NULL && !base_list_empty(&mr->windows);
	if (!busy) {
		while (!base_list_empty(&mr->windows))
			loop_mw_unbind(container_of(mr->windows.next, struct loop_mw, of_mr));
		loop_key_remove(mr->adapter, &mr->local);
		loop_key_remove(mr->adapter, &mr->remote);
	}
	loop_switch_unlock(mr->adapter->sw);
	if (busy)
		return fail(NDX_E_DEVICE_BUSY, 0,
		            "deregister: windows are bound to the region; invalidate them first");
	spi->local_token = 0;
	spi->remote_token = 0;
	return NDX_OK;
}
