/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_address.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Split "HOST:PORT", "[HOST]:PORT", "HOST" or "PORT" into its parts, in place. */
static bool cut(char *text, char **host, char **port)
{
	char *colon = strrchr(text, ':');

	*host = text;
	*port = NULL;
	if (text[0] == '[') {
		char *end = strchr(text, ']');

		if (end == NULL || (end[1] != '\0' && end[1] != ':'))
			return false;
		*host = text + 1;
		*port = end[1] == ':' ? end + 2 : NULL;
		*end = '\0';
	} else if (colon != NULL && strchr(text, ':') == colon) {
		*port = colon + 1;
		*colon = '\0';
	} else if (text[strspn(text, "0123456789")] == '\0') {
		*port = text;
		*host = NULL;
	}
	return true;
}

/* getaddrinfo() also accepts names of services, and numbers above 65535 modulo 2^16. */
static bool is_port(const char *text)
{
	size_t length = strspn(text, "0123456789");

	return length > 0 && length <= 5 && text[length] == '\0' &&
	       strtoul(text, NULL, 10) <= 65535;
}

bool sample_address_parse(const char *text, struct sample_address *out, const char **why)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
	struct addrinfo *found;
	char copy[SAMPLE_ADDRESS_TEXT];
	char *host, *port;
	int rc;

	*why = "write ADDRESS:PORT, [IPV6]:PORT or PORT";
	if (text[0] == '\0' || strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): measured above */
	if (!cut(copy, &host, &port) || (port != NULL && !is_port(port)))
		return false;
	rc = getaddrinfo(host != NULL && host[0] != '\0' ? host : "0.0.0.0", port, &hints, &found);
	if (rc != 0) {
		*why = gai_strerror(rc);
		return false;
	}
	memset(out, 0, sizeof(*out));
	memcpy(&out->storage, found->ai_addr, found->ai_addrlen);
	out->length = found->ai_addrlen;
	freeaddrinfo(found);
	return true;
}

bool sample_address_parse_peer(const char *text, struct sample_address *out, const char **why)
{
	if (!sample_address_parse(text, out, why))
		return false;
	if (sample_address_port(out) == 0)
		*why = "the port is missing; write ADDRESS:PORT as the server prints it";
	else if (sample_address_is_any(out))
		*why = "the host is missing; write ADDRESS:PORT, with an address of the server";
	else
		return true;
	return false;
}

struct sample_address sample_address_from(const struct sockaddr_storage *storage)
{
	struct sample_address address = {.storage = *storage};

	address.length = storage->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
	                                                : sizeof(struct sockaddr_in);
	return address;
}

/* The port's field, in network byte order. */
static in_port_t *port_of(struct sample_address *address)
{
	if (address->storage.ss_family == AF_INET6)
		return &((struct sockaddr_in6 *)&address->storage)->sin6_port;
	return &((struct sockaddr_in *)&address->storage)->sin_port;
}

unsigned sample_address_port(const struct sample_address *address)
{
	struct sample_address copy = *address;

	return ntohs(*port_of(&copy));
}

void sample_address_set_port(struct sample_address *address, unsigned port)
{
	*port_of(address) = htons((in_port_t)port);
}

bool sample_address_is_any(const struct sample_address *address)
{
	struct sample_address copy = *address;

	if (address->storage.ss_family == AF_INET6)
		return memcmp(&((struct sockaddr_in6 *)&copy.storage)->sin6_addr, &in6addr_any,
		              sizeof(in6addr_any)) == 0;
	return ((struct sockaddr_in *)&copy.storage)->sin_addr.s_addr == htonl(INADDR_ANY);
}

const char *sample_address_format(const struct sample_address *address, char *text, size_t size)
{
	bool v6 = address->storage.ss_family == AF_INET6;
	char host[64], port[8];

	if (getnameinfo((const struct sockaddr *)&address->storage, address->length, host,
	                sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(text, size, "(unknown address)");
	else
		snprintf(text, size, v6 ? "[%s]:%s" : "%s:%s", host, port);
	return text;
}

const char *sample_address_host(const struct sample_address *address, char *text, size_t size)
{
	if (getnameinfo((const struct sockaddr *)&address->storage, address->length, text,
	                (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0)
		snprintf(text, size, "(unknown address)");
	return text;
}

enum ndx_status sample_addresses_of(struct ndx_adapter *adapter, struct sockaddr_storage **list,
                                    size_t *count)
{
	struct sockaddr_storage *room;
	size_t n = 0;
	enum ndx_status st;

	/* Without room for addresses the call returns their number. */
	st = ndx_adapter_query_addresses(adapter, NULL, &n);
	if (st != NDX_OK && st != NDX_E_BUFFER_OVERFLOW)
		return st;
	if (n == 0)
		return NDX_E_NOT_FOUND;
	room = calloc(n, sizeof(*room));
	if (room == NULL)
		return NDX_E_NO_MEMORY;
	st = ndx_adapter_query_addresses(adapter, room, &n);
	if (st != NDX_OK) {
		free(room);
		return st;
	}
	*list = room;
	*count = n;
	return NDX_OK;
}

bool sample_parse_server(const struct sample_program *program, int argc, char **argv,
                         struct sample_address *server, int *code)
{
	const char *why = "say where the server is";
	size_t operands;

	if (!sample_parse(program, argc, argv, &operands, code))
		return false;
	if (operands > 0 && sample_address_parse_peer(argv[1], server, &why))
		return true;
	*code = sample_usage(program, "%s", why);
	return false;
}
