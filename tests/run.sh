#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: sh tests/run.sh [--quick | --long]
# Everything there is to check, on a fresh Debian 12: install what is missing, build, test; then
# again under the address and the thread sanitizer. --quick leaves out clang-tidy and the sanitizers;
# --long runs the random tests for hours instead of minutes, and all of the conformance on both kernels
# of the guest that has software RoCE, not only what is about data and disconnecting on one, with
# ndx-torture there, and the disconnects once more under the address sanitizer.
# The last line counts it all: N passed, N failed, N skipped. What could not run is skipped, with
# its reason; it never counts as passed. Above it stand how long each phase took, the ten slowest
# tests, and what failed, with the first lines about it.
#
# Most tests wait for time-outs and peers most of the time, so many run at once, and what needs the
# processors takes what the tests leave of them: the sanitizers' trees are built and clang-tidy runs
# beside the tests of the plain build. The guests come last, beside what is left of clang-tidy.
# $NDX_JOBS (the number of processors) is how many processes compile, and how many tests that compute
# run at once. $NDX_AT_ONCE (four for each processor) is how many tests run at once.
set -u
src=$(cd "$(dirname "$0")/.." && pwd)
cd "$src" || exit 1
jobs=${NDX_JOBS:-$(nproc)}
export NDX_JOBS="$jobs"
quick=0
leave_out='^(bench|long)$' run_too=
kernels='6.12' cases='d*' times=2 rounds=0 deaths=0 patience=1200 frames=500
case ${1:-} in
'') ;;
--quick) quick=1 ;;
--long)
	leave_out='^bench$' run_too='|long'
	kernels='6.1 6.12' cases='*' times=20 rounds=1000 deaths=200 patience=7200 frames=20000
	export NDX_TIDY=whole
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
# shellcheck disable=SC2086,SC2154 # a list
deps_install $deps_ucx >/dev/null 2>&1 || echo "some tests will be skipped: no $deps_ucx here" >&2
# shellcheck disable=SC2086,SC2154 # a list
deps_install $deps_hosts >/dev/null 2>&1 || echo "some tests will be skipped: no $deps_hosts here" >&2
if [ "$run_too" = '|long' ]; then
	# shellcheck disable=SC2086,SC2154 # a list
	deps_install $deps_long >/dev/null 2>&1 || echo "some tests will be skipped: no $deps_long here" >&2
fi
if command -v ccache >/dev/null; then
	export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

results=$(mktemp)
work=$(mktemp -d)
: >"$work/times"
: >"$work/whys"
: >"$work/phases"
began=$(date +%s)
running=
trap 'clean' EXIT
trap 'exit 130' INT TERM

# end PID: it, and all that it has started
# shellcheck disable=SC2317 # called by the trap
end() {
	# shellcheck disable=SC2046 # a list
	set -- "$1" $(cat "/proc/$1/task/$1/children" 2>/dev/null)
	kill "$1" 2>/dev/null
	shift
	for child; do
		end "$child"
	done
}

# shellcheck disable=SC2317 # called by the trap
clean() {
	for pid in $running; do
		end "$pid"
	done
	wait
	rm -rf "$results" "$work"
}

# beside NAME COMMAND...: in the background; what it says is in NAME.said. $beside is its process.
beside() {
	said=$work/$1.said
	shift
	"$@" >"$said" 2>&1 &
	beside=$!
	running="$running $beside"
}

# done_with PID: wait for what runs beside; its status
done_with() {
	wait "$1"
	set -- "$1" $?
	left=
	for pid in $running; do
		[ "$pid" -eq "$1" ] || left="$left $pid"
	done
	running=$left
	return "$2"
}

# timed PHASE COMMAND...: and how long it took, also for the end; its status
timed() {
	phase=$1 phase_began=$(date +%s)
	shift
	"$@"
	set -- $?
	echo "== $phase: $(($(date +%s) - phase_began)) s" | tee -a "$work/phases"
	return "$1"
}

# note VERDICT NAME [REASON]: a step of our own, counted like a test
note() {
	echo "$1 $2${3:+ : $3}" >>"$results"
}

