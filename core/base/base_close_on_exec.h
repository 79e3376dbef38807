/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_CLOSE_ON_EXEC_H
#define BASE_CLOSE_ON_EXEC_H

#include <stdbool.h>

/*
 * From now on the sockets and epoll sets that the shared object of `function` makes have
 * FD_CLOEXEC, those that it accepts, too. The code that does it must never be unloaded. False: it
 * is no shared object, makes none, or the machine's relocations are not known.
 */
bool base_close_on_exec(const void *function);

#endif
