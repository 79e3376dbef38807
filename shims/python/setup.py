# SPDX-License-Identifier: BSD-2-Clause
"""The extension _ndx, with the flags of pkg-config; the rest is in pyproject.toml."""

from __future__ import annotations

import os
import subprocess
from glob import glob

from setuptools import Extension, setup

PACKAGES = ["ndx", "ndx-negotiation", "ndx-reassembly", "ndx-stream"]


def pkg_config(*options: str) -> list[str]:
    """What pkg-config says of the libraries."""
    program = os.environ.get("PKG_CONFIG", "pkg-config")
    return subprocess.check_output([program, *options, *PACKAGES], text=True).split()


setup(
    version=subprocess.check_output(
        [os.environ.get("PKG_CONFIG", "pkg-config"), "--modversion", "ndx"], text=True
    ).strip(),
    ext_modules=[
        Extension(
            "ndx._ndx",
            sorted(glob("src/*.c")),
            depends=sorted(glob("src/*.h")),
            define_macros=[("_GNU_SOURCE", None), ("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=["-std=c11", "-fvisibility=hidden", *pkg_config("--cflags")],
            extra_link_args=pkg_config("--libs"),
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
