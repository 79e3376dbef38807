#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: plants.sh SOURCE
# A planted fault is a patch in tests/plants: the product has no code that only a test compiles, each
# patch applies to the sources as they are, and a test uses each patch.
set -eu
cd "$1"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

for room in api core providers plugins shims samples CMakeLists.txt; do
	[ ! -e "$room" ] || grep -rnIE -e '(^|[^A-Za-z])([A-Z0-9]+_)*PLANT' \
		-e '^[[:space:]]*#[[:space:]]*(el)?if.*(TEST|FUZZ|INJECT|SABOTAGE)' "$room" || true
done >"$tmp/found"
if [ -s "$tmp/found" ]; then
	cat "$tmp/found"
	echo '^ a planted fault is a patch in tests/plants, no code of the product'
	bad=1
fi
if ! command -v patch >/dev/null; then
	[ $bad -eq 0 ] || exit 1
	echo 'skip: patch is not installed'
	exit 77
fi
# A test that is commented out is none. The search by libFuzzer names its fault on its command line.
find tests -name CMakeLists.txt -exec awk '!/^[[:space:]]*#/' {} + >"$tmp/uses"
find tests -name search.sh -exec cat {} + >>"$tmp/uses"
for patch in tests/plants/*.patch; do
	[ -f "$patch" ] || continue
	name=$(basename "$patch" .patch)
	sh tests/plants/plant.sh . "$patch" "$tmp/$name" || bad=1
	if ! grep -qE "(plant|planted)\(${name}[ )]|NDX_PLANT=$name( |\$)" "$tmp/uses"; then
		echo "$patch: no CMakeLists.txt of tests says ndx_plant($name ...), so no test sees the fault"
		bad=1
	fi
done
exit $bad
