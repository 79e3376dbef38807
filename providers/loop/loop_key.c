/* SPDX-License-Identifier: BSD-2-Clause */
/* Tokens, and the keys behind them. */
#include <ndx/spi/system.h>
#include "loop.h"

#define TOKEN_TRIES 64

static struct loop_key *find_key(const struct loop_adapter *adapter, uint32_t token)
{
	struct ndxp_table_node *node = ndxp_table_first(&adapter->keys, token);

	return node != NULL ? container_of(node, struct loop_key, node) : NULL;
}

/* A posted bind has its token before its key is in the table. */
static bool is_promised(const struct loop_adapter *adapter, uint32_t token)
{
	struct ndxp_list *node = adapter->pending.next;

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
		if (ndxp_random(&candidate, sizeof(candidate)) != NDX_OK)
			break;
		if (candidate == 0 || find_key(adapter, candidate) != NULL ||
		    is_promised(adapter, candidate))
			continue;
		*token = candidate;
		return NDX_OK;
	}
	return NDX_E_INSUFFICIENT_RESOURCES;
}

void loop_key_add(struct loop_adapter *adapter, struct loop_key *key)
{
	ndxp_table_add(&adapter->keys, &key->node, key->token);
}

void loop_key_remove(struct loop_key *key)
{
	ndxp_table_remove(&key->node);
	key->token = 0;
}

static bool key_covers(const struct loop_key *key, uint64_t address, size_t length)
{
	return address >= key->start && length <= key->length &&
	       address - key->start <= key->length - length;
}

bool loop_key_admits(const struct loop_adapter *adapter, uint32_t token, uint64_t address,
                     size_t length, enum loop_right right, const struct loop_qp *via)
{
	const struct loop_key *key = find_key(adapter, token);

	return key != NULL && (key->rights & right) != 0 && key_covers(key, address, length) &&
	       (key->only == NULL || key->only == via);
}

static const char *words_of(enum loop_right right)
{
	switch (right) {
	case LOOP_LOCAL_READ:
		return "its token is no local one";
	case LOOP_LOCAL_WRITE:
		return "the region grants no local write";
	case LOOP_READ_SINK:
		return "the region is no sink of reads";
	case LOOP_REMOTE_READ:
		return "the region or window grants no remote read";
	case LOOP_REMOTE_WRITE:
		return "the region or window grants no remote write";
	}
	return "the right is missing";
}

const char *loop_key_why(const struct loop_adapter *adapter, uint32_t token, enum loop_right right,
                         const struct loop_qp *via)
{
	const struct loop_key *key = find_key(adapter, token);

	if (key == NULL)
		return "its token is of no region or window: it never was, or was revoked";
	if (key->only != NULL && key->only != via)
		return "its token is of a window of another connection";
	if ((key->rights & right) == 0)
		return words_of(right);
	return "it is not all inside the region or window";
}

const char *loop_key_why_list(const struct loop_adapter *adapter, const struct ndx_sge *sge,
                              uint32_t bytes, enum loop_right right)
{
	uint32_t len = sge->length < bytes ? sge->length : bytes;

	/* the first entry that is not admitted: there is one */
	while (bytes > len &&
	       (len == 0 ||
	        loop_key_admits(adapter, sge->token, (uintptr_t)sge->buffer, len, right, NULL))) {
		bytes -= len;
		sge++;
		len = sge->length < bytes ? sge->length : bytes;
	}
	return loop_key_why(adapter, sge->token, right, NULL);
}

bool loop_key_admits_list(const struct loop_adapter *adapter, const struct ndx_sge *sge,
                          uint32_t bytes, enum loop_right right)
{
	for (; bytes > 0; sge++) {
		uint32_t len = sge->length < bytes ? sge->length : bytes;

		/* an empty entry may have any token */
		if (len > 0 &&
		    !loop_key_admits(adapter, sge->token, (uintptr_t)sge->buffer, len, right, NULL))
			return false;
		bytes -= len;
	}
	return true;
}

struct loop_mr *loop_mr_find(const struct loop_adapter *adapter, uint32_t local_token)
{
	struct loop_key *key = find_key(adapter, local_token);

	if (key == NULL || (key->rights & LOOP_LOCAL_READ) == 0)
		return NULL;
	return container_of(key, struct loop_mr, local);
}
