#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: two_processes.sh SOURCE BIN
# ndx-reqresp as two processes over ofi:tcp: sizes, waiting and polling, several clients, and what
# the two say when something is wrong.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"

# client OPTIONS...: one client of the running server, its output in client.log
client() {
	timeout -k 5 60 "$bin/ndx-reqresp" client "$server_address" --adapter "$uri" --quiet "$@" \
		>"$work/client.log" 2>&1
}

echo '# five clients, one after another'
server_start "$work" "$bin/ndx-reqresp" server --adapter "$uri" --count 5 --wait --slots 2 \
	--port-file "$work/port" || fail 'no server'
[ "$(cat "$work/port")" = "${server_address##*:}" ] || fail 'the port file names another port'
client --requests 2000 --size 64 || fail 'small messages, polling'
client --requests 500 --size 4096 --wait || fail 'waiting'
client --requests 20 --size 1M --wait || fail 'large messages'
client --requests 100 --size 41 --seed 7 --keepalive 0 || fail 'one byte of body'
client --requests 1 --size 40 || fail 'no body'
grep -q '1 verified, 0 wrong' "$work/client.log" || fail 'nothing verified'
grep -q 'both sides said goodbye' "$work/client.log" || fail 'no goodbye'
server_end || fail 'the server found fault'
[ "$(grep -c '0 bad; .*end of connection: graceful' "$work/server.log")" -eq 5 ] ||
	fail 'not five graceful ends'

echo '# the server refuses, and says why'
server_start "$work" "$bin/ndx-reqresp" server --adapter "$uri" --count 1 --size 1000 ||
	fail 'no server'
client --requests 1 --size 2000 && fail 'a size beyond what the server takes'
grep -q 'NDX_E_CONNECTION_REFUSED' "$work/client.log" || fail 'not called refused'
grep -q 'the server says: message size not supported here' "$work/client.log" ||
	fail 'the reason did not arrive'
server_end && fail 'the server calls that a success'

echo '# the server ends it in the middle'
server_start "$work" "$bin/ndx-reqresp" server --adapter "$uri" --count 1 --wait --hang-up 100 ||
	fail 'no server'
client --requests 100000000 --wait && fail 'the client did not notice'
grep -q '100 verified, 0 wrong' "$work/client.log" || fail 'an answer that was sent got lost'
grep -q 'connection: graceful' "$work/client.log" || fail 'the client was not told how it ended'
grep -q 'both sides said goodbye' "$work/client.log" || fail 'disconnect after it did not succeed'
server_end || fail 'the server found fault'

echo '# counters and histories, at the end and when asked for'
server_start "$work" "$bin/ndx-reqresp" server --adapter "$uri" --port-file "$work/port" \
	--wait --slots 2 || fail 'no server'
client --requests 10 --stats || fail 'no statistics'
sed -n '/^{/,$p' "$work/client.log" >"$work/client.json"
if command -v jq >/dev/null; then
	jq -e '.qps[0].initiator.posted == 10 and .qps[0].receive.by_status.NDX_OK == 10 and
		(.connectors[0].history | last).to == "CLOSED_OK"' \
		"$work/client.json" >/dev/null || fail 'the client counted something else'
fi
# The process that was started is timeout, which does not pass this signal on.
kill -USR1 "$(cat "/proc/$server_pid/task/$server_pid/children")" || fail 'no process to ask'
told() {
	grep -q '"snapshot": 1' "$work/server.log"
}
tries=100
until told || [ $tries -eq 0 ]; do
	client --requests 1 || fail 'the server is gone'
	tries=$((tries - 1))
done
told || fail 'SIGUSR1 did nothing'

echo '# a server that is told to end while it waits'
kill "$server_pid"
server_end || fail 'SIGTERM is no failure'

echo '# nobody listens there'
# Not where the last one was: that port may belong to another program by now.
server_address=${server_address%:*}:1
client --requests 1 && fail 'connected to nobody'
grep -q 'NDX_E_CONNECTION_REFUSED' "$work/client.log" || fail 'not called refused'
echo 'two processes: all well'
