#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: ndspi.sh SOURCE N
# In the guest: the programs of samples/ndspi between the two devices, and the tests of the
# interfaces (tests/ndspi) on one, over both stacks. test_teardown.c takes each N-th of its orders.
# Prints TAP.
set -u
src=$1 orders=$2
limit=300
[ "$orders" -gt 1 ] || limit=1200
# shellcheck source=tests/vm/tap.sh
. "$src/tests/vm/tap.sh"
server_limit=120
command -v nd-hello >/dev/null || {
	echo 'ok 1 - ndspi # SKIP built without the libraries for NetworkDirect programs: install g++'
	echo 1..1
	exit 0
}

# pair ADAPTER ADDRESS ADAPTER PROGRAM OPTION...: a server on the first adapter, a client on the
# second one
pair() {
	export NDX_ADAPTER="$1"
	server_start "$work" "$4" -s "$2" || return 1
	export NDX_ADAPTER="$3"
	program=$4
	shift 4
	timeout 60 "$program" -c "$server_address" "$@" >"$work/client.log" 2>&1 || return 1
	server_end
}

hello() {
	pair "$1" "$2" "$3" nd-hello 'between devices' &&
		grep -q '^received: between devices' "$work/server.log"
}

pingpong() {
	pair "$1" "$2" "$3" nd-pingpong -n 200 &&
		grep -q '^200 messages of 64 bytes returned' "$work/server.log" &&
		grep -q '^200 rounds of 64 bytes: half a round trip takes' "$work/client.log"
}

write_read() {
	pair "$1" "$2" "$3" nd-write-read -l 300001 -n 3 &&
		grep -q '^3 rounds of 300001 bytes: the client has written 0 wrong' "$work/server.log" &&
		grep -q '^3 rounds of 300001 bytes: 0 wrong bytes were read' "$work/client.log"
}

# A killed process sends no goodbye: the server must notice that nevertheless.
killed() {
	export NDX_ADAPTER=verbs:rxe1
	server_start "$work" nd-pingpong -s 10.9.0.2 || return 1
	NDX_ADAPTER=verbs:rxe0 timeout 60 nd-pingpong -c "$server_address" -n 100000000 \
		>"$work/client.log" 2>&1 &
	busy=$!
	until grep -q ': connected$' "$work/server.log"; do
		kill -0 $busy || return 1
	done
	kill -9 $busy || return 1 # busybox: timeout has become the program
	wait $busy
	server_end
	[ $server_status -eq 1 ] && grep -q ': status 0xC' "$work/server.log"
}

for sample in hello pingpong write_read; do
	$sample verbs:rxe1 10.9.0.2:0 verbs:rxe0
	verdict ndspi.$sample $?
	$sample verbs:rxe1 '[fd09::2]:0' verbs:rxe0
	verdict ndspi.${sample}_by_ipv6 $?
	$sample 'ofi:verbs?iface=v1' 10.9.0.2:0 'ofi:verbs?iface=v0'
	verdict ndspi.${sample}_ofi_verbs $?
done
killed
verdict ndspi.killed_client_is_noticed $?
unset NDX_ADAPTER
# judge NAME STATUS: the verdict on a program of tests/ndspi; and a line for each of its cases that was
# skipped, with the reason
judge() {
	if [ "$2" -eq 0 ] && grep '^\[  PASSED  \]' "$work/test.log" | tail -n 1 | grep -q ' 0 test'; then
		count=$((count + 1))
		echo "ok $count - $1 # SKIP all of its cases, see below"
	else
		verdict "$1" "$2"
	fi
	sed -n 's/^deviation: /# &/p' "$work/test.log"
	sed -n 's/^skip: //p' "$work/test.log" >"$work/skipped"
	while IFS=: read -r skipped why; do
		count=$((count + 1))
		echo "ok $count - $1.$skipped # SKIP$why"
	done <"$work/skipped"
}

for adapter in verbs:rxe0 'ofi:verbs?iface=v0'; do
	stack=
	[ "${adapter%%:*}" = verbs ] || stack=_ofi_verbs
	for program in "$src"/build/bin/test_ndspi_*_c; do
		[ -e "$program" ] || continue
		name=${program##*/test_ndspi_}
		every=
		[ "$name" != teardown_c ] || every=$orders
		# shellcheck disable=SC2086 # none or one
		timeout $limit "$program" "$adapter" $every >"$work/test.log" 2>&1
		judge "ndspi.${name%_c}$stack" $?
	done
done
verdicts_end
