#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: suite.sh SOURCE PART CASES TIMES ROUNDS DEATHS FRAMES
# In the guest: everything that tests/run.sh runs there. PART is conformance, of verbs and of
# shims/ndspi; or programs, and the conformance of ofi:verbs. The two take about as long. CASES selects
# cases of ndx-conformance, TIMES is the number of runs with programs of rdmacm-utils, ROUNDS and
# DEATHS are those of ndx-torture, FRAMES is the number of streamed frames. Prints TAP, piece by
# piece. tests/run.sh packs the files that it needs.
set -u
src=$1 part=$2 cases=$3 times=$4 rounds=$5 deaths=$6 frames=$7
log=$(mktemp)
trap 'rm -f "$log"' EXIT
count=0 ended=0
ofi0='ofi:verbs?iface=v0' ofi1='ofi:verbs?iface=v1'

# Add the discipline that later cuts the link now, while nothing is sent, and keep it: a packet that
# is lost when it is added ends the queue pair with which software RoCE connects (rdma resource show
# qp: GSI, ERR), permanently.
wire heal || exit 1

# run NAME COMMAND...: one line of TAP; on failure also the end of the command's output
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

# show NAME COMMAND...: the same; on success also what the command printed
show() {
	before=$count-$ended
	run "$@"
	[ "$before" != "$((count - 1))-$ended" ] || sed 's/^/# /' "$log"
}

if [ "$part" = conformance ]; then
	sh "$src/tests/vm/ndspi.sh" "$src" "$((rounds > 0 ? 1 : 7))" || ended=1
	ndx-conformance verbs:rxe0 verbs:rxe1 --filter "$cases" || ended=1
	exit $ended
fi
sh "$src/tests/vm/peers.sh" "$src" "$times" || ended=1
sh "$src/tests/vm/negotiate.sh" "$src" || ended=1
sh "$src/tests/vm/path.sh" "$src" || ended=1
sh "$src/tests/vm/proxy.sh" "$src" || ended=1
sh "$src/tests/vm/python.sh" "$src" || ended=1
run receiver.cases receiver-cases --rounds 10 verbs:rxe0 verbs:rxe1
[ "$rounds" -eq 0 ] || run receiver.cases_ofi_verbs receiver-cases --rounds 10 "$ofi0" "$ofi1"
run receiver.hold_5s receiver-cases --hold-ms 5000 \
	--only held_slots_stop_the_peer_and_lose_nothing verbs:rxe0 verbs:rxe1
run receiver.hold_1s receiver-cases --hold-ms 1000 \
	--only slots_held_too_long_are_reported verbs:rxe0 verbs:rxe1
run receiver.frames sh "$src/tests/vm/frames.sh" "$src" "$frames"
sh "$src/tests/vm/surf.sh" "$src" || ended=1
sh "$src/tests/vm/stacks.sh" || ended=1
run wire.device_removed sh "$src/tests/vm/removal.sh"
run verbs.foreign_device timeout -s KILL 90 foreign-device verbs:rxe0 rxe1 10.9.0.2
random=$src/build/bin/test_ofi_srq_random
[ ! -e "$random" ] || run ofi_verbs.srq_random env PAIR_URI="$ofi0" PAIR_ADDRESS=10.9.0.1 \
	SRQ_ROUNDS=15 timeout -s KILL 120 "$random"
run verbs.addresses sh "$src/tests/vm/addresses.sh"
run bench.connect ndx-connect --count 20 --single 5 verbs:rxe0 verbs:rxe1
show bench.ends_srq ndx-connect --count 200 --single 0 --ends 1 --srq verbs:rxe0 verbs:rxe1
run bench.perf ndx-perf compare --tests latency,write,stream --modes spin --threads 1 --sizes 8 --depths 4 \
	--blocks 2 --block-ms 1 --tries 1 verbs:rxe0 verbs:rxe1
run perf.hosts sh "$src/tests/vm/perf.sh" "$src"
if [ "$rounds" -gt 0 ]; then
	run torture.verbs ndx-torture verbs:rxe0 verbs:rxe1 --rounds "$rounds"
	run torture.ofi_verbs ndx-torture "$ofi0" "$ofi1" --rounds "$rounds"
fi
if [ "$deaths" -gt 0 ]; then
	run torture.deaths ndx-torture verbs:rxe0 verbs:rxe1 --kill --rounds "$deaths"
	run torture.deaths_ofi_verbs ndx-torture "$ofi0" "$ofi1" --kill --rounds "$deaths"
fi
echo "1..$count"
# The queues of this stack are NDX's own.
[ "$cases" = '*' ] || ndx-conformance "$ofi0" "$ofi1" --filter 'srq.*' || ended=1
# On this stack, and with a side on each, the ordinary run has only a few cases.
[ "$cases" = '*' ] || cases='[cd]*.[ac]*'
ndx-conformance "$ofi0" "$ofi1" --filter "$cases" || ended=1
ndx-conformance verbs:rxe0 "$ofi1" --filter "$cases" || ended=1
ndx-conformance "$ofi0" verbs:rxe1 --filter "$cases" || ended=1
exit $ended