# after PID COMMAND...: when that process has ended, if there is one
after() {
	[ -z "$1" ] || tail --pid="$1" -f /dev/null
	shift
	"$@"
}

# As packages have it, so that tests/packaging makes them of the build that is tested.
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null)
libdir=${multiarch:+-DCMAKE_INSTALL_LIBDIR=lib/$multiarch}

# build PRESET FOLDER PREFIX...: configure and build; what to show of it is in PRESET.log
build() {
	preset=$1 tree=$src/$2 log=$work/$1.log
	shift 2
	: >"$log"
	# shellcheck disable=SC2086 # none or one
	if ! "$@" cmake --preset "$preset" $libdir >"$log.all" 2>&1; then
		cat "$log.all" >"$log"
		return 1
	fi
	grep -A 3 'CMake Warning' "$log.all" >"$log"
	if ! "$@" cmake --build "$tree" -j "$jobs" >"$log.all" 2>&1; then
		cat "$log.all" >>"$log"
		return 2
	fi
}

# built PRESET STATUS: show what was built, note it if it failed
built() {
	echo "== $1: build"
	cat "$work/$1.log"
	case $2 in
	0) return 0 ;;
	1) note failed "$1/configure" ;;
	*) note failed "$1/build" ;;
	esac
	return 1
}

# Of the tests that compute (RESOURCE_GROUPS cpus:1) as many run at once as there are processors.
printf '{ "version": { "major": 1, "minor": 0 },\n  "local": [ { "cpus": [ { "id": "0", "slots": %s } ] } ] }\n' \
	"$jobs" >"$work/processors.json"

