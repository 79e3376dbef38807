#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: search.sh SECONDS [TARGET...]
# Fuzz each target with libFuzzer for so long; then say how much of its parser the corpus covers.
# The targets, and what each one is made of, are those of tests/fuzz/CMakeLists.txt: this makes a
# build of the tree with clang. New inputs stay in $NDX_FUZZ_CORPUS, if it names a folder, and the
# build in $NDX_FUZZ_BUILD; without them, nothing is kept. With NDX_PLANT=overflow the fault
# tests/plants/overflow.patch is planted into a copy of the sources, and a finding is what is wanted.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:?usage: search.sh SECONDS [TARGET...]}
shift
cc=${CLANG:-clang}
if ! command -v "$cc" >/dev/null; then
	echo "skip: $cc is not installed"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
corpora=$src/tests/fuzz/corpus
build=${NDX_FUZZ_BUILD:-$tmp/build}
if [ -n "${NDX_PLANT:-}" ]; then
	mkdir "$tmp/src"
	build=$tmp/build
	for room in "$src"/*; do
		[ -e "$room/CMakeCache.txt" ] || cp -R "$room" "$tmp/src"
	done
	sh "$src/tests/plants/plant.sh" "$src" "$src/tests/plants/$NDX_PLANT.patch" "$tmp/src"
	src=$tmp/src
fi

cover=
if command -v llvm-cov >/dev/null && command -v llvm-profdata >/dev/null; then
	cover='-fprofile-instr-generate -fcoverage-mapping'
fi
# build_it COMMAND...: what the command says is shown only if it fails
build_it() {
	"$@" >"$tmp/log" 2>&1 || {
		tail -40 "$tmp/log"
		echo "search.sh: the build with $cc fails"
		exit 1
	}
}
# What the parsers need, and no more. An older folder may have another compiler's cache.
build_it cmake -S "$src" -B "$build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Debug \
	"-DCMAKE_C_FLAGS_DEBUG=-g1 -O1 $cover" -DNDX_SANITIZE=address,undefined,fuzzer-no-link \
	-DBUILD_TESTING=ON -DNDX_NDSPI=OFF -DNDX_PROVIDER_OFI=OFF -DNDX_PROVIDER_VERBS=OFF \
	-DNDX_PROVIDER_FAULT=OFF
list=$build/tests/fuzz/targets
# shellcheck disable=SC2046 # a list
[ $# -gt 0 ] || set -- $(sed 's/ .*//' "$list")
for target; do
	grep -q "^$target " "$list" || {
		echo "search.sh: no target $target; there are: $(sed 's/ .*//' "$list" | tr '\n' ' ')"
		exit 1
	}
done
# shellcheck disable=SC2046 # a list
build_it cmake --build "$build" -j "${NDX_JOBS:-$(nproc)}" --target $(printf 'fuzz_%s ' "$@")

found=0
for target; do
	program=$build/bin/fuzz_$target
	corpus=${NDX_FUZZ_CORPUS:-$tmp}/$target
	mkdir -p "$corpus"
	if ! LLVM_PROFILE_FILE=$tmp/raw "$program" -max_total_time="$seconds" -max_len=16384 \
		-rss_limit_mb=1024 -artifact_prefix="$corpus-" -print_final_stats=1 "$corpus" \
		"$corpora/$target" >"$tmp/log" 2>&1; then
		echo "$target: FOUND"
		grep -E 'ERROR|SUMMARY|runtime error' "$tmp/log" | head -3
		found=1
		continue # a run that crashes counts no coverage
	fi
	echo "$target: $(sed -n 's/stat::number_of_executed_units: //p' "$tmp/log") runs, nothing found"
	if [ -n "$cover" ]; then
		llvm-profdata merge -o "$tmp/data" "$tmp/raw"
		# shellcheck disable=SC2046 # a list
		llvm-cov report "$program" -instr-profile="$tmp/data" \
			$(sed -n "s/^$target //p" "$list") |
			awk '{ sub(".*/", "", $1) }
				/\.c / { printf "  %-20s edges (branches) %s, regions %s\n", $1, $13, $4 }
				/^TOTAL/ { printf "  %-20s edges (branches) %s, regions %s\n", "all", $13, $4 }'
	fi
done
exit $found
