/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_PORT_H
#define BASE_PORT_H

#include <ndx/overlapped.h>

/* Queue an object that has ended. Any thread, any lock. */
void base_port_push(struct ndx_port *port, struct ndx_overlapped *ov);

#endif
