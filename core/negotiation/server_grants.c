/* SPDX-License-Identifier: BSD-2-Clause */
/* Which principals may use which variants. */
#include "server.h"

#include <stdlib.h>
#include <string.h>

#include <ndx/spi/log.h>

#define GRANTS_MOST 4096u

static const char *find_fault(const struct ndx_negotiation_server_attr *a)
{
	if ((a->grants == NULL) != (a->grant_count == 0) || a->grant_count > GRANTS_MOST)
		return "grants and grant_count, at most 4096, go together";
	if (a->grant_count > 0 && a->tls == NULL)
		return "grants name principals, whom only TLS can know; set tls";
	for (size_t i = 0; i < a->grant_count; i++) {
		const struct ndx_variant_grant *g = &a->grants[i];

		if (g->plugin == NULL || (g->name == NULL) == (g->psk_identity == NULL))
			return "a grant has a plugin, and either a name or a psk_identity";
		for (size_t k = 0; k < sizeof(g->reserved) / sizeof(g->reserved[0]); k++)
			if (g->reserved[k] != NULL)
				return "reserved of a grant is not NULL";
	}
	return NULL;
}

static bool copy(const char *text, const char **out)
{
	*out = text != NULL ? strdup(text) : NULL;
	return text == NULL || *out != NULL;
}

void server_drop_grants(struct ndx_negotiation_server *server)
{
	for (size_t i = 0; server->grants != NULL && i < server->attr.grant_count; i++) {
		const struct ndx_variant_grant *g = &server->grants[i];

		free((char *)(uintptr_t)g->plugin);
		free((char *)(uintptr_t)g->variant);
		free((char *)(uintptr_t)g->name);
		free((char *)(uintptr_t)g->psk_identity);
	}
	free(server->grants);
	server->grants = NULL;
}

enum ndx_status server_keep_grants(struct ndx_negotiation_server *server)
{
	static const char call[] = "ndx_negotiation_server_create";
	const struct ndx_negotiation_server_attr *a = &server->attr;
	const char *fault = find_fault(a);
	bool copied = true;

	if (fault != NULL)
		return fail(NDX_E_INVALID_PARAMETER, 0, "%s: %s", call, fault);
	if (a->grant_count == 0)
		return NDX_OK;
	server->grants = calloc(a->grant_count, sizeof(*server->grants));
	for (size_t i = 0; server->grants != NULL && copied && i < a->grant_count; i++) {
		const struct ndx_variant_grant *from = &a->grants[i];
		struct ndx_variant_grant *to = &server->grants[i];

		copied = copy(from->plugin, &to->plugin) && copy(from->variant, &to->variant) &&
		         copy(from->name, &to->name) && copy(from->psk_identity, &to->psk_identity);
	}
	if (server->grants != NULL && copied)
		return NDX_OK;
	server_drop_grants(server);
	return fail(NDX_E_NO_MEMORY, 0, "%s: out of memory", call);
}

static bool is_of(const struct ndx_variant_grant *g, const struct tls *t)
{
	return g->name != NULL ? tls_has_name(t, g->name) : tls_has_key(t, g->psk_identity);
}

bool server_grants(const struct client *c, const struct ndx_variant *v)
{
	const struct ndx_negotiation_server *server = c->server;
	const struct tls *t = c->session.driver.tls;

	for (size_t i = 0; t != NULL && i < server->attr.grant_count; i++) {
		const struct ndx_variant_grant *g = &server->grants[i];

		if (strcmp(g->plugin, ndx_variant_plugin_name(v)) == 0 &&
		    (g->variant == NULL || strcmp(g->variant, ndx_variant_name(v)) == 0) &&
		    is_of(g, t))
			return true;
	}
	return server->attr.grant_count == 0;
}
