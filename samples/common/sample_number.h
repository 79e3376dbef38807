/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers and words of a command line: units, and the nearest of some words. */
#ifndef SAMPLE_NUMBER_H
#define SAMPLE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What SAMPLE_NUMBER accepts, for error texts and --help. */
#define SAMPLE_NUMBER_UNITS "k, M and G are powers of 1000, Ki, Mi and Gi of 1024"

/**
 * Read a number: decimal digits, and behind them nothing or one of k (or K), M, G, Ki, Mi, Gi; or
 * hexadecimal digits behind 0x, without a unit. False: the text is no such number, or is 2^64 or
 * more.
 */
bool sample_number(const char *text, uint64_t *out);

/**
 * How many letters have to be changed, inserted, left out or swapped with their neighbour to make
 * one word of the other. Words of more than 63 letters are never near: SIZE_MAX.
 */
size_t sample_distance(const char *a, size_t a_length, const char *b, size_t b_length);

/** Whether that is little enough for a typing mistake in a word of @p length letters. */
bool sample_distance_is_near(size_t distance, size_t length);

#endif
