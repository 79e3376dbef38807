/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What has to be there before libfabric, or stay after libndx: what the process did with its
 * signals before libfabric and what libfabric needs were loaded, and functions that libfabric calls
 * instead of the C library's. A library of its own, because its constructor has to run before those
 * of libraries that libndx depends on; the linker's -z initfirst does that for a whole library
 * only.
 */
#ifndef OFI_EARLY_H
#define OFI_EARLY_H

#include <signal.h>
#include <stdbool.h>

/* Signals 1 .. 31 have a disposition that is kept. */
#define NDX_EARLY_SIGNALS 32

const struct sigaction *ndx_early_action(int signal_number);

/* Dispositions are back: SIGINT and SIGTERM, blocked in the thread that loads, come again. */
void ndx_early_loaded(void);

/* From now on the sockets and epoll sets that the shared object of `function` makes have
 * FD_CLOEXEC, those that it accepts, too. False: it is no shared object, or not of a known kind. */
bool ndx_early_close_on_exec(const void *function);

#endif