# suite PRESET FOLDER CTEST-ARGUMENTS...: run the tests of what is built, count
suite() {
	preset=$1 tree=$src/$2
	shift 2
	echo "== $preset: test"
	rm -f "$tree/junit.xml"
	$unrandomised ctest --test-dir "$tree" -j "${NDX_AT_ONCE:-$((4 * jobs))}" --timeout 300 --no-tests=error \
		--resource-spec-file "$work/processors.json" --output-on-failure \
		--test-output-size-passed 1000000 --test-output-size-failed 1000000 \
		--output-junit "$tree/junit.xml" "$@"
	ended=$?
	: >"$work/verdicts"
	: >"$work/why"
	if [ -f "$tree/junit.xml" ]; then
		awk -v run="$preset" -v why="$work/why" -f tests/why.awk -f tests/junit.awk \
			"$tree/junit.xml" >"$work/verdicts"
		cat "$work/why" >>"$work/whys"
		sed -n "s|^.*<testcase name=\"\([^\"]*\)\".* time=\"\([0-9.]*\)\".*|\2 $preset/\1|p" \
			"$tree/junit.xml" >>"$work/times"
	fi
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

# sanitizer_runs PRESET NAME: has the compiler that sanitizer, and does its program run here? If not,
# that is noted. $unrandomised is what its programs have to be run with.
sanitizer_runs() {
	unrandomised=
	if [ $quick -eq 1 ]; then
		note skipped "$1" '--quick was asked for'
		return 1
	fi
	if ! ${CC:-cc} "-fsanitize=$2" -o "$work/probe" "$work/probe.c" 2>"$work/log"; then
		note skipped "$1" "${CC:-cc} has no -fsanitize=$2 here: $(head -n 1 "$work/log")"
		return 1
	fi
	probe || unrandomised="setarch $(uname -m) -R"
	if ! probe; then
		note skipped "$1" "a program with -fsanitize=$2 does not run here: $(head -n 1 "$work/log")"
		return 1
	fi
}

# sanitizer PRESET PID PREFIX [CTEST-ARGUMENTS...]: the tests that run code of ours, when that process
# has built them
sanitizer() {
	[ -n "$2" ] || return
	done_with "$2"
	built "$1" $? || return
	unrandomised=$3
	preset=$1
	shift 3
	timed "$preset: test" suite "$preset" "build/$preset" -L "^(unit|conformance|sample|fuzz|sweep|torture$run_too)$" "$@"
	unrandomised=
}

# guest_conformance KERNEL: what the interfaces promise, over verbs and ofi:verbs
guest_conformance() {
	set -- "$1"
	for file in "$src/samples/server.sh" "$src"/tests/vm/*.sh "$src/build/bin/ndx-conformance" \
		"$src"/build/bin/nd-* "$src"/build/bin/test_ndspi_*_c; do
		[ ! -e "$file" ] || set -- "$@" -x "$file" # without g++, or cmocka, there is not all
	done
	guest conformance "$@"
}

# guest_programs KERNEL: programs over verbs and ofi:verbs
guest_programs() {
	set -- "$1"
	for file in "$src/samples/server.sh" "$src"/tests/vm/*.sh \
		"$src"/build/bin/interop-* "$src/build/bin/ndx-conformance" \
		"$src/build/bin/ndx-torture" "$src/build/bin/ndx-connect" "$src"/build/bin/ndx-perf* \
		"$src/build/bin/ndx-negotiate" "$src/build/bin/ndx-reqresp" \
		"$src/build/bin/ndx-recv" "$src/build/bin/ndx-send" "$src/build/bin/receiver-cases" \
		"$src/build/bin/device-removal" "$src/build/bin/foreign-device" "$src/build/bin/ndx-info" \
		"$src/build/bin/surf-host" "$src/build/bin/ndx-surf-fpga" \
		"$src"/build/lib/ndx/ndx-plugin-[ers]*.so "$src"/build/lib/lying/*.so; do
		set -- "$@" -x "$file"
	done
	file=$src/build/bin/test_ofi_srq_random
	[ ! -e "$file" ] || set -- "$@" -x "$file" # without cmocka there is none
	for file in "$src/tests/samples/through_proxy.sh" "$src/tests/fakes/connect_proxy.py" \
		"$src/plugins/python/samples/ndx-plugin-gateway.py" \
		$(sh "$src/tests/vm/python_files.sh" "$src/build") \
		$(sh "$src/tests/vm/module_files.sh" "$src" "$src/build"); do
		set -- "$@" -x "$file"
	done
	for program in rdma_client rdma_server; do
		! command -v $program >/dev/null || set -- "$@" -x $program
	done
	guest programs "$@"
}

# guest PART KERNEL OPTIONS...: a part of what is about verbs, in a guest with two software RoCE
# devices. One processor is enough for it, and with two QEMU now and then crashes a kernel.
guest() {
	part=$1
	shift
	sh tests/vm/run.sh -c 1 -t "$patience" -k "$@" -- sh "$src/tests/vm/suite.sh" "$src" "$part" \
		"$cases" "$times" "$rounds" "$deaths" "$frames" \
		>"$work/guest-$part.out" 2>"$work/guest-$part.log"
	told "$1" "$part" $?
}

# guest_asan KERNEL: some of the conformance of verbs, under the address sanitizer
guest_asan() {
	sh tests/vm/run.sh -t "$patience" -k "$1" -m 2048 -b build/asan -- \
		ndx-conformance verbs:rxe0 verbs:rxe1 --filter 'disconnect*' \
		>"$work/guest-asan.out" 2>"$work/guest-asan.log"
	told "$1-asan" asan $?
}

# told NAME PART STATUS: what a guest said, as verdicts
told() {
	output=$work/guest-$2
	ended=$3
	echo "== guest: kernel $1, $2"
	if [ "$ended" -eq 77 ] && grep -q '^skip: ' "$output.log"; then
		note skipped "guest-$1/$2" "$(tail -n 1 "$output.log")"
		return
	fi
	cat "$output.log" "$output.out"
	: >"$output.why"
	awk -v run="guest-$1" -v why="$output.why" -f tests/why.awk -f tests/tap.awk "$output.out" \
		>"$output.verdicts"
	cat "$output.why" >>"$work/whys"
	cat "$output.verdicts" >>"$results"
	if [ "$ended" -ne 0 ] && ! grep -q '^failed' "$output.verdicts"; then
		note failed "guest-$1/$2" "ended with $ended"
	elif [ ! -s "$output.verdicts" ]; then
		note failed "guest-$1/$2" 'it ran no case'
	fi
}

# guests: of each kernel two at once, because each waits for time-outs a third of the time
guests() {
	# shellcheck disable=SC2086 # a list
	deps_install $deps_vm >"$work/guest.log" 2>&1 || cat "$work/guest.log"
	for kernel in $kernels; do
		guest_conformance "$kernel" >"$work/guest-conformance.said" 2>&1 &
		guest_programs "$kernel"
		wait $!
		cat "$work/guest-conformance.said"
	done
}

# tidied STATUS: what clang-tidy said, as a verdict
tidied() {
	echo "== release: clang-tidy"
	cat "$work/tidy.said"
	case $1 in
	0) note passed release/check.tidy ;;
	77) note skipped release/check.tidy "$(sed -n 's/^skip: //p' "$work/tidy.said")" ;;
	*) note failed release/check.tidy ;;
	esac
}

# has_verbs FOLDER: was provider verbs built there?
has_verbs() {
	[ -f "$1/lib/ndx/ndx-provider-verbs.so" ]
}

timed 'release: build' build release build
built release $?

# What computes runs in this order beside the tests.
asan='' asan_prefix='' tsan='' tsan_prefix='' tidy='' guests='' beside=
if sanitizer_runs asan address,undefined; then
	asan_prefix=$unrandomised
	beside asan timed 'asan: build' build asan build/asan nice -n 10
	asan=$beside
fi
if sanitizer_runs tsan thread; then
	tsan_prefix=$unrandomised
	beside tsan after "$beside" timed 'tsan: build' build tsan build/tsan nice -n 10
	tsan=$beside
fi
if [ $quick -eq 1 ]; then
	note skipped release/check.tidy '--quick was asked for'
else
	beside tidy after "$beside" timed 'release: clang-tidy' sh tests/checks/tidy.sh "$src" "$src/build"
	tidy=$beside
fi
unrandomised=
timed 'release: test' suite release build -LE "$leave_out" -E '^check\.tidy$'
sanitizer asan "$asan" "$asan_prefix"
if [ -n "$tsan" ]; then
	note skipped 'tsan/fuzz.*' 'they have one thread, so there is no race'
	note skipped 'tsan/unit.reassembly.*' 'they have one thread, so there is no race'
fi
sanitizer tsan "$tsan" "$tsan_prefix" -LE '^one_thread$'
# Software RoCE stalls where its processor is taken away: only clang-tidy runs beside the two guests.
if ! has_verbs build; then
	note skipped guest 'the verbs provider was not built'
elif [ $quick -eq 1 ]; then
	note skipped guest '--quick was asked for'
else
	beside guests timed guest guests
	guests=$beside
fi
if [ -n "$tidy" ]; then
	done_with "$tidy"
	tidied $?
fi
if [ -n "$guests" ]; then
	done_with "$guests"
	cat "$work/guests.said"
	if [ "$rounds" -gt 0 ]; then
		if has_verbs build/asan; then
			guest_asan 6.12
		else
			note skipped guest-asan 'there is no build with the address sanitizer and verbs'
		fi
	fi
fi

echo
cat "$work/phases"
echo "== all: $(($(date +%s) - began)) s; builds of sanitizers and clang-tidy ran beside other phases"
echo 'slowest (seconds):'
sort -rn "$work/times" | head -n 10
sed -n 's/^skipped /skipped: /p' "$results"
# Each failure with what its test said first, since the logs above are long.
awk -F '\t' 'FNR == NR { said[$1] = said[$1] "    " $2 "\n"; next }
	/^failed / {
		split($0, words, " ")
		printf "FAILED: %s\n%s", substr($0, 8), said[words[2]]
		delete said[words[2]]
	}' "$work/whys" "$results"
awk '{ n[$1]++ } END {
	printf "%d passed, %d failed, %d skipped\n", n["passed"], n["failed"], n["skipped"]
	exit n["failed"] > 0 || n["passed"] == 0
}' "$results"
