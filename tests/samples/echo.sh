#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: echo.sh SOURCE BIN
# The event-driven server and the client with many connections, as two processes.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"

echo '# twenty connections, then nobody is expected any more'
server_start "$work" "$bin/echo-server" --adapter "$uri" --count 20 || fail 'no server'
timeout -k 5 60 "$bin/echo-client" "$server_address" --adapter "$uri" --connections 20 --rounds 50 \
	>"$work/client.log" 2>&1 || fail 'the client'
server_end || fail 'the server'
grep -q '20 connections of 20' "$work/client.log" || fail 'not all connections'
grep -q ' 1000 messages echoed' "$work/server.log" || fail 'not 1000 messages'
[ "$(grep -c 'gone: disconnect NDX_OK, end of connection: graceful' "$work/server.log")" -eq 20 ] ||
	fail 'not twenty graceful ends'

echo '# a server that ends while clients are there says goodbye to them'
server_start "$work" "$bin/echo-server" --adapter "$uri" || fail 'no server'
timeout -k 5 60 "$bin/echo-client" "$server_address" --adapter "$uri" --rounds 100000000 \
	>"$work/client.log" 2>&1 &
client=$!
kill "$server_pid"
server_end || fail 'the server'
wait $client && fail 'the client did not notice'
echo 'echo: all well'
