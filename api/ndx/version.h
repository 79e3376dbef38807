/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file
 * Version of the interface. Until 1.0 the interface may change with every minor release;
 * docs/CHANGELOG.md lists the changes.
 */
#ifndef NDX_VERSION_H
#define NDX_VERSION_H

#include <ndx/decls.h>

#define NDX_VERSION_MAJOR 0
#define NDX_VERSION_MINOR 1
#define NDX_VERSION_PATCH 0

NDX_DECLS_BEGIN

/** Version of the loaded library, for example "0.1.0". Never NULL. Any thread. Does not block. */
const char *ndx_version(void);

NDX_DECLS_END

#endif
