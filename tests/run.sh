#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: sh tests/run.sh [--quick | --long]
# Everything there is to check, on a fresh Debian 12: install what is missing, build, test; then
# again under the address and the thread sanitizer. --quick leaves out clang-tidy and the sanitizers;
# --long runs the random tests for hours instead of minutes, and all of the conformance on both kernels
# of the guest that has software RoCE, not only what is about data and disconnecting on one, with
# ndx-torture there, and the disconnects once more under the address sanitizer.
# The last line counts it all: N passed, N failed, N skipped. What could not run is skipped, with
# its reason; it never counts as passed.
set -u
src=$(cd "$(dirname "$0")/.." && pwd)
cd "$src" || exit 1
jobs=${NDX_JOBS:-2}
quick=0
leave_out='^(bench|long)$' run_too=
kernels='6.12' cases='d*' times=2 rounds=0 deaths=0 patience=1200 frames=500
case ${1:-} in
'') ;;
--quick) quick=1 ;;
--long)
	leave_out='^bench$' run_too='|long'
	kernels='6.1 6.12' cases='*' times=20 rounds=1000 deaths=200 patience=7200 frames=20000
	;;
*)
	sed -n '3s/^# //p' "$0" >&2
	exit 2
	;;
esac

# shellcheck source=tests/deps.sh
. tests/deps.sh
# shellcheck disable=SC2086 # a list
deps_install $deps_test || exit 1
if command -v ccache >/dev/null; then
	export CMAKE_C_COMPILER_LAUNCHER=ccache
fi

results=$(mktemp)
work=$(mktemp -d)
trap 'rm -rf "$results" "$work"' EXIT
trap 'exit 130' INT TERM

# note VERDICT NAME [REASON]: a step of our own, counted like a test
note() {
	echo "$1 $2${3:+ : $3}" >>"$results"
}

# suite PRESET BUILD CTEST-ARGUMENTS...: configure, build, test, count
suite() {
	preset=$1 build=$src/$2
	shift 2
	echo "== $preset: build"
	if ! cmake --preset "$preset" >"$work/log" 2>&1; then
		cat "$work/log"
		note failed "$preset/configure"
		return
	fi
	grep -A 3 'CMake Warning' "$work/log"
	if ! cmake --build "$build" -j "$jobs" >"$work/log" 2>&1; then
		cat "$work/log"
		note failed "$preset/build"
		return
	fi
	echo "== $preset: test"
	rm -f "$build/junit.xml"
	$unrandomised ctest --test-dir "$build" -j "$jobs" --timeout 300 --no-tests=error \
		--output-on-failure \
		--test-output-size-passed 1000000 --test-output-size-failed 1000000 \
		--output-junit "$build/junit.xml" "$@"
	ended=$?
	: >"$work/verdicts"
	[ ! -f "$build/junit.xml" ] ||
		awk -v run="$preset" -f tests/junit.awk "$build/junit.xml" >"$work/verdicts"
	cat "$work/verdicts" >>"$results"
	if [ $ended -ne 0 ] && ! grep -q '^failed' "$work/verdicts"; then
		note failed "$preset/ctest" "ended with $ended"
	fi
}

# probe: does a program with a sanitizer run here? Older thread sanitizers cannot live with a kernel
# that randomises 32 bits of addresses: they stop with "unexpected memory mapping", now and then.
echo 'int main(void) { return 0; }' >"$work/probe.c"
probe() {
	: >"$work/log"
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		$unrandomised "$work/probe" 2>>"$work/log" || return 1
	done
}

# sanitizer PRESET NAME: the tests that run code of ours, if the compiler has that sanitizer here
sanitizer() {
	unrandomised=
	if [ $quick -eq 1 ]; then
		note skipped "$1" '--quick was asked for'
	elif ! ${CC:-cc} "-fsanitize=$2" -o "$work/probe" "$work/probe.c" 2>"$work/log"; then
		note skipped "$1" "${CC:-cc} has no -fsanitize=$2 here: $(head -n 1 "$work/log")"
	else
		probe || unrandomised="setarch $(uname -m) -R"
		if probe; then
			suite "$1" "build/$1" -L "^(unit|conformance|sample|fuzz|sweep|torture$run_too)$"
		else
			note skipped "$1" "a program with -fsanitize=$2 does not run here: $(head -n 1 "$work/log")"
		fi
	fi
	unrandomised=
}

