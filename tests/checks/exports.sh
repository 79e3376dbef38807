#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: exports.sh SOURCE BUILD CC
# Of each library the same names are exported, listed in its map (core/ndx.map, core/*/ndx-*.map) and
# declared in its headers. A map says which headers belong to its library; all that no map names
# belong to libndx. core/private.map lists what the other libraries use of the inside of libndx, no
# more and no less, for this version only. No library needs another one but libndx.
# The declarations come from the compiler itself (gcc's -aux-info), not from a pattern: calls that
# are static inline are bodies, not exports.
set -eu
src=$1 libs=$2/lib cc=$3
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
bad=0
fault() {
	echo "$*"
	bad=1
}
declared() { # declared HEADER...: of api/ndx
	for header; do
		sed -n "s|^/\* $src/api/ndx/$header:.*:N\?C \*/ extern [^(]*[ *]\(ndx_[a-z0-9_]*\) (.*|\1|p" \
			"$tmp/aux"
		# Data: what api/ndx/spi declares is what a file with a provider or a plugin exports, not we.
		case $header in
		spi/*) ;;
		*) sed -n 's/^extern .*[ *]\(ndx_[a-z0-9_]*\)[[;].*/\1/p' "$src/api/ndx/$header" ;;
		esac
	done | sort -u
}
listed() { # listed MAP
	sed -n '/global:/,/}/s/^[[:space:]]*\([a-z0-9_]*\);.*/\1/p' "$1" | sort -u
}
symbols() { # symbols defined|undefined LIBRARY
	nm -D "--$1-only" --format=just-symbols "$libs/$2.so" | grep -v '^NDX_[A-Z_]*[0-9]' |
		sed 's/@.*//' | sort -u
}
same() { # same A B: print what only one of the two lists has
	comm -23 "$tmp/$1" "$tmp/$2" | sed "s/.*/&: $1, but not $2/" >"$tmp/diff"
	comm -13 "$tmp/$1" "$tmp/$2" | sed "s/.*/&: $2, but not $1/" >>"$tmp/diff"
	[ ! -s "$tmp/diff" ] || fault "$(cat "$tmp/diff")"
}

# "HEADER LIBRARY" for each header that a map names
for map in "$src"/core/*/ndx-*.map; do
	[ -f "$map" ] || continue
	awk -v library="lib$(basename "$map" .map)" 'sub(/.*Headers: /, "") {
		for (i = 1; i <= NF && $i != "*/"; i++)
			print $i, library
	}' "$map"
done >"$tmp/owned"
while read -r header library; do
	[ -f "$src/api/ndx/$header" ] || fault "$library: there is no api/ndx/$header"
done <"$tmp/owned"
cut -d ' ' -f 1 "$tmp/owned" | sort | uniq -d >"$tmp/twice"
[ ! -s "$tmp/twice" ] || fault "two libraries have $(cat "$tmp/twice")"

