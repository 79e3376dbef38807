#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: interop.sh SOURCE BIN
# The two samples for programs that are not ours, with each other; tests/vm/peers.sh has those programs.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"

server_limit=60
server_start "$work" "$bin/interop-server" 127.0.0.1:0 --adapter "$uri" || fail 'no server'
timeout -k 5 30 "$bin/interop-client" "$server_address" --adapter "$uri" >"$work/client.log" 2>&1 ||
	fail 'the client'
server_end || fail 'the server'
grep -q 'asked one server, and parted: ' "$work/client.log" || fail 'not asked'
grep -q 'which parted: graceful' "$work/server.log" || fail 'not graceful'
echo 'interop: all well'
