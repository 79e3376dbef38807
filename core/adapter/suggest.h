/* SPDX-License-Identifier: BSD-2-Clause */
/* "Did you mean": the nearest of the valid names, and the list of them. */
#ifndef ADAPTER_SUGGEST_H
#define ADAPTER_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base_private.h"

#define SUGGEST_WORD 32 /* longer words and names are not compared */
#define SUGGEST_KNOWN 200
#define SUGGEST_BEST 128 /* also an adapter's URI */
#define SUGGEST_TEXT 400

/* Private to suggest.c. */
struct suggest {
	const char *word;
	char best[SUGGEST_BEST];
	unsigned distance;
	char known[SUGGEST_KNOWN];
	size_t used;
};

/* @p word must stay valid while names are offered. */
void suggest_begin(struct suggest *s, const char *word) NDX_PRIVATE(suggest_begin);

/* Offer a valid name; @p note describes its value, or is NULL. Copied. */
void suggest_offer(struct suggest *s, const char *name, const char *note)
	NDX_PRIVATE(suggest_offer);

/* Offer @p name for a word that is near @p part of it, without listing it. Copied. */
void suggest_whole(struct suggest *s, const char *part, const char *name);

/* Whether the name was offered and is in the list. */
bool suggest_has(const struct suggest *s, const char *name) NDX_PRIVATE(suggest_has);

/*
 * `did you mean "loop"? There are: loop, ofi` without the question if nothing is near enough.
 * Returns @p text.
 */
const char *suggest_text(const struct suggest *s, char text[SUGGEST_TEXT])
	NDX_PRIVATE(suggest_text);

/* The nearest name, "" if none is near enough. */
const char *suggest_nearest(const struct suggest *s);

/* The number of letters to change, insert, delete or swap with their neighbour to turn one name
 * into the other; case does not count. SUGGEST_WORD + 1 if either is longer than SUGGEST_WORD. */
unsigned suggest_distance(const char *a, const char *b);

#endif
