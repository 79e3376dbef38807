#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: sh tests/bench/hosts.sh [--quick]
# ndx-perf between two processes beside iperf3 and ucx_perftest, and beside ndx-perf compare, all over
# TCP on the loopback interface, in turn, as medians of some rounds, and as ratios within a round:
# many short rounds, because the machine's speed changes from one to the next. Then the same between
# ndx-perf and iperf3 where the interface has a known rate: in a network namespace, whose loopback
# interface tc limits. Writes the table of "Between two processes" in docs/performance.md, and
# docs/performance/hosts.json. On a quiet machine, in four minutes; --quick: in a quarter of a
# minute, to see that it works; the page stays as it is. NDX_ROUNDS: rounds, if not 12.
# hosts_recorded.sh and hosts_smoke.sh test it.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
cd "$src"
build=${NDX_BUILD:-$src/build}
page=$src/docs/performance.md
uri='ofi:tcp?iface=lo'
quick=
limits='1 10' # Gbit/s
limit='' figures=figures.tsv
case ${1:-} in
--limited) # hosts.sh itself, in the namespace: the rate, rounds, seconds, and where the figures go
	limit=$2 rounds=$3 seconds=$4 tmp=$5 figures=limited.tsv
	;;
'') rounds=${NDX_ROUNDS:-12} seconds=1 iterations=50000 large=4000 blocks='--blocks 6 --block-ms 50 --tries 1' ;;
--quick) rounds=1 seconds=0.2 iterations=2000 large=200 blocks='--blocks 2 --block-ms 2 --tries 1' quick=1 ;;
*)
	sed -n '3s/^# //p' "$src/tests/bench/hosts.sh" >&2
	exit 2
	;;
esac
for tool in jq iperf3 ucx_perftest; do
	command -v $tool >/dev/null || {
		echo "$tool is not installed: apt-get install jq iperf3 ucx-utils" >&2
		exit 1
	}
done
# shellcheck source=samples/server.sh
. "$src/samples/server.sh"
if [ -n "$limit" ]; then
	ip link set lo up
	tc qdisc add dev lo root tbf rate "${limit}gbit" burst 2mb latency 20ms
	trap 'server_stop || :' EXIT
else
	tmp=$(mktemp -d)
	trap 'server_stop || :; rm -rf "$tmp"' EXIT
fi
trap 'exit 130' INT TERM
export UCX_TLS=tcp UCX_NET_DEVICES=lo UCX_WARN_UNUSED_ENV_VARS=n

# give_up WHY: with what the programs said
give_up() {
	cat "$tmp"/*.log >&2 || :
	echo "$1" >&2
	exit 1
}
# figure WHAT UNIT SIZE TOOL VALUE: one figure of one round, a number above 0
figure() {
	echo "$5" | awk 'NR > 1 || !/^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$/ || $0 <= 0 { bad = 1 }
		END { exit bad }' ||
		give_up "no figure of $4: $1, $3 bytes: it is '$(printf %s "$5" | tr '\n' ' ')'"
	echo "$1	$2	$3	$4	$5	$round" >>"$tmp/$figures"
	echo "  $1, $3 bytes, $4: $5 $2" >&2
}
# Each end of iperf3 gets a processor, as those of ndx-perf do.
affinity=
[ "$(nproc)" -lt 2 ] || affinity='-A 0,1'

# beside SERVER CLIENT: run the client, a function, against a new server, a command line. A server that
# cannot listen, because its port is not free yet, is started again.
beside() {
	for _ in $(seq 10); do
		# shellcheck disable=SC2086 # words
		timeout 120 $1 >"$tmp/other-server.log" 2>&1 &
		server_pid=$! server_reader=
		for _ in $(seq 20); do
			if $2; then
				wait "$server_pid" || :
				server_pid=
				return
			fi
			sleep 0.1
		done
		kill "$server_pid" 2>/dev/null || :
		wait "$server_pid" || :
		server_pid=
	done
	give_up "does not succeed: $1"
}

# ndx TEST OPTIONS...: JSON of one ndx-perf client in ndx.json
ndx() {
	test=$1
	shift
	server_start "$tmp" "$build/bin/ndx-perf" server "$uri" --listen 0 --count 1 --quiet ||
		give_up 'does not start: ndx-perf server'
	"$build/bin/ndx-perf" client "$server_address" --adapter "$uri" --test "$test" --json --quiet \
		-t "$seconds" "$@" >"$tmp/ndx.json" 2>"$tmp/ndx.log" ||
		give_up "does not succeed: ndx-perf client --test $test"
	server_end || give_up "does not succeed: ndx-perf server, --test $test"
}
# ucx TEST SIZE ITERATIONS COLUMN: that column of the last line of ucx_perftest, as CSV
ucx() {
	ucx_test=$1 ucx_size=$2 ucx_iterations=$3
	beside 'ucx_perftest -p 13338' ucx_once
	tail -n 1 "$tmp/ucx.out" | cut -d, -f "$4"
}
ucx_once() {
	timeout 120 ucx_perftest 127.0.0.1 -p 13338 -t "$ucx_test" -s "$ucx_size" -n "$ucx_iterations" -f -v \
		>"$tmp/ucx.out" 2>"$tmp/ucx.log" && grep -q '^ *[0-9][0-9]*,' "$tmp/ucx.out"
}
# iperf3 counts whole seconds. If it writes JSON, it may end with 0 although it failed.
iperf_once() {
	# shellcheck disable=SC2086 # none or two words
	timeout 60 iperf3 -c 127.0.0.1 -p 13339 -l 1M $affinity -J \
		-t "$(echo "$seconds" | sed 's/^0.*/1/')" \
		>"$tmp/iperf.json" 2>"$tmp/iperf.log" &&
		! grep -q '"error":' "$tmp/iperf.json" && return
	grep '"error":' "$tmp/iperf.json" >>"$tmp/iperf.log"
	return 1
}