: >"$tmp/used by the other libraries"
for map in "$src"/core/ndx.map "$src"/core/*/ndx-*.map; do
	[ -f "$map" ] || continue
	library=lib$(basename "$map" .map)
	file=${map#"$src/core/"}
	file=$(echo "core/$file" | tr / ' ')
	if [ "$library" = libndx ]; then
		headers=$(cd "$src/api/ndx" && find . -name '*.h' | sed 's|^\./||' | sort)
		cut -d ' ' -f 1 "$tmp/owned" >"$tmp/others"
		headers=$(echo "$headers" | grep -vxFf "$tmp/others" || :)
		needs='nothing'
	else
		headers=$(sed -n "s/ $library\$//p" "$tmp/owned")
		needs='libndx\.so'
		symbols undefined "$library" | grep '^ndx\(_private\|p\)_' >>"$tmp/used by the other libraries" || :
	fi
	# shellcheck disable=SC2086 # a list
	declared $headers >"$tmp/declared in api for $library"
	listed "$map" >"$tmp/listed in $file"
	symbols defined "$library" | grep -v '^ndx\(_private\|p\)_' >"$tmp/exported by $library.so" || :
	[ -s "$tmp/declared in api for $library" ] ||
		fault "no declaration found for $library: this check sees nothing"
	same "declared in api for $library" "listed in $file"
	same "listed in $file" "exported by $library.so"
	readelf -d "$libs/$library.so" | sed -n 's/.*NEEDED.*\[\(libndx.*\)\]/\1/p' |
		grep -v "^$needs" >"$tmp/needed" || :
	[ ! -s "$tmp/needed" ] || fault "$library needs $(cat "$tmp/needed")"
done
# A stack is loaded by the provider that needs it, so a program that uses none loads none.
readelf -d "$libs/libndx.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
	grep -vE '^(lib(c|m|dl|pthread|inih|jansson|[atlu]b?san|gcc_s)\.so|ld-linux)' >"$tmp/needed" || :
[ ! -s "$tmp/needed" ] || fault "libndx needs $(cat "$tmp/needed"); it has libc, libinih and jansson only"
# A module brings its kit: it takes nothing from the libndx that loads it, and exports one constant.
for module in "$libs"/ndx/ndx-provider-*.so; do
	[ -f "$module" ] || continue
	nm -D --undefined-only --format=just-symbols "$module" | grep '^ndx' | grep -v '^ndx_early_' \
		>"$tmp/taken" || :
	[ ! -s "$tmp/taken" ] || fault "$(basename "$module") takes $(cat "$tmp/taken") from libndx"
	nm -D --defined-only --format=just-symbols "$module" | grep -vx ndx_provider >"$tmp/given" || :
	[ ! -s "$tmp/given" ] || fault "$(basename "$module") exports $(cat "$tmp/given")"
done
# The reassembly is for programs that load no RDMA stack.
if readelf -d "$libs/libndx-reassembly.so" 2>/dev/null | grep -q 'NEEDED.*libndx\.so'; then
	fault 'libndx-reassembly needs libndx'
fi

# The libraries for NetworkDirect programs: together they have what the headers declare and what
# one offers the other, each what its map says.
nd=$src/shims/ndspi
if [ -f "$libs/libndx-ndspi.so" ]; then
	{
		cat "$nd"/include/*.h | grep -oE 'NDX_ND_NAMED\([A-Za-z_0-9]+\)' |
			sed 's/NDX_ND_NAMED(\(.*\))/ndx_nd_\1/' | grep -vx 'ndx_nd_name'
		grep -ohE 'ND_HELPER_API Nd[A-Za-z0-9]+' "$nd/include/ndsupport.h" | sed 's/.* //'
		cat "$nd"/include/*.h | grep -oE '^DEFINE_GUID\([A-Za-z_0-9]+' | sed 's/.*(//'
		grep -ohE 'ndx_nd_[a-z_]+\(' "$nd"/include/*.h "$nd/handles/nd_waitable.h" | tr -d '('
	} | sort -u >"$tmp/declared in shims ndspi"
	for library in libndx-ndspi libndx-winrt; do
		map=$(find "$nd" -name "${library#lib}.map")
		sed -n '/global:/,/}/s/^[[:space:]]*\([A-Za-z0-9_]*\);.*/\1/p' "$map" | sort -u \
			>"$tmp/listed for $library"
		symbols defined "$library" >"$tmp/exported by $library.so"
		same "listed for $library" "exported by $library.so"
	done
	sort -u "$tmp/listed for libndx-ndspi" "$tmp/listed for libndx-winrt" >"$tmp/listed for both"
	same "declared in shims ndspi" "listed for both"
fi

private=$src/core/private.map
if [ -f "$private" ]; then
	listed "$private" >"$tmp/listed in core private.map"
	symbols defined libndx | grep '^ndx\(_private\|p\)_' >"$tmp/exported by libndx.so as private" || :
	sort -u -o "$tmp/used by the other libraries" "$tmp/used by the other libraries"
	same "listed in core private.map" "used by the other libraries"
	same "listed in core private.map" "exported by libndx.so as private"
	version=$(for part in MAJOR MINOR PATCH; do
		sed -n "s/^#define NDX_VERSION_$part \([0-9]*\)/\1/p" "$src"/api/ndx/*.h
	done | paste -s -d .)
	grep -qF "NDX_PRIVATE_$version {" "$private" ||
		fault "$private: its node is not NDX_PRIVATE_$version, so libraries of two versions would load"
fi
[ $bad -eq 0 ] && echo "$(cat "$tmp"/declared* | grep -c .) names agree"
exit $bad
