#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: peers.sh SOURCE [ROUNDS]
# In the guest: programs of rdmacm-utils, which do not use NDX, with the samples. Prints TAP.
set -u
src=$1
# shellcheck source=tests/vm/tap.sh
. "$src/tests/vm/tap.sh"
rounds=${2:-5}

for program in rdma_client rdma_server; do
	command -v $program >/dev/null || {
		echo "ok 1 - peers # SKIP no $program here: install rdmacm-utils"
		echo 1..1
		exit 0
	}
done

# A server of NDX, a client of rdmacm-utils.
their_client() {
	server_limit=60
	server_start "$work" interop-server "$1" --adapter verbs:rxe0 || return 1
	timeout 30 rdma_client -s "$2" -p "${server_address##*:}" >"$work/client.log" 2>&1 || return 1
	server_end || return 1
	grep -q 'rdma_client: end 0' "$work/client.log" &&
		grep -q 'served one client, which parted: graceful' "$work/server.log"
}

# A server of rdmacm-utils, a client of NDX. That server prints nothing when it listens, so a
# refused connection is repeated. It listens on IPv4 only.
their_server() {
	timeout 60 rdma_server -p 7471 >"$work/server.log" 2>&1 &
	theirs=$!
	until timeout 30 interop-client "$1" --adapter verbs:rxe0 >"$work/client.log" 2>&1; do
		grep -q CONNECTION_REFUSED "$work/client.log" && kill -0 $theirs 2>/dev/null || return 1
	done
	wait $theirs || return 1
	grep -q 'rdma_server: end 0' "$work/server.log" &&
		grep -q 'asked one server, and parted: ' "$work/client.log"
}

# repeat FUNCTION ARGUMENT...: several rounds, because of possible races
repeat() {
	round=0
	while [ $round -lt "$rounds" ]; do
		"$@" || return 1
		round=$((round + 1))
	done
}

repeat their_client 10.9.0.1:0 10.9.0.1
verdict peers.rdma_client_at_our_server $?
repeat their_client '[fd09::1]:0' fd09::1
verdict peers.rdma_client_at_our_server_by_ipv6 $?
repeat their_server 10.9.0.2:7471
verdict peers.our_client_at_rdma_server $?
verdicts_end
