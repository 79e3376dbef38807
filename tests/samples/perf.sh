#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: perf.sh SOURCE BIN
# ndx-perf as two processes over ofi:tcp: every operation, the forms of the output, a sweep, open-loop
# load while the server pauses, and what each side says when the other one is gone.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
if ! command -v jq >/dev/null; then
	echo 'skip: jq is not installed'
	exit 77
fi

# start: a server; what it answers to is in $server_address
start() {
	server_limit=280 # it may serve until the end of this test
	server_start "$work" "$bin/ndx-perf" server "$uri" --listen 0 || fail 'no server'
}
# client OPTIONS...: stdout to client.out, stderr to client.log
client() {
	timeout -k 5 60 "$bin/ndx-perf" client "$server_address" --adapter "$uri" --quiet \
		--warm-up 0.02 "$@" >"$work/client.out" 2>"$work/client.log"
}
# background OPTIONS...: a client that runs on, as process $run, and measures already
background() {
	: >"$work/client.log"
	"$bin/ndx-perf" client "$server_address" --adapter "$uri" --warm-up 0.02 "$@" \
		>"$work/client.out" 2>"$work/client.log" &
	run=$!
	await 'a first second' grep -q 'msg/s' "$work/client.log"
}
# holds WHAT FILTER: true for the JSON in client.out
holds() {
	jq -e "$2" "$work/client.out" >/dev/null || {
		cat "$work/client.out"
		fail "not so: $1"
	}
}
# server_process: the server itself, not the timeout around it
server_process() {
	cat "/proc/$server_pid/task/$server_pid/children"
}
# await WHAT COMMAND...: repeat it until it succeeds
await() {
	what=$1
	shift
	for _ in $(seq 200); do
		"$@" && return
		sleep 0.05
	done
	fail "waited in vain: $what"
}

echo '# every operation, as JSON'
start
client --op send,write,write-imm,read -t 0.1 --size 1,64,1000,64Ki --json || fail 'a client'
holds 'one object with the rows of all operations' '.program == "ndx-perf" and .exit == 0 and
	.error == null and (.rows | length) == 32 and
	(.rows | map([.test, .operation, .size]) | unique | length) == 32'
holds 'every row has the keys, and no error' '.rows | all(
	(keys_unsorted | .[:17]) == ["test", "operation", "size", "depth", "queue_pairs", "threads",
	"both_directions", "wait", "rate", "seconds", "messages", "messages_per_second",
	"gbit_per_second", "mib_per_second", "client_cpu_us", "server_cpu_us", "error"] and
	.error == null and .messages > 0 and .seconds > 0.05)'
holds 'percentiles in order' '.rows | map(select(.test == "latency").latency_us) | length == 16 and
	all(.min > 0 and .min <= .p50 and .p50 <= .p90 and .p90 <= .p99 and .p99 <= .p99_9 and
	.p99_9 <= .max and .mean >= .min and .mean <= .max)'
holds 'rates that fit together' '.rows | all(
	((.messages / .seconds) / .messages_per_second - 1 | fabs) < 0.001 and
	((.messages_per_second * .size * 8 / 1e9) - .gbit_per_second | fabs) < 0.001)'

echo '# sleeping, both directions, several queue pairs and threads, as lists'
client --op send,read --test latency,bandwidth --wait -t 0.1 --size 64 --json || fail 'sleeping'
holds 'sleeping' '.rows | length == 4 and all(.wait and .messages > 0)'
client --op send,write,write-imm,read --both -t 0.1 --size 8,4Ki --depth 4 --json || fail 'both'
holds 'both directions' '.rows | length == 8 and
	all(.test == "bandwidth" and .both_directions and .messages > 0 and .error == null)'
client --test bandwidth -t 0.05 --warm-up 0 --size 1k,1Ki --depth 2,8 --qps 1,3 --threads 1,2 \
	--json || fail 'a sweep'
holds 'a sweep: no threads without a queue pair' '.rows | length == 12 and
	(map(.size) | unique) == [1000, 1024] and
	(map([.queue_pairs, .threads]) | unique) == [[1, 1], [3, 1], [3, 2]]'
client --op send,write,read --test latency -t 1 --size 8 --qps 3 --threads 2 --json ||
	fail 'latency of several queue pairs'
holds 'latency of several queue pairs' '.rows | length == 3 and all(.messages > 2)'
client --all --test bandwidth -t 0.01 --warm-up 0 --depth 4 --json || fail 'all sizes'
holds 'powers of two from 2 bytes to 8 MiB' '(.rows | map(.size)) == [range(1; 24) | pow(2; .)]'

echo '# a table, CSV, a plot, a histogram'
client -t 0.05 --size 64 --histogram --plot "$work/plot.svg" || fail 'a table'
grep -q '^send  *64 ' "$work/client.out" || fail 'no row in the table'
grep -q '<= ' "$work/client.out" || fail 'no histogram in the table'
grep -q '</svg>' "$work/plot.svg" || fail 'no plot'
if command -v python3 >/dev/null; then
	python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$work/plot.svg" ||
		fail 'the plot is no XML'
