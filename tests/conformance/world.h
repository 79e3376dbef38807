/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapters under test; opened once, shared by all cases. */
#ifndef WORLD_H
#define WORLD_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>

#include <ndx/ndx.h>

enum { WORLD_ADDRESSES = 16 };

struct place {
	const char *uri; /* as the user gave it */
	struct ndx_adapter *adapter;
	struct ndx_adapter_info info;
	struct sockaddr_storage addresses[WORLD_ADDRESSES];
	size_t address_count;
};

/* Side A lives at places[0], side B at places[1]; the same adapter if only one was named. */
struct world {
	struct place places[2];
	bool shared;
	bool describes_alike; /* the sides describe their queue pairs in the same kind */
};

/* `second` NULL: both sides over one adapter. Says on stderr what went wrong. */
bool world_open(struct world *world, const char *first, const char *second);
void world_close(struct world *world);

/* First address of a family (AF_UNSPEC: any); NULL if there is none. */
const struct sockaddr_storage *place_address(const struct place *place, int family);

socklen_t address_length(const struct sockaddr_storage *address);
uint16_t address_port(const struct sockaddr_storage *address);
void address_set_port(struct sockaddr_storage *address, uint16_t port);
/* Same host and same port. */
bool address_equal(const struct sockaddr_storage *one, const struct sockaddr_storage *other);
struct sockaddr *address_of(struct sockaddr_storage *address);
const struct sockaddr *address_of_const(const struct sockaddr_storage *address);

#endif
