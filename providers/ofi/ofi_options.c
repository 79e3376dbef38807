/* SPDX-License-Identifier: BSD-2-Clause */
/* The back ends, the options of the URI, and enumeration. */
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <ndx/spi/log.h>
#include <ndx/spi/sockaddr.h>
#include "ofi.h"

static const struct ofi_backend *const backends[] = {&ofi_tcp, &ofi_verbs};

#define BACKENDS (sizeof(backends) / sizeof(backends[0]))

const struct ndx_spi_key ofi_keys[] = {
	{"iface", "network interface"}, {"addr", "local IP address"},  {"trust", "lan|none"},
	{"peers", "user|any"},          {"cq", "auto|private|shared"}, {NULL, NULL},
};

static const char *origin_of(const struct ndx_spi_option *option)
{
	return option->origin != NULL ? option->origin : "options";
}

static enum ndx_status parse_address(const struct ndx_spi_option *option,
                                     struct sockaddr_storage *out)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;

	if (getaddrinfo(option->value, NULL, &hints, &found) != 0)
		return fail(NDX_E_INVALID_CONFIG, 0,
		            "%s: addr=%.64s is no numeric IPv4 or IPv6 address", origin_of(option),
		            option->value);
	ndxp_sockaddr_copy(out, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	ndxp_sockaddr_set_port(out, 0);
	return NDX_OK;
}

/* The index of the option's value among `words`. */
static enum ndx_status parse_word(const struct ndx_spi_option *option, const char *const *words,
                                  size_t count, const char *all, size_t *out)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(option->value, words[i]) == 0) {
			*out = i;
			return NDX_OK;
		}
	}
	return fail(NDX_E_INVALID_CONFIG, 0, "%s: %s=%.64s is not one of %s", origin_of(option),
	            option->key, option->value, all);
}

static enum ndx_status parse_option(const struct ndx_spi_option *option, struct ofi_options *out)
{
	static const char *const trust[] = {"none", "lan"};
	static const char *const peers[] = {"user", "any"};
	static const char *const cq[] = {"auto", "private", "shared"};
	size_t which = 0;
	enum ndx_status st = NDX_OK;

	if (strcmp(option->key, "iface") == 0) {
		if (strlen(option->value) >= sizeof(out->iface))
			return fail(NDX_E_NOT_FOUND, 0, "%s: no network interface \"%.64s\"",
			            origin_of(option), option->value);
		(void)snprintf(out->iface, sizeof(out->iface), "%s", option->value);
	} else if (strcmp(option->key, "addr") == 0) {
		st = parse_address(option, &out->address);
	} else if (strcmp(option->key, "trust") == 0) {
		st = parse_word(option, trust, 2, "none, lan", &which);
		out->lan = which == 1;
	} else if (strcmp(option->key, "peers") == 0) {
		st = parse_word(option, peers, 2, "user, any", &which);
		out->any_user = which == 1;
		out->peers_named = true;
	} else {
		st = parse_word(option, cq, 3, "auto, private, shared", &which);
		out->cq = (enum ofi_cq_choice)which;
	}
	return st;
}

/* Whether a word is `name` with two letters swapped, or one letter more, less or another. */
static bool is_nearly(const char *word, const char *name)
{
	size_t front = 0;
	size_t back = 0;
	const size_t a = strlen(word);
	const size_t b = strlen(name);

	while (word[front] != '\0' && word[front] == name[front])
		front++;
	while (back + front < a && back + front < b && word[a - back - 1] == name[b - back - 1])
		back++;
	if (a == b && a == front + back + 2)
		return word[front] == name[front + 1] && word[front + 1] == name[front];
	return a <= front + back + 1 && b <= front + back + 1;
}

/* "tcp:lo" or "lo" for "tcp?iface=lo": the key and value that were meant. Empty: none. */
#define MEANT 64
static void find_meant(const char *device, char meant[MEANT])
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	const char *backend = backends[0]->device;
	const char *value = device;
	struct addrinfo *found = NULL;

	meant[0] = '\0';
	for (size_t i = 0; i < BACKENDS; i++) {
		const size_t len = strlen(backends[i]->device);

		if (strncmp(device, backends[i]->device, len) == 0 && device[len] == ':') {
			backend = backends[i]->device;
			value = device + len + 1;
		}
	}
	if (value[0] == '\0')
		return;
	if (getaddrinfo(value, NULL, &hints, &found) == 0) {
		freeaddrinfo(found);
		(void)snprintf(meant, MEANT, "%s?addr=%s", backend, value);
	} else if (value != device || if_nametoindex(value) != 0) {
		(void)snprintf(meant, MEANT, "%s?iface=%s", backend, value);
	}
}

static enum ndx_status fail_device(const char *device)
{
	char near[MEANT];

	find_meant(device, near);
	for (size_t i = 0; i < BACKENDS; i++) {
		if (is_nearly(device, backends[i]->device))
			(void)snprintf(near, sizeof(near), "%s", backends[i]->device);
	}
	return fail(
		NDX_E_NOT_FOUND, 0,
		"ofi:%.32s: NDX uses no such provider of libfabric; %s%s%sthere are: tcp, verbs",
		device, near[0] != '\0' ? "did you mean ofi:" : "", near,
		near[0] != '\0' ? "? " : "");
}

enum ndx_status ofi_parse_options(const struct ndx_spi_open *how, struct ofi_options *out)
{
	const char *device = how->device[0] != '\0' ? how->device : backends[0]->device;
	enum ndx_status st;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < BACKENDS; i++) {
		if (strcmp(backends[i]->device, device) == 0)
			out->backend = backends[i];
	}
	if (out->backend == NULL)
		return fail_device(device);
	for (size_t i = 0; i < how->option_count; i++) {
		st = parse_option(&how->options[i], out);
		if (st != NDX_OK)
			return st;
	}
	/* a user that trusts all hosts of a network trusts the users of this host */
	if (!out->peers_named)
		out->any_user = out->lan;
	return NDX_OK;
}

enum ndx_status ofi_list(const struct ndx_provider *self, const struct ndx_spi_open *defaults,
                         ndx_spi_list_fn *each, void *arg)
{
	struct ofi_options options;
	enum ndx_status st = ofi_parse_options(defaults, &options);

	(void)self;
	for (size_t i = 0; st == NDX_OK && i < BACKENDS; i++)
		st = backends[i]->list(&options, each, arg);
	return st;
}
