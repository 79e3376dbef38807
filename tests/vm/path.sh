#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: path.sh SOURCE
# In the guest: sessions whose transport works while the RDMA path between the queue pairs does not.
# Both ends have to fail in stage validate and to say which direction is broken. Prints TAP.
#
# A session that fails waits most of its time, so several run at once.
set -u
src=$1
# shellcheck source=tests/vm/tap.sh
. "$src/tests/vm/tap.sh"
all=$work
server_limit=40
truth=$src/build/lib/ndx lying=$src/build/lib/lying

# What an end has to say: its status, and one of the directions, which name the broken ones.
statuses='NDX_E_HOST_UNREACHABLE|NDX_E_IO_TIMEOUT|NDX_E_ACCESS_VIOLATION|NDX_E_REMOTE_ERROR'
client_to_server='from client to server'
server_to_client='from server to client'
neither='in neither direction'
large='packets of the path MTU' # only where smaller ones pass

# Milliseconds of a stage. Sessions try the path for half of the time of stage validate, 3 s at most.
patience=6000

# ---- sessions ----

# session FOLDER STACK LIAR LIE: the logs and the exit statuses of both ends go to FOLDER. LIAR is
# client, server or none, and describes its end as lying_plugin.c does for LIE.
session() {
	work=$1
	mkdir "$work" || return
	client_plugins=$truth server_plugins=$truth address=10.9.0.2:0
	case $3 in
	client) client_plugins=$lying ;;
	server) server_plugins=$lying ;;
	esac
	case $2 in
	ofi) client_adapter='ofi:verbs?iface=v0' server_adapter='ofi:verbs?iface=v1' ;;
	*) client_adapter=verbs:rxe0 server_adapter=verbs:rxe1 ;;
	esac
	[ "$2" != verbs_ipv6 ] || address='[fd09::2]:0'
	export NDX_TEST_LIE="$4"
	NDX_PLUGIN_PATH=$server_plugins
	export NDX_PLUGIN_PATH
	server_start "$work" ndx-negotiate server "$address" --adapter "$server_adapter" --count 1 \
		--allow-plaintext --timeout "$patience" || return
	NDX_PLUGIN_PATH=$client_plugins timeout 30 ndx-negotiate client "$server_address" \
		--adapter "$client_adapter" --allow-plaintext --messages 2 --timeout "$patience" \
		>"$work/client.log" 2>&1
	echo $? >"$work/client.status"
	server_end
	echo $? >"$work/server.status"
}

sessions=
# begin NAME STACK [LIAR LIE]: in the background; `ended` waits for all
begin() {
	session "$all/$1" "$2" "${3:-none}" "${4:-}" &
	sessions="$sessions $!"
}

ended() {
	# shellcheck disable=SC2086 # a list
	wait $sessions
	sessions=
}

# ---- what the ends say ----

# status END NUMBER: did that end exit with it?
status() {
	[ -e "$work/$1.status" ] && [ "$(cat "$work/$1.status")" -eq "$2" ]
}

# validated END: the message of an end that failed in stage validate
validated() {
	status "$1" 1 &&
		grep -E "^ndx-negotiate $1: session 1( of [^ ]+)?: ($statuses): layer [a-z]+, stage validate, " \
			"$work/$1.log"
}

# says_only TEXT DIRECTION: does the message name that direction and no other?
says_only() {
	for phrase in "$client_to_server" "$server_to_client" "$neither"; do
		case $1 in
		*"$phrase"*) [ "$phrase" = "$2" ] || return 1 ;;
		*) [ "$phrase" != "$2" ] || return 1 ;;
		esac
	done
}

# broken NAME DIRECTION SIZE: one line of TAP. SIZE: large packets, or all.
broken() {
	work=$all/$1 result=0
	for end in client server; do
		message=$(validated $end) || result=1
		says_only "$message" "$2" || result=1
		case $3,$message in
		all,*"$large"*) result=1 ;;
		all,* | large,*"$large"*) ;;
		*) result=1 ;;
		esac
	done
	verdict "path.$1" $result
}

# unreachable NAME TEXT: an end cannot even prepare its queue pair, and the other end is told so
unreachable() {
	work=$all/$1 result=0
	for end in client server; do
		validated $end | grep -q "$2" || result=1
	done
	verdict "path.$1" $result
}

# refused NAME DIRECTION: a device refuses the writes of that direction
refused() {
	work=$all/$1 result=0
	for end in client server; do
		message=$(validated $end) || result=1
		says_only "$message" "$2" || result=1
		case $message in
		*'refuses the key'*) ;;
		*) result=1 ;;
		esac
	done
	verdict "path.$1" $result
}

