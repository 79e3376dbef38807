/* SPDX-License-Identifier: BSD-2-Clause */
#include "sample_number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MOST 63

/* 0: there is no such unit. */
static uint64_t factor_of(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} units[] = {
		{"", 1},
		{"k", 1000},
		{"K", 1000},
		{"M", 1000000},
		{"G", 1000000000},
		{"Ki", UINT64_C(1) << 10},
		{"ki", UINT64_C(1) << 10},
		{"Mi", UINT64_C(1) << 20},
		{"Gi", UINT64_C(1) << 30},
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name) == 0)
			return units[i].factor;
	}
	return 0;
}

bool sample_number(const char *text, uint64_t *out)
{
	const bool hexadecimal = strncmp(text, "0x", 2) == 0;
	unsigned long long n;
	uint64_t factor;
	char *end;

	/* strtoull() also takes a sign, and spaces before it. */
	if (text[0] < '0' || text[0] > '9' || (hexadecimal && text[2] == '\0'))
		return false;
	if (hexadecimal && strchr("0123456789abcdefABCDEF", text[2]) == NULL)
		return false;
	errno = 0;
	n = strtoull(text, &end, hexadecimal ? 16 : 10);
	if (errno != 0 || (hexadecimal && *end != '\0'))
		return false;
	factor = factor_of(end);
	if (factor == 0 || n > UINT64_MAX / factor)
		return false;
	*out = (uint64_t)n * factor;
	return true;
}

static size_t least_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t sample_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	/* Three rows of the table: for a without its last two letters, its last, and the whole. */
	size_t rows[3][WORD_MOST + 1];
	size_t *before = rows[0], *above = rows[1], *row = rows[2];

	if (a_length > WORD_MOST || b_length > WORD_MOST)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t *const oldest = before;

		before = above;
		above = row;
		row = oldest;
		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;

			row[j] =
				least_of(least_of(above[j], row[j - 1]) + 1, above[j - 1] + change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least_of(row[j], before[j - 2] + 1);
		}
	}
	return row[b_length];
}

bool sample_distance_is_near(size_t distance, size_t length)
{
	return distance <= (length < 4 ? 1 : 1 + length / 4);
}