unrandomised=
if [ $quick -eq 1 ]; then
	note skipped release/check.tidy '--quick was asked for'
	suite release build -LE "$leave_out" -E '^check\.tidy$'
else
	suite release build -LE "$leave_out"
fi
sanitizer asan address,undefined
sanitizer tsan thread

# guest KERNEL: what is about verbs, in a guest with two software RoCE devices
guest() {
	echo "== guest: kernel $1"
	set -- "$1"
	for file in "$src/samples/server.sh" "$src"/tests/vm/*.sh \
		"$src"/build/bin/interop-* "$src/build/bin/ndx-conformance" \
		"$src/build/bin/ndx-torture" "$src/build/bin/ndx-connect" "$src/build/bin/ndx-perf" \
		"$src/build/bin/ndx-negotiate" "$src/build/bin/ndx-reqresp" \
		"$src/build/bin/ndx-recv" "$src/build/bin/ndx-send" "$src/build/bin/receiver-cases" \
		"$src/build/bin/device-removal" "$src/build/bin/foreign-device" "$src/build/bin/ndx-info" \
		"$src/build/bin/surf-host" "$src/build/bin/ndx-surf-fpga" \
		"$src"/build/lib/ndx/ndx-plugin-[rs]*.so; do
		set -- "$@" -x "$file"
	done
	for program in rdma_client rdma_server; do
		! command -v $program >/dev/null || set -- "$@" -x $program
	done
	sh tests/vm/run.sh -t "$patience" -k "$@" -- sh "$src/tests/vm/suite.sh" "$src" "$cases" \
		"$times" "$rounds" "$deaths" "$frames" \
		>"$work/guest" 2>"$work/log"
	told "$1" $?
}

# guest_asan KERNEL: some of the conformance of verbs, under the address sanitizer
guest_asan() {
	echo "== guest: kernel $1, address sanitizer"
	sh tests/vm/run.sh -t "$patience" -k "$1" -m 2048 -b build/asan -- \
		ndx-conformance verbs:rxe0 verbs:rxe1 --filter 'disconnect*' \
		>"$work/guest" 2>"$work/log"
	told "$1-asan" $?
}

# told NAME STATUS: what a guest said, as verdicts
told() {
	ended=$2
	if [ "$ended" -eq 77 ] && grep -q '^skip: ' "$work/log"; then
		note skipped "guest-$1" "$(tail -n 1 "$work/log")"
		return
	fi
	cat "$work/log" "$work/guest"
	# a deviation that is listed is "not ok ... # TODO"
	tr -d '\r' <"$work/guest" | awk -v run="guest-$1/" '
		/^(not )?ok / {
			verdict = /# SKIP/ || /^not ok .*# TODO/ ? "skipped" : /^not/ ? "failed" : "passed"
			name = $0
			sub(/^(not )?ok [0-9]+ - /, "", name)
			reason = name
			sub(/ .*/, "", name)
			sub(/^[^ ]* ?#? ?/, "", reason)
			print verdict, run name (reason != "" ? " : " reason : "")
		}' >"$work/verdicts"
	cat "$work/verdicts" >>"$results"
	if [ "$ended" -ne 0 ] && ! grep -q '^failed' "$work/verdicts"; then
		note failed "guest-$1" "ended with $ended"
	elif [ ! -s "$work/verdicts" ]; then
		note failed "guest-$1" 'it ran no case'
	fi
}

if ! ldd build/lib/libndx.so 2>/dev/null | grep -q libibverbs; then
	note skipped guest 'the verbs provider was not built'
elif [ $quick -eq 1 ]; then
	note skipped guest '--quick was asked for'
else
	# shellcheck disable=SC2086 # a list
	deps_install $deps_vm >"$work/log" 2>&1 || cat "$work/log"
	for kernel in $kernels; do
		guest "$kernel"
	done
	if [ "$rounds" -gt 0 ]; then
		if ldd build/asan/lib/libndx.so 2>/dev/null | grep -q libibverbs; then
			guest_asan 6.12
		else
			note skipped guest-asan 'there is no build with the address sanitizer and verbs'
		fi
	fi
fi

echo
sed -n 's/^skipped /skipped: /p' "$results"
sed -n 's/^failed /FAILED: /p' "$results"
awk '{ n[$1]++ } END {
	printf "%d passed, %d failed, %d skipped\n", n["passed"], n["failed"], n["skipped"]
	exit n["failed"] > 0 || n["passed"] == 0
}' "$results"
