#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: stacks.sh
# In the guest: the same program on either stack; and a client of one stack at a server of the
# other, which must refuse it with the reason. Prints TAP.
set -u
work=$(mktemp -d)
server='' count=0 ended=0
trap 'rm -rf "$work"' EXIT

verdict() {
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - stacks.$2"
	else
		echo "not ok $count - stacks.$2"
		sed 's/^/# /' "$work/server" "$work/client"
		ended=1
	fi
}

# meet SERVER CLIENT: $met is the client's exit status, $work/client its output
meet() {
	rm -f "$work/port"
	ndx-reqresp server 10.9.0.2:0 --adapter "$1" --port-file "$work/port" --count 1 \
		--quiet --verbose >"$work/server" 2>&1 &
	server=$!
	for _ in $(seq 1200); do
		[ -s "$work/port" ] && break
		sleep 0.05
	done
	timeout 60 ndx-reqresp client "10.9.0.2:$(cat "$work/port")" --adapter "$2" --requests 100 \
		--quiet --verbose >"$work/client" 2>&1
	met=$?
}

# alike NAME SERVER CLIENT: both ends on one stack
alike() {
	meet "$2" "$3"
	[ $met -eq 0 ] && wait $server && grep -q '100 verified, 0 wrong' "$work/client"
	verdict $? "$1"
	kill $server 2>/dev/null
}

alike same_program_on_verbs verbs:rxe1 verbs:rxe0
alike same_program_on_ofi_verbs 'ofi:verbs?iface=v1' 'ofi:verbs?iface=v0'

meet verbs:rxe1 'ofi:verbs?iface=v0'
[ $met -ne 0 ] && [ $met -ne 124 ] && grep -q 'is not ofi:verbs' "$work/client" &&
	grep -q 'refused: the peer is ofi:verbs' "$work/server"
verdict $? verbs_refuses_ofi_verbs
kill $server 2>/dev/null

meet 'ofi:verbs?iface=v1' verbs:rxe0
[ $met -ne 0 ] && [ $met -ne 124 ] && grep -q 'the peer is ofi:verbs' "$work/client" &&
	grep -q 'ofi:verbs talks to ofi:verbs only' "$work/server"
verdict $? ofi_verbs_refuses_verbs
kill $server 2>/dev/null

echo "1..$count"
exit $ended
