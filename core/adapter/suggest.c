/* SPDX-License-Identifier: BSD-2-Clause */
/* Nearest name by edit distance, for messages. */
#include "suggest.h"

#include <stdio.h>
#include <string.h>

#define TOO_FAR (SUGGEST_WORD + 1)

/* Names are ASCII in every locale. */
static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool same(char a, char b)
{
	return lower(a) == lower(b);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

unsigned suggest_distance(const char *a, const char *b)
{
	unsigned d[SUGGEST_WORD + 1][SUGGEST_WORD + 1];
	const size_t a_len = strnlen(a, SUGGEST_WORD + 1);
	const size_t b_len = strnlen(b, SUGGEST_WORD + 1);

	if (a_len > SUGGEST_WORD || b_len > SUGGEST_WORD)
		return TOO_FAR;
	for (size_t j = 0; j <= b_len; j++)
		d[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		d[i][0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			const unsigned change = same(a[i - 1], b[j - 1]) ? 0 : 1;

			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
			    same(a[i - 2], b[j - 1]) && d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	}
	return d[a_len][b_len];
}

void suggest_begin(struct suggest *s, const char *word)
{
	s->word = word;
	s->best[0] = '\0';
	s->distance = TOO_FAR;
	s->known[0] = '\0';
	s->used = 0;
}

/* Append whole names only; a list that is too long ends with dots. */
static void append_known(struct suggest *s, const char *name, const char *note)
{
	static const char dots[] = ", ...";
	const size_t room = sizeof(s->known) - s->used - sizeof(dots);
	char item[SUGGEST_KNOWN];
	int len;

	if (s->used >= sizeof(s->known) - sizeof(dots))
		return;
	if (note != NULL)
		len = snprintf(item, sizeof(item), "%s%s (%s)", s->used > 0 ? ", " : "", name,
		               note);
	else
		len = snprintf(item, sizeof(item), "%s%s", s->used > 0 ? ", " : "", name);
	if (len < 0)
		return;
	if ((size_t)len > room) {
		(void)snprintf(s->known + s->used, sizeof(dots), "%s", dots);
		s->used = sizeof(s->known); /* the list is full */
		return;
	}
	memcpy(s->known + s->used, item, (size_t)len + 1);
	s->used += (size_t)len;
}

void suggest_offer(struct suggest *s, const char *name, const char *note)
{
	const unsigned distance = suggest_distance(s->word, name);

	append_known(s, name, note);
	if (distance < s->distance) {
		s->distance = distance;
		(void)snprintf(s->best, sizeof(s->best), "%s", name);
	}
}

void suggest_whole(struct suggest *s, const char *part, const char *name)
{
	const unsigned distance = suggest_distance(s->word, part);

	if (distance < s->distance) {
		s->distance = distance;
		(void)snprintf(s->best, sizeof(s->best), "%s", name);
	}
}

bool suggest_has(const struct suggest *s, const char *name)
{
	const size_t length = strlen(name);

	for (const char *p = s->known; *p != '\0';) {
		const size_t item = strcspn(p, ",");

		if (strcspn(p, " ,") == length && memcmp(p, name, length) == 0)
			return true;
		p += item;
		p += strspn(p, ", ");
	}
	return false;
}

const char *suggest_nearest(const struct suggest *s)
{
	/* A name with a third of its letters wrong is a typing mistake; with more, it is another
	 * name. */
	const size_t allowed = (strnlen(s->word, SUGGEST_WORD) + 2) / 3;

	return s->distance <= allowed ? s->best : "";
}

const char *suggest_text(const struct suggest *s, char text[SUGGEST_TEXT])
{
	const char *near = suggest_nearest(s);

	if (s->known[0] == '\0')
		(void)snprintf(text, SUGGEST_TEXT, "there are none");
	else if (near[0] == '\0')
		(void)snprintf(text, SUGGEST_TEXT, "there are: %s", s->known);
	else
		(void)snprintf(text, SUGGEST_TEXT, "did you mean \"%s\"? There are: %s", near,
		               s->known);
	return text;
}
