#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: tidy.sh SOURCE BUILD
# clang-tidy has nothing to say about any file that the build compiles. What was clean and has not
# changed since is not looked at again (tidy.py); NDX_TIDY=whole looks at everything.
set -eu
src=$1 build=$2
if ! command -v clang-tidy >/dev/null; then
	echo "skip: clang-tidy is not installed"
	exit 77
fi
if ! command -v python3 >/dev/null; then
	echo "skip: python3 is not installed"
	exit 77
fi
exec python3 "$(dirname "$0")/tidy.py" "$src" "$build" "${NDX_JOBS:-2}"
