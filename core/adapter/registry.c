/* SPDX-License-Identifier: BSD-2-Clause */
/* The providers inside libndx, and the checks that every provider must pass. */
#include "registry.h"

#include <string.h>

#include <ndx/spi/lock.h>
#include <ndx/spi/log.h>
#include "builtin.h"
#include "control_thread.h"
#include "uri.h"

/* The providers that NDX has in files of their own. The build knows their names, and this library
 * only uses them to say what can be installed. */
#ifndef NDX_MODULES
#define NDX_MODULES ""
#endif

static const char modules[] = NDX_MODULES;

enum op_group {
	OP_MUST,
	OP_MAY,
	OP_MW, /* a group is complete or absent */
	OP_SRQ,
	OP_PEER,
	OP_GROUPS
};

struct op {
	const char *name;
	size_t offset;
	enum op_group group;
};

typedef void any_fn(void);

#define OP(group, member)                                                      \
	{                                                                      \
#member, offsetof(struct ndx_provider_ops, member), OP_##group \
	}

/* clang-format off */
static const struct op ops_table[] = {
	OP(MUST, list), OP(MUST, adapter_open), OP(MUST, adapter_close), OP(MUST, adapter_query),
	OP(MUST, adapter_addresses),
	OP(MUST, cq_create), OP(MUST, cq_destroy), OP(MUST, cq_notify), OP(MUST, cq_cancel),
	OP(MUST, cq_get_fd), OP(MAY, cq_wake), OP(MAY, cq_resize), OP(MAY, cq_affinity),
	OP(MUST, mr_create), OP(MUST, mr_destroy), OP(MUST, mr_register), OP(MUST, mr_deregister),
	OP(MAY, mr_wait_idle),
	OP(MW, mw_create), OP(MW, mw_destroy),
	OP(SRQ, srq_create), OP(SRQ, srq_destroy), OP(SRQ, srq_modify), OP(SRQ, srq_notify),
	OP(SRQ, srq_cancel), OP(MAY, srq_affinity),
	OP(MUST, qp_create), OP(MUST, qp_destroy), OP(MUST, qp_cancel),
	OP(MUST, conn_create), OP(MUST, conn_destroy), OP(MUST, conn_bind), OP(MUST, conn_connect),
	OP(MUST, conn_complete), OP(MUST, conn_take), OP(MUST, conn_accept), OP(MUST, conn_reject),
	OP(MUST, conn_abandon), OP(MUST, conn_drain), OP(MUST, conn_cancel_initiator),
	OP(MUST, conn_send_disc), OP(MUST, conn_finish), OP(MUST, conn_abort),
	OP(MUST, conn_detach),
	OP(PEER, qp_describe), OP(PEER, qp_connect_peer), OP(PEER, conn_oob_received),
	OP(MUST, listener_create), OP(MUST, listener_destroy), OP(MUST, listener_bind),
	OP(MUST, listener_listen), OP(MUST, request_refuse),
	OP(MAY, request_is_stale),
	OP(MAY, qp_get_stats), OP(MAY, cq_get_stats), OP(MAY, get_counters),
	OP(MAY, qp_query), OP(MAY, mr_register_dmabuf),
	OP(MAY, conn_prove),
};
/* clang-format on */

#define OP_COUNT (sizeof(ops_table) / sizeof(ops_table[0]))

/* What version 0.1 had: no provider has less. */
#define PROVIDER_FIRST (offsetof(struct ndx_provider, binding) + sizeof(void *))

_Static_assert(sizeof(struct ndx_provider_ops) == OP_COUNT * sizeof(any_fn *),
               "an operation of the SPI is missing in ops_table");

const struct ndx_provider *registry_get(size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (ndx_builtin[i] == NULL)
			return NULL;
	}
	return ndx_builtin[index];
}

const struct ndx_provider *registry_find(const char *name)
{
	for (size_t i = 0; ndx_builtin[i] != NULL; i++) {
		if (strcmp(ndx_builtin[i]->name, name) == 0)
			return ndx_builtin[i];
	}
	return NULL;
}

const char *registry_module(size_t index, size_t *len)
{
	const char *at = modules;

	for (; index > 0 && *at != '\0'; index--) {
		at += strcspn(at, " ");
		at += *at == ' ';
	}
	*len = strcspn(at, " ");
	return *len > 0 ? at : NULL;
}

bool registry_is_module(const char *name)
{
	const size_t len = strlen(name);
	size_t of;
	const char *module;

	for (size_t i = 0; (module = registry_module(i, &of)) != NULL; i++) {
		if (of == len && memcmp(module, name, len) == 0)
			return true;
	}
	return false;
}

