/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening where the command line says, and telling scripts where that is. */
#ifndef SAMPLE_LISTEN_H
#define SAMPLE_LISTEN_H

#include <ndx/adapter.h>
#include <ndx/listener.h>

#include "sample_address.h"

/**
 * Listen on `wish`; without one, or without a host in it, on the adapter's first address.
 *
 * @param who           whose failures are told
 * @param[out] address  where it listens, with the port
 * @return an exit status; SAMPLE_EXIT_OK: release the listener with ndx_listener_close()
 */
int sample_listen(const char *who, struct ndx_adapter *adapter, const char *wish,
                  struct ndx_listener **listener, struct sample_address *address);

/** Write the port into a file, which nobody sees half written. Returns an exit status. */
int sample_write_port(const char *path, const struct sample_address *address);

#endif
