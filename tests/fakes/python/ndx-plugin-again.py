# SPDX-License-Identifier: BSD-2-Clause
"""Has a name that is taken."""
PLUGIN = "odd"


class Only:
    name = "only"

    def rdma_info_exchange(self, peer):
        return None, True

    rdma_ready_exchange = rdma_info_exchange


VARIANTS = [Only]
