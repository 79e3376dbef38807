#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: install.sh SOURCE BUILD CC
# What "cmake --install" lays down is enough for a user's program: headers, library and
# ndx.pc agree, wherever the prefix is.
set -eu
src=$1 build=$2 cc=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if ! cmake --install "$build" --prefix "$tmp/prefix" >"$tmp/log" 2>&1; then
	cat "$tmp/log"
	exit 1
fi
(cd "$src/api" && find ndx -name '*.h' | sort) >"$tmp/headers"
(cd "$tmp/prefix/include" && find . -type f | sed 's|^\./||' | sort) >"$tmp/installed"
diff -u "$tmp/headers" "$tmp/installed" || {
	echo "   ^ the installed headers are not those of api/"
	exit 1
}
if find "$tmp/prefix" \( -name '*.a' -o -name 'test_*' \) | grep .; then
	echo "   ^ this is not for users"
	exit 1
fi
for program in "$tmp/prefix/bin"/*; do
	[ -f "$program" ] || continue
	"$program" --help >"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		echo "   ^ $(basename "$program") --help, as installed"
		exit 1
	}
done

PKG_CONFIG_PATH=$(dirname "$(find "$tmp/prefix" -name ndx.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # a list of options
"$cc" -std=c11 -Wall -Wextra -Werror -o "$tmp/consumer" "$(dirname "$0")/consumer.c" \
	$(pkg-config --cflags --libs ndx)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir ndx)
export LD_LIBRARY_PATH
"$tmp/consumer" "$(pkg-config --modversion ndx)"

# A program loads the version that it was linked with: until 1.0 the same minor version.
soname=$(pkg-config --modversion ndx | awk -F. '{ print $1 == 0 ? $1 "." $2 : $1 }')
for file in "$LD_LIBRARY_PATH"/libndx*.so.*.*.*; do
	want=$(basename "$file" | sed 's/\.so\..*//').so.$soname
	readelf -d "$file" | grep -qF "soname: [$want]" || {
		readelf -d "$file" | grep SONAME
		echo "   ^ $file is not $want"
		exit 1
	}
done

# A room's own library serves a program that sees its header only.
for pc in "$PKG_CONFIG_PATH"/ndx-*.pc; do
	[ -f "$pc" ] || continue
	room=$(basename "$pc" .pc)
	# shellcheck disable=SC2046 # a list of options
	"$cc" -std=c11 -Wall -Wextra -Werror -o "$tmp/$room" "$(dirname "$0")/consumer-${room#ndx-}.c" \
		$(pkg-config --cflags --libs "$room")
	"$tmp/$room"
	if ldd "$tmp/$room" | grep -q 'libndx\.so'; then
		echo "   ^ $room needs libndx"
		exit 1
	fi
done
