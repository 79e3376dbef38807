#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: messages.sh SOURCE BIN
# What a user sees when something is wrong: where it happened, the cause, and the next step. Each of
# these messages once lacked one of the three.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
# shellcheck source=tests/samples/said.sh
. "$src/tests/samples/said.sh"
export NDX_PLUGIN_PATH="$bin/../lib/ndx"

echo '# no listener'
for program in 'ndx-reqresp client' ndx-send 'ndx-perf client' 'echo-client --connections 1' \
	interop-client; do
	# shellcheck disable=SC2086 # words
	set -- $program
	name=$1
	shift
	run 1 "$name" "$@" 127.0.0.1:1 --adapter "$uri"
	said ' to 127.0.0.1:1: connecting failed: NDX_E_CONNECTION_REFUSED: no listener there'
	said '(111: Connection refused)'
done
run 1 ndx-reqresp client 127.0.0.1:1 --adapter loop
said 'loop reaches its own process only'

echo '# another host'
for program in 'ndx-reqresp client' ndx-send; do
	# shellcheck disable=SC2086 # words
	set -- $program
	name=$1
	shift
	run 1 "$name" "$@" 10.9.9.9:5000 --adapter "$uri"
	said ' to 10.9.9.9:5000: connecting failed: NDX_E_INVALID_ADDRESS'
	said 'use ofi:tcp?trust=lan, or iface=NAME&trust=lan with the interface that leads there'
done

echo '# half an address'
run 2 ndx-reqresp client 127.0.0.1
said 'the port is missing; write ADDRESS:PORT'
run 2 ndx-send 127.0.0.1
said 'the port is missing; write ADDRESS:PORT'
run 2 echo-client 127.0.0.1
said 'the port is missing; write ADDRESS:PORT'
run 2 ndx-reqresp client 5000
said 'the host is missing; write ADDRESS:PORT'
run 2 hello-client
said 'usage: hello-client PORT'

echo '# a server that refuses'
server_start "$work" "$bin/ndx-reqresp" server 127.0.0.1:0 --adapter "$uri" --size 1000 ||
	fail 'no server'
run 1 ndx-reqresp client "$server_address" --adapter "$uri" --size 2000
said 'the peer says: messages of 2000 bytes are too long or too short; say --size 1000'
unsaid 'no listener there'
run 1 ndx-send "$server_address" --adapter "$uri"
said 'the peer says: this is ndx-reqresp, version 1'
server_stop

echo '# too few descriptors'
# limited COUNT MS: both sides with so many descriptors and milliseconds, on stderr what stopped them
limited() {
	timeout -k 5 60 prlimit --nofile="$1" "$bin/ndx-reqresp" both --adapter "$uri" \
		--requests 3 --timeout "$2" --quiet >"$work/out.log" 2>"$work/err.log" </dev/null
}
# is_told: on stderr is what is short
is_told() {
	grep -q 'ulimit -n\|Too many open files' "$work/err.log"
}
few=0
# each step takes its descriptors at another count, which depends on those that are inherited
for count in $(seq 6 34); do
	limited "$count" 5000 && continue
	if ! is_told; then # a time-out on a loaded machine: once more, with more time
		limited "$count" 20000 && continue
		is_told || fail "with $count descriptors it is not told why"
	fi
	few=$((few + 1))
	unsaid 'NDX_E_UNSUCCESSFUL'
	unsaid 'Input/output error'
	# libfabric could not accept: the listener's log names the cause
	if grep -q 'no answer in' "$work/err.log"; then
		NDX_LOG=warn limited "$count" 5000
		grep -q 'no answer in' "$work/err.log" &&
			said 'no connection is accepted at the moment: Too many open files'
	fi
done
[ $few -ge 5 ] || fail 'there were always enough descriptors'

echo '# an adapter that is not there'
run 3 ndx-reqresp both --adapter 'ofi:tcp?addr=203.0.113.7'
said 'ofi: no interface that is up has address 203.0.113.7; the interfaces are: lo'
if [ ! -d /sys/class/infiniband ] && [ -f "$bin/../lib/ndx/ndx-provider-verbs.so" ]; then
	run 3 ndx-reqresp both --adapter verbs:mlx5_0
	said 'NDX_E_NOT_FOUND'
	said 'verbs:mlx5_0: this host has no RDMA device; load'
fi
export NDX_CONFIG=/nowhere/ndx.ini
run 3 ndx-reqresp both
unset NDX_CONFIG
said 'NDX_E_INVALID_CONFIG'
# shellcheck disable=SC2016 # a text
said '$NDX_CONFIG names /nowhere/ndx.ini, which does not exist'
if [ -x "$bin/ndx-conformance" ]; then
	run 3 ndx-conformance ofi:none
	grep -q '^Bail out! no adapter: .*none' "$work/out.log" || fail 'no cause for a reader of TAP'
	run 2 ndx-perf-compare --tests foo
	said '--tests foo: give a list of latency, stream and write'
fi

echo '# a port below 1024'
if [ "$(id -u)" -eq 0 ] && [ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)" -gt 80 ]; then
	timeout -k 5 60 setpriv --inh-caps=-net_bind_service --bounding-set=-net_bind_service \
		"$bin/ndx-reqresp" server 127.0.0.1:80 --adapter "$uri" >"$work/out.log" \
		2>"$work/err.log" && fail 'listens without the right to'
	said 'listen on 127.0.0.1:80: NDX_E_ACCESS_DENIED'
	said '127.0.0.1:80: Permission denied; a port below 1024 needs CAP_NET_BIND_SERVICE (13: '
fi

echo '# a plugin that is not there'
if [ -x "$bin/ndx-negotiate" ]; then
	run 1 ndx-negotiate both --adapter loop --variant roec/fabric-msg
	said 'no plugin "roec"; did you mean "roce"?'
	said 'set NDX_PLUGIN_PATH=DIRECTORY, absolute, to where ndx-plugin-roec.so is'
	said 'or say --plugins DIRECTORY'
fi

# dies PROGRAM ARGUMENT...: its server is killed while the program talks to it; err.log
dies() {
	program=$1
	shift
	rm -f "$work/talk"
	mkfifo "$work/talk" || fail 'no pipe'
	timeout -k 5 60 "$bin/$program" "$@" >"$work/talk" 2>"$work/err.log" </dev/null &
	client=$!
	found=
	exec 4<"$work/talk"
	while [ -z "$found" ] && read -r line <&4; do
		case $line in
		*'connected to'* | *'negotiated by'*) found=1 ;;
		esac
	done
	cat <&4 >"$work/out.log" &
	reader=$!
	exec 4<&-
	[ -n "$found" ] || fail "$program has not connected"
	kill -s KILL "$(cat "/proc/$server_pid/task/$server_pid/children")"
	wait $client && fail "$program does not notice that its server has died"
	wait $reader
	server_end
}

echo '# a peer that was killed'
server_start "$work" "$bin/ndx-reqresp" server 127.0.0.1:0 --adapter "$uri" || fail 'no server'
dies ndx-reqresp client "$server_address" --adapter "$uri" --requests 4G --quiet
said 'NDX_E_CANCELED'
said 'connection: aborted'
said " -> $server_address: aborted: NDX_E_CONNECTION_ABORTED: "
# with an errno or without, as libfabric hears of the end
said "the link ended without a goodbye: the peer's process has ended or was killed"
said 'disconnect: NDX_E_CONNECTION_ABORTED'
unsaid 'Operation canceled'
unsaid 'cancelled by the caller, or with its queue pair'

echo 'messages: all well'
