#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: run.sh [--renew] [SOURCE [BUILD [CC]]]
# The ABI gate: the libraries and the public headers are as the baselines in SOURCE/tests/abi say, but
# for what docs/design/abi.md allows to be added, and the symbols files in SOURCE/tests/packaging/symbols
# are those of the libraries. --renew writes the baselines and the symbols files anew; once a version
# of this SONAME is released, only additions. The defaults are this tree, its folder build, and cc.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
renew=0
if [ "${1:-}" = --renew ]; then
	renew=1
	shift
fi
src=$(cd "${1:-$here/../..}" && pwd)
build=${2:-$src/build} cc=${3:-cc}
abi=$src/tests/abi symbols=$src/tests/packaging/symbols
export LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
mkdir "$tmp/abi" "$tmp/symbols" "$tmp/maps"

# fail TEXT...: one thing that is wrong
fail() {
	printf '%s\n' "$@"
	bad=1
}

# stop TEXT: what this script cannot do without
stop() {
	echo "$1"
	exit 1
}

# soname_of FILE: of a library or a baseline
soname_of() {
	case $1 in
	*.abi) sed -n "s/^<abi-corpus .* soname='\([^']*\)'.*/\1/p" "$1" ;;
	*) readelf -d "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\].*/\1/p' ;;
	esac
}

# released SONAME: does the changelog have a version with it?
released() {
	grep -qF "## [${1##*.so.}." "$src/docs/CHANGELOG.md"
}

# constants: the values of all constants of the public headers, which no library has
constants() {
	(cd "$src/api" && find ndx -name '*.h' | sort | sed 's/.*/#include <&>/') >"$tmp/all.c"
	"$cc" -std=c11 -E -P -I"$src/api" "$tmp/all.c" >"$tmp/all.i" &&
		"$cc" -std=c11 -E -dM -I"$src/api" "$tmp/all.c" >"$tmp/all.macros" || return 1
	{
		grep -oE '(^|[^A-Za-z0-9_])NDX_[A-Z0-9_]+' "$tmp/all.i" | grep -oE 'NDX_.*'
		# No constants: guards, which are empty, and what stands around declarations. The
		# version is the only one that may change.
		sed -n '/_Pragma/d; /^#define NDX_VERSION_/d
			s/^#define \(NDX_[A-Z0-9_]*\) ..*/\1/p' "$tmp/all.macros"
	} | sort -u >"$tmp/names"
	{
		cat "$tmp/all.c"
		cat <<-'END'
			#include <stdio.h>
			#define TYPE(type) type: 1, unsigned type: 1
			#define NUMBER(x) _Generic((x), TYPE(int), TYPE(long), TYPE(long long), default: 0)
			#define SHOW(x) if (NUMBER(x)) printf("%s %lld\n", #x, (long long)(x));
			int main(void) {
		END
		sed 's/.*/SHOW(&)/' "$tmp/names"
		echo 'return 0; }'
	} >"$tmp/constants.c"
	"$cc" -std=c11 -w -I"$src/api" -o "$tmp/constants" "$tmp/constants.c" &&
		"$tmp/constants" | sort >"$tmp/abi/constants"
}
# symbols_of LIBRARY: "name@NODE" of each symbol, as a symbols file says it. What a library exports
# only for our other libraries is not part of the interface (core/base/base_private.h).
symbols_of() {
	nm -D --defined-only --with-symbol-versions --format=just-symbols "$1" |
		grep -vE '@NDX_PRIVATE_|^NDX_PRIVATE_' |
		sed 's/@@/@/; s/^[^@]*$/&@Base/; s/^\(NDX[A-Z_]*_[0-9.]*\)@Base$/\1@\1/' | sort -u
}

# mapped MAP: the same of a map
mapped() {
	awk '/^[A-Z_]*_[0-9.]* *\{/ { node = $1; sub(/\{$/, "", node); print node "@" node }
		/local:|\}/ { inside = 0 }
		inside && /;/ { name = $1; sub(/;.*/, "", name); print name "@" node }
		/global:/ { inside = 1 }' "$1" | sort -u
}

