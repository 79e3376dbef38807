#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: plant.sh SOURCE PATCH OUT
# Plants a fault: copies the files that PATCH changes from SOURCE into OUT, under the same paths, and
# changes the copies. OUT gets no file unless all of PATCH applies.
set -eu
src=$1 patch=$2 out=$3

# fail TEXT: what is wrong with the patch, and what to do
fail() {
	echo "$patch: $1" >&2
	echo 'Plant the fault anew by hand, see tests/plants/README.md.' >&2
	exit 1
}

mkdir -p "$out"
part=$(mktemp -d "$out/part.XXXXXX")
trap 'rm -rf "$part"' EXIT
files=$(sed -n 's|^+++ b/\([^[:space:]]*\).*|\1|p' "$patch")
[ -n "$files" ] || fail 'the patch names no file (a line "+++ b/FILE")'
for file in $files; do
	[ -f "$src/$file" ] || fail "there is no file $file any more"
	mkdir -p "$part/$(dirname "$file")"
	cp "$src/$file" "$part/$file"
done
patch -s -f -F 0 -p 1 -d "$part" <"$patch" >&2 || fail 'the patch does not apply any more'
for file in $files; do
	! cmp -s "$src/$file" "$part/$file" || fail "the patch does not change $file"
done
for file in $files; do
	mkdir -p "$out/$(dirname "$file")"
	mv "$part/$file" "$out/$file"
done
