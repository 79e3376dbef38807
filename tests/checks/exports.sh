#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: exports.sh SOURCE BUILD CC
# What the library exports, what api/ declares and what core/ndx.map lists are the same names; so are
# those of a room's own library, core/ROOM/ndx-ROOM.map and api/ndx/ROOM.h.
# The declarations come from the compiler itself (gcc's -aux-info), not from a pattern: calls that
# are static inline are bodies, not exports.
set -eu
src=$1 lib=$2/lib/libndx.so cc=$3
export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for h in $(cd "$src/api" && find ndx -name '*.h' | sort); do
	echo "#include <$h>"
done >"$tmp/all.c"
echo 'extern int a_declaration_of_our_own;' >>"$tmp/all.c"
if ! "$cc" -std=c11 -I"$src/api" -fsyntax-only -aux-info "$tmp/aux" "$tmp/all.c" 2>"$tmp/err"; then
	cat "$tmp/err"
	if command -v gcc >/dev/null && ! "$cc" --version | grep -q 'Free Software Foundation'; then
		exec sh "$0" "$src" "$2" gcc
	fi
	exit 1
fi
{
	sed -n "s|^/\* $src/api/.*:N\?C \*/ extern [^(]*[ *]\(ndx_[a-z0-9_]*\) (.*|\1|p" "$tmp/aux"
	# Data: what api/ndx/spi declares is what a file with a provider or a plugin exports, not we.
	sed -n 's/^extern .*[ *]\(ndx_[a-z0-9_]*\)[[;].*/\1/p' "$src"/api/ndx/*.h
} | sort -u >"$tmp/declared in api"
listed() { # listed MAP
	sed -n '/global:/,/local:/s/^[[:space:]]*\([a-z0-9_]*\);.*/\1/p' "$1" | sort -u
}
exported() { # exported LIBRARY
	nm -D --defined-only --format=just-symbols "$1" | grep -v '^NDX_[A-Z_]*[0-9]' |
		sed 's/@.*//' | sort -u
}
listed "$src/core/ndx.map" >"$tmp/listed in core ndx.map"
exported "$lib" >"$tmp/exported by libndx.so"

bad=0
same() { # same A B: print what only one of the two lists has
	comm -23 "$tmp/$1" "$tmp/$2" | sed "s/.*/&: $1, but not $2/" >"$tmp/diff"
	comm -13 "$tmp/$1" "$tmp/$2" | sed "s/.*/&: $2, but not $1/" >>"$tmp/diff"
	if [ -s "$tmp/diff" ]; then
		cat "$tmp/diff"
		bad=1
	fi
}
same "declared in api" "listed in core ndx.map"
same "listed in core ndx.map" "exported by libndx.so"
for map in "$src"/core/*/ndx-*.map; do
	[ -f "$map" ] || continue
	room=$(basename "$map" .map)
	header=${room#ndx-}.h
	sed -n "s|^/\* $src/api/ndx/$header:.*:N\?C \*/ extern .*[ *]\(ndx_[a-z0-9_]*\) (.*|\1|p" \
		"$tmp/aux" | sort -u >"$tmp/declared in $header"
	listed "$map" >"$tmp/listed in $room.map"
	exported "$2/lib/lib$room.so" >"$tmp/exported by lib$room.so"
	same "declared in $header" "listed in $room.map"
	same "listed in $room.map" "exported by lib$room.so"
done
if [ ! -s "$tmp/declared in api" ]; then
	echo "no declaration found in api: this check sees nothing"
	bad=1
fi
[ $bad -eq 0 ] && echo "$(grep -c . "$tmp/declared in api") names agree"
exit $bad
