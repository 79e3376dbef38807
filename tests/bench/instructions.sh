#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: instructions.sh [BUILD]
# How many instructions NDX's share of a post and the poll that takes its result has, part by part,
# counted by callgrind over a provider that does nothing else; and what a stub without any of it
# has. The same build gives the same numbers. Fails if dispatch and admission are above the limit.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$src/build}
limit=60
rounds=1000
if ! command -v valgrind >/dev/null; then
	echo "skip: valgrind is not installed"
	exit 77
fi
program=$build/bin/ndx-instructions
if [ ! -x "$program" ]; then
	echo "no $program; build first: cmake --build $build --target ndx-instructions"
	exit 1
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bench=$src/tests/bench

# profile KIND COUNT: "part<tab>instructions" of so many pairs
profile() {
	valgrind --tool=callgrind --toggle-collect=pairs --dump-line=yes --compress-strings=no \
		--compress-pos=no --callgrind-out-file="$tmp/profile" "$program" "$1" "$2" \
		>"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		exit 1
	}
	awk -f "$bench/instructions.awk" "$bench/instructions.parts" "$src"/core/base/*.[ch] \
		"$src"/api/ndx/[cq]*.h "$bench/null_provider.c" "$bench/null_provider.h" \
		"$bench/instructions.c" kind=profile "$tmp/profile"
}

# count KIND: the same of one pair; what happens once only falls out. Whole numbers, or nothing.
count() {
	profile "$1" $rounds >"$tmp/once"
	profile "$1" $((2 * rounds)) >"$tmp/twice"
	awk -F '\t' -v rounds=$rounds 'FNR == NR { once[$1] = $2; next }
		{ n = ($2 - once[$1]) / rounds
		  if (n != int(n)) { print "not the same every time: " $1; exit 1 }
		  print $1 "\t" n }' "$tmp/once" "$tmp/twice"
}

count null >"$tmp/null"
count stub >"$tmp/stub"
awk -F '\t' -v limit=$limit 'FNR == NR { null[$1] = $2; next }
	{ stub[$1] = $2 }
	END {
		n = split("dispatch admission slot record push take lock other", order, " ")
		for (i = 1; i <= n; i++) {
			printf "%-10s %4d\n", order[i], null[order[i]]
			sum += null[order[i]]
		}
		printf "%-10s %4d\n", "sum", sum
		printf "%-10s %4d\n", "stub", stub["stub"] + stub["dispatch"]
		if (null["other"] > 0) {
			print "other: code that instructions.parts does not know"
			exit 1
		}
		if (null["admission"] == 0 || null["lock"] == 0 || stub["stub"] == 0) {
			print "a part without an instruction: instructions.parts is out of date"
			exit 1
		}
		both = null["dispatch"] + null["admission"]
		printf "dispatch and admission: %d, at most %d\n", both, limit
		exit both > limit
	}' "$tmp/null" "$tmp/stub"
