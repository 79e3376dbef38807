/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIGINT and SIGTERM. A program whose loops look for a request to stop uses sample_on_stop(), and
 * ends with its exit status. A program whose run cannot be left in the middle uses
 * sample_stop_with(): a thread prints the summary so far, and then the program dies by the signal,
 * so that a shell sees that the run was not complete (130 and 143).
 */
#ifndef SAMPLE_STOP_H
#define SAMPLE_STOP_H

/**
 * Install `handler` for SIGINT and SIGTERM; the signals interrupt a blocking system call. The
 * program has SAMPLE_STOP_S seconds to end then. It is ended by the signal if something still
 * blocks, for example the disconnect from a peer that does not answer, or if another signal comes
 * after SAMPLE_AGAIN_MS; so flush what is to be seen.
 */
void sample_on_stop(void (*handler)(int signal_number));

/** Die by the signal that came after sample_on_stop(); returns if none did. Flush before. */
void sample_stop_by_signal(void);

/** More than the second in which programs end, because a machine may be loaded. */
#define SAMPLE_STOP_S 10u
/** From then on after the first signal another one ends the program at once. */
#define SAMPLE_AGAIN_MS 1000

/**
 * From now on a SIGINT or SIGTERM calls @p summary once, on a thread of its own and with the lock
 * of sample_stop_lock() held, then flushes stdout and ends the process by the signal; after
 * SAMPLE_STOP_S seconds, or by another signal after SAMPLE_AGAIN_MS, without the summary, if the
 * lock or the summary is stuck. The signals
 * reach only the process that called this: a forked child dies by them at once. Returns an enum
 * sample_exit; a failure was printed.
 */
int sample_stop_with(const char *program, void (*summary)(void *arg), void *arg);

/**
 * Around each change of what `summary` prints. A program that prints its summary itself, at its
 * end, locks before it and does not unlock: a signal that comes then waits for the end of the
 * program.
 */
void sample_stop_lock(void);
void sample_stop_unlock(void);

#endif
