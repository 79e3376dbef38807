/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of ndx-connect. */
#ifndef CONNECT_OPTIONS_H
#define CONNECT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { CONNECT_SIDES = 2, CONNECT_ENDS_MAX = 99, CONNECT_MESSAGES_MAX = 64 };

struct connect_options {
	const char *uris[CONNECT_SIDES];
	uint32_t count;
	uint32_t singles;
	uint32_t messages;
	uint32_t ends;
	bool shared;
	bool by_port;
	bool quiet;
	const char *json;
};

/** False: the program ends with *code. */
bool connect_parse(struct connect_options *o, int argc, char **argv, int *code);

#endif
