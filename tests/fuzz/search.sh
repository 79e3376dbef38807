#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: search.sh SECONDS [TARGET...]
# Fuzz each target with libFuzzer for so long; then say how much of its parser the corpus covers.
# New inputs stay in $NDX_FUZZ_CORPUS, if it names a folder; without it, nothing is kept. With
# NDX_PLANT=overflow the fault tests/plants/overflow.patch is planted into a copy of the sources, and
# a finding is what is wanted.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:?usage: search.sh SECONDS [TARGET...]}
shift
cc=${CLANG:-clang}
if ! command -v "$cc" >/dev/null; then
	echo "skip: $cc is not installed"
	exit 77
fi
[ $# -gt 0 ] || set -- reassembly_link reassembly_bth reassembly_mpa reassembly_rpcrdma reassembly_whole \
	negotiation_frame negotiation_dialogue plugin_roce plugin_example plugin_surf negotiation_tls
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if [ -n "${NDX_PLANT:-}" ]; then
	mkdir "$tmp/src"
	cp -R "$src/api" "$src/core" "$src/plugins" "$src/tests" "$tmp/src"
	sh "$src/tests/plants/plant.sh" "$src" "$src/tests/plants/$NDX_PLANT.patch" "$tmp/src"
	src=$tmp/src
fi
found=0

# What a target is about: its sources, and what of them is looked at.
choose() {
	core=$src/core
	look=
	case $target in
	reassembly_*)
		sources=$(echo "$core"/reassembly/*.c)
		include="-I$core/reassembly"
		;;
	plugin_surf)
		surf=$src/plugins/surf
		sources="$surf/bus.c $surf/codec.c $surf/setup.c $surf/srp.c $surf/words.c"
		include="-I$surf -I$src/plugins/common"
		look=$sources
		;;
	plugin_*)
		sources=$(echo "$src/plugins/${target#*_}"/[fp]*.c)
		include="-I$src/plugins/${target#*_} -I$src/plugins/common"
		look=$sources
		;;
	negotiation_*)
		sources=
		for file in dialogue protocol/frame history protocol/agree variant schema plugins \
			plugins_check resolver discover ../adapter/code_file ../adapter/suggest ../base/status \
			../base/ndxp_log ../base/base_linux ../base/base_thread; do
			sources="$sources $core/negotiation/$file.c"
		done
		include="-I$core/negotiation -I$core/negotiation/protocol"
		look=$core/negotiation/protocol/frame.c
		[ "$target" != negotiation_dialogue ] ||
			look="$core/negotiation/dialogue.c $core/negotiation/protocol/agree.c"
		;;
	esac
	case $target in
	*_whole)
		sources="$sources $(echo "$src"/tests/reassembly/synth*.c)"
		include="$include -I$src/tests/reassembly"
		look=$(echo "$core"/reassembly/[!a]*.c)
		;;
	*_link) look="$core/reassembly/link.c $core/reassembly/crc.c" ;;
	*_bth) look="$core/reassembly/bth.c $core/reassembly/cm.c" ;;
	reassembly_*) look=$core/reassembly/${target#*_}.c ;;
	negotiation_tls)
		look=$(echo "$core"/negotiation/tls*.c)
		sources="$sources $look $core/negotiation/link.c $core/negotiation/protocol/frame_io.c \
			$core/base/base_socket.c $core/base/base_struct.c -lssl -lcrypto"
		;;
	esac
}

# build OUT FLAGS... : a target with everything it needs
build() {
	out=$1
	shift
	# shellcheck disable=SC2086 # flags, files, or none
	"$cc" -std=c11 -D_GNU_SOURCE -g -O1 -I"$src/api" -I"$src/core/base" -I"$src/core/async" \
		-I"$src/core/adapter" $include -I"$src/tests/fuzz" "$src/tests/fuzz/fuzz_$target.c" $sources "$@" -o "$out"
}

for target; do
	choose
	corpus=${NDX_FUZZ_CORPUS:-$tmp}/$target
	mkdir -p "$corpus"
	build "$tmp/fuzz" -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
	if ! "$tmp/fuzz" -max_total_time="$seconds" -max_len=16384 -rss_limit_mb=1024 \
		-artifact_prefix="$corpus-" -print_final_stats=1 "$corpus" \
		"$src/tests/fuzz/corpus/$target" >"$tmp/log" 2>&1; then
		echo "$target: FOUND"
		grep -E 'ERROR|SUMMARY|runtime error' "$tmp/log" | head -3
		found=1
		continue # a run that crashes counts no coverage
	fi
	echo "$target: $(sed -n 's/stat::number_of_executed_units: //p' "$tmp/log") runs, nothing found"
	if command -v llvm-cov >/dev/null && command -v llvm-profdata >/dev/null; then
		build "$tmp/cover" -fsanitize=fuzzer -fprofile-instr-generate -fcoverage-mapping
		LLVM_PROFILE_FILE=$tmp/raw "$tmp/cover" -runs=0 "$corpus" \
			"$src/tests/fuzz/corpus/$target" >/dev/null 2>&1
		llvm-profdata merge -o "$tmp/data" "$tmp/raw"
		# shellcheck disable=SC2086 # a list
		llvm-cov report "$tmp/cover" -instr-profile="$tmp/data" $look |
			awk '/\.c / { printf "  %-20s edges (branches) %s, regions %s\n", $1, $13, $4 }
				/^TOTAL/ { printf "  %-20s edges (branches) %s, regions %s\n", "all", $13, $4 }'
	fi
done
exit $found
