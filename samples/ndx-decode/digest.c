/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hash of the sorted hashes of all messages. When there are many, sorted runs go to a temporary
 * file and are merged at the end, so that a long capture needs no more memory than a short one.
 */
#include <stdlib.h>
#include <string.h>

#include "decode.h"

#define SIZE 32
#define RUN 32768 /* hashes in memory: 1 MiB */
#define READ 64   /* hashes of a run that are read at once when merging */

struct run {
	uint64_t next, end; /* positions in the file, counted in hashes */
	uint8_t ahead[READ][SIZE];
	unsigned fill, at;
};

struct digest {
	struct sha256 *hash;
	bool begun; /* a message has begun and has not ended */
	uint8_t (*open)[SIZE];
	size_t count;
	FILE *spill;
	uint64_t spilled;
};

struct digest *digest_create(void)
{
	struct digest *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->hash = sha256_create();
	d->open = malloc((size_t)RUN * SIZE);
	if (d->hash == NULL || d->open == NULL) {
		digest_free(d);
		return NULL;
	}
	return d;
}

void digest_free(struct digest *digest)
{
	if (digest == NULL)
		return;
	if (digest->hash != NULL)
		sha256_free(digest->hash);
	if (digest->spill != NULL)
		(void)fclose(digest->spill);
	free(digest->open);
	free(digest);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, SIZE);
}

static bool spill(struct digest *d)
{
	if (d->spill == NULL)
		d->spill = tmpfile();
	if (d->spill == NULL)
		return false;
	qsort(d->open, d->count, SIZE, compare);
	if (fwrite(d->open, SIZE, d->count, d->spill) != d->count)
		return false;
	d->spilled += d->count;
	d->count = 0;
	return true;
}

bool digest_add(struct digest *digest, const struct ndx_piece *pieces, size_t count, bool last)
{
	if (!digest->begun)
		sha256_begin(digest->hash);
	for (size_t i = 0; i < count; i++)
		sha256_add(digest->hash, pieces[i].bytes, pieces[i].length);
	digest->begun = !last;
	if (!last)
		return true;
	if (digest->count == RUN && !spill(digest))
		return false;
	sha256_end(digest->hash, digest->open[digest->count++]);
	return true;
}

static void to_hex(const uint8_t hash[SIZE], char out[2 * SIZE + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < SIZE; i++) {
		*out++ = digits[hash[i] >> 4];
		*out++ = digits[hash[i] & 15];
	}
	*out = '\0';
}

/* Add the next of the sorted hashes. */
static void emit(struct digest *d, const uint8_t hash[SIZE], bool *first)
{
	char hex[2 * SIZE + 1];

	to_hex(hash, hex);
	if (!*first)
		sha256_add(d->hash, "\n", 1);
	*first = false;
	sha256_add(d->hash, hex, sizeof(hex) - 1);
}

/* The smallest hash of a run that is left; NULL: none is left, or reading failed. */
static const uint8_t *head(struct digest *d, struct run *run, bool *good)
{
	uint64_t left = run->end - run->next;

	if (run->at < run->fill)
		return run->ahead[run->at];
	if (left == 0)
		return NULL;
	run->fill = left < READ ? (unsigned)left : READ;
	run->at = 0;
	if (fseeko(d->spill, (off_t)(run->next * SIZE), SEEK_SET) != 0 ||
	    fread(run->ahead, SIZE, run->fill, d->spill) != run->fill) {
		*good = false;
		return NULL;
	}
	run->next += run->fill;
	return run->ahead[0];
}

static bool merge(struct digest *d, bool *first)
{
	size_t runs = (size_t)((d->spilled + RUN - 1) / RUN);
	struct run *run = calloc(runs, sizeof(*run));
	bool good = run != NULL, any = true;

	for (size_t i = 0; good && i < runs; i++) {
		run[i].next = (uint64_t)i * RUN;
		run[i].end = i + 1 < runs ? (i + 1) * (uint64_t)RUN : d->spilled;
	}
	while (good && any) {
		const uint8_t *least = NULL;
		size_t from = 0;

		for (size_t i = 0; i < runs; i++) {
			const uint8_t *candidate = head(d, &run[i], &good);

			if (candidate != NULL &&
			    (least == NULL || memcmp(candidate, least, SIZE) < 0)) {
				least = candidate;
				from = i;
			}
		}
		any = least != NULL;
		if (any && good) {
			emit(d, least, first);
			run[from].at++;
		}
	}
	free(run);
	return good;
}

bool digest_end(struct digest *digest, char out[65])
{
	uint8_t hash[SIZE];
	bool first = true;

	if (digest->spill != NULL && !spill(digest))
		return false;
	sha256_begin(digest->hash);
	if (digest->spill != NULL) {
		if (!merge(digest, &first))
			return false;
	} else {
		qsort(digest->open, digest->count, SIZE, compare);
		for (size_t i = 0; i < digest->count; i++)
			emit(digest, digest->open[i], &first);
	}
	sha256_end(digest->hash, hash);
	to_hex(hash, out);
	return true;
}
