/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON texts of snapshots, by jansson. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base_private.h"

/* A JSON text under construction. Records any failure; base_json_finish() checks it once. */
struct base_json {
	bool failed;
};

/* These take `value`, also when they fail; a value of NULL is a failure. */
void base_json_put(struct base_json *j, json_t *to, const char *key, json_t *value)
	NDX_PRIVATE(base_json_put);
void base_json_append(struct base_json *j, json_t *to, json_t *value) NDX_PRIVATE(base_json_append);

void base_json_number(struct base_json *j, json_t *to, const char *key, uint64_t value)
	NDX_PRIVATE(base_json_number);
/* A text of a peer, a plugin or a file need not be UTF-8: all but printable ASCII becomes '?'.
 * What is longer than 255 bytes is cut. */
void base_json_text(struct base_json *j, json_t *to, const char *key, const char *value)
	NDX_PRIVATE(base_json_text);
/* From an array of NDX_STATS_STATUSES: those that occurred, by name. */
void base_json_statuses(struct base_json *j, json_t *to, const char *key, const uint64_t *counts)
	NDX_PRIVATE(base_json_statuses);
/* An array of NDX_STATS_BUCKETS, up to the last bucket that is not empty. */
void base_json_buckets(struct base_json *j, json_t *to, const char *key, const uint64_t *buckets)
	NDX_PRIVATE(base_json_buckets);

/* The whole as text, and `root` is released. To be freed; NULL: out of memory. */
char *base_json_finish(struct base_json *j, json_t *root) NDX_PRIVATE(base_json_finish);

#endif