# first_versions: behind each symbol, the version in which it was first: that of its node
first_versions() {
	awk '{
		version = $1
		sub(/.*@/, "", version)
		if (version == "Base") {
			print $1
			next
		}
		sub(/.*_/, "", version)
		while (split(version, part, ".") < 3)
			version = version ".0"
		print $1, version
	}'
}

# private_nodes LIBRARY: a line of the symbols file for all symbols of such a node
private_nodes() {
	nm -D --defined-only --format=just-symbols "$1" |
		sed -n 's/^\(NDX_PRIVATE_\([0-9.]*\)\)\(@.*\)*$/ (symver)\1 \2/p' | sort -u
}

# late FILE: exported symbols that the symbols file lacks, in a node of a version that is released
late() {
	awk 'NR == FNR { known[$1]; next } NF == 2 && !($1 in known)' "$1" "$tmp/exported" |
		while read -r name first; do
			! grep -qF "## [$first]" "$src/docs/CHANGELOG.md" ||
				echo "$name is new, and version $first is released: it needs a node of its own"
		done
}

# symbols NAME LIBRARY: its symbols file, checked and written anew
symbols() {
	file=$symbols/$1.symbols soname=$(soname_of "$2")
	version=$(basename "$(readlink -f "$2")" | sed 's/.*\.so\.//')
	symbols_of "$2" | first_versions >"$tmp/exported"
	# Nodes have the version in their name. What has none keeps that of the file.
	{
		echo "$soname libndx${soname##*.so.} #MINVER#"
		awk -v version="$version" -v former="$file" '
			BEGIN {
				while ((getline <former) > 0)
					first[$1] = $2
			}
			NF == 1 { $2 = $1 in first ? first[$1] : version }
			{ print " " $0 }' "$tmp/exported"
		private_nodes "$2"
	} >"$tmp/symbols/$1.symbols"
	if [ $renew -eq 1 ]; then
		: >"$tmp/lacks"
		[ ! -f "$file" ] || late "$file" >"$tmp/lacks"
		[ ! -s "$tmp/lacks" ] || fail "$(cat "$tmp/lacks")"
		return
	fi
	if [ ! -f "$file" ]; then
		fail "$file: no such file; to write it: sh tests/abi/run.sh --renew"
		return
	fi
	head -n 1 "$file" | grep -qE "^$soname lib[a-z-]+${soname##*.so.} #MINVER#\$" ||
		fail "$file: its first line is not that of a library $soname"
	private_nodes "$2" >"$tmp/nodes"
	grep '^ (symver)' "$file" | cmp -s - "$tmp/nodes" ||
		fail "$file: its lines with (symver) must be those of the library:" "$(cat "$tmp/nodes")"
	sed -n 's/^ \([^(]\)/\1/p' "$file" | sort >"$tmp/listed"
	awk '{ print $1 }' "$tmp/listed" >"$tmp/listed names"
	awk '{ print $1 }' "$tmp/exported" >"$tmp/exported names"
	comm -23 "$tmp/listed names" "$tmp/exported names" |
		sed "s|.*|&: in $1.symbols, but not exported by $1.so|" >"$tmp/lacks"
	comm -13 "$tmp/listed names" "$tmp/exported names" |
		sed "s|.*|&: exported by $1.so, but not in $1.symbols|" >>"$tmp/lacks"
	if [ -f "$tmp/maps/$1" ]; then
		mapped "$tmp/maps/$1" >"$tmp/mapped"
		comm -23 "$tmp/listed names" "$tmp/mapped" |
			sed "s|.*|&: in $1.symbols, but not in the export map|" >>"$tmp/lacks"
		comm -13 "$tmp/listed names" "$tmp/mapped" |
			sed "s|.*|&: in the export map, but not in $1.symbols|" >>"$tmp/lacks"
	fi
	awk 'NF == 2 { print " " $0 }' "$tmp/exported" | while read -r name first; do
		awk -v name="$name" -v first="$first" '
			$1 == name && $2 != first {
				print name ": its first version is " $2 " here, but its node says " first
			}' "$tmp/listed"
	done >>"$tmp/lacks"
	awk '{ print $2 }' "$tmp/listed" | sort -u | while read -r first; do
		printf '%s\n%s\n' "$first" "$version" | sort -V -C ||
			echo "$file: version $first is later than the library's, which is $version"
	done >>"$tmp/lacks"
	[ ! -s "$tmp/lacks" ] || fail "$(cat "$tmp/lacks")"
}

