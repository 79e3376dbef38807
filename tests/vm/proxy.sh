#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: proxy.sh SOURCE
# In the guest: a transport in Python carries sessions, and the goodbyes of their connections, through
# an HTTP proxy to the other device, without a connection manager; also where the proxy cuts the
# transport in each stage. Prints TAP.
set -u
src=$1
# shellcheck source=tests/vm/tap.sh
. "$src/tests/vm/tap.sh"
# shellcheck source=tests/samples/through_proxy.sh
. "$src/tests/samples/through_proxy.sh"
server_limit=120
for python in /usr/bin/python3.[0-9]*; do
	[ -x "$python" ] || { echo '1..0 # SKIP no plugins in Python here' && exit 0; }
done
NDX_PLUGIN_PATH=$(proxy_plugins "$work" "$src/build/lib/ndx") || exit 1
export NDX_PLUGIN_PATH

through_proxy "$(dirname "$(command -v ndx-negotiate)")" "$src" verbs:rxe0 verbs:rxe1 10.9.0.2:0 0
verdict proxy.moves_data $?
through_proxy "$(dirname "$(command -v ndx-negotiate)")" "$src" verbs:rxe0 verbs:rxe1 10.9.0.2:0 2
verdict proxy.cut_twice_in_each_stage $?

# The proxy dies while data move: both ends report an abort.
dies() {
	server_start "$work" ndx-negotiate server 10.9.0.2:0 --adapter verbs:rxe1 --count 1 \
		--allow-plaintext --variant gateway/described || return
	proxy_start "$src" 0 || return
	timeout 60 ndx-negotiate client "$server_address" --adapter verbs:rxe0 --messages 1000000 \
		--variant gateway/described --set "proxy=$proxy_address,user=ada,token=lovelace" \
		>"$work/client.log" 2>&1 8>&- &
	busy=$!
	until grep -q 'negotiated by' "$work/client.log" 2>/dev/null; do
		kill -0 $busy || return
	done
	proxy_end
	wait $busy && return 1
	server_end && return 1
	[ "$(grep -c 'connection: aborted' "$work/client.log")" -eq 1 ] &&
		[ "$(grep -c 'end of connection: aborted' "$work/server.log")" -eq 1 ]
}
dies
verdict proxy.its_end_is_an_abort $?
verdicts_end
