/* SPDX-License-Identifier: BSD-2-Clause */
/* An end of a session of several queue pairs that speaks by hand, and not as docs say if the test
 * wants that. All that concerns a queue pair mirrors what the real end says of its own. */
#ifndef TEST_MANY_RAW_H
#define TEST_MANY_RAW_H

#include "many_rig.h"

#include <openssl/ssl.h>

enum { RAW_LANES = 64, RAW_WAIT_MS = 10000 };

/* How far the queue pairs go: what has been heard of each, and is not answered. */
enum raw_until {
	RAW_INFO,         /* its description */
	RAW_VALIDATE,     /* its VALIDATE */
	RAW_READY,        /* its message of stage ready */
	RAW_ALL,          /* all is answered */
	RAW_VALIDATE_ALL, /* its VALIDATE, which is answered */
	RAW_INFO_ALL,     /* its description, which is answered */
};

/* What is wrong with the MACs of queue pairs that were added. */
enum raw_mac {
	RAW_MAC_RIGHT,
	RAW_MAC_OF_BATCH_BEFORE, /* right, but for the number of the batch */
	RAW_MAC_OF_THE_FIRST,    /* as of a queue pair that was there from the start */
	RAW_MAC_REPLAYED,        /* the bytes of the last one that was right */
	RAW_MAC_NONE,
	RAW_MAC_FLAG_ALONE, /* 32 bytes in plaintext, where there is no key */
};

struct raw {
	int fd;
	SSL_CTX *ctx; /* NULL: plaintext */
	SSL *ssl;
	enum ndx_role role;
	uint32_t batch; /* of the queue pairs that speak; 0: of HELLO */
	enum raw_mac mac;
	uint8_t latest_mac[FRAME_MAC_SIZE]; /* the last one that was right */
	uint8_t key[32];
	uint8_t said[RAW_LANES][2][32]; /* digests of stage info, by index and role */
	uint8_t bytes[FRAME_HEADER + MESSAGE];
};

/* Connect to the rig's server; with TLS by the pre-shared key 00 11 ... ff of "many". */
void raw_connect(struct raw *p, const struct rig *r, bool tls);
/* HELLO, WELCOME and all stages of `count` queue pairs. `flags`: those of HELLO. Returns the flags
 * of WELCOME. */
uint8_t raw_begin(struct raw *p, uint32_t count, uint8_t flags);
/* A raw server: listen; the address goes to the rig, for its next session. */
int raw_listen(struct rig *r);
/* HELLO has come: WELCOME with these flags, and all stages. */
void raw_accept(struct raw *p, int listener, uint8_t flags);
/* The same, with the stages until then. */
void raw_accept_until(struct raw *p, int listener, uint8_t flags, enum raw_until until);
/* With the shutdown of TLS; `reset`: as a host that has crashed. */
void raw_end(struct raw *p, bool reset);

void raw_send(struct raw *p, const void *bytes, size_t length);
void raw_say(struct raw *p, const struct frame *f);
/* A frame of the whole session, with these numbers of 4 bytes as its payload, of which, and of
 * zeros behind, are sent so many bytes. */
void raw_say_numbers(struct raw *p, enum frame_type type, const uint32_t *numbers, size_t count,
                     size_t length);
void raw_add(struct raw *p, uint32_t batch, uint32_t first, uint32_t count);
void raw_abandon(struct raw *p, uint32_t batch);
void raw_remove(struct raw *p, uint32_t first, uint32_t count);
/* False: the end. */
bool raw_hear(struct raw *p, struct frame *f);
/* The next frame of this type; frames of queue pairs are skipped, others must not come. */
void raw_await(struct raw *p, enum frame_type type, struct frame *f);
/* The real end goes through the stages with these queue pairs, until then. */
void raw_lanes(struct raw *p, uint32_t first, uint32_t count, enum raw_until until);
/* ERROR with that text, and then the end of the transport. */
void raw_is_refused(struct raw *p, const char *text);
/* ABANDON of that batch, with that text; the session lives on. */
void raw_is_abandoned(struct raw *p, uint32_t batch, const char *text);
/* The batch is added, as docs say. */
void raw_adds(struct raw *p, uint32_t batch, uint32_t first, uint32_t count);

#endif
