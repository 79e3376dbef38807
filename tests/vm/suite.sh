#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: suite.sh SOURCE CASES TIMES ROUNDS DEATHS FRAMES
# In the guest: all that tests/run.sh runs there. CASES chooses those of ndx-conformance, TIMES says
# how often the programs of others meet ours, ROUNDS and DEATHS how much ndx-torture does,
# FRAMES how many frames are streamed. Prints TAP, part by part. What it needs tests/run.sh has
# packed.
set -u
src=$1 cases=$2 times=$3 rounds=$4 deaths=$5 frames=$6
log=$(mktemp)
trap 'rm -f "$log"' EXIT
count=0 ended=0
ofi0='ofi:verbs?iface=v0' ofi1='ofi:verbs?iface=v1'

# What cuts the wire comes while nothing is sent, and stays: a packet that is lost when it comes ends
# the queue pair with which software RoCE connects (rdma resource show qp: GSI, ERR), and that for good.
wire heal || exit 1

# run NAME COMMAND...: a line of TAP; the end of what it printed, if it fails
run() {
	name=$1
	shift
	count=$((count + 1))
	if "$@" >"$log" 2>&1; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		tail -n 300 "$log" | sed 's/^/# /'
		ended=1
	fi
}

sh "$src/tests/vm/peers.sh" "$src" "$times" || ended=1
sh "$src/tests/vm/negotiate.sh" "$src" || ended=1
run receiver.cases receiver-cases --rounds 10 verbs:rxe0 verbs:rxe1
[ "$rounds" -eq 0 ] || run receiver.cases_ofi_verbs receiver-cases --rounds 10 "$ofi0" "$ofi1"
run receiver.hold_5s receiver-cases --hold-ms 5000 \
	--only who_holds_all_slots_stops_the_peer_and_loses_nothing verbs:rxe0 verbs:rxe1
run receiver.hold_1s receiver-cases --hold-ms 1000 \
	--only who_holds_all_slots_too_long_is_told_why verbs:rxe0 verbs:rxe1
run receiver.frames sh "$src/tests/vm/frames.sh" "$src" "$frames"
sh "$src/tests/vm/surf.sh" "$src" || ended=1
sh "$src/tests/vm/stacks.sh" || ended=1
run wire.device_removed sh "$src/tests/vm/removal.sh"
run verbs.foreign_device timeout -s KILL 90 foreign-device verbs:rxe0 rxe1 10.9.0.2
run verbs.addresses sh "$src/tests/vm/addresses.sh"
run bench.connect ndx-connect --count 20 --single 5 verbs:rxe0 verbs:rxe1
run bench.perf ndx-perf --tests latency,write,stream --modes spin --threads 1 --sizes 8 --depths 4 \
	--blocks 2 --block-ms 1 --tries 1 verbs:rxe0 verbs:rxe1
if [ "$rounds" -gt 0 ]; then
	run torture.verbs ndx-torture verbs:rxe0 verbs:rxe1 --rounds "$rounds"
	run torture.ofi_verbs ndx-torture "$ofi0" "$ofi1" --rounds "$rounds"
fi
if [ "$deaths" -gt 0 ]; then
	run torture.deaths ndx-torture verbs:rxe0 verbs:rxe1 --kill --rounds "$deaths"
	run torture.deaths_ofi_verbs ndx-torture "$ofi0" "$ofi1" --kill --rounds "$deaths"
fi
echo "1..$count"
ndx-conformance verbs:rxe0 verbs:rxe1 --filter "$cases" || ended=1
# Of the other stack the ordinary run has a few.
[ "$cases" = '*' ] || cases='d*.[ac]*'
ndx-conformance "$ofi0" "$ofi1" --filter "$cases" || ended=1
exit $ended
