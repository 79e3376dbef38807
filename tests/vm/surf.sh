#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: surf.sh SOURCE
# In the guest: an emulated FPGA on one device; the plugin surf brings it up from the other device.
# Prints TAP.
set -u
src=$1
# shellcheck source=tests/vm/tap.sh
. "$src/tests/vm/tap.sh"
export NDX_PLUGIN_PATH="$src/build/lib/ndx"
server_limit=120

# fpga OPTION...
fpga() {
	server_start "$work" ndx-surf-fpga --adapter verbs:rxe1 --ip 10.9.0.2 "$@"
}

# host SETTINGS OPTION...
host() {
	settings=$1
	shift
	timeout 60 surf-host "$server_address" --adapter verbs:rxe0 --address 10.9.0.1 \
		--set "fpga-ip=10.9.0.2,udp-client=0x20000$settings" "$@" >"$work/host.log" 2>&1
}

# gone REQUESTS RESETS REST: what the FPGA reports about a host that has left
gone() {
	grep -q "^host gone: $1 requests, 0 lost, $2 resets, 0 objects left, ${3:-}" "$work/server.log"
}

both_ways() {
	fpga --hosts 2 --frames 300 || return 1
	host '' --frames 300 --send 200 || return 1
	grep -q '^300 frames, 0 lost, 0 bad; 200 sent; 256 of 256 slots back; end: stopped' \
		"$work/host.log" || return 1
	host ',mtu=512' --frames 300 --send 20 || return 1
	server_end || return 1
	gone 10 1 '1 of 1 queue pairs gone; 300 frames sent, 200 received, 0 bad$' &&
		gone 10 1 '2 of 2 queue pairs gone; 300 frames sent, 20 received, 0 bad$'
}

# The FPGA refuses a step: the plugin reverses the earlier steps, one by one.
rolled_back() {
	fpga --sweep --hosts 6 || return 1
	for step in 'PD alloc' 'MR alloc' 'QP create' 'QP to INIT' 'QP to RTR' 'QP to RTS'; do
		host '' && return 1
		grep -q "layer plugin, stage info, round 0: the peer gave up: $step: the FPGA refuses" \
			"$work/host.log" || return 1
	done
	server_end || return 1
	for requests in 1 3 5 8 9 10; do
		gone "$requests" 1 || return 1
	done
}

# The FPGA stops to answer: the plugin reports the register within its time limit; the soft reset
# makes the FPGA work again.
stuck() {
	fpga --hosts 2 --fault wedge --at 4 --frames 10 || return 1
	host ',step-ms=300' && return 1
	grep -q 'QP to RTR: the FPGA has not answered within 300 ms (register 0xf00' \
		"$work/host.log" || return 1
	host ',step-ms=300' && return 1
	server_end || return 1
	[ "$(grep -c '^host gone: 5 requests, 4 lost, 2 resets, 0 objects left' "$work/server.log")" -eq 2 ]
}

# A host that is killed leaves the FPGA as it is; the next host clears it.
killed() {
	fpga --hosts 2 --frames 100 || return 1
	timeout 60 surf-host "$server_address" --adapter verbs:rxe0 --address 10.9.0.1 --frames 0 --send 0 \
		--set fpga-ip=10.9.0.2,udp-client=0x20000 >"$work/killed.log" 2>&1 &
	busy=$!
	until grep -q "^up: " "$work/killed.log" 2>/dev/null; do
		kill -0 $busy || return 1
	done
	kill -9 $busy
	wait $busy
	host '' --frames 100 --send 10 || return 1
	server_end || return 1
	grep -q '^host gone: 6 requests, 0 lost, 1 resets, 3 objects left, 0 of 1' "$work/server.log" &&
		gone 10 1 '2 of 2 queue pairs gone; 100 frames sent, 10 received, 0 bad'
}

# A host that is asked to stop while the FPGA does not answer releases what it has created.
interrupted() {
	fpga --fault mute --at 4 || return 1
	timeout 60 surf-host "$server_address" --adapter verbs:rxe0 --address 10.9.0.1 --timeout 50000 \
		--set fpga-ip=10.9.0.2,step-ms=40000 >"$work/host.log" 2>&1 &
	busy=$!
	until grep -q '^request 4 goes wrong' "$work/server.log"; do
		kill -0 $busy || return 1
	done
	kill -INT $busy
	wait $busy
	[ $? -eq 1 ] || return 1
	server_end || return 1
	grep -q 'CANCELED: ' "$work/host.log" && gone 9 1
}

both_ways
verdict surf.both_ways $?
rolled_back
verdict surf.rolled_back_step_by_step $?
stuck
verdict surf.stuck_fpga_is_told_of $?
interrupted
verdict surf.interrupted_bring_up_is_taken_back $?
killed
verdict surf.next_host_clears_what_a_dead_one_left $?
verdicts_end
