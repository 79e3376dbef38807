/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits of the tests of sessions; each one has a limit. And the plugin's functions that are held.
 */
#ifndef TEST_AWAITS_H
#define TEST_AWAITS_H

#include <ndx/spi/plugin.h>

/* Longer than any time-out of a session in these tests; by the clock, so that a loaded machine ends
 * the wait, and says what has not come, before the test's own time is over. */
enum { AWAIT_MS = 60000 };

/* The test fails if the flag is still 0, or not the value, when the time is over. Test's thread. */
void await(const int *flag);
void await_value(const int *flag, int value);
/* A function of the plugin, or a callback, stays until the flag is 0. Any thread: the program ends
 * if the flag is never 0. */
void stay_while(const int *flag);
/* The same if the flag is 1: the flag is then 2 while the function stays. */
void stay_if_wanted(int *flag);

/* Atomic: 1: the plugin's next `end`, of either side, is to last; 2: it does, until 0. */
extern int ending;
/* `begin` and `end` of a variant. */
enum ndx_status begin_session(void *instance, const struct ndx_exchange *x, void **session,
                              struct ndx_exchange_reply *reply);
void end_session(void *session);

#endif
