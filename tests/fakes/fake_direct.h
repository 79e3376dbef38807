/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections without a connection manager, and without a device: an adapter of provider loop whose
 * queue pairs are connected by their descriptions. No data move; words do.
 */
#ifndef FAKE_DIRECT_H
#define FAKE_DIRECT_H

#include <stdbool.h>

#include <ndx/adapter.h>
#include <ndx/spi/provider.h>

/* A goodbye is received, and not reported: the test that sets this reports it. */
extern bool fake_direct_broods;

/* GIDs are of IPv4 addresses. */
extern bool fake_direct_mapped;

/* The port is one of InfiniBand. */
extern bool fake_direct_infiniband;

/* From now on, for connectors to come. */
/* The path between two ends can be proved, with this outcome: of the client, of the server. */
extern bool fake_direct_proves;
extern struct ndx_spi_proof fake_direct_proofs[2];
extern uint32_t fake_direct_looks; /* atomic: how often the core has asked */
/* The peer to which a queue pair was connected last. */
extern struct ndx_peer_description fake_direct_peer;
void fake_direct(struct ndx_adapter *adapter);

#endif
