#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: smoke.sh NDX-PERF URI [tcp|ucx]
# ndx-perf compare measures something of everything, and its rows have the keys that are promised. With a
# third argument: so it does beside that. Times are not judged here.
set -eu
perf=$1 uri=$2 beside=${3:-}
if ! command -v jq >/dev/null; then
	echo "skip: jq is not installed"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# run OPTIONS...: its rows are in $tmp/rows
run() {
	timeout -k 5 200 "$perf" compare --json --blocks 2 --block-ms 1 --tries 1 "$@" "$uri" >"$tmp/rows" 2>"$tmp/log" || {
		ended=$?
		cat "$tmp/log"
		echo "ndx-perf compare $* $uri: ended with $ended"
		exit 1
	}
}
# holds WHAT FILTER: true for the rows
holds() {
	jq -e --arg uri "$uri" --arg beside "$beside" "$2" "$tmp/rows" >/dev/null || {
		cat "$tmp/rows"
		echo "not so: $1"
		exit 1
	}
}

# shellcheck disable=SC2016 # variables of jq's
if [ -n "$beside" ]; then
	if "$perf" compare --beside "$beside" --tests latency --modes spin --sizes 8 --depths 1 --blocks 1 \
		--block-ms 1 --tries 1 "$uri" 2>&1 | grep -F 'built without' >"$tmp/log"; then
		echo "skip: $(cat "$tmp/log")"
		exit 77
	fi
	run --beside "$beside" --sizes 8,1000,65536 --depths 1,64
	holds 'a row for each test, mode, size and depth' 'length == 24'
	holds 'keys of what is beside, and no others' \
		'all(keys_unsorted[14:] == [$beside, "ratio_" + $beside])'
	holds 'times that are times' 'all(.ndx > 0 and .[$beside] > 0 and .["ratio_" + $beside] > 0)'
	# A block has more messages than may be under way, and a socket takes one of them in parts.
	run --beside "$beside" --sizes 1048576 --depths 1,64 --block-ms 25
	holds 'large messages' 'length == 8 and all(.[$beside] > 0)'
	run --beside "$beside" --threads 1 --sizes 64,1048576 --depths 1
	holds 'one thread polls' 'map(.mode) == ["spin", "spin", "spin", "spin"] and
		all(.[$beside] > 0)'
	run --beside "$beside" --sizes 8 --depths 1 --tests write
	holds 'it has no writes' 'map([.[$beside], .["ratio_" + $beside]]) == [[null, null]]'
	exit 0
fi
run --sizes 8,64Ki --depths 1,64
holds 'a row for each test, mode, size and depth' 'length == 16 and
	(map(.size) | unique == [8, 65536]) and (map([.test, .mode, .size, .depth]) | unique | length) == 16'
holds 'exactly the keys' 'all(keys_unsorted == ["provider", "test", "mode", "size", "depth", "ndx",
	"raw_same", "raw_plain", "unit", "ratio_same", "ratio_plain", "q1", "q3", "aa"])'
# shellcheck disable=SC2016 # a variable of jq's
holds 'the adapter, and units' 'all(.provider == $uri and
	.unit == {latency: "us", stream: "msg/s"}[.test])'
holds 'times that are times' 'all(.ndx > 0)'
case $uri in
ofi:*)
	holds 'a comparison' 'all(.raw_same > 0 and .raw_plain > 0 and .aa > 0 and
		.q1 <= .ratio_same and .ratio_same <= .q3)'
	;;
*)
	holds 'nothing to compare with' 'all(.raw_same == null and .raw_plain == null and
		.ratio_same == null and .ratio_plain == null and .q1 == null and .q3 == null and
		.aa == null)'
	;;
esac
run --threads 1 --sizes 64 --depths 1
holds 'one thread polls' 'map(.mode) == ["spin", "spin"]'
# What comes of that is for unit.bench.measure and unit.bench.traffic.
run --sizes 8 --depths 1 --tests latency --modes spin --warm-up-ms 7
grep -q '^seed 1, 2 blocks of 1 ms after 7 ms$' "$tmp/log" || {
	cat "$tmp/log"
	echo 'not so: a warm-up as long as asked'
	exit 1
}
run --sizes 8 --depths 1 --tests write
holds 'writes are polled for' 'map([.test, .mode, .unit]) == [["write", "spin", "us"]]'
run --tests write --modes passive
holds 'targets that do not poll, second by second' 'length == 6 and
	all(.mode == "passive" and (.seconds | length) == 1 and .median == .seconds[0] and
	.median > 0 and .ratio > 0)'
run --sizes 1048576 --depths 1 --tests stream --modes wait
holds 'what was asked for' 'map([.test, .mode, .size]) == [["stream", "wait", 1048576]]'
