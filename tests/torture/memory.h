/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of an end and what has to be in it. No byte serves twice in a round, so what a request
 * did can be seen at any time after; and once memory is the program's own again, it is painted, and
 * the paint has to stay: until the round is over and for some rounds more (see the stock).
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct end;
struct round;

enum area {
	AREA_LOCAL,   /* what is sent and written, and where reads go */
	AREA_RECEIVE, /* where messages go */
	AREA_READ,    /* what the peer reads; never changes */
	AREA_WRITE,   /* where the peer writes */
	AREAS
};

struct memory {
	pthread_mutex_t lock;
	uint8_t *area[AREAS];
	uint8_t *shadow; /* of AREA_WRITE, as it was when it was painted */
	uint32_t size;   /* of each */
	bool painted[AREAS];
};

enum { MEMORY_FILL = 0x5e, MEMORY_PAINT = 0xa5 };

/* Bytes of a round's memory that an end needs. */
size_t memory_need(uint32_t area);
void memory_init(struct end *e, uint8_t *base, uint32_t area);

/* Known bytes that follow from a key. */
void pattern_fill(uint8_t *at, size_t length, uint64_t key);
/* Where they end, `length` if all are there. */
size_t pattern_match(const uint8_t *at, size_t length, uint64_t key);
bool bytes_are(const uint8_t *at, size_t length, uint8_t value);

/* Keys: of an end's message, of what one of its requests writes, of what its peer may read. */
uint64_t message_key(const struct end *e, uint32_t number);
uint64_t write_key(const struct end *e, uint32_t request);

/* The area belongs to the program again: judge it, and paint it. Nothing the second time. */
void memory_retire(struct end *e, enum area area);
/* The paint is as it was; fails if not. */
void memory_watch(struct end *e);
/* Are these bytes, that the peer wrote, there? Looks at the shadow if the area was painted. */
bool memory_has_written(struct end *e, uint32_t at, uint32_t length, uint64_t key);
/* Bytes the peer read are what they have to be. */
bool memory_was_read(const struct end *owner, uint32_t owner_at, const uint8_t *at,
                     uint32_t length);

/* A stock of memory for rounds; each piece is painted after its round and watched until its turn
 * comes again. */
enum { STOCK_PIECES = 6 };

struct stock {
	uint8_t *base;
	size_t piece; /* bytes */
	size_t used[STOCK_PIECES];
	uint64_t round[STOCK_PIECES];
};

size_t stock_size(void);
void stock_init(struct stock *stock, uint8_t *base);
/* Memory for a round; fails if it was written to since its last. */
uint8_t *stock_take(struct stock *stock, struct round *round, size_t bytes);
void stock_give_back(struct stock *stock, struct round *round);
void stock_watch(struct stock *stock, struct round *round);

#endif
