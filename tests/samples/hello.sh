#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: hello.sh SOURCE BIN
# The smallest programs say hello, and are the smallest: under 60 lines each.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
server_limit=60

for file in "$src"/samples/hello/*.c; do
	[ "$(wc -l <"$file")" -lt 60 ] || fail "$file has 60 lines or more"
done
server_start "$work" "$bin/hello-server" || fail 'no server'
timeout -k 5 30 "$bin/hello-client" "$server_address" >"$work/client.log" 2>&1 || fail 'the client'
server_end || fail 'the server'
grep -q '^received: hello' "$work/server.log" || fail 'not received'

# The first failure of a newcomer, where there is no server: which call, where, why.
timeout -k 5 30 "$bin/hello-client" 1 >"$work/refused.log" 2>&1 && fail 'a client without a server'
grep -q 'ndx_connect_to: .* to 127.0.0.1:1: .*NDX_E_CONNECTION_REFUSED: .*Connection refused' \
	"$work/refused.log" || fail 'the text of a refused connect'
grep -q '^ndx ' "$work/refused.log" && fail 'records that were not asked for'
# The user of a program that cannot be changed can read its records.
NDX_LOG=debug timeout -k 5 30 "$bin/hello-client" 1 >"$work/debug.log" 2>&1 && fail 'no failure'
grep -q '^ndx debug: connector#1 .*CONNECTING' "$work/debug.log" || fail 'NDX_LOG=debug'
NDX_LOG=loud timeout -k 5 30 "$bin/hello-client" 1 >"$work/loud.log" 2>&1 && fail 'no failure'
grep -q '^ndx warn: NDX_LOG is "loud".*debug' "$work/loud.log" || fail 'NDX_LOG=loud'
echo 'hello: all well'
