#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: stacks.sh
# In the guest: the same program on either stack, and with an end on each. Prints TAP.
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

# both NAME SERVER CLIENT: the ends move their data
both() {
	meet "$2" "$3"
	[ $met -eq 0 ] && wait $server && grep -q '100 verified, 0 wrong' "$work/client"
	verdict $? "$1"
	kill $server 2>/dev/null
}

both same_program_on_verbs verbs:rxe1 verbs:rxe0
both same_program_on_ofi_verbs 'ofi:verbs?iface=v1' 'ofi:verbs?iface=v0'

both ofi_verbs_client_at_verbs verbs:rxe1 'ofi:verbs?iface=v0'
both verbs_client_at_ofi_verbs 'ofi:verbs?iface=v1' verbs:rxe0

echo "1..$count"
exit $ended