/* A table of `size` bytes, which may be shorter than this library's. */
static bool op_present(const struct ndx_provider_ops *ops, size_t size, const struct op *op)
{
	any_fn *fn;

	if (op->offset + sizeof(fn) > size)
		return false;
	memcpy(&fn, (const char *)ops + op->offset, sizeof(fn));
	return fn != NULL;
}

/* The first missing operation; NULL if the table is complete. */
static const char *find_hole(const struct ndx_provider_ops *ops, size_t size)
{
	bool any[OP_GROUPS] = {[OP_MUST] = true};

	for (size_t i = 0; i < OP_COUNT; i++) {
		if (op_present(ops, size, &ops_table[i]))
			any[ops_table[i].group] = true;
	}
	any[OP_MAY] = false;
	for (size_t i = 0; i < OP_COUNT; i++) {
		if (any[ops_table[i].group] && !op_present(ops, size, &ops_table[i]))
			return ops_table[i].name;
	}
	return NULL;
}

enum ndx_status registry_check(const struct ndx_provider *provider, const char *from)
{
	const char *hole;

	if (provider->abi != NDX_SPI_ABI)
		return fail(NDX_E_ABI_MISMATCH, 0,
		            "provider in %s was built for interface %u, this library has %u; build "
		            "both from the same release",
		            from, (unsigned)provider->abi, NDX_SPI_ABI);
	if (provider->size < PROVIDER_FIRST)
		return fail(
			NDX_E_ABI_MISMATCH, 0,
			"provider in %s says that its structure has %u bytes, the first version "
			"had %zu; set size to sizeof(struct ndx_provider)",
			from, (unsigned)provider->size, PROVIDER_FIRST);
	if (provider->name == NULL || !uri_name_valid(provider->name))
		return fail(NDX_E_ABI_MISMATCH, 0,
		            "provider in %s has no name of 1 to %d of a-z, 0-9, _, -; report it to "
		            "its author",
		            from, URI_NAME_MAX);
	if (provider->ops == NULL || provider->keys == NULL)
		return fail(NDX_E_ABI_MISMATCH, 0,
		            "provider \"%s\" in %s lacks its table of %s; report it to its author",
		            provider->name, from, provider->ops == NULL ? "operations" : "keys");
	hole = find_hole(provider->ops, provider->ops_size);
	if (hole != NULL)
		return fail(NDX_E_ABI_MISMATCH, 0,
		            "provider \"%s\" in %s lacks operation %s; report it to its author",
		            provider->name, from, hole);
	return NDX_OK;
}

void registry_adopt(const struct ndx_provider *provider, struct adopted *own)
{
	const size_t size =
		provider->size < sizeof(own->provider) ? provider->size : sizeof(own->provider);
	const size_t ops_size =
		provider->ops_size < sizeof(own->ops) ? provider->ops_size : sizeof(own->ops);

	*own = (struct adopted){0};
	memcpy(&own->provider, provider, size);
	memcpy(&own->ops, provider->ops, ops_size);
	own->provider.size = sizeof(own->provider);
	own->provider.ops_size = sizeof(own->ops);
	own->provider.ops = &own->ops;
}

bool registry_bind(const struct ndx_provider *provider, const struct ndx_spi_services *services)
{
	struct ndx_spi_binding *b = provider->binding;
	bool bound;

	if (b == NULL)
		return true;
	ndxp_lock_acquire(&b->lock);
	bound = b->users == 0 || b->services == services;
	if (bound) {
		/* Other threads read the pointer without the lock, after they were here. */
		if (b->services != services)
			b->services = services;
		b->users++;
	}
	ndxp_lock_release(&b->lock);
	return bound;
}

void registry_unbind(const struct ndx_provider *provider)
{
	struct ndx_spi_binding *b = provider->binding;

	if (b == NULL)
		return;
	ndxp_lock_acquire(&b->lock);
	b->users--;
	ndxp_lock_release(&b->lock);
}

enum ndx_status registry_check_key(const struct ndx_provider *provider, const char *key,
                                   const char *origin)
{
	struct suggest s;
	char text[SUGGEST_TEXT];

	if (control_thread_has_key(key))
		return NDX_OK;
	suggest_begin(&s, key);
	for (const struct ndx_spi_key *k = provider->keys; k->name != NULL; k++) {
		if (strcmp(k->name, key) == 0 || strcmp(k->name, NDX_SPI_KEY_ANY) == 0)
			return NDX_OK;
		suggest_offer(&s, k->name, k->values);
	}
	for (const struct ndx_spi_key *k = control_thread_keys; k->name != NULL; k++)
		suggest_offer(&s, k->name, k->values);
	return fail(NDX_E_INVALID_CONFIG, 0, "%s: provider \"%s\" has no key \"%.64s\"; %s", origin,
	            provider->name, key, suggest_text(&s, text));
}
