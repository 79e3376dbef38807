/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NDX_SPI_CLOSE_ON_EXEC_H
#define NDX_SPI_CLOSE_ON_EXEC_H

#include <stdbool.h>
#include <ndx/spi/shared.h>

NDXP_DECLS_BEGIN

/*
 * From now on, the sockets and epoll sets that the shared object of `function` creates or accepts
 * have FD_CLOEXEC. The code of this function must never be unloaded. False: `function` is in no
 * shared object, the object calls none of these functions, or the relocations of this machine are
 * unknown.
 */
bool ndxp_close_on_exec(const void *function);

NDXP_DECLS_END

#endif
