# SPDX-License-Identifier: BSD-2-Clause
"""Its parameter is of no known type."""
PLUGIN = "schema"


class Only:
    name = "only"
    params = [{"name": "size", "type": "float"}]

    def rdma_info_exchange(self, peer):
        return None, True

    rdma_ready_exchange = rdma_info_exchange


VARIANTS = [Only]
