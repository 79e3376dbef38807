#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: sessions.sh SOURCE BIN
# ndx-negotiate sessions: the table, JSON and metrics of a server with two sessions in progress; what
# is wrong with a socket; clients of the control socket that misbehave, and servers that do.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
export NDX_PLUGIN_PATH="$bin/../lib/ndx"
socket=$work/control
pids=
trap 'kill $pids 2>/dev/null; server_stop; rm -rf "$work"' EXIT

# sessions ARGUMENT...
sessions() {
	timeout -k 5 60 "$bin/ndx-negotiate" sessions "$@" >"$work/out.log" 2>"$work/err.log"
}

# start ARGUMENT...: a server with a control socket
start() {
	server_start "$work" "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" \
		--hello-timeout 60000 --control "$@" ||
		fail 'no server'
}

# refused TEXT ARGUMENT...: a server with this --control ends at once and says so
refused() {
	expected=$1
	shift
	timeout -k 5 60 "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" --control "$@" \
		>"$work/err.log" 2>&1 && fail "a server with --control $*"
	[ $? -ne 124 ] || fail "a server with --control $* runs"
	grep -q "$expected" "$work/err.log" || fail "not told: $expected"
}

# python PROGRAM ARGUMENT...: in the background; until it prints a line
python() {
	mkfifo "$work/pipe"
	timeout 60 python3 -c "$@" >"$work/pipe" 2>"$work/python.log" &
	pids="$pids $!"
	read -r _ <"$work/pipe" || fail 'a program of the test'
	rm "$work/pipe"
}

echo '# two sessions in progress'
start "$socket"
case $(stat -c '%a %F' "$socket") in
'600 socket') ;;
*) fail "the socket is $(stat -c '%a %F' "$socket")" ;;
esac
# Clients that have said nothing yet.
python 'import socket, sys, time
host, port = sys.argv[1].rsplit(":", 1)
held = [socket.create_connection((host, int(port))) for i in range(2)]
print("connected", flush=True)
time.sleep(60)' "$server_address"
# The server may not have accepted the two yet.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	sessions "$socket" || fail 'no table'
	[ "$(grep -c '^ *[0-9]* *127\.0\.0\.1:.* hello ' "$work/out.log")" -ne 2 ] || break
done
[ "$(grep -c '^ *[0-9]* *127\.0\.0\.1:.* hello ' "$work/out.log")" -eq 2 ] || fail 'not two sessions'
[ "$(grep -c ' plaintext  *-/- ' "$work/out.log")" -eq 2 ] || fail 'not in plaintext'
grep -q 'sessions 2 of at most 4096' "$work/out.log" || fail 'no count of sessions'
sessions "$socket" --json || fail 'no JSON'
[ ! -s "$work/err.log" ] || fail 'JSON says something beside'
python3 - "$work/out.log" <<'END' || fail 'the JSON is not what was expected'
import json, sys

s = json.load(open(sys.argv[1]))
assert s["snapshot"] == 1 and s["counters"]["accepted"] == 2, s
assert s["sessions"]["total"] == 2 == s["sessions"]["listed"] == len(s["sessions"]["list"]), s
assert s["sessions"]["waits"]["hello"] == 2, s
assert all(one["waits_us"] > 0 for one in s["sessions"]["list"]), s
END
if command -v jq >/dev/null; then
	[ "$(jq '.sessions.list | length' "$work/out.log")" = 2 ] || fail 'jq does not find two sessions'
