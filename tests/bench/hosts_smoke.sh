#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: hosts_smoke.sh SOURCE BUILD
# hosts.sh --quick with the programs themselves: its table has every row that it should have, and all
# figures are numbers. In a network namespace, whose ports no other test has. Speed is not judged here.
set -eu
src=$1 build=$2
for tool in jq iperf3 ucx_perftest unshare ip tc; do
	if ! command -v $tool >/dev/null; then
		echo "skip: $tool is not installed"
		exit 77
	fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! unshare -rn sh -c 'ip link set lo up &&
	tc qdisc add dev lo root tbf rate 1gbit burst 2mb latency 20ms' 2>"$work/err"; then
	echo "skip: no namespace with a limited rate: $(head -n 1 "$work/err")"
	exit 77
fi
# shellcheck disable=SC2016 # of the shell within
NDX_BUILD="$build" timeout -k 5 250 unshare -rn sh -c 'ip link set lo up && exec sh "$1" --quick' - \
	"$src/tests/bench/hosts.sh" >"$work/out" 2>"$work/err" || {
	ended=$?
	cat "$work/err"
	echo "FAILED: it ended with $ended"
	exit 1
}
cat >"$work/expected" <<'END'
bandwidth, Gbit/s|1048576 B|iperf3
bandwidth, Gbit/s|1048576 B|ndx-perf send
bandwidth, Gbit/s|1048576 B|ndx-perf write
bandwidth, Gbit/s|1048576 B|ucx_perftest tag_bw
bandwidth at 1 Gbit/s, Gbit/s|1048576 B|iperf3
bandwidth at 1 Gbit/s, Gbit/s|1048576 B|ndx-perf send
bandwidth at 1 Gbit/s, Gbit/s|1048576 B|ndx-perf write
bandwidth at 10 Gbit/s, Gbit/s|1048576 B|iperf3
bandwidth at 10 Gbit/s, Gbit/s|1048576 B|ndx-perf send
bandwidth at 10 Gbit/s, Gbit/s|1048576 B|ndx-perf write
latency, half a round trip, us|64 B|ndx-perf compare
latency, half a round trip, us|64 B|ndx-perf send
latency, half a round trip, us|64 B|ucx_perftest tag_lat
latency, half a round trip, us|4096 B|ndx-perf compare
latency, half a round trip, us|4096 B|ndx-perf send
latency, half a round trip, us|4096 B|ucx_perftest tag_lat
END
sed -n '/ B | /{s/^| //;s/ | /|/g;p}' "$work/out" | cut -d '|' -f 1-3 | diff "$work/expected" - || {
	cat "$work/err"
	echo 'FAILED: not the rows that should be there (<)'
	exit 1
}
number='[0-9][0-9]*\(\.[0-9]*\)\{0,1\}'
if grep ' B | ' "$work/out" |
	grep -v "B | [a-z].* | $number | $number \.\. $number | \*\*$number\*\* | $number \.\. $number |\$"; then
	echo 'FAILED: there is a figure that is no number'
	exit 1
fi