# described LIBRARY NAME: its ABI, without what is the same everywhere
described() {
	readelf -S "$1" | grep -q ' \.debug_info' ||
		stop "$1: no debug information: build with -g, as cmake --preset release does"
	abidw --suppr "$tmp/public.suppr" --exported-interfaces-only --drop-undefined-syms \
		--no-show-locs --short-locs --no-comp-dir-path --no-corpus-path --no-elf-needed \
		--no-parameter-names --no-write-default-sizes --type-id-style hash \
		--out-file "$tmp/abidw" "$1" || stop "abidw cannot read $1"
	# clang says no file for a structure that a .c file defines, so that abidw has kept it.
	sed "/<elf-symbol name='\(ndx_private_\|ndxp_\|NDX_PRIVATE_\)/d
		s/ visibility='[a-z-]*'//; s/ binding='global-binding'//; s/ visibility='[a-z-]*'//" \
		"$tmp/abidw" | awk '
		NR == FNR { public[$1]; next }
		/<class-decl .* size-in-bits=/ {
			name = $0
			sub(/.* name=\047/, "", name)
			sub(/\047.*/, "", name)
			if (!(name in public) && name !~ /^__anonymous/) {
				sub(/ size-in-bits=\047[0-9]*\047/, "")
				sub(/ id=/, " is-declaration-only=\047yes\047 id=")
				if (!/\/>$/) {
					sub(/>$/, "/>")
					skip = 1
				}
				print
				next
			}
		}
		!skip { print }
		/<\/class-decl>/ { skip = 0 }' "$tmp/types" - >"$tmp/abi/$2.abi"
}

# compare NAME: is the new description as the baseline, but for additions?
compare() {
	new=$tmp/abi/$1.abi base=$abi/$1.abi
	if [ "$(soname_of "$new")" != "$(soname_of "$base")" ]; then
		fail "$1: its SONAME is $(soname_of "$new"), that of the baseline is $(soname_of "$base")"
		return
	fi
	awk -f "$here/common.awk" "$base" "$new" >"$tmp/common.abi"
	ended=0
	abidiff --harmless --no-added-syms --no-architecture --no-show-locs --no-linkage-name "$base" \
		"$tmp/common.abi" >"$tmp/diff" 2>&1 || ended=$?
	[ $ended -ne 0 ] || return 0
	# Without what was left out the text is easier to read.
	abidiff --harmless --no-added-syms --no-architecture --no-show-locs --no-linkage-name "$base" \
		"$new" >"$tmp/whole" 2>&1 || cp "$tmp/whole" "$tmp/diff"
	fail "$1: not as in tests/abi/$1.abi (abidiff ended with $ended):" \
		"$(sed -n '1,100s/^/  /p' "$tmp/diff")"
}

