/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Digests in parallel with decoding: hashing takes longer than everything else, so a thread does it
 * if there is a second processor. The messages go to the thread through a ring of batches. The
 * thread owns the digests from the first message until hasher_end().
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode.h"

#define BATCHES 4
#define BATCH_BYTES ((size_t)256 << 10)
#define BATCH_PARTS 1024

/* Consecutive bytes of a message. */
struct part {
	uint32_t length;
	uint8_t which; /* index of the digest */
	bool last;     /* the message ends here */
};

struct batch {
	size_t fill, count;
	struct part parts[BATCH_PARTS];
	uint8_t bytes[BATCH_BYTES];
};

struct hasher {
	struct digest *digests[HASHER_DIGESTS];
	bool threaded;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t filled; /* batches passed to the thread */
	uint64_t hashed; /* of `filled`: batches that are finished */
	bool ended;      /* no batch will follow */
	bool failed;
	struct batch *batches; /* batch number i is batches[i % BATCHES] */
};

static bool hash(struct hasher *h, const struct batch *b)
{
	size_t at = 0;
	bool good = true;

	for (size_t i = 0; i < b->count; i++) {
		const struct part *p = &b->parts[i];
		struct ndx_piece piece = {b->bytes + at, p->length};

		good = digest_add(h->digests[p->which], &piece, p->length > 0, p->last) && good;
		at += p->length;
	}
	return good;
}

static void *work(void *context)
{
	struct hasher *h = context;

	(void)pthread_mutex_lock(&h->lock);
	for (;;) {
		const struct batch *b = &h->batches[h->hashed % BATCHES];
		bool good;

		while (h->hashed == h->filled && !h->ended)
			(void)pthread_cond_wait(&h->changed, &h->lock);
		if (h->hashed == h->filled)
			break;
		(void)pthread_mutex_unlock(&h->lock);
		good = hash(h, b);
		(void)pthread_mutex_lock(&h->lock);
		h->failed = h->failed || !good;
		h->hashed++;
		(void)pthread_cond_signal(&h->changed);
	}
	(void)pthread_mutex_unlock(&h->lock);
	return NULL;
}

static void start(struct hasher *h)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	h->batches = calloc(BATCHES, sizeof(*h->batches));
	if (h->batches == NULL)
		return;
	h->threaded = pthread_create(&h->thread, NULL, work, h) == 0;
	if (h->threaded)
		(void)pthread_setname_np(h->thread, "ndx-hasher");
}

struct hasher *hasher_create(void)
{
	struct hasher *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	(void)pthread_mutex_init(&h->lock, NULL);
	(void)pthread_cond_init(&h->changed, NULL);
	for (unsigned i = 0; i < HASHER_DIGESTS; i++) {
		h->digests[i] = digest_create();
		if (h->digests[i] == NULL) {
			hasher_free(h);
			return NULL;
		}
	}
	start(h);
	return h;
}

/* Pass the current batch to the thread, and wait until the next one is free. */
static void turn(struct hasher *h)
{
	struct batch *next;

	(void)pthread_mutex_lock(&h->lock);
	h->filled++;
	(void)pthread_cond_signal(&h->changed);
	while (h->filled - h->hashed >= BATCHES)
		(void)pthread_cond_wait(&h->changed, &h->lock);
	next = &h->batches[h->filled % BATCHES];
	(void)pthread_mutex_unlock(&h->lock);
	next->fill = 0;
	next->count = 0;
}

/* Copy a part of a message into batches; `last`: the message ends with it. */
static void put_part(struct hasher *h, unsigned which, const uint8_t *bytes, size_t length,
                     bool last)
{
	do {
		struct batch *b = &h->batches[h->filled % BATCHES];
		size_t room = BATCH_BYTES - b->fill, part = length < room ? length : room;

		if (part > 0)
			memcpy(b->bytes + b->fill, bytes, part);
		b->fill += part;
		bytes += part;
		length -= part;
		b->parts[b->count++] =
			(struct part){(uint32_t)part, (uint8_t)which, last && length == 0};
		if (b->fill == BATCH_BYTES || b->count == BATCH_PARTS)
			turn(h);
	} while (length > 0);
}

bool hasher_add(struct hasher *hasher, unsigned which, const struct ndx_piece *pieces, size_t count)
{
	if (!hasher->threaded)
		return digest_add(hasher->digests[which], pieces, count, true);
	for (size_t i = 0; i < count; i++)
		put_part(hasher, which, pieces[i].bytes, pieces[i].length, i + 1 == count);
	if (count == 0)
		put_part(hasher, which, NULL, 0, true);
	return true;
}

/* End the thread after it has hashed everything. */
static void join(struct hasher *h)
{
	if (!h->threaded)
		return;
	turn(h);
	(void)pthread_mutex_lock(&h->lock);
	h->ended = true;
	(void)pthread_cond_signal(&h->changed);
	(void)pthread_mutex_unlock(&h->lock);
	(void)pthread_join(h->thread, NULL);
	h->threaded = false;
}

bool hasher_end(struct hasher *hasher, char out[HASHER_DIGESTS][65])
{
	bool good;

	join(hasher);
	good = !hasher->failed;
	for (unsigned i = 0; i < HASHER_DIGESTS; i++)
		good = digest_end(hasher->digests[i], out[i]) && good;
	return good;
}

void hasher_free(struct hasher *hasher)
{
	if (hasher == NULL)
		return;
	join(hasher);
	for (unsigned i = 0; i < HASHER_DIGESTS; i++)
		digest_free(hasher->digests[i]);
	(void)pthread_cond_destroy(&hasher->changed);
	(void)pthread_mutex_destroy(&hasher->lock);
	free(hasher->batches);
	free(hasher);
}
