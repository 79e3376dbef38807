#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: format.sh SOURCE
# Every C and C++ file is as .clang-format has it. To mend: clang-format -i FILE.
set -eu
cd "$1"
if ! command -v clang-format >/dev/null; then
	echo "skip: clang-format is not installed"
	exit 77
fi
find . \( -path ./build -o -path './.*' \) ! -name . -prune -o \
	-regex '.*\.[ch]\(pp\)?' -print0 |
	xargs -0 -r clang-format --dry-run -Werror
