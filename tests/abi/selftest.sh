#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: selftest.sh SOURCE BUILD CC
# The ABI gate can fail: a small library passes; then one change at a time is made in a copy, and
# the gate refuses what would break a program, says what, and lets the rest pass. At last
# the baseline of the real library is changed.
set -eu
src=$1 build=$2 cc=$3
gate=$src/tests/abi/run.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if ! command -v abidiff >/dev/null; then
	echo 'skip: abidiff is not installed (Debian package abigail-tools)'
	exit 77
fi
good=$tmp/good tree=$tmp/tree
: >"$tmp/tried"
mkdir -p "$good/api/ndx/spi" "$good/core" "$good/docs" "$good/tests/abi" "$good/build/lib"

cat >"$good/api/ndx/ndx.h" <<'END'
#include <stddef.h>
#include <stdint.h>

#define NDX_VERSION_PATCH 0
#define NDX_LIMIT 7u
enum ndx_color { NDX_RED = 0, NDX_GREEN = 1, NDX_BLUE = 4 };
enum ndx_flag { NDX_FLAG_FIRST = 1, NDX_FLAG_SECOND = 2 };
struct ndx_hidden;
struct ndx_inner {
	int first;
};
struct ndx_plain {
	int x;
};
struct ndx_padded {
	size_t size;
	uint32_t last;
};
struct ndx_part {
	size_t size;
};
struct ndx_whole {
	struct ndx_part part;
	int behind;
};
struct ndx_attr {
	size_t size;
	uint32_t depth;
	uint32_t width;
	struct ndx_inner inner;
	enum ndx_color color;
};
struct ndx_thing;
struct ndx_ops {
	size_t size;
	int (*run)(struct ndx_thing *thing, int times);
};
struct ndx_thing {
	const struct ndx_ops *ops;
};
int ndx_create(const struct ndx_attr *attr, struct ndx_thing **out);
int ndx_use(struct ndx_thing *thing, uint32_t count);
void ndx_show(const struct ndx_plain *plain, const struct ndx_padded *padded);
void ndx_hide(struct ndx_hidden *hidden, const struct ndx_whole *whole);
END
cat >"$good/api/ndx/spi/provider.h" <<'END'
struct ndx_provider {
	uint32_t abi;
	uint32_t size;
	int (*open)(int flags);
};
END
cat >"$good/core/ndx.c" <<'END'
#include <ndx/ndx.h>
struct ndx_hidden {
	int secret;
};
int ndx_create(const struct ndx_attr *attr, struct ndx_thing **out)
{
	return attr && out;
}
int ndx_use(struct ndx_thing *thing, uint32_t count)
{
	return thing && count;
}
void ndx_show(const struct ndx_plain *plain, const struct ndx_padded *padded)
{
	(void)plain;
	(void)padded;
}
void ndx_hide(struct ndx_hidden *hidden, const struct ndx_whole *whole)
{
	(void)whole;
	hidden->secret = 1;
}
END
cat >"$good/core/ndx.map" <<'END'
NDX_0.1 {
  global:
    ndx_create;
    ndx_hide;
    ndx_show;
    ndx_use;
  local:
    *;
};
END
cat >"$good/tests/abi/spi.c" <<'END'
#include <ndx/ndx.h>
#include <ndx/spi/provider.h>
struct ndx_provider *abi_provider;
END
echo '## [Unreleased]' >"$good/docs/CHANGELOG.md"

