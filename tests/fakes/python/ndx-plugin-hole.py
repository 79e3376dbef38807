# SPDX-License-Identifier: BSD-2-Clause
"""Lacks a function."""
PLUGIN = "hole"


class Half:
    name = "half"

    def rdma_info_exchange(self, peer):
        return None, True


VARIANTS = [Half]
