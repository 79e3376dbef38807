/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapter URIs: PROVIDER[:DEVICE][?KEY=VALUE[&KEY=VALUE]...] */
#ifndef ADAPTER_URI_H
#define ADAPTER_URI_H

#include <stdbool.h>
#include <stddef.h>

#include <ndx/spi/provider.h>
#include <ndx/status.h>

#define URI_MAX 255     /* bytes of a URI */
#define URI_NAME_MAX 15 /* of a provider's name: the field of struct ndx_adapter_info */
#define URI_OPTIONS_MAX 16

struct uri_option {
	const char *key;
	const char *value;
};

/* The strings point into `text`: do not copy the structure. */
struct uri {
	const char *provider;
	const char *device; /* "" if none */
	struct uri_option options[URI_OPTIONS_MAX];
	size_t option_count;
	char text[URI_MAX + 1]; /* cut into parts and decoded */
};

/**
 * Take a URI apart. %XX is decoded in device and values. Names are not looked up.
 *
 * @param text    the URI; anything
 * @param origin  where it comes from, for messages: "URI", "$NDX_ADAPTER", "file.ini:12"
 * @param[out] out  untouched on failure
 *
 * @retval NDX_E_INVALID_CONFIG malformed, a key twice, too long; the text names the position
 */
enum ndx_status uri_parse(const char *text, const char *origin, struct uri *out);

/* Whether the text can be a provider's name: 1 .. URI_NAME_MAX of a-z 0-9 _ -, a letter first. */
bool uri_name_valid(const char *name);

/* For a message: replace each character of `wrong` behind which a key and its '=' stand by the '&'
 * that was meant. */
void uri_join_keys(char *keys, const char *wrong);

/* Write a URI, with %XX where necessary; returns the full length, like snprintf(). */
size_t uri_write(char *out, size_t size, const char *provider, const char *device,
                 const struct ndx_spi_option *options, size_t option_count);

#endif