fi
client -t 0.05 --size 64,128 --csv || fail 'CSV'
awk -F, 'NF != 23 { exit 1 } END { exit NR != 5 }' "$work/client.out" || {
	cat "$work/client.out"
	fail 'not five lines of 23 fields'
}
client -t 0.05 --test latency --size 64 --histogram --json || fail 'a histogram'
holds 'the histogram has every message' '.rows[0] |
	(.histogram_us | map(.[1]) | add) == .messages'
client --test bandwidth -t 0.05 --size 8 --plot "$work/none/plot.svg" && fail 'a plot nowhere'
[ -s "$work/client.out" ] || fail 'no table because of the plot'

echo '# a second client while one is served'
background --test bandwidth -t 30 --size 64 --json
timeout -k 5 60 "$bin/ndx-perf" client "$server_address" --adapter "$uri" \
	>"$work/second.out" 2>"$work/second.log" && fail 'a second client'
grep -q 'the server says: BUSY' "$work/second.log" || fail 'the second client is not told'

echo '# Ctrl-C: the client prints what it has'
kill -INT $run
wait $run || fail 'an interrupted client'
holds 'a row of the time until the interrupt' '.rows | length == 1 and .[0].error == null and
	.[0].messages > 0 and .[0].seconds < 29'

echo '# open loop: a pause of the server counts for all requests that it delays'
background --rate 200 --depth 4 -t 6 --size 64 --json
process=$(server_process)
kill -STOP "$process"
sleep 1
kill -CONT "$process"
wait $run || fail 'a client whose server paused'
# In the pause 200 of some 1200 requests were due, and waited half a second in the mean: 83 ms for
# each of the 1200. A loaded machine answers fewer of them, and later; so this is at least so.
holds 'the mean shows the pause' '.rows[0] | .rate == 200 and
	.latency_us.mean - .uncorrected_us.mean > 40000'
holds 'p90 and p99 show it' '.rows[0].latency_us | .p90 > 200000 and .p99 > 800000'
# Only the four requests that were under way waited.
holds 'without the correction only the maximum would' '.rows[0] |
	.uncorrected_us.mean < .latency_us.mean / 2 and .uncorrected_us.max > 800000'

echo '# a client that is killed: the server serves the next one'
background --test bandwidth -t 30 --size 64 --json
kill -KILL $run
wait $run && fail 'a killed client'
await 'the next client' client -t 0.05 --size 64 --json
holds 'a row' '.rows | length == 2'

echo '# hostile clients'
timeout -k 5 60 "$bin/perf-hostile" "$uri" "$server_address" >"$work/hostile.log" 2>&1 ||
	fail 'the hostile client'
await 'the next client' client -t 0.05 --size 64 --json

echo '# limits'
client --test bandwidth -t 0.05 --qps 300 --size 8 && fail 'more queue pairs than allowed'
grep -q 'at most 256 queue pairs' "$work/client.log" || fail 'the limit is not named'

echo '# SIGTERM: the server ends soon, and sums up'
process=$(server_process)
process=${process% }
kill "$process"
# It takes less than a second; a machine may be loaded.
timeout 30 tail -s 0.05 --pid="$process" -f /dev/null || fail 'still there 30 s after SIGTERM'
server_end || fail 'SIGTERM is no failure'
grep -q 'clients, .* tests, .* messages; .* connections refused' "$work/server.log" ||
	fail 'no summary'

echo '# a server that is killed: partial results, and a cause'
for signal in KILL TERM; do
	start
	background --test bandwidth,latency -t 30 --size 64 --json
	kill -$signal "$(server_process)"
	wait $run
	[ $? -eq 1 ] || fail 'exit status 1'
	server_end
	holds 'one incomplete row, and the cause' '.exit == 1 and (.error | length) > 0 and
		(.rows | length == 1 and (.[0].error | length) > 0 and
		.[0].messages > 0 and .[0].seconds < 25)'
	grep -Eq 'ndx-perf client: .*(server|peer)' "$work/client.log" || fail 'no cause on stderr'
done

echo '# no server, no adapter, wrong command lines'
server_address=${server_address%:*}:1
client && fail 'connected to nothing'
[ -s "$work/client.log" ] || fail 'no cause'
# usage STATUS ARGUMENTS...
usage() {
	expected=$1
	shift
	"$bin/ndx-perf" "$@" >"$work/usage.log" 2>&1
	ended=$?
	[ $ended -eq "$expected" ] || fail "ndx-perf $*: ended with $ended"
}
usage 0 --help
usage 0 compare --help
for arguments in '' 'loop' 'client' 'server loop' 'client h:1 --adapter loop' 'client h:1 --json --csv' \
	'client h:1 --size 0' 'client h:1 --size 1K' 'client h:1 --op fetch' 'client h:1 -t x' \
	'client h:1 --rate 10 --test bandwidth' 'client h:1 --both --test latency' \
	'client h:1 --wait --op write' 'client h:1 --size 99999999999999999999' 'client h:1 --depth ,'; do
	# shellcheck disable=SC2086 # words
	usage 2 $arguments
done
usage 3 server ofi:tcp?iface=nowhere
usage 3 client 127.0.0.1:1 --adapter ofi:tcp?iface=nowhere
echo 'ndx-perf: all well'
