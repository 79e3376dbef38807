#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: signals.sh SOURCE BIN CC [SEED]
# SIGINT and SIGTERM at random moments end each role of ndx-negotiate, with sessions open and with a
# peer that is stopped; where the server listens.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
export NDX_PLUGIN_PATH="$bin/../lib/ndx"
seed=${4:-$(date +%s)}
echo "# seed $seed"

# moment: wait for up to 0.6 s, to be somewhere else each time
moment() {
	seed=$(((seed * 1103515245 + 12345) % 2147483648))
	sleep "$(awk "BEGIN { print $seed / 2147483648 * 0.6 }")"
}

# started OPTION...: one of ours in the background; $pid. What hangs is killed after 60 s: status 137.
started() {
	timeout -s KILL 60 "$bin/ndx-negotiate" "$@" >>"$work/role.log" 2>&1 &
	pid=$!
}

# ends SIGNAL STATUS...: the one in $pid, which `timeout` passes the signal on to, ends so
ends() {
	number=$1
	shift
	kill -s "$number" "$pid" 2>/dev/null
	ended "$@"
}

# ended STATUS...: the one in $pid ends so
ended() {
	wait "$pid"
	status=$?
	for expected; do
		[ $status -ne "$expected" ] || return 0
	done
	fail "signal $number: status $status, not $*"
}

echo '# client and both end by the signal'
server_start "$work" "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" || fail 'no server'
for number in INT TERM INT TERM INT TERM; do
	status=143
	[ $number = TERM ] || status=130
	# Before it has a handler, while it connects, while it transfers.
	started client "$server_address" --adapter "$uri" --messages 4000M
	moment
	ends "$number" "$status"
	started client 127.0.0.1:1 --adapter "$uri" --attempts 1000
	moment
	ends "$number" "$status"
	started both --adapter loop --messages 4000M
	moment
	ends "$number" "$status"
done

echo '# a server that stops says how the connection ended: as its client does'
: >"$work/role.log"
started client "$server_address" --adapter "$uri" --messages 4000M
tries=200
until grep -q 'negotiated by' "$work/role.log" || [ $tries -eq 0 ]; do
	tries=$((tries - 1))
	sleep 0.05
done
client=$pid pid=$server_pid
ends TERM 0 1
wait "$server_reader"
server_pid=
wait "$client"
grep -q 'end of connection: graceful' "$work/server.log" || fail 'how did the connection end?'
server_start "$work" "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" || fail 'no server'

echo '# the server with sessions open, and with a client that is stopped'
for number in INT TERM; do
	started client "$server_address" --adapter "$uri" --messages 4000M
	client=$pid
	moment
	kill -s STOP "-$client" 2>/dev/null || kill -s STOP "$client"
	pid=$server_pid
	ends "$number" 0 1
	wait "$server_reader"
	server_pid=
	kill -s CONT "-$client" 2>/dev/null || kill -s CONT "$client"
	pid=$client
	ends KILL 137 1
	server_start "$work" "$bin/ndx-negotiate" server --adapter "$uri" || fail 'no server'
done

echo '# the server listens where its adapter is'
case $server_address in
127.0.0.1:* | '[::1]':*) ;;
*) fail "listening on $server_address" ;;
esac
pid=$server_pid
ends TERM 0
server_pid=
echo '# signals at once are one'
for _ in 1 2 3 4 5 6 7 8; do
	server_start "$work" "$bin/ndx-negotiate" server --adapter "$uri" || fail 'no server'
	pid=$server_pid
	read -r server <"/proc/$pid/task/$pid/children"
	[ -n "$server" ] || fail 'timeout has no child'
	kills=0
	while [ $((kills += 1)) -le 200 ]; do
		kill -s TERM "$server" 2>/dev/null
	done
	# None through timeout(1), which sends SIGCONT behind it. The leak checker attaches to the
	# threads when the program exits, and hangs if a SIGCONT removes its SIGSTOP.
	number=TERM
	ended 0
	server_pid=
done
echo 'signals: all well'
