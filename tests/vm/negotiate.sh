#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: negotiate.sh SOURCE
# In the guest: ndx-negotiate between the two devices, without a connection manager. Prints TAP.
set -u
src=$1
# shellcheck source=tests/vm/tap.sh
. "$src/tests/vm/tap.sh"
export NDX_PLUGIN_PATH="$src/build/lib/ndx"
server_limit=60

# client OPTION...: a client of the running server
client() {
	timeout 40 ndx-negotiate client "$server_address" --adapter verbs:rxe0 --allow-plaintext "$@" \
		>"$work/client.log" 2>&1
}

moves_data() {
	server_start "$work" ndx-negotiate server "$1" --adapter verbs:rxe1 --allow-plaintext \
		--count 2 || return 1
	client --messages 50 || return 1
	grep -q '50 messages of 4096 bytes each way, 50 writes, 50 reads: 0 wrong' "$work/client.log" &&
		grep -q 'negotiated by roce/verbs-rc' "$work/client.log" || return 1
	client --messages 10 --set mtu=512 || return 1
	grep -q 'path MTU 512' "$work/client.log" || return 1
	server_end && [ "$(grep -c '0 wrong; end of connection: graceful' "$work/server.log")" -eq 2 ]
}

# The same session and plugin over libfabric, which has a connection manager.
libfabric_moves_data() {
	server_start "$work" ndx-negotiate server "$1" --adapter 'ofi:verbs?iface=v1' --allow-plaintext \
		--count 1 || return 1
	timeout 40 ndx-negotiate client "$server_address" --adapter 'ofi:verbs?iface=v0' \
		--allow-plaintext --messages 50 >"$work/client.log" 2>&1 || return 1
	server_end || return 1
	grep -q 'negotiated by roce/fabric-msg' "$work/client.log" &&
		grep -q '0 wrong; end of connection: graceful' "$work/server.log"
}

# Over TCP the two ends reach each other; the GID that the client has to use is of the other family.
families_differ() {
	server_start "$work" ndx-negotiate server '[fd09::2]:0' --adapter verbs:rxe1 --allow-plaintext \
		--count 1 || return 1
	timeout 40 ndx-negotiate client "$server_address" --adapter 'verbs:rxe0?gid=1' \
		--allow-plaintext >"$work/client.log" 2>&1 && return 1
	server_end
	grep -q 'the GID here is of an IPv4 address, there of an IPv6' "$work/client.log"
}

# Requests and responses; the connector disconnects, and the session's transport carries the
# goodbye.
answers() {
	server_start "$work" ndx-reqresp server 10.9.0.2:0 --negotiated --adapter verbs:rxe1 --count 1 \
		--allow-plaintext --wait || return 1
	timeout 40 ndx-reqresp client "$server_address" --negotiated --adapter verbs:rxe0 --wait --quiet \
		--allow-plaintext --requests 300 >"$work/client.log" 2>&1 || return 1
	server_end || return 1
	grep -q '300 verified, 0 wrong' "$work/client.log" &&
		grep -q 'disconnected: graceful, both sides said goodbye' "$work/client.log" &&
		grep -q '0 bad; .*end of connection: graceful' "$work/server.log"
}

# A killed process sends no goodbye: the peer must report an abort.
killed() {
	server_start "$work" ndx-negotiate server 10.9.0.2:0 --adapter verbs:rxe1 --allow-plaintext \
		--count 1 || return 1
	client --messages 1000000 &
	busy=$!
	# The client prints the agreement when data begin to move.
	until grep -q 'negotiated by' "$work/client.log" 2>/dev/null; do
		kill -0 $busy || return 1
	done
	kill -9 "$server_pid" || return 1 # busybox: timeout has become the program
	wait $busy && return 1
	server_end
	grep -q 'connection: aborted' "$work/client.log"
}

