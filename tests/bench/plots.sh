#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: plots.sh DATA OUT
# Draw the plots of docs/performance.md from perf.json and beside.json in DATA into the folder OUT:
# the ratios, and beside them times and rates. run.sh does so after it has measured; alone it draws
# what was measured before, e.g. sh tests/bench/plots.sh docs/performance docs/performance
set -eu
data=$1 out=$2
here=$(dirname "$0")
for tool in jq gnuplot; do
	command -v $tool >/dev/null || {
		echo "skip: $tool is missing (install jq and gnuplot-nox)"
		exit 77
	}
done
tsv=$(mktemp -d)
trap 'rm -rf "$tsv"' EXIT

for test in latency stream; do
	for mode in spin wait; do
		for depth in 1 64; do
			jq -r --arg test $test --arg mode $mode --argjson depth $depth '
				.[] | select(.test == $test and .mode == $mode and .depth == $depth) |
				[.size, .ratio_same, .q1, .q3, .ndx, .raw_same, .raw_plain] | @tsv' \
				"$data/perf.json" >"$tsv/$test-$mode-$depth.tsv"
		done
	done
	jq -r --arg test $test '
		.[] | select(.test == $test and .mode == "spin" and .depth == 64) |
		[.size, .ndx, .raw_plain, .ucx, .tcp] | @tsv' "$data/beside.json" >"$tsv/$test-beside.tsv"
	beside=
	[ ! -s "$tsv/$test-beside.tsv" ] || beside=beside # run.sh measures latency alone there
	for what in ratio absolute $beside; do
		gnuplot -e "dir='$tsv'; test='$test'; what='$what'; out='$tsv/$test-$what.svg'" \
			"$here/plot.gp"
		# gnuplot leaves spaces at the ends of lines.
		sed 's/[[:space:]]*$//' "$tsv/$test-$what.svg" >"$out/$test-$what.svg"
	done
done
