#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: reassembly.sh SECONDS [TARGET...]
# Fuzz each target with libFuzzer for so long; then say how much of its parser the corpus covers.
# New inputs stay in $NDX_FUZZ_CORPUS, if it names a folder; without it, nothing is kept. With
# NDX_PLANT=overflow a fault is planted, and a finding is what is wanted.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:?usage: reassembly.sh SECONDS [TARGET...]}
shift
cc=${CLANG:-clang}
if ! command -v "$cc" >/dev/null; then
	echo "skip: $cc is not installed"
	exit 77
fi
[ $# -gt 0 ] || set -- reassembly_link reassembly_bth reassembly_mpa reassembly_rpcrdma reassembly_whole
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
plant=${NDX_PLANT:+-DNDX_PLANT_$(echo "$NDX_PLANT" | tr '[:lower:]' '[:upper:]')}
found=0

# build OUT FLAGS... : a target with everything it needs
build() {
	out=$1
	shift
	case $target in
	*_whole) generator="-I$src/tests/reassembly $(echo "$src"/tests/reassembly/synth*.c)" ;;
	*) generator= ;;
	esac
	# shellcheck disable=SC2086 # flags, files, or none
	"$cc" -std=c11 -D_GNU_SOURCE -g -O1 $plant -I"$src/api" -I"$src/core/base" \
		-I"$src/core/reassembly" -I"$src/tests/fuzz" "$src/tests/fuzz/fuzz_$target.c" $generator \
		"$src"/core/reassembly/*.c "$@" -o "$out"
}

for target; do
	corpus=${NDX_FUZZ_CORPUS:-$tmp}/$target
	mkdir -p "$corpus"
	build "$tmp/fuzz" -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
	if ! "$tmp/fuzz" -max_total_time="$seconds" -max_len=16384 -rss_limit_mb=1024 \
		-artifact_prefix="$corpus-" -print_final_stats=1 "$corpus" \
		"$src/tests/fuzz/corpus/$target" >"$tmp/log" 2>&1; then
		echo "$target: FOUND"
		grep -E 'ERROR|SUMMARY|runtime error' "$tmp/log" | head -3
		found=1
	else
		echo "$target: $(sed -n 's/stat::number_of_executed_units: //p' "$tmp/log") runs, nothing found"
	fi
	if command -v llvm-cov >/dev/null && command -v llvm-profdata >/dev/null; then
		build "$tmp/cover" -fsanitize=fuzzer -fprofile-instr-generate -fcoverage-mapping
		LLVM_PROFILE_FILE=$tmp/raw "$tmp/cover" -runs=0 "$corpus" \
			"$src/tests/fuzz/corpus/$target" >/dev/null 2>&1
		llvm-profdata merge -o "$tmp/data" "$tmp/raw"
		case $target in
		*_whole) files=$(echo "$src"/core/reassembly/[!a]*.c) ;;
		*_link) files="$src/core/reassembly/link.c $src/core/reassembly/crc.c" ;;
		*_bth) files="$src/core/reassembly/bth.c $src/core/reassembly/cm.c" ;;
		*) files=$src/core/reassembly/${target#*_}.c ;;
		esac
		# shellcheck disable=SC2086 # a list
		llvm-cov report "$tmp/cover" -instr-profile="$tmp/data" $files |
			awk '/\.c / { printf "  %-20s edges (branches) %s, regions %s\n", $1, $13, $4 }
				/^TOTAL/ { printf "  %-20s edges (branches) %s, regions %s\n", "all", $13, $4 }'
	fi
done
exit $found
