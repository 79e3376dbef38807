/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting and taking results. Requests are named by a number below SIDE_TAGS, their context is the
 * tag of that number. `at` and `length` are bytes of the side's registered buffer.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "fixture.h"

void *tag(struct side *s, size_t number);

struct ndx_sge sge(const struct side *s, size_t at, size_t length);

/* Post, whatever the answer. */
enum ndx_status send_raw(struct side *s, size_t number, size_t at, size_t length, uint32_t flags);
enum ndx_status receive_raw(struct side *s, size_t number, size_t at, size_t length);
enum ndx_status read_raw(struct side *s, size_t number, size_t at, size_t length,
                         const struct side *peer, size_t peer_at, uint32_t flags);
enum ndx_status write_raw(struct side *s, size_t number, size_t at, size_t length,
                          const struct side *peer, size_t peer_at, uint32_t flags);

/* Post; must be accepted. */
bool send_ok(struct side *s, size_t number, size_t at, size_t length, uint32_t flags);
bool receive_ok(struct side *s, size_t number, size_t at, size_t length);
bool read_ok(struct side *s, size_t number, size_t at, size_t length, const struct side *peer,
             size_t peer_at, uint32_t flags);
bool write_ok(struct side *s, size_t number, size_t at, size_t length, const struct side *peer,
              size_t peer_at, uint32_t flags);

/* `count` receives of `length` bytes, side by side from `at`, numbered from `number`. */
bool receives_ok(struct side *s, size_t number, size_t count, size_t at, size_t length);
/* The same for `count` sends. */
bool sends_ok(struct side *s, size_t number, size_t count, size_t at, size_t length);
/* Post until the queue is full; how many went in, 0 if it did not get full by `limit`. */
size_t fill_sends(struct side *s, size_t length, uint32_t flags, size_t limit);
size_t fill_receives(struct side *s, size_t length, size_t limit);

/* The next result of a queue, waiting for it. */
bool take(struct side *s, struct ndx_cq *cq, struct ndx_result *out);
/* It is this one. The first goes by the kind to the receive or the initiator queue. */
bool expect(struct side *s, enum ndx_request_type type, size_t number, enum ndx_status status);
bool expect_received(struct side *s, size_t number, size_t bytes);
/* Requests number .. number + count - 1 complete in order with `status`. */
bool expect_run(struct side *s, enum ndx_request_type type, size_t number, size_t count,
                enum ndx_status status);
/* Takes whatever is there now and looks whether it is `count` results, all with `status`. */
bool expect_all_there(struct side *s, size_t count, enum ndx_status status);
/* No result comes for QUIET_MS. */
bool expect_silence(struct side *s);
/* Takes and forgets what is there; how many. */
size_t discard(struct side *s);
/* What a taken result says. */
bool result_is(struct side *s, const struct ndx_result *result, enum ndx_request_type type,
               size_t number, enum ndx_status status);

/* Known bytes: fill with what follows from `key`, and see whether it is still so. */
void pattern_fill(uint8_t *at, size_t length, uint64_t key);
bool pattern_there(struct check *c, const uint8_t *at, size_t length, uint64_t key,
                   const char *what);
/* ndx_srq_create() with these attributes and the defaults otherwise. */
enum ndx_status make_srq(struct ndx_adapter *adapter, uint32_t depth, uint32_t max_sge,
                         uint32_t threshold, struct ndx_srq **out);

/* Every byte is `value`. */
bool bytes_are(struct check *c, const uint8_t *at, size_t length, uint8_t value, const char *what);

const char *request_name(enum ndx_request_type type);

/* A message from one side to the other and its arrival, buffers at 0; both queues empty before. */
bool message_passes(struct side *from, struct side *to, size_t length);

#endif
