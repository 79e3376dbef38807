/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as an INI file: refused with file and line, or entries that are all in order. */
#include "fuzz.h"

#include <string.h>

#include "config.h"

static void check(const struct config *config)
{
	for (size_t i = 0; i < config->count; i++) {
		const struct config_entry *e = &config->entries[i];

		FUZZ_HOLDS(e->section[0] != '\0' && e->key[0] != '\0' && e->value[0] != '\0');
		FUZZ_HOLDS(strncmp(e->origin, "fuzz.ini:", 9) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config;
	enum ndx_status st;

	if (size > CONFIG_SIZE_MAX)
		return 0;
	st = config_parse("fuzz.ini", (const char *)data, size, &config);
	if (st == NDX_OK) {
		check(&config);
		config_free(&config);
	} else {
		FUZZ_HOLDS(st == NDX_E_INVALID_CONFIG);
		FUZZ_HOLDS(strncmp(ndx_last_error(), "fuzz.ini:", 9) == 0);
	}
	return 0;
}
