/* SPDX-License-Identifier: BSD-2-Clause */
/* ADDRESS:PORT as users write it: 192.0.2.1:4242, [::1]:4242, host:4242, or a port alone. */
#ifndef SAMPLE_ADDRESS_H
#define SAMPLE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include <ndx/ndx.h>

#include "sample_options.h"

/** Room for any address as text, with brackets, scope and port. */
#define SAMPLE_ADDRESS_TEXT 96

struct sample_address {
	struct sockaddr_storage storage;
	socklen_t length;
};

/**
 * Parse an address. A missing host is 0.0.0.0, a missing port 0.
 *
 * @param[out] why  what is wrong with the text, a constant; set only on failure
 */
bool sample_address_parse(const char *text, struct sample_address *out, const char **why);

/** As sample_address_parse(), for the address of a server to connect to: has host and port. */
bool sample_address_parse_peer(const char *text, struct sample_address *out, const char **why);

/** As sample_parse(), with the operand `ADDRESS:PORT`: the server's address. */
bool sample_parse_server(const struct sample_program *program, int argc, char **argv,
                         struct sample_address *server, int *code);

/** An address from the library, with the length of its family. */
struct sample_address sample_address_from(const struct sockaddr_storage *storage);

/** Port in host byte order. */
unsigned sample_address_port(const struct sample_address *address);

/** Set the port, given in host byte order. */
void sample_address_set_port(struct sample_address *address, unsigned port);

/** Whether the address is 0.0.0.0 or ::, which means any address. */
bool sample_address_is_any(const struct sample_address *address);

/** Format the address. Returns `text`. */
const char *sample_address_format(const struct sample_address *address, char *text, size_t size);

/** Format the host alone, without port and brackets. Returns `text`. */
const char *sample_address_host(const struct sample_address *address, char *text, size_t size);

/**
 * All addresses of an adapter, with port 0.
 *
 * @param[out] list  `count` addresses, at least one on NDX_OK; release it with free()
 */
enum ndx_status sample_addresses_of(struct ndx_adapter *adapter, struct sockaddr_storage **list,
                                    size_t *count);

#endif
