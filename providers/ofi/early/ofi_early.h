/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the process did with its signals before libfabric and what libfabric needs were loaded. A
 * library of its own, because its constructor has to run before those of libraries that libndx
 * depends on; the linker's -z initfirst does that for the whole of a library only.
 */
#ifndef OFI_EARLY_H
#define OFI_EARLY_H

#include <signal.h>

/* Signals 1 .. 31 have a disposition that is kept. */
#define NDX_EARLY_SIGNALS 32

const struct sigaction *ndx_early_action(int signal_number);

#endif
