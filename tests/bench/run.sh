#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: sh tests/bench/run.sh [--quick]
# Takes every figure of docs/performance.md anew and puts it there: rows (JSON), tables and plots.
# On a quiet machine, in less than ten minutes; --quick: in one, to see that it works.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
cd "$src"
build=${NDX_BUILD:-$src/build}
out=${NDX_OUT:-$src/docs/performance}
page=$src/docs/performance.md
uri='ofi:tcp?iface=lo'
case ${1:-} in
'') perf='--blocks 40 --block-ms 15 --tries 3' seconds=330 beside=60 messages=4000 ;;
--quick) perf='--blocks 3 --block-ms 2 --tries 1' seconds=0 beside=0 messages=200 ;;
*)
	sed -n '3s/^# //p' "$0" >&2
	exit 2
	;;
esac
# shellcheck source=tests/deps.sh
. tests/deps.sh
# shellcheck disable=SC2086,SC2154 # a list
deps_install $deps_bench || exit 1
for tool in jq gnuplot valgrind; do
	command -v $tool >/dev/null || {
		echo "$tool is not installed: apt-get install $tool" >&2
		exit 1
	}
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$out"

step() {
	echo "== $(date +%H:%M:%S) $*" >&2
}

step build
# a build that is older than the packages looks for them again
if [ -f "$build/CMakeCache.txt" ]; then
	cmake "$build" >"$tmp/log"
else
	cmake --preset release >"$tmp/log"
fi
cmake --build "$build" -j 2 --target ndx-perf ndx-perf-compare ndx-scale ndx-instructions >"$tmp/log" 2>&1 || {
	cat "$tmp/log" >&2
	exit 1
}
# not in a build without the verbs provider
cmake --build "$build" --target ndx-instructions-verbs >"$tmp/log" 2>&1 || :

step instructions
sh tests/bench/instructions.sh "$build" >"$tmp/instructions.txt" || {
	cat "$tmp/instructions.txt" >&2
	exit 1
}

step connections
"$build/bin/ndx-scale" --json --messages $messages "$uri" >"$tmp/scale.json"
jq -r '.[] | [.connections, .all_us, .one_us] | @tsv' "$tmp/scale.json" >&2

step "against libfabric: about five minutes"
# shellcheck disable=SC2086 # a list
"$build/bin/ndx-perf" compare --json $perf --seconds $seconds "$uri" >"$tmp/perf.json"

step "against UCX and plain sockets: about half a minute"
# shellcheck disable=SC2086 # a list
"$build/bin/ndx-perf" compare --json $perf --seconds $beside --tests latency --modes spin --depths 64 \
	--beside tcp,ucx "$uri" >"$tmp/beside.json"

step tables and plots
{
	echo '### Against libfabric'
	echo
	jq -r -f tests/bench/perf.jq "$tmp/perf.json"
	echo
	echo '### Against UCX and plain sockets'
	echo
	jq -r -f tests/bench/perf.jq "$tmp/beside.json"
	cat <<-'END'
		The columns promise different things. NDX: a send ends when the peer's memory has the message,
		and no message is sent that finds no receive. UCX: a send ends when its memory may be used again,
		and a message that finds no receive is kept in a buffer. Plain sockets, and libfabric, plain: a
		send ends when its bytes were copied to the kernel, and bytes that are not read stop the stream.
		The rows are in [beside.json](performance/beside.json).
	END
	echo
	echo '### Connections'
	echo
	jq -r -f tests/bench/scale.jq "$tmp/scale.json"
	echo
	echo '### Instructions'
	echo
	echo '| part | instructions |'
	echo '|---|---:|'
	awk 'NF == 2 { print "| " $1 " | " $2 " |" }' "$tmp/instructions.txt"
} >"$tmp/tables.md"
sh tests/bench/plots.sh "$tmp" "$tmp"
awk -v tables="$tmp/tables.md" '
	/^<!-- figures end -->/ { inside = 0 }
	!inside { print }
	/^<!-- figures begin/ {
		inside = 1
		print ""
		while ((getline line <tables) > 0)
			print line
		print ""
	}' "$page" >"$tmp/performance.md"
for file in perf.json beside.json scale.json instructions.txt latency-ratio.svg \
	latency-absolute.svg latency-beside.svg stream-ratio.svg \
	stream-absolute.svg; do
	cp "$tmp/$file" "$out/$file"
done
[ -n "${NDX_OUT:-}" ] || cp "$tmp/performance.md" "$page"
step "done: $out"
