/* SPDX-License-Identifier: BSD-2-Clause */
/* A slow path: a TCP relay between the two sides, which lets only so much through. */
#ifndef TESTS_OFI_RELAY_H
#define TESTS_OFI_RELAY_H

#include "pair.h"

struct relay;

/* In front of the pair's listener, whose address becomes the relay's; for one connection. Bytes per
 * second, each way. */
struct relay *relay_start(struct pair *p, size_t rate);
/* From now on nothing goes through any more. */
void relay_stop_the_flow(struct relay *relay);
void relay_end(struct relay *relay);

#endif
