/* SPDX-License-Identifier: BSD-2-Clause */
/* "Did you mean": the nearest of the names that there are, and the list of them. */
#ifndef ADAPTER_SUGGEST_H
#define ADAPTER_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

#define SUGGEST_WORD 32 /* longer words and names are not compared */
#define SUGGEST_KNOWN 200
#define SUGGEST_TEXT 320

/* Private to suggest.c. */
struct suggest {
	const char *word;
	char best[SUGGEST_WORD + 1];
	unsigned distance;
	char known[SUGGEST_KNOWN];
	size_t used;
};

/* @p word must live as long as names are offered. */
void suggest_begin(struct suggest *s, const char *word);

/* A name that would have been right; @p note says what it takes, NULL if nothing. Copied. */
void suggest_offer(struct suggest *s, const char *name, const char *note);

/* Has it been offered, and is it in the list? */
bool suggest_has(const struct suggest *s, const char *name);

/*
 * `did you mean "loop"? There are: loop, ofi` without the question if nothing is near enough.
 * Returns @p text.
 */
const char *suggest_text(const struct suggest *s, char text[SUGGEST_TEXT]);

/* The nearest name, "" if none is near. */
const char *suggest_nearest(const struct suggest *s);

/*
 * Letters to be changed, inserted, deleted or swapped with their neighbour to get from one to the
 * other, upper and lower case being equal; SUGGEST_WORD + 1 if either is longer than SUGGEST_WORD.
 */
unsigned suggest_distance(const char *a, const char *b);

#endif