# tls_moves_data CLIENT-ADAPTER SERVER-ADAPTER: TLS needs no leave for plaintext, and binds the queue
# pairs to its channel.
tls_moves_data() {
	server_start "$work" ndx-negotiate server 10.9.0.2:0 --adapter "$2" --count 1 --verbose \
		--tls-psk "$work/psk" || return 1
	timeout 40 ndx-negotiate client "$server_address" --adapter "$1" --messages 50 --history \
		--tls-psk "$work/psk" >"$work/client.log" 2>&1 || return 1
	server_end || return 1
	grep -q '50 messages of 4096 bytes each way, 50 writes, 50 reads: 0 wrong' "$work/client.log" &&
		grep -q 'validate 0: sent validate, 80 bytes' "$work/client.log" &&
		grep -q 'TLS 1.3, TLS_AES_128_GCM_SHA256, pre-shared key of "alice"' \
			"$work/server.log" &&
		grep -q '0 wrong; end of connection: graceful' "$work/server.log"
}

# Neither end speaks plaintext with another host unasked.
stays_at_home() {
	timeout 40 ndx-negotiate server 10.9.0.2:0 --adapter verbs:rxe1 >"$work/server.log" 2>&1 &&
		return 1
	grep -q 'will not listen at 10.9.0.2:0 .* in plaintext' "$work/server.log" || return 1
	timeout 40 ndx-negotiate client 10.9.0.2:7471 --adapter verbs:rxe0 >"$work/client.log" 2>&1 &&
		return 1
	grep -q 'will not connect to 10.9.0.2:7471 .* in plaintext' "$work/client.log"
}

# Two and 64 queue pairs by one session: each path is proved, each goodbye finds its connection.
several_queue_pairs() {
	timeout 60 ndx-conformance "$1" "$2" --filter 'negotiated.queue_pairs_[tme]*' \
		>"$work/client.log" 2>&1 && grep -q '# 4 passed, 0 failed, 0 skipped' "$work/client.log"
}

# added_queue_pairs ADAPTER ADAPTER PASSED SKIPPED: while others live, and their paths are proved. Ends
# of libfabric have no key of which one could lie.
added_queue_pairs() {
	timeout 60 ndx-conformance "$1" "$2" --filter 'negotiated.queue_pairs_added*' \
		>"$work/client.log" 2>&1 && grep -q "# $3 passed, 0 failed, $4 skipped" "$work/client.log"
}

moves_data 10.9.0.2:0
verdict negotiate.moves_data $?
moves_data '[fd09::2]:0'
verdict negotiate.moves_data_by_ipv6 $?
libfabric_moves_data 10.9.0.2:0
verdict negotiate.libfabric_moves_data $?
libfabric_moves_data '[fd09::2]:0'
verdict negotiate.libfabric_moves_data_by_ipv6 $?
(umask 077 && echo 'alice:000102030405060708090a0b0c0d0e0f' >"$work/psk")
tls_moves_data verbs:rxe0 verbs:rxe1
verdict negotiate.tls_moves_data $?
tls_moves_data 'ofi:verbs?iface=v0' 'ofi:verbs?iface=v1'
verdict negotiate.libfabric_moves_data_over_tls $?
stays_at_home
verdict negotiate.plaintext_stays_at_home $?
families_differ
verdict negotiate.families_differ $?
answers
verdict negotiate.requests_and_responses $?
several_queue_pairs verbs:rxe0 verbs:rxe1
verdict negotiate.several_queue_pairs $?
several_queue_pairs 'ofi:verbs?iface=v0' 'ofi:verbs?iface=v1'
verdict negotiate.libfabric_several_queue_pairs $?
added_queue_pairs verbs:rxe0 verbs:rxe1 4 0
verdict negotiate.added_queue_pairs $?
added_queue_pairs 'ofi:verbs?iface=v0' 'ofi:verbs?iface=v1' 3 1
verdict negotiate.libfabric_added_queue_pairs $?
killed
verdict negotiate.killed_server_is_an_abort $?
verdicts_end
