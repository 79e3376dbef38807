# SPDX-License-Identifier: BSD-2-Clause
"""Does not say its name."""
VARIANTS = []