fi
sessions "$socket" --metrics || fail 'no metrics'
awk '
	function name_of(s) { sub(/[{ ].*/, "", s); return s }
	/^# HELP [a-z_]+ ./ { help[$3]++; next }
	/^# TYPE [a-z_]+ (counter|gauge)$/ { type[$3] = $4; types[$3]++; next }
	!/^ndx_negotiation_[a-z_]+(\{for="[a-z_]+"\})? [0-9]+$/ { print "not a metric: " $0; bad = 1; next }
	{
		name = name_of($0)
		if (help[name] != 1 || types[name] != 1) { print name ": HELP, TYPE"; bad = 1 }
		if ((type[name] == "counter") != (name ~ /_total$/)) { print name ": _total"; bad = 1 }
		if (seen[$1]++) { print $1 " twice"; bad = 1 }
		count++
	}
	END { exit bad || count < 14 }' "$work/out.log" || fail 'the metrics cannot be read'
for why in address principal variant identity handshake; do
	grep -qx "ndx_negotiation_sessions_refused_${why}_total 0" "$work/out.log" ||
		fail "the metrics do not have refusals by $why"
done
grep -qx 'ndx_negotiation_sessions 2' "$work/out.log" || fail 'the metrics do not have two sessions'
grep -qx 'ndx_negotiation_sessions_waiting{for="hello"} 2' "$work/out.log" || fail 'they wait for hello'
# shellcheck disable=SC2086 # a list
kill $pids
pids=

echo '# a session that is over is counted'
timeout -k 5 60 "$bin/ndx-negotiate" client "$server_address" --adapter "$uri" >"$work/client.log" 2>&1 ||
	fail 'a client'
sessions "$socket" --metrics || fail 'no metrics'
grep -qx 'ndx_negotiation_sessions_completed_total 1' "$work/out.log" || fail 'not counted as completed'

echo '# a full disk'
for how in '' --json --metrics; do
	# shellcheck disable=SC2086 # none or one
	timeout -k 5 60 "$bin/ndx-negotiate" sessions "$socket" $how >/dev/full 2>"$work/err.log" &&
		fail 'a full disk'
	grep -q 'cannot be written.*: No space' "$work/err.log" || fail 'not told of a full disk'
done

echo '# the same path twice; the first server keeps it'
refused 'in use' "$socket"
sessions "$socket" || fail 'the refused server took the socket away'

echo '# clients that say nothing and do not read: 20, more than the server has places for'
# 700 sessions, so that the answer is larger than the buffer of a socket.
python 'import json, socket, sys, time
host, port = sys.argv[2].rsplit(":", 1)
held = [socket.create_connection((host, int(port))) for i in range(700)]
def call():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    return s
total = 0
while total < 700:
    total = json.load(call().makefile())["sessions"]["total"]
held += [call() for i in range(20)]
print("connected", flush=True)
time.sleep(60)' "$socket" "$server_address"
sessions "$socket" --timeout 15000 || fail 'silent clients block the control socket'
timeout -k 5 60 "$bin/ndx-negotiate" client "$server_address" --adapter "$uri" >"$work/client.log" 2>&1 ||
	fail 'silent clients of the control socket block sessions'
# shellcheck disable=SC2086 # a list
kill $pids
pids=

echo '# the socket goes with the server'
kill "$server_pid"
server_end || fail 'the server found fault'
[ ! -e "$socket" ] || fail 'the socket is left'
sessions "$socket" && fail 'no socket'
grep -q 'a server makes the socket with --control' "$work/err.log" || fail 'not told what makes a socket'

echo '# a stale socket is replaced, anything else is not'
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$socket"
sessions "$socket" && fail 'a stale socket'
grep -q 'has ended' "$work/err.log" || fail 'not told that the server has ended'
start "$socket"
sessions "$socket" || fail 'a stale socket is not replaced'
kill "$server_pid"
server_end || fail 'the server found fault'
echo precious >"$work/file"
refused 'no socket; it stays' "$work/file"
grep -q precious "$work/file" || fail 'a file was removed'
refused "the folder $work/none: No such file" "$work/none/control"
long=$(printf '%0100d' 0)
refused 'has 1 to 107 bytes' "$work/$long"
refused 'has 1 to 107 bytes' ''
sessions "$work/$long" && fail 'a long path'
grep -q 'has 1 to 107 bytes' "$work/err.log" || fail 'not told that the path is long'

echo '# servers that hang, speak rubbish, or another format'
# rubbish TEXT BYTES: what is said of a server that says BYTES, and goes or stays
rubbish() {
	rm -f "$socket"
	python 'import socket, sys, time
l = socket.socket(socket.AF_UNIX)
l.bind(sys.argv[1])
l.listen(1)
print("listening", flush=True)
s, _ = l.accept()
s.sendall(sys.argv[2].encode())
if sys.argv[3] == "stay":
    time.sleep(60)' "$socket" "$2" "$3"
	sessions "$socket" --timeout 500 && fail "a server that says \"$2\""
	grep -q "$1" "$work/err.log" || fail "not told: $1"
	[ ! -s "$work/out.log" ] || fail 'output beside a failure'
}
rubbish 'no complete answer in time' '' stay
rubbish 'no complete answer in time' '{"snapshot": 1' stay
rubbish 'is no server of ndx-negotiate' '' go
rubbish 'is no server of ndx-negotiate' '220 mail' go
rubbish 'is no server of ndx-negotiate' '{"snapshot": 1, "counters": {}}' go
rubbish 'the server speaks format 2' '{"snapshot": 2}' go
sessions && fail 'no FILE'
sessions "$socket" --json --metrics && fail 'two forms'
echo 'sessions: all well'
