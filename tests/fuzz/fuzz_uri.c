/* SPDX-License-Identifier: BSD-2-Clause */
/* Any string as an adapter URI: refused, or taken apart so that it can be put together again. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "uri.h"

#define WRITTEN_MAX (3 * URI_MAX + 1) /* every byte encoded */

static bool same(const struct uri *a, const struct uri *b)
{
	if (strcmp(a->provider, b->provider) != 0 || strcmp(a->device, b->device) != 0 ||
	    a->option_count != b->option_count)
		return false;
	for (size_t i = 0; i < a->option_count; i++) {
		if (strcmp(a->options[i].key, b->options[i].key) != 0 ||
		    strcmp(a->options[i].value, b->options[i].value) != 0)
			return false;
	}
	return true;
}

static void write_and_read(const struct uri *uri)
{
	struct ndx_spi_option options[URI_OPTIONS_MAX];
	struct uri again;
	char text[WRITTEN_MAX];
	size_t len;

	for (size_t i = 0; i < uri->option_count; i++)
		options[i] = (struct ndx_spi_option){.key = uri->options[i].key,
		                                     .value = uri->options[i].value};
	len = uri_write(text, sizeof(text), uri->provider, uri->device, options, uri->option_count);
	FUZZ_HOLDS(len == strlen(text));
	if (len > URI_MAX)
		return;
	FUZZ_HOLDS(uri_parse(text, "again", &again) == NDX_OK);
	FUZZ_HOLDS(same(uri, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uri uri;
	char *text = malloc(size + 1);
	enum ndx_status st;

	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	st = uri_parse(text, "fuzz", &uri);
	FUZZ_HOLDS(st == NDX_OK || (st == NDX_E_INVALID_CONFIG && ndx_last_error()[0] != '\0'));
	if (st == NDX_OK)
		write_and_read(&uri);
	free(text);
	return 0;
}
