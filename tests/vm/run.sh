#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: run.sh [OPTION]... -- COMMAND [ARGUMENT]...
# ndx-guest (--help has its options) with the programs of the build tree of this source.
here=$(cd "$(dirname "$0")" && pwd)
exec sh "$here/guest/ndx-guest" -b "$here/../../build" "$@"
