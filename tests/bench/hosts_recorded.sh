#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: hosts_recorded.sh SOURCE
# hosts.sh with recorded outputs of the programs in place of the programs: the table to its last digit,
# and what it says of outputs in which a figure is missing. It works on a copy, whose page it changes.
set -eu
src=$1
if ! command -v jq >/dev/null; then
	echo 'skip: jq is not installed'
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STUB="$work" TMPDIR="$work/tmp" NDX_BUILD="$work" NDX_ROUNDS=4
here=$src/tests/bench/hosts
mkdir "$work/bin" "$work/count" "$work/faults" "$work/tmp"
mkdir -p "$work/src/tests/bench" "$work/src/samples" "$work/src/docs/performance"
cp -r "$here" "$work/recorded"
cp "$src/tests/bench/hosts.sh" "$work/src/tests/bench"
cp "$src/samples/server.sh" "$work/src/samples"
for program in iperf3 ip ndx-perf sleep tc ucx_perftest unshare; do
	printf '#!/bin/sh\nexec sh "%s" %s "$@"\n' "$src/tests/bench/hosts_stub.sh" $program \
		>"$work/bin/$program"
	chmod +x "$work/bin/$program"
done

fail() {
	echo "FAILED: $1"
	tail -n 40 "$work/out" "$work/err" 2>/dev/null || :
	exit 1
}
# run OPTIONS...: hosts.sh, called as a path that is not absolute; its exit status is in $ended
run() {
	rm -f "$work"/count/*
	printf 'above\n<!-- hosts begin -->\nold\n<!-- hosts end -->\nbelow\n' >"$work/src/docs/performance.md"
	rm -f "$work/src/docs/performance/hosts.json"
	ended=0
	(cd "$work/src/tests" && PATH="$work/bin:$PATH" exec timeout -k 5 100 sh bench/hosts.sh "$@") \
		>"$work/out" 2>"$work/err" || ended=$?
	[ -z "$(ls "$work/tmp")" ] || fail "run $*: it leaves temporary files"
}
# recorded KIND N FILTER: the Nth output of this kind is the recorded one after jq's FILTER
recorded() {
	jq "$3" "$here/$1" >"$work/faults/$1.$2"
}
# gives_up WHAT TEXT: there is an output that lacks a figure. No table; the last line has TEXT.
gives_up() {
	run --quick
	[ "$ended" -eq 1 ] || fail "$1: it ended with $ended"
	tail -n 1 "$work/err" | grep -qF "$2" || fail "$1: the last line lacks: $2"
	[ ! -s "$work/out" ] || fail "$1: a table"
	rm -f "$work"/faults/*
}

# Medians and quartiles are those of 4 rounds with 1 .. 4, 5 .. 8 and 9 .. 12 Gbit/s of iperf3.
run
[ "$ended" -eq 0 ] || fail "it ended with $ended"
diff "$here/table.txt" "$work/out" || fail 'the table is another one'
{
	printf 'above\n<!-- hosts begin -->\n\n'
	cat "$here/table.txt"
	printf '\n<!-- hosts end -->\nbelow\n'
} | diff - "$work/src/docs/performance.md" || fail 'the page is another one'
jq -e 'length == 16 and all(.rounds == 4)' "$work/src/docs/performance/hosts.json" >/dev/null ||
	fail 'hosts.json has other rows'
if grep -q skipped "$work/err"; then
	fail 'a rate is skipped'
fi

# A server that does not listen yet. iperf3 says so, and ends with 0.
cp "$here/iperf3-refused.json" "$work/faults/iperf3.json.1"
run --quick
[ "$ended" -eq 0 ] || fail "a second try: it ended with $ended"
[ "$(wc -l <"$work/count/iperf3.json")" -eq 4 ] || fail 'not one try more than rounds'
[ "$(grep -c '^| .* B |' "$work/out")" -eq 16 ] || fail 'a second try: not 16 rows'
rm -f "$work"/faults/*

recorded iperf3.json 1 'del(.end.sum_received)'
gives_up 'no sum' 'no figure of iperf3: bandwidth, 1048576 bytes'
recorded iperf3.json 1 '.end.sum_received.bits_per_second = 0'
gives_up 'no bits' 'no figure of iperf3: bandwidth, 1048576 bytes'
recorded ndx-bandwidth.json 1 '.rows |= map(select(.operation == "send"))'
gives_up 'no row of writes' 'no figure of ndx-perf write: bandwidth, 1048576 bytes'
recorded ndx-bandwidth.json 1 '.rows += .rows'
gives_up 'two rows of sends' 'no figure of ndx-perf send: bandwidth, 1048576 bytes'
head -c 100 "$here/ndx-bandwidth.json" >"$work/faults/ndx-bandwidth.json.1"
gives_up 'half of an output' 'no figure of ndx-perf send: bandwidth, 1048576 bytes'
recorded ndx-latency.json 2 '.rows[0].latency_us.mean = null'
gives_up 'no mean' 'no figure of ndx-perf send: latency, half a round trip, 4096 bytes'
sed 's/^\( *[0-9]*,.*\),.*,.*,.*,.*$/\1/' "$here/ucx-bw.csv" >"$work/faults/ucx-bw.csv.1"
gives_up 'a column too few' 'no figure of ucx_perftest tag_bw: bandwidth, 1048576 bytes'
sed 's/^\(2000,\)[0-9.]*/\1nan/' "$here/ucx-lat.csv" >"$work/faults/ucx-lat.csv.1"
gives_up 'not a number' 'no figure of ucx_perftest tag_lat: latency, half a round trip, 64 bytes'
recorded compare.json 1 'map(.ndx = "fast")'
gives_up 'a word' 'no figure of ndx-perf compare: latency, half a round trip, 64 bytes'
: >"$work/faults/compare.json.1"
gives_up 'nothing' 'no figure of ndx-perf compare: latency, half a round trip, 64 bytes'

# What a program says before it fails is not lost.
echo 'it was asked for too much' >"$work/faults/compare.json.2.fails"
gives_up 'compare fails' 'does not succeed: ndx-perf compare'
grep -q '^it was asked for too much$' "$work/err" || fail 'compare fails: not why'
echo 'the peer is gone' >"$work/faults/ndx-latency.json.1.fails"
gives_up 'a client fails' 'does not succeed: ndx-perf client --test latency'
grep -q '^the peer is gone$' "$work/err" || fail 'a client fails: not why'
for n in $(seq 200); do
	cp "$here/iperf3-refused.json" "$work/faults/iperf3.json.$n"
done
gives_up 'no server at all' 'does not succeed: iperf3 -s'
grep -q 'unable to connect to server: Connection refused' "$work/err" || fail 'no server: not why'

# In the third of 4 rounds at 10 Gbit/s something fails. The rows of the other rates are whole.
echo 'the peer is gone' >"$work/faults/ndx-bandwidth.json.11.fails"
run
[ "$ended" -eq 0 ] || fail "a rate without figures: it ended with $ended"
grep -v 'at 10 Gbit/s' "$here/table.txt" | diff - "$work/out" || fail 'a rate without figures: another table'
grep -q '^skipped: 10 Gbit/s' "$work/err" || fail 'a rate without figures: it does not say so'
grep -q '^the peer is gone$' "$work/err" || fail 'a rate without figures: not why'
rm -f "$work"/faults/*

# What is missing has a name.
mkdir "$work/few"
ln -s "$(command -v dirname)" "$work/few/dirname"
ended=0
PATH="$work/few" "$(command -v sh)" "$work/src/tests/bench/hosts.sh" --quick >"$work/out" 2>"$work/err" || ended=$?
[ "$ended" -eq 1 ] || fail "no jq: it ended with $ended"
grep -q '^jq is not installed: ' "$work/err" || fail 'no jq: it does not say so'
run --slow
[ "$ended" -eq 2 ] || fail "an unknown option: it ended with $ended"
grep -q '^usage: ' "$work/err" || fail 'an unknown option: no usage'
