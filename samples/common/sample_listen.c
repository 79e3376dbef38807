/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ndx/helpers.h>

#include "sample_json.h"
#include "sample_options.h"
#include "sample_report.h"

/* A bare port, without the colon of an address. */
static bool is_port_only(const char *text)
{
	return text[strspn(text, "0123456789")] == '\0';
}

/* The requested address as it is; for a bare port, or nothing, the adapter's first address. */
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
			(void)sample_error(who, "%s: %s", wish, why);
			return SAMPLE_EXIT_USAGE;
		}
		if (!is_port_only(wish))
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

static bool is_any(const struct sample_address *address)
{
	const struct sockaddr_in *v4 = (const void *)&address->storage;
	const struct sockaddr_in6 *v6 = (const void *)&address->storage;

	return address->storage.ss_family == AF_INET ? v4->sin_addr.s_addr == htonl(INADDR_ANY)
	                                             : IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

/* Every address was asked for, and the adapter listens on one: say so, and what decides that. */
static void tell_narrowed(const char *who, struct ndx_adapter *adapter,
                          const struct sample_address *asked, const struct sample_address *got)
{
	struct ndx_adapter_info info = {.size = sizeof(info)};
	char wish[SAMPLE_ADDRESS_TEXT], text[SAMPLE_ADDRESS_TEXT];

	if (!is_any(asked) || is_any(got) || ndx_adapter_query(adapter, &info) != NDX_OK)
		return;
	fprintf(stderr,
	        "%s: %s asks for every address, but adapter %s serves only %s; ndx-info shows "
	        "the URIs that serve others\n",
	        who, sample_address_format(asked, wish, sizeof(wish)), info.uri,
	        sample_address_host(got, text, sizeof(text)));
}

int sample_listen(const char *who, struct ndx_adapter *adapter, const char *wish,
                  struct ndx_listener **listener, struct sample_address *address)
{
	char text[SAMPLE_ADDRESS_TEXT];
	enum ndx_status st;
	struct sample_address asked;
	int rc = choose_address(who, adapter, wish, address);

	if (rc != SAMPLE_EXIT_OK)
		return rc;
	st = ndx_listen_on(adapter, (const struct sockaddr *)&address->storage, address->length, 0,
	                   listener);
	if (st != NDX_OK)
		return sample_failed(who, st, "listen on %s",
		                     sample_address_format(address, text, sizeof(text)));
	asked = *address;
	address->length = sizeof(address->storage);
	st = ndx_listener_get_local_address(*listener, (struct sockaddr *)&address->storage,
	                                    &address->length);
	if (st == NDX_OK) {
		tell_narrowed(who, adapter, &asked, address);
		return SAMPLE_EXIT_OK;
	}
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
