/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library that is loaded before libfabric and stays after libndx. It keeps the signal
 * dispositions that the process had before libfabric and its dependencies were loaded, and
 * functions that libfabric calls instead of the C library's. It is a library of its own, because
 * its constructor has to run before those of libraries that libndx depends on; the linker's -z
 * initfirst applies to a whole library.
 */
#ifndef OFI_EARLY_H
#define OFI_EARLY_H

#include <signal.h>
#include <stdbool.h>

/* The dispositions of signals 1 .. 31 are kept. */
#define NDX_EARLY_SIGNALS 32

const struct sigaction *ndx_early_action(int signal_number);

/* The dispositions are restored: unblock SIGINT and SIGTERM in the thread that loads. */
void ndx_early_loaded(void);

/* From now on the sockets and epoll sets that the shared object of `function` makes have
 * FD_CLOEXEC, also the sockets that it accepts. False: `function` is in no shared object, or in one
 * of an unknown kind. */
bool ndx_early_close_on_exec(const void *function);

#endif
