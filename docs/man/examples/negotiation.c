/* SPDX-License-Identifier: BSD-2-Clause */
/* Examples of the manual pages: plugins and variants. */
#include <stdio.h>

#include <ndx/ndx.h>

/* Find the plugins, and take a variant with a setting. */
enum ndx_status example_variant(struct ndx_negotiation **framework, struct ndx_variant **out)
{
	const struct ndx_setting settings[] = {{"mtu", "1024"}};
	size_t count;
	enum ndx_status st = ndx_negotiation_create(framework);

	if (st != NDX_OK)
		return st;
	st = ndx_negotiation_discover(*framework, NULL, &count); /* where they are installed */
	if (st == NDX_OK)
		st = ndx_negotiation_get_variant(*framework, "roce", "verbs-rc", settings, 1, out);
	if (st == NDX_OK) {
		printf("%s/%s, mtu %s\n", ndx_variant_plugin_name(*out), ndx_variant_name(*out),
		       ndx_variant_setting(*out, "mtu"));
		return NDX_OK;
	}
	fprintf(stderr, "%s\n", ndx_last_error()); /* names the variants that there are */
	(void)ndx_negotiation_close(*framework);
	return st;
}

/* Print the variants that there are. */
enum ndx_status example_variants(struct ndx_negotiation *framework)
{
	struct ndx_plugin_entry *entries;
	size_t count;
	enum ndx_status st = ndx_negotiation_list(framework, &entries, &count);

	if (st != NDX_OK)
		return st;
	for (size_t i = 0; i < count; i++)
		printf("%s/%s: %s\n", entries[i].plugin,
		       entries[i].variant != NULL ? entries[i].variant : "-", entries[i].origin);
	ndx_negotiation_list_free(entries);
	return NDX_OK;
}

/* Add a plugin of the program's own, and one of a file; take the first out again. */
enum ndx_status example_plugins(struct ndx_negotiation *framework, const struct ndx_plugin *own)
{
	enum ndx_status st = ndx_negotiation_register(framework, own);

	if (st == NDX_OK)
		st = ndx_negotiation_load(framework, "/opt/acme/ndx-plugin-acme.so");
	if (st == NDX_OK)
		st = ndx_negotiation_unregister(framework, own->name);
	return st;
}

/* The end: variants first, then the framework. */
enum ndx_status example_negotiation_end(struct ndx_negotiation *framework,
                                        struct ndx_variant *variant)
{
	ndx_variant_close(variant);
	return ndx_negotiation_close(framework); /* NDX_E_DEVICE_BUSY: a session is left */
}
