#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: exports.sh SOURCE BUILD CC
# What the library exports, what api/ declares and what core/ndx.map lists are the same names.
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
sed -n '/global:/,/local:/s/^[[:space:]]*\([a-z0-9_]*\);.*/\1/p' "$src/core/ndx.map" |
	sort -u >"$tmp/listed in core ndx.map"
nm -D --defined-only --format=just-symbols "$lib" | grep -v '^NDX_[0-9]' | sed 's/@.*//' |
	sort -u >"$tmp/exported by libndx.so"

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
if [ ! -s "$tmp/declared in api" ]; then
	echo "no declaration found in api: this check sees nothing"
	bad=1
fi
[ $bad -eq 0 ] && echo "$(grep -c . "$tmp/declared in api") names agree"
exit $bad