# The libraries: a map for each that has one.
[ -f "$src/core/ndx.map" ] || stop "$src/core/ndx.map: no such file; this gate sees nothing"
for map in "$src/core/ndx.map" "$src"/core/*/ndx-*.map; do
	[ ! -f "$map" ] || cp "$map" "$tmp/maps/lib$(basename "$map" .map)"
done

constants 2>"$tmp/err" || stop "$(head -n 20 "$tmp/err")
the public headers, or constants in them, do not compile"
[ -s "$tmp/abi/constants" ] || stop "$src/api: no constant found; this gate sees nothing"

# A library without a map has symbols, but no interface for programs.
for library in "$build"/lib/libndx*.so; do
	[ -f "$library" ] || stop "$build/lib: no library; build first"
	symbols "$(basename "$library" .so)" "$library"
done
for name in $(cd "$tmp/maps" && ls); do
	[ -f "$build/lib/$name.so" ] || stop "$build/lib/$name.so: no such file; build first"
done
for name in $(cd "$tmp/maps" && ls) spi; do
	[ -f "$abi/$name.abi" ] || [ $renew -eq 1 ] ||
		fail "$abi/$name.abi: no such file; to write it: sh tests/abi/run.sh --renew"
done
for file in "$abi"/*.abi; do
	name=$(basename "$file" .abi)
	[ "$name" = '*' ] || [ "$name" = spi ] || [ -f "$tmp/maps/$name" ] || [ $renew -eq 1 ] ||
		fail "$file: there is no export map of a library $name"
done
if [ -f "$abi/constants" ]; then
	comm -23 "$abi/constants" "$tmp/abi/constants" >"$tmp/diff"
	[ ! -s "$tmp/diff" ] || fail 'constants that are gone or have another value:' \
		"$(cat "$tmp/diff")"
elif [ $renew -eq 0 ]; then
	fail "$abi/constants: no such file; to write it: sh tests/abi/run.sh --renew"
fi

if ! command -v abidiff >/dev/null || ! command -v abidw >/dev/null; then
	[ $renew -eq 0 ] || stop '--renew needs abidw and abidiff (package abigail-tools)'
	[ $bad -eq 0 ] || exit 1
	echo 'skip: abidiff is not installed (package abigail-tools); symbols and constants are fine'
	exit 77
fi

# Structures that the public headers do not define are opaque, as they are for programs, so that the
# library may change them. abidw goes by the file of the structure; the label makes abidw keep the
# name. (The option --headers-dir of abidw compares names of files without their folder, and core/
# has an adapter.h, too.)
cat >"$tmp/public.suppr" <<'END'
[suppress_type]
  label = Artificial private types suppression specification
  type_kind = struct
  source_location_not_regexp = (.*/)?api/ndx/.*
  drop = yes
[suppress_function]
  symbol_name_regexp = ^ndx(_private|p)_
  drop = yes
END
find "$src/api" -name '*.h' -exec sed -n 's/^\(struct\|union\) \([a-z_0-9]*\) {.*/\2/p' {} + |
	sort -u >"$tmp/types"

"$cc" -std=c11 -g -shared -fPIC -I"$src/api" -Wl,-soname,"$(soname_of "$build/lib/libndx.so")" \
	-o "$tmp/spi.so" "$abi/spi.c" || stop "$abi/spi.c does not compile"
described "$tmp/spi.so" spi
for name in $(cd "$tmp/maps" && ls); do
	described "$build/lib/$name.so" "$name"
done
# A structure that no description has could change unseen. Those of the provider kit (ndxp_) are part
# of the interface only where those of the SPI lead to them: each provider has the kit of its build.
while read -r type; do
	grep -q "<\(class\|union\)-decl name='$type' size-in-bits" "$tmp"/abi/*.abi ||
		echo "$type: no exported function and no provider has it: name it in tests/abi/spi.c"
done <"$tmp/types" | grep -v '^ndxp_' >"$tmp/diff" || :
[ ! -s "$tmp/diff" ] || fail "$(cat "$tmp/diff")"
for name in $(cd "$tmp/abi" && ls ./*.abi); do
	name=$(basename "$name" .abi)
	[ ! -f "$abi/$name.abi" ] || compare "$name"
done

if [ $renew -eq 1 ]; then
	soname=$(soname_of "$build/lib/libndx.so") former=
	[ ! -f "$abi/libndx.abi" ] || former=$(soname_of "$abi/libndx.abi")
	if [ $bad -eq 1 ] && [ "$former" = "$soname" ] && released "$soname"; then
		stop "refused: programs of a released version with the SONAME $soname would break (docs/design/abi.md)"
	fi
	rm -f "$abi"/*.abi
	mkdir -p "$symbols"
	mv "$tmp"/abi/* "$abi/"
	mv "$tmp"/symbols/* "$symbols/"
	echo "written: $abi/*.abi, $abi/constants, $symbols/*.symbols; what changed is in git diff"
	exit 0
fi
[ $bad -eq 0 ] || stop 'What may change and when, and how to take a change into the baseline: docs/design/abi.md'
cat "$tmp"/abi/lib*.abi >"$tmp/all.abi"
echo "$(grep -c . "$abi/constants") constants and $(grep -c '<elf-symbol ' "$tmp/all.abi") symbols" \
	"as in the baseline"