# bandwidths WHAT: of one round
bandwidths() {
	beside 'iperf3 -s -1 -p 13339' iperf_once
	figure "$1" Gbit/s 1048576 iperf3 \
		"$(jq '.end.sum_received.bits_per_second / 1e9' "$tmp/iperf.json")"
	ndx bandwidth --op send,write --size 1Mi
	for op in send write; do
		figure "$1" Gbit/s 1048576 "ndx-perf $op" \
			"$(jq --arg op $op '.rows[] | select(.operation == $op).gbit_per_second' "$tmp/ndx.json")"
	done
}

round=0
if [ -n "$limit" ]; then
	while [ $round -lt "$rounds" ]; do
		round=$((round + 1))
		bandwidths "bandwidth at $limit Gbit/s"
	done
	exit 0
fi
while [ $round -lt "$rounds" ]; do
	round=$((round + 1))
	echo "== round $round of $rounds" >&2
	bandwidths bandwidth
	# MiB/s
	figure 'bandwidth' Gbit/s 1048576 'ucx_perftest tag_bw' \
		"$(ucx tag_bw 1048576 "$large" 6 | awk '{ print $1 * 1048576 * 8 / 1e9 }')"
	for size in 64 4096; do
		ndx latency --size $size
		figure 'latency, half a round trip' us $size 'ndx-perf send' \
			"$(jq '.rows[0].latency_us.mean' "$tmp/ndx.json")"
		figure 'latency, half a round trip' us $size 'ucx_perftest tag_lat' \
			"$(ucx tag_lat $size "$iterations" 2)"
		# as many receives as the client and its server post
		# shellcheck disable=SC2086 # a list
		"$build/bin/ndx-perf" compare --json --tests latency --modes spin --sizes $size --depths 2 \
			$blocks "$uri" >"$tmp/compare.json" 2>"$tmp/compare.log" ||
			give_up 'does not succeed: ndx-perf compare'
		figure 'latency, half a round trip' us $size 'ndx-perf compare' \
			"$(jq '.[0].ndx' "$tmp/compare.json")"
	done
done

for limit in $limits; do
	echo "== at $limit Gbit/s" >&2
	# A rate has all its rounds in the table, or none.
	if unshare -rn sh "$src/tests/bench/hosts.sh" --limited "$limit" "$rounds" "$seconds" "$tmp" \
		2>"$tmp/limited.said"; then
		cat "$tmp/limited.tsv" >>"$tmp/figures.tsv"
	else
		cat "$tmp/limited.said" >&2
		echo "skipped: $limit Gbit/s; see above. It needs unshare -rn, ip and tc" >&2
	fi
	rm -f "$tmp/limited.tsv"
done

jq -R -s '
	def quantile($q): sort | ((length - 1) * $q) as $at | ($at | floor) as $low |
		.[$low] + ($at - $low) * ((.[$low + 1] // .[$low]) - .[$low]);
	def reference: if .unit == "Gbit/s" then "iperf3" else "ndx-perf compare" end;
	split("\n") | map(select(. != "") | split("\t")) |
	map({what: .[0], unit: .[1], size: (.[2] | tonumber), program: .[3], value: (.[4] | tonumber),
		round: .[5]}) |
	group_by([.what, .size]) | map(
		(map(select(.program == reference)) | INDEX(.round)) as $reference |
		group_by(.program) | map(
			map(.value) as $values | map(.value / $reference[.round].value) as $ratios |
			(.[0] | {what, unit, size, program}) +
			{median: ($values | quantile(0.5)), least: ($values | min), most: ($values | max),
			beside: (.[0] | reference), ratio: ($ratios | quantile(0.5)),
			quartiles: [($ratios | quantile(0.25)), ($ratios | quantile(0.75))],
			rounds: ($values | length)})[])' "$tmp/figures.tsv" >"$tmp/hosts.json"
{
	echo "Written by \`tests/bench/hosts.sh\`: medians of $rounds rounds, and their range. *beside* is"
	echo "the median of the ratios within a round to \`iperf3\` (bandwidth) and to \`ndx-perf compare\`"
	echo "(latency), with the quartiles. *at ... Gbit/s*: \`tc\` limits the interface to that rate."
	echo
	echo '| what | size | program | median | least .. most | beside | quartiles |'
	echo '|---|---:|---|---:|---|---:|---|'
	jq -r 'def digits: . * 100 | round / 100; .[] |
		"| \(.what), \(.unit) | \(.size) B | \(.program) | \(.median | digits) | \(
			.least | digits) .. \(.most | digits) | **\(.ratio | digits)** | \(
			.quartiles | map(digits) | join(" .. ")) |"' "$tmp/hosts.json"
	echo
	echo 'The figures are in [hosts.json](performance/hosts.json), too.'
} >"$tmp/table.md"
cat "$tmp/table.md"
[ -z "$quick" ] || exit 0
cp "$tmp/hosts.json" "$src/docs/performance/hosts.json"
awk -v table="$tmp/table.md" '
	/^<!-- hosts end -->/ { inside = 0 }
	!inside { print }
	/^<!-- hosts begin/ {
		inside = 1
		print ""
		while ((getline line <table) > 0)
			print line
		print ""
	}' "$page" >"$tmp/performance.md"
cp "$tmp/performance.md" "$page"
