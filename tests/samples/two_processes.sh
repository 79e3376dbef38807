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
grep -q 'the peer says: messages of 2000 bytes are too long or too short; say --size 1000' \
	"$work/client.log" || fail 'the reason did not arrive'
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

client --requests 20 || fail 'twenty requests'
grep -qx 'ndx-reqresp client: [1-9][0-9]* requests a second, one at a time' "$work/client.log" ||
	fail 'no rate'

echo '# the latency as a picture'
client --requests 200 --plot "$work/latency.svg" || fail 'a picture'
for what in '>200 requests of 4096 bytes: how many took how long<' '>90 %<' '>us<' '</svg>'; do
	grep -q "$what" "$work/latency.svg" || fail "the picture has no $what"
done
if command -v python3 >/dev/null; then
	python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$work/latency.svg" ||
		fail 'the picture is no XML'
fi
client --requests 2 --plot "$work/none/latency.svg" && fail 'a picture nowhere'
grep -q 'latency.svg cannot be written: No such file' "$work/client.log" || fail 'no cause'
grep -q '2 verified, 0 wrong' "$work/client.log" || fail 'no figures because of the picture'
echo 'notes' >"$work/notes.txt"
client --requests 2 --plot "$work/notes.txt" && fail 'a file replaced by a picture'
grep -qx 'notes' "$work/notes.txt" || fail 'the file is a picture now'

echo '# a server that is told to end while it waits'
kill "$server_pid"
server_end || fail 'SIGTERM is no failure'

echo '# nobody listens there'
# Not where the last one was: that port may belong to another program by now.
server_address=${server_address%:*}:1
client --requests 1 && fail 'connected to nobody'
grep -q 'NDX_E_CONNECTION_REFUSED' "$work/client.log" || fail 'not called refused'
echo 'two processes: all well'
