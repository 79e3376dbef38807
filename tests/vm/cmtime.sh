#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: cmtime.sh [COUNT [TIMES]]
# In the guest: the time of connections with cmtime of rdmacm-utils, which does not drain, and with
# NDX, in turn. Microseconds for each of COUNT connections that are opened at once, from the
# identifier to the established connection, queue pair included. The queue pairs have one request,
# as those of cmtime. Then the same with queue pairs of four requests, and with more requests to
# drain; then one connection after the other.
#   sh tests/vm/run.sh -x cmtime -x tests/vm/cmtime.sh -- 'sh '"$PWD"'/tests/vm/cmtime.sh' # ndx-connect
set -u
count=${1:-100} times=${2:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# theirs: sum of the last column of the steps up to "connect"
theirs() {
	timeout 60 cmtime -b 10.9.0.2 -c "$count" >"$work/server" 2>&1 &
	server=$!
	# the server prints nothing when it listens: a client that comes too early is refused
	until timeout 60 cmtime -s 10.9.0.2 -b 10.9.0.1 -c "$count" >"$work/client" 2>&1; do
		kill -0 $server 2>/dev/null || return 1
	done
	wait $server
	awk -F: '/^(create id|bind addr|resolve|create qp|connect)/ { n = split($2, f, " "); sum += f[n] }
		/^disconnect/ { n = split($2, f, " "); parted = f[n] }
		END { printf "cmtime: %d at once: connect %.1f us each, disconnect %.1f us each\n", '"$count"', sum, parted
			exit sum == 0 }' "$work/client"
}

for _ in $(seq "$times"); do
	theirs || {
		cat "$work/client" "$work/server"
		exit 1
	}
	for messages in 1 4; do
		echo "NDX, $messages requests:"
		ndx-connect --count "$count" --single $((messages * 5)) --messages $messages \
			verbs:rxe0 verbs:rxe1 || exit 1
	done
done
