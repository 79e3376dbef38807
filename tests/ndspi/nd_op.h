/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that end later, with a time limit; the stages of a connection; and what a provider is known
 * not to keep. */
#ifndef ND_OP_H
#define ND_OP_H

#include <ndx/ndx.h>

#include "nd_pair.h"

#ifdef __cplusplus
extern "C" {
#endif

#define assert_ends(started, overlapped, expected)                \
	do {                                                      \
		assert_status(started, ND_PENDING);               \
		assert_status(nd_ov_end(overlapped), (expected)); \
	} while (0)

/* An OVERLAPPED with an event, which each wait resets. */
void nd_ov_make(OVERLAPPED *ov);
void nd_ov_drop(OVERLAPPED *ov);
/* How the call ended. Waits for the event, and fails the test when the event is not set in time. */
HRESULT nd_ov_end(OVERLAPPED *ov);
/* What the OVERLAPPED says at present. */
HRESULT nd_ov_state(const OVERLAPPED *ov);
/* Fails the test when the event is not set in time. */
void nd_wait_event(HANDLE event);

/* What one end offers with Connect or Accept. */
struct nd_offer {
	ULONG inbound, outbound;
	const void *data;
	ULONG length;
};

/* A connects, and the request is in B's connector; a.ov is in flight. NULL: no limits, no data. */
void nd_ask(struct nd_pair *p, const struct nd_offer *offer);
/* B accepts, and A has the answer; b.ov is in flight. */
void nd_answer(struct nd_pair *p, const struct nd_offer *offer);
/* A completes the connection. */
void nd_complete(struct nd_pair *p);

IND2Connector *nd_new_connector(struct nd_side *s);
/* The old one has ended. */
void nd_replace_connector(struct nd_side *s);
IND2QueuePair *nd_new_qp(struct nd_side *s, ULONG depth, ULONG sge, ULONG inline_size);
void nd_replace_qp(struct nd_side *s, ULONG depth, ULONG sge, ULONG inline_size);
IND2CompletionQueue *nd_new_cq(struct nd_side *s, ULONG depth);
IND2MemoryWindow *nd_new_window(struct nd_side *s);

/* Bytes that tell their places. */
void nd_fill(char *memory, size_t length, int seed);

/* Whether the adapter under test has this capability. */
bool nd_has(enum ndx_capability capability);
/* Skip the test without it. */
#define nd_need(capability) nd_need_for(__func__, (capability))
void nd_need_for(const char *test, enum ndx_capability capability);
/* Skip the test, and print why: the guest's script looks for the line. */
#define nd_skip(why) nd_skip_it(__func__, (why))
void nd_skip_it(const char *test, const char *why);

/* What the provider under test does instead of `promised`: from the list of deviations. */
HRESULT nd_expected(const char *what, HRESULT promised);
/* Skip the test if the list has this promise: there is no other status to expect. */
#define nd_need_kept(what) nd_need_kept_for(__func__, (what))
void nd_need_kept_for(const char *test, const char *what);

#ifdef __cplusplus
}
#endif

#endif
