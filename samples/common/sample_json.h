/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --json: results as JSON and nothing else, on stdout or in a file. While JSON goes to stdout,
 * everything else that the program or a library prints there goes to stderr.
 */
#ifndef SAMPLE_JSON_H
#define SAMPLE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/**
 * Open the place of the JSON, before anything is printed.
 *
 * @param where     the target of SAMPLE_ROW_JSON(); NULL: no JSON, *out is NULL then
 * @param[out] out  to be passed to sample_json_end(), or to sample_json_close() by a program that
 *                  writes several objects
 * @return an enum sample_exit; a failure was printed
 */
int sample_json_open(const char *program, const char *where, FILE **out);

/** Close it; a full disk is an error. @p rc: the exit status so far. Returns an exit status. */
int sample_json_close(const char *program, FILE *out, int rc);

/** Add a result, which is taken. Any thread may call this. */
void sample_json_add(const char *name, json_t *value);

/**
 * Write one object, with what every program's has: "program", "version", "exit" (the status @p rc)
 * and "error" (null, or what sample_json_error() was told first), then the members of @p object and
 * what sample_json_add() was given; and close. NULL @p out: only rc is returned. Takes @p object,
 * which may be NULL.
 */
int sample_json_end(const char *program, FILE *out, json_t *object, int rc);

/** Remember the first error text. Any thread may call this. */
void sample_json_error(const char *text);

/**
 * Print "PROGRAM: " and the text to stderr, and remember the text as sample_json_error() does.
 * Returns SAMPLE_EXIT_FAILED, so that a caller can `return sample_error(...)`.
 */
int sample_error(const char *program, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** A JSON string, also of text that is not UTF-8; NULL gives null. */
json_t *sample_json_text(const char *text);

#endif
