/* SPDX-License-Identifier: BSD-2-Clause */
/* Listen where the command line says, and write the port for scripts. */
#ifndef SAMPLE_LISTEN_H
#define SAMPLE_LISTEN_H

#include <ndx/adapter.h>
#include <ndx/listener.h>

#include "sample_address.h"

/**
 * Listen on `wish`; with a bare port, or NULL, on the adapter's first address. `:PORT` is all IPv4
 * addresses, as 0.0.0.0:PORT.
 *
 * @param who           the program's name, for error texts
 * @param[out] address  address on which the listener listens, with the port
 * @return an exit status; on SAMPLE_EXIT_OK release the listener with ndx_listener_close()
 */
int sample_listen(const char *who, struct ndx_adapter *adapter, const char *wish,
                  struct ndx_listener **listener, struct sample_address *address);

/** Write the port into a file; no reader sees an incomplete file. Returns an exit status. */
int sample_write_port(const char *path, const struct sample_address *address);

#endif
