#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: tidy.sh SOURCE BUILD
# clang-tidy has nothing to say about any file that the build compiles.
set -eu
src=$1 build=$2
if ! command -v clang-tidy >/dev/null; then
	echo "skip: clang-tidy is not installed"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$build/compile_commands.json" | sort -u |
	grep "^$src/" | grep -v "^$build/" >"$tmp/files" || true
if [ ! -s "$tmp/files" ]; then
	echo "no file of $src in $build/compile_commands.json: this check sees nothing"
	exit 1
fi
# One file per process keeps both processors busy to the end; the count of suppressed warnings from
# system headers is the only thing that is left out of the output.
tr '\n' '\0' <"$tmp/files" |
	xargs -0 -n 1 -P "${NDX_JOBS:-2}" clang-tidy -p "$build" --quiet >"$tmp/out" 2>"$tmp/err" || {
	cat "$tmp/out"
	grep -vE '^[0-9]+ warnings? (treated as errors? )?generated|^Suppressed|^Use -header' "$tmp/err"
	exit 1
}
echo "$(grep -c . "$tmp/files") files, no finding"