works() {
	work=$all/$1 result=0
	status client 0 && status server 0 &&
		grep -q ' 0 wrong; end of connection: graceful' "$work/server.log" || result=1
	verdict "path.$1" $result
}

# ---- the wire ----

stacks='verbs verbs_ipv6 ofi'

# on_wire NAME WIRE...: a session of each stack while the wire is in that state
on_wire() {
	name=$1
	shift
	wire "$@" || exit 1
	for stack in $stacks; do
		begin "${stack}_$name" "$stack"
	done
	ended
	wire heal || exit 1
}

# cut NAME SIZE DIRECTION WIRE...
cut() {
	name=$1 size=$2 direction=$3
	shift 3
	on_wire "$name" "$@"
	for stack in $stacks; do
		broken "${stack}_$name" "$direction" "$size"
	done
}

wire heal || exit 1 # see suite.sh
patience=3500
cut cut_from_client all "$client_to_server" lose v0
cut cut_from_server all "$server_to_client" lose v1
# The connection manager of ofi sends nothing to the client before the client's request has come.
on_wire cut_both_ways lose both
broken verbs_cut_both_ways "$neither" all
broken verbs_ipv6_cut_both_ways "$neither" all
broken ofi_cut_both_ways "$client_to_server" all
patience=6000
# The path MTU of the two ports is 1024; the messages of a connection manager have 308 bytes.
cut smaller_mtu_from_client large "$client_to_server" lose v0 600
cut smaller_mtu_from_server large "$server_to_client" lose v1 600
on_wire smaller_mtu_both_ways lose both 600 # of ofi, the server answers the client's long message
broken verbs_smaller_mtu_both_ways "$neither" large
broken verbs_ipv6_smaller_mtu_both_ways "$neither" large
broken ofi_smaller_mtu_both_ways "$client_to_server" large
on_wire sufficient_mtu lose both 1104 # of IPv6: headers 80, data 1024

# ---- descriptions that are wrong, and a wire that is whole again ----

# A queue pair of libfabric is described by an address and a cookie; its connection manager finds GID
# and PSN. Software RoCE takes no packet whose source is not its peer's GID, so that with one wrong
# GID nothing passes in either direction. Packets before the expected PSN are taken for duplicates:
# their data are not written, but most of them are acknowledged, so that the sender sees success.
for device in v0 v1; do # a host that is there, but is not the peer
	ip neigh replace 10.9.0.9 dev $device lladdr 02:00:00:00:00:99 nud permanent || exit 1
done
for liar in client server; do
	begin wrong_gid_of_$liar verbs $liar 'gid 10.9.0.9'
	begin unused_gid_of_$liar verbs $liar 'gid 10.9.0.8'
	begin psn_too_large_of_$liar verbs $liar 'psn 1000'
	begin psn_too_small_of_$liar verbs $liar 'psn -1000'
	begin wrong_key_of_$liar verbs $liar 'key 16777216'
done
on_wire healed heal
# The writer of a wrong key does not get the answer: only the end that refuses the key knows.
wire refusals || exit 1
for liar in client server; do
	begin unheard_refusal_of_$liar verbs $liar 'key 16777216'
done
ended
# The probe of an idle connection has the same key. It is sent before the peer is ready to prove.
wire delay 300 || exit 1
for liar in client server; do
	begin late_proof_with_key_of_$liar verbs $liar 'key 16777216'
done
ended
wire heal || exit 1
ip neigh del 10.9.0.9 dev v0
ip neigh del 10.9.0.9 dev v1
for liar in client server; do
	broken wrong_gid_of_$liar "$neither" all
	unreachable unused_gid_of_$liar 'does not get ready for 10\.9\.0\.8'
done
# The peer of the liar writes with the wrong key.
refused wrong_key_of_client "$server_to_client"
refused wrong_key_of_server "$client_to_server"
refused unheard_refusal_of_client "$server_to_client"
refused unheard_refusal_of_server "$client_to_server"
refused late_proof_with_key_of_client "$server_to_client"
refused late_proof_with_key_of_server "$client_to_server"
for psn in large small; do
	broken psn_too_${psn}_of_client "$client_to_server" all
	broken psn_too_${psn}_of_server "$server_to_client" all
done
for stack in $stacks; do
	works "${stack}_sufficient_mtu"
	works "${stack}_healed"
done
verdicts_end
