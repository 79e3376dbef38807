#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: instructions.sh [BUILD]
# How many instructions NDX's share of a post and the poll that takes its result has, part by part,
# counted by callgrind over a provider that does nothing else; and what a stub without any of it
# has. Then the same of the verbs provider over a null device, and of the bare calls of libibverbs
# over that, singly and in lists. The same build gives the same numbers. Fails if dispatch and admission are above their
# limit, or the verbs provider is above the bare calls by more than its own.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$src/build}
limit=60
verbs_limit=190
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

# profile KIND COUNT: "part<tab>instructions" of so many pairs of $program
profile() {
	valgrind --tool=callgrind --toggle-collect=pairs --dump-line=yes --compress-strings=no \
		--compress-pos=no --callgrind-out-file="$tmp/profile" "$program" "$1" "$2" \
		>"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		exit 1
	}
	awk -f "$bench/instructions.awk" "$bench/instructions.parts" \
		"$src"/api/ndx/spi/*.h "$src"/core/base/*.[ch] "$src"/core/async/*.[ch] "$src"/core/queue/*.[ch] \
		"$src"/core/front/post.c \
		"$src"/api/ndx/[cq]*.h "$bench"/null_provider.[ch] "$bench"/verbs_path.[ch] \
		"$bench"/instructions*.c "$src"/providers/verbs/*.[ch] \
		"$src"/tests/fakes/fake_verbs.[ch] "$tmp/verbs.h" kind=profile "$tmp/profile"
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

cat /usr/include/infiniband/verbs.h >"$tmp/verbs.h" 2>/dev/null || :
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

program=$build/bin/ndx-instructions-verbs
if [ ! -x "$program" ]; then
	echo "the verbs provider was not built"
	exit 0
fi
count ndx >"$tmp/ndx"
count bare >"$tmp/bare"
awk -F '\t' -v limit=$verbs_limit '$1 == "device" { next }
	FNR == NR { ndx[$1] = $2; next }
	{ bare += $2 }
	END {
		n = split("program dispatch post slot record poll result lock other", order, " ")
		for (i = 1; i <= n; i++) {
			printf "verbs:%-10s %4d\n", order[i], ndx[order[i]]
			sum += ndx[order[i]]
		}
		printf "verbs:%-10s %4d\n", "sum", sum
		printf "verbs:%-10s %4d\n", "bare", bare
		if (ndx["other"] > 0) {
			print "other: code that instructions.parts does not know"
			exit 1
		}
		if (ndx["post"] == 0 || ndx["poll"] == 0 || bare == 0) {
			print "a part without an instruction: instructions.parts is out of date"
			exit 1
		}
		printf "verbs, above the bare calls: %d, at most %d\n", sum - bare, limit
		exit sum - bare > limit
	}' "$tmp/ndx" "$tmp/bare"

# Lists: the program fills its array, in both.
count lists >"$tmp/lists"
count bare-lists >"$tmp/bare_lists"
awk -F '\t' -v list=8 '$1 == "device" { next }
	$1 == "other" && $2 > 0 { print "other: code that instructions.parts does not know"; exit 1 }
	FNR == NR { ndx += $2; next }
	{ bare += $2 }
	END {
		if (ndx == 0 || bare == 0)
			exit 1
		printf "verbs:list %.1f\n", ndx / list
		printf "verbs:bare-list %.1f\n", bare / list
	}' "$tmp/lists" "$tmp/bare_lists"
