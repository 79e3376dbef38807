/* SPDX-License-Identifier: BSD-2-Clause */
/* A slow path: a TCP relay between the two sides, with a limited rate. */
#ifndef TESTS_OFI_RELAY_H
#define TESTS_OFI_RELAY_H

#include "pair.h"

struct relay;

/* Start a relay for one connection in front of the pair's listener. The relay's address replaces
 * the listener's. The rate is in bytes per second for each direction. */
struct relay *relay_start(struct pair *p, size_t rate);
/* The relay forwards nothing any more. */
void relay_stall(struct relay *relay);
void relay_close(struct relay *relay);

#endif
