#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: frame_instructions.sh [BUILD]
# How many instructions a frame of 64 bytes costs a receiver on loop, from the poll that finds it to
# its slot being posted again, part by part, counted by callgrind. Fails if there are more than the
# limit, or not the same number for every frame.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$src/build}
limit=600
rounds=1600
if ! command -v valgrind >/dev/null; then
	echo "skip: valgrind is not installed"
	exit 77
fi
program=$build/bin/ndx-frame-instructions
if [ ! -x "$program" ]; then
	echo "no $program; build first: cmake --build $build --target ndx-frame-instructions"
	exit 1
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bench=$src/tests/bench

# profile COUNT: "part<tab>instructions" of so many frames
profile() {
	valgrind --tool=callgrind --toggle-collect=frames --dump-line=yes --compress-strings=no \
		--compress-pos=no --callgrind-out-file="$tmp/profile" "$program" "$1" \
		>"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		exit 1
	}
	awk -f "$bench/instructions.awk" "$bench/frame_instructions.parts" \
		"$src"/api/ndx/spi/*.h "$src"/core/base/*.[ch] "$src"/core/async/*.[ch] "$src"/core/queue/*.[ch] \
		"$src"/api/ndx/[cq]*.h "$src"/core/receiver/*.[ch] "$src"/providers/loop/*.[ch] \
		"$bench/frame_instructions.c" kind=profile "$tmp/profile" 2>>"$tmp/unknown"
}

# The empty poll that ends a batch is not the same in both counts' last one; it falls out.
profile $rounds >"$tmp/once"
profile $((2 * rounds)) >"$tmp/twice"
awk -F '\t' -v rounds=$rounds -v limit=$limit 'FNR == NR { once[$1] = $2; next }
	{ n[$1] = ($2 - once[$1]) / rounds }
	END {
		count = split("receiver slab queue post provider consumer libc program", order, " ")
		n["libc"] = n["other"]
		for (i = 1; i <= count; i++) {
			printf "%-10s %6.1f\n", order[i], n[order[i]]
			sum += n[order[i]]
		}
		printf "%-10s %6.1f, at most %d\n", "a frame", sum, limit
		if (n["receiver"] == 0 || n["slab"] == 0 || n["provider"] == 0) {
			print "a part without an instruction: frame_instructions.parts is out of date"
			exit 1
		}
		exit sum > limit
	}' "$tmp/once" "$tmp/twice"
