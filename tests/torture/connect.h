/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting all connections of a round, and failing to. */
#ifndef CONNECT_H
#define CONNECT_H

#include "round.h"

/* Drives the ends of this process until each is connected or never will be. */
void connect_all(struct round *round);

#endif
