/* SPDX-License-Identifier: BSD-2-Clause */
/* A server of a negotiation with some queue pairs to give away, and what sessions with it need. */
#ifndef HOUSE_H
#define HOUSE_H

#include <ndx/negotiation_server.h>
#include <ndx/session.h>

#include "fixture.h"

enum { HOUSE_SIDES = 256 };

struct house {
	struct check *c;
	struct ndx_negotiation *negotiation;
	struct ndx_variant *variant;
	struct ndx_negotiation_server *server;
	char address[32];
	struct side *sides[HOUSE_SIDES]; /* of the server, given away in this order */
	uint32_t given;                  /* atomic */
	uint32_t count;                  /* atomic */
	const struct ndx_tls_attr *tls;  /* of the server; NULL: plaintext */
	uint32_t held; /* atomic: sessions wait before they get a side, or are refused */
	void (*tune)(struct ndx_negotiation_server_attr *attr); /* may, before the server begins */
};

/* A framework with this plugin and its variant "as-it-is". */
bool house_open(struct house *h, struct check *c, const struct ndx_plugin *plugin);
/* A server that refuses sessions when all sides are given away. */
bool house_serve(struct house *h, const char *address);
/* One more side to give away, perhaps while the server serves. One thread. */
void house_give(struct house *h, struct side *side);
/* The attributes of a session with the server: one attempt, short pauses. */
void house_session_attr(const struct house *h, const struct side *side, const char *const *address,
                        struct ndx_session_attr *attr);
/* Such a session, not connected. */
bool house_session(const struct house *h, const struct side *side, struct ndx_session **out);
/* The server ends, and the sides are no longer the house's. */
void house_stop(struct house *h);
void house_close(struct house *h);

/* Wait until the server has so many sessions. */
bool house_await(const struct house *h, uint32_t alive);

/* A file of pre-shared keys that only this user may read. */
#define HOUSE_PATH 64
bool house_key_file(char path[HOUSE_PATH], const char *line);

/* A port that stays ours, without a listener; -1: none. */
int house_reserve(char address[32]);

#endif
