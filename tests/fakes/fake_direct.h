/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections without a connection manager, and without a device: an adapter of provider loop whose
 * queue pairs are connected by their descriptions. No data move; words do.
 */
#ifndef FAKE_DIRECT_H
#define FAKE_DIRECT_H

#include <stdbool.h>

#include <ndx/adapter.h>

/* A goodbye is received, and not reported: the test that sets this reports it. */
extern bool fake_direct_broods;

/* GIDs are of IPv4 addresses. */
extern bool fake_direct_mapped;

/* The port is one of InfiniBand. */
extern bool fake_direct_infiniband;

/* From now on, for connectors to come. */
void fake_direct(struct ndx_adapter *adapter);

#endif
