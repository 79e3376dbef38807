/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_listen.h"

#include <stdio.h>
#include <stdlib.h>

#include <ndx/helpers.h>

#include "sample_options.h"
#include "sample_report.h"

/*
 * Choose the requested address; without an address or without a host in it, the adapter's first
 * address.
 */
static int choose_address(const char *who, struct ndx_adapter *adapter, const char *wish,
                          struct sample_address *address)
{
	struct sockaddr_storage *own;
	unsigned port = 0;
	size_t count;
	enum ndx_status st;
	const char *why;

	if (wish != NULL) {
		if (!sample_address_parse(wish, address, &why)) {
			fprintf(stderr, "%s: %s: %s\n", who, wish, why);
			return SAMPLE_EXIT_USAGE;
		}
		if (!sample_address_is_any(address))
			return SAMPLE_EXIT_OK;
		port = sample_address_port(address);
	}
	st = sample_addresses_of(adapter, &own, &count);
	if (st != NDX_OK)
		return sample_failed(who, st, "find an address of the adapter");
	*address = sample_address_from(&own[0]);
	free(own);
	sample_address_set_port(address, port);
	return SAMPLE_EXIT_OK;
}

int sample_listen(const char *who, struct ndx_adapter *adapter, const char *wish,
                  struct ndx_listener **listener, struct sample_address *address)
{
	char text[SAMPLE_ADDRESS_TEXT];
	enum ndx_status st;
	int rc = choose_address(who, adapter, wish, address);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	st = ndx_listen_on(adapter, (const struct sockaddr *)&address->storage, address->length, 0,
	                   listener);
	if (st != NDX_OK)
		return sample_failed(who, st, "listen on %s",
		                     sample_address_format(address, text, sizeof(text)));
	address->length = sizeof(address->storage);
	st = ndx_listener_get_local_address(*listener, (struct sockaddr *)&address->storage,
	                                    &address->length);
	if (st == NDX_OK)
		return SAMPLE_EXIT_OK;
	ndx_listener_close(*listener);
	return sample_failed(who, st, "get the listener's address");
}

int sample_write_port(const char *path, const struct sample_address *address)
{
	char temporary[4096];
	FILE *file;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	file = fopen(temporary, "w");
	if (file == NULL)
		goto failed;
	fprintf(file, "%u\n", sample_address_port(address));
	if (fclose(file) == 0 && rename(temporary, path) == 0)
		return SAMPLE_EXIT_OK;
failed:
	perror(path);
	return SAMPLE_EXIT_FAILED;
}
