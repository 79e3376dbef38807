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
echo 'hello: all well'
