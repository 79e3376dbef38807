# SPDX-License-Identifier: BSD-2-Clause
"""Fails while it is read."""
import a_module_that_nobody_has
