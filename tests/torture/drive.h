/* SPDX-License-Identifier: BSD-2-Clause */
/* The random program of a round between connecting and closing. */
#ifndef DRIVE_H
#define DRIVE_H

#include "round.h"

/* What happens to the peer's process in a turn; NULL: there is none. */
typedef void drive_fate(struct round *round, void *arg);

/* Traffic, ends and all, of this process's sides. `fate` is called once, in its turn. */
void drive(struct round *round, drive_fate *fate, void *arg);

#endif
