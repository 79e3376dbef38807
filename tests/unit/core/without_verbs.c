/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry without "verbs", whether it is built in or not: a fake one, in a file, takes its
 * place in the automatic choice. Linked with --wrap of both functions.
 */
#include <string.h>

#include "registry.h"

/* Names that the linker gives. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
const struct ndx_provider *__real_registry_get(size_t index);
const struct ndx_provider *__real_registry_find(const char *name);
const struct ndx_provider *__wrap_registry_get(size_t index);
const struct ndx_provider *__wrap_registry_find(const char *name);

const struct ndx_provider *__wrap_registry_get(size_t index)
{
	const struct ndx_provider *provider;

	for (size_t i = 0; (provider = __real_registry_get(i)) != NULL; i++) {
		if (strcmp(provider->name, "verbs") != 0 && index-- == 0)
			break;
	}
	return provider;
}

const struct ndx_provider *__wrap_registry_find(const char *name)
{
	return strcmp(name, "verbs") == 0 ? NULL : __real_registry_find(name);
}
/* NOLINTEND(bugprone-reserved-identifier) */