# make_library TREE [OPTION...]: build it; $version is its version
version=0.1.0
make_library() {
	where=$1
	shift
	rm -f "$where/build/lib"/*
	"$cc" -std=c11 -g -O2 -shared -fPIC -I"$where/api" -Wl,-soname,"libndx.so.${version%.*}" \
		-Wl,--version-script="$where/core/ndx.map" "$@" \
		-o "$where/build/lib/libndx.so.$version" "$where/core/ndx.c"
	ln -s "libndx.so.$version" "$where/build/lib/libndx.so"
}

make_library "$good"
sh "$gate" --renew "$good" "$good/build" "$cc" >"$tmp/out" || {
	cat "$tmp/out"
	exit 1
}

# change FILE SED: in a copy; more changes may follow. The library is built by allowed and refused.
changed=0
change() {
	if [ $changed -eq 0 ]; then
		rm -rf "$tree"
		cp -R "$good" "$tree"
		changed=1
	fi
	sed "$2" "$tree/$1" >"$tmp/changed"
	cp "$tmp/changed" "$tree/$1"
}

# append FILE LINE...: to a file of the copy
append() {
	change "$1" ''
	file=$1
	shift
	printf '%s\n' "$@" >>"$tree/$file"
}

# api SED: in the header and in the library
api() {
	change api/ndx/ndx.h "$1"
	change core/ndx.c "$1"
}

# judged WHAT [OPTION...]: build the copy with these options of the compiler, and run the gate
judged() {
	what=$1
	shift
	changed=0
	echo "$what" >>"$tmp/tried"
	make_library "$tree" "$@" >"$tmp/out" 2>&1 || {
		cat "$tmp/out"
		echo "^ $what: the changed library does not compile"
		exit 1
	}
	sh "$gate" "$tree" "$tree/build" "$cc" >"$tmp/out" 2>&1
}

complain() { # complain TEXT: about what the gate said of $what
	echo "$what: $1"
	sed 's/^/  /' "$tmp/out"
	touch "$tmp/bad"
}

allowed() { # allowed WHAT [OPTION...]
	judged "$@" || complain 'refused, but it breaks no program'
}

refused() { # refused WHAT SAID [OPTION...]
	said=$2
	one=$1
	shift 2
	if judged "$one" "$@"; then
		complain 'not refused'
	elif ! grep -qF -e "$said" "$tmp/out"; then
		complain "refused without \"$said\""
	fi
}

api ''
allowed 'no change'
other=gcc
! "$cc" --version | grep -q 'Free Software Foundation' || other=clang
if command -v $other >/dev/null; then
	ours=$cc
	api ''
	cc=$other
	allowed "the same, compiled by $other"
	cc=$ours
fi

# What breaks programs.
api '/ndx_use/,/^}/d'
change core/ndx.map '/ndx_use/d'
append api/ndx/ndx.h \
	'void ndx_show(const struct ndx_plain *plain, const struct ndx_padded *padded);' \
	'void ndx_hide(struct ndx_hidden *hidden, const struct ndx_whole *whole);'
refused 'a removed function' "ndx_use(ndx_thing*, uint32_t)"
api 's/uint32_t count/uint64_t count/'
refused 'a changed parameter type' "parameter 2 of type 'typedef uint32_t' changed"
api 's/uint32_t count/uint32_t count, int more/'
refused 'a parameter more' 'parameter 3 of type'
api 's/^int ndx_use/long ndx_use/'
refused 'another type of a result' "return type changed"
api 's/uint32_t width;/uint64_t between; &/'
refused 'a member in the middle of a structure that grows' "uint64_t between"
api 's/uint32_t depth;/int32_t depth;/; s/enum ndx_color color;/& uint64_t more;/'
refused 'a changed member of a structure that has grown, too' "type of 'uint32_t depth' changed"
api 's/uint32_t depth;/uint32_t swap;/; s/uint32_t width;/uint32_t depth;/; s/swap;/width;/
	s/enum ndx_color color;/& uint64_t more;/'
refused 'swapped members of a structure that has grown, too' 'ndx_attr'
api 's/enum ndx_color color;//'
refused 'a member taken from the end of a structure that grows' 'ndx_color color'
api 's/uint32_t last;/& uint32_t more;/'
refused 'a member in the padding of a structure that grows' 'uint32_t more'
api 's/int x;/& int y;/'
refused 'a member appended to a structure without a size' "int y"
api '/struct ndx_part {/,/}/s/size_t size;/& uint64_t more;/'
refused 'growth of a structure that is part of another' "'int behind' offset changed"
api 's/int times);/long times);/; s/size_t size;.*run/& /'
refused 'a changed operation in a table that grows' "'int (ndx_thing*, int)* run' changed"
api 's/int first;/unsigned first;/'
refused 'a changed member of a member' 'int first'
api 's/(const struct ndx_plain/(struct ndx_plain/'
refused 'a parameter that loses its const' "ndx_plain"
api 's/width/breadth/'
refused 'a member with another name' "'ndx_attr::width' changed to 'ndx_attr::breadth'"
change api/ndx/ndx.h '/^struct ndx_plain {/,/}/c\
struct ndx_plain;'
refused 'a structure that programs do not see any more' 'ndx_plain'
api 's/NDX_GREEN = 1/NDX_GREEN = 2/'
refused 'a changed value of an enum' "'ndx_color::NDX_GREEN' from value '1' to '2'"
api 's/NDX_SECOND = 2/NDX_SECOND = 4/; s/NDX_FLAG_SECOND = 2/NDX_FLAG_SECOND = 4/'
refused 'a changed value of an enum that no function has' 'NDX_FLAG_SECOND 2'
api 's/, NDX_BLUE = 4//'
refused 'a value that is gone' 'NDX_BLUE 4'
api 's/NDX_LIMIT 7u/NDX_LIMIT 8u/'
refused 'a changed constant' 'NDX_LIMIT 7'
change api/ndx/spi/provider.h 's/int flags/long flags/'
refused 'a changed operation of the SPI' 'spi: not as in tests/abi/spi.abi'
version=0.2.0
api ''
refused 'another SONAME' 'its SONAME is libndx.so.0.2'
version=0.1.0

# What lacks.
for file in libndx.abi spi.abi constants; do
	change "tests/abi/$file" ''
	rm "$tree/tests/abi/$file"
	refused "no $file" "tests/abi/$file: no such file"
done
change tests/packaging/symbols/libndx.symbols ''
rm "$tree/tests/packaging/symbols/libndx.symbols"
refused 'no symbols file' 'libndx.symbols: no such file'
api ''
cp "$tree/tests/abi/libndx.abi" "$tree/tests/abi/libndx-old.abi"
refused 'a baseline of no library' 'there is no export map of a library libndx-old'
append api/ndx/ndx.h 'struct ndx_forgotten {' 'int i;' '};'
refused 'a structure that no function reaches' 'ndx_forgotten: no exported function'
api ''
refused 'no debug information' 'no debug information' -g0
change tests/packaging/symbols/libndx.symbols '/ndx_use/d'
refused 'a symbol that the symbols file lacks' 'ndx_use@NDX_0.1: exported by libndx.so, but not in'
append tests/packaging/symbols/libndx.symbols ' ndx_gone@NDX_0.1 0.1.0'
refused 'a symbol that the library lacks' 'ndx_gone@NDX_0.1: in libndx.symbols, but not exported'
change core/ndx.map 's/    ndx_use;/&\n    ndx_promised;/'
refused 'a symbol that only the map has' 'ndx_promised@NDX_0.1: in the export map, but not in'
change tests/packaging/symbols/libndx.symbols '/ndx_use/s/0\.1\.0$/0.0.9/'
refused 'another first version of a symbol' 'its first version is 0.0.9'
change tests/packaging/symbols/libndx.symbols '1s/so\.0\.1/so.0.0/'
refused 'a symbols file of another SONAME' 'its first line is not that of a library libndx.so.0.1'

# What breaks no program. A new function needs a node and a line of the symbols file.
new_function() { # new_function NODE VERSION
	append api/ndx/ndx.h 'int ndx_new(int i);'
	append core/ndx.c 'int ndx_new(int i)' '{' '	return i;' '}'
	if [ "$1" = NDX_0.1 ]; then
		change core/ndx.map 's/    ndx_use;/&\n    ndx_new;/'
	else
		append core/ndx.map "$1 {" '  global:' '    ndx_new;' '} NDX_0.1;'
		append tests/packaging/symbols/libndx.symbols " $1@$1 $2"
	fi
	append tests/packaging/symbols/libndx.symbols " ndx_new@$1 $2"
}
new_function NDX_0.1 0.1.0
allowed 'an appended function'
new_function NDX_0.1.1 0.1.1
refused 'a symbol of a later version than the library' 'version 0.1.1 is later than the library'
version=0.1.1
new_function NDX_0.1.1 0.1.1
allowed 'an appended function in a node of its own'
version=0.1.0
api 's/enum ndx_color color;/& uint64_t more;/'
allowed 'a member appended to a structure that grows'
api 's/int times);/& int (*stop)(struct ndx_thing *thing);/'
allowed 'an operation appended to a table that grows'
change api/ndx/spi/provider.h 's/int flags);/& int (*more)(void);/'
allowed 'an operation appended to a table of the SPI'
api 's/NDX_BLUE = 4/NDX_WHITE = 3, &, NDX_BLACK = 5/'
allowed 'new values of an enum'
change api/ndx/ndx.h 's/#define NDX_LIMIT 7u/&\n#define NDX_FLOOR 1u/; s/PATCH 0/PATCH 1/'
allowed 'a new constant, and another version'
change core/ndx.c 's/int secret/long more; long secret/'
allowed 'a change of a structure that programs do not see'

# Renewing: everything until the first release of a SONAME, then additions only.
renewed() { # renewed WHAT: the same change, taken into the baseline
	judged "$1" || true
	sh "$gate" --renew "$tree" "$tree/build" "$cc" >"$tmp/out" 2>&1
}
release='s/.*/&\n\n## [0.1.0] - 2027-01-01/'
api 's/uint32_t count/uint64_t count/'
if ! renewed 'a break before the release'; then
	complain 'was not taken into the baseline'
elif ! sh "$gate" "$tree" "$tree/build" "$cc" >"$tmp/out" 2>&1; then
	complain 'refused after it was taken into the baseline'
fi
api 's/uint32_t count/uint64_t count/'
change docs/CHANGELOG.md "$release"
if renewed 'a break after the release' || ! grep -qF 'refused: programs of a released' "$tmp/out"; then
	complain 'taken into the baseline'
fi
api 's/enum ndx_color color;/& uint64_t more;/'
change docs/CHANGELOG.md "$release"
renewed 'growth after the release' || complain 'was not taken into the baseline'
new_function NDX_0.1 0.1.0
cp "$good/tests/packaging/symbols/libndx.symbols" "$tree/tests/packaging/symbols/"
change docs/CHANGELOG.md "$release"
if renewed 'a new function in a released node' || ! grep -qF 'needs a node of its own' "$tmp/out"; then
	complain 'taken into the baseline'
fi
version=0.2.0
api 's/uint32_t count/uint64_t count/'
change docs/CHANGELOG.md "$release"
renewed 'a break with a new SONAME' || complain 'was not taken into the baseline'

# The real library, with a baseline in which one parameter has another type.
real=$tmp/real
mkdir -p "$real/tests/packaging"
cp -R "$src/api" "$src/core" "$src/docs" "$real/"
cp -R "$src/tests/abi" "$real/tests/"
cp -R "$src/tests/packaging/symbols" "$real/tests/packaging/"
what='the baseline of the real library'
# The second parameter gets the type of the first.
awk '/<function-decl name=.ndx_cq_resize./ { inside = 1 }
	inside && /<parameter / && ++n == 1 { first = $0 }
	inside && /<parameter / && n == 2 { $0 = first }
	/<\/function-decl>/ { inside = 0 }
	{ print }' "$src/tests/abi/libndx.abi" >"$real/tests/abi/libndx.abi"
echo "$what" >>"$tmp/tried"
if cmp -s "$src/tests/abi/libndx.abi" "$real/tests/abi/libndx.abi"; then
	complain 'ndx_cq_resize is not where this test looks for it'
elif sh "$gate" "$real" "$build" "$cc" >"$tmp/out" 2>&1; then
	complain 'not refused'
elif ! grep -qF 'ndx_cq_resize(' "$tmp/out"; then
	complain 'refused without naming ndx_cq_resize'
fi

[ ! -e "$tmp/bad" ] || exit 1
echo "$(grep -c . "$tmp/tried") changes, each judged right"
