#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: signals.sh SOURCE BIN CC [SEED]
# SIGINT and SIGTERM at random moments end each role of ndx-negotiate, with sessions open and with a
# peer that is stopped; where the server listens; and servers with few descriptors.
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

# until_that TEXT COMMAND...: COMMAND succeeds within 20 s; else TEXT did not happen
until_that() {
	what=$1 tries=400
	shift
	until "$@"; do
		[ $((tries -= 1)) -gt 0 ] || fail "$what"
		sleep 0.05
	done
}

# child_of PID: timeout(1) runs what it is to run; $child
child_of() {
	child=
	read -r child <"/proc/$1/task/$1/children"
	[ -n "$child" ]
}

# in_state STATE PID: the letter of /proc/PID/stat
in_state() {
	state=$(sed 's/.*) //; s/ .*//' "/proc/$2/stat" 2>/dev/null)
	[ "$state" = "$1" ]
}

# started OPTION...: one of ours in the background; $pid. What hangs is killed after 60 s: status 137.
# A shell without job control starts with SIGINT ignored what is in the background; a program would
# not have it before its handler is set.
started() {
	env --default-signal=INT timeout -s KILL 60 "$bin/ndx-negotiate" "$@" >>"$work/role.log" 2>&1 &
	pid=$!
	until_that 'timeout has no child' child_of "$pid"
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

server_stop
[ "$server_status" -le 1 ] || fail "server: status $server_status"

echo '# a server that stops says how the connection ended: as its client does'
# of this connection: the log of the server above has the ends of others
server_start "$work" "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" || fail 'no server'
: >"$work/role.log"
started client "$server_address" --adapter "$uri" --messages 4000M
until_that 'the client has not connected' grep -q 'negotiated by' "$work/role.log"
client=$pid pid=$server_pid
ends TERM 0 1
wait "$server_reader"
server_pid=
pid=$client
ended 1
grep -q 'end of connection: graceful' "$work/server.log" || fail 'how did the connection end?'
grep -q ' client: connection: graceful' "$work/role.log" || fail 'and at the client?'
server_start "$work" "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" || fail 'no server'

echo '# the server with sessions open, and with a client that is stopped'
for number in INT TERM; do
	started client "$server_address" --adapter "$uri" --messages 4000M
	client=$pid
	moment
	child_of "$client" || fail 'the client has ended before it is stopped'
	kill -s STOP -- "-$client" || fail 'the client cannot be stopped'
	until_that 'the client is not stopped' in_state T "$child"
	pid=$server_pid
	ends "$number" 0 1
	wait "$server_reader"
	server_pid=
	in_state T "$child" || fail 'the client was not stopped all the time'
	kill -s CONT -- "-$client"
	pid=$client
	ended 1
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
	child_of "$pid" || fail 'timeout has no child'
	kill -s TERM "$child" || fail 'the server has ended by itself'
	kills=1
	while [ $((kills += 1)) -le 200 ]; do
		kill -s TERM "$child" 2>/dev/null
	done
	# None through timeout(1), which sends SIGCONT behind it. The leak checker attaches to the
	# threads when the program exits, and hangs if a SIGCONT removes its SIGSTOP.
	number=TERM
	ended 0
	server_pid=
done

# serves_with COUNT MS CLIENT-OPTION...: a server of $program with so many descriptors, and a client,
# with so many milliseconds for each step. Sets $outcome; false: neither it works nor the log names
# what is short.
serves_with() {
	count=$1 ms=$2
	shift 2
	# the log of the library, too: a listener that cannot accept says so there
	if ! NDX_LOG=warn server_start "$work" prlimit --nofile="$count" "$bin/$program" server \
		127.0.0.1:0 --adapter "$uri" --timeout "$ms"; then
		server_end
		case $server_status in
		1 | 3) ;;
		*) fail "$program with $count descriptors: status $server_status" ;;
		esac
		outcome=unstarted
		is_named
		return
	fi
	timeout -k 5 60 "$bin/$program" client "$server_address" --adapter "$uri" --timeout "$ms" \
		"$@" >"$work/role.log" 2>&1 </dev/null
	status=$?
	server_stop
	[ "$server_status" -le 1 ] || fail "$program with $count descriptors: status $server_status"
	case $status in
	0) outcome=served ;;
	1) outcome=unserved && is_named ;;
	*) fail "client of $program with $count descriptors: status $status" ;;
	esac
}

# short_of_descriptors PROGRAM CLIENT-OPTION...: its server with 8 to 26 descriptors, the inherited
# ones among them: it listens and serves, or the log names what is short. Each ends by the signal.
short_of_descriptors() {
	program=$1
	shift
	unstarted=0 unserved=0 served=0
	for count in $(seq 8 26); do
		# A time-out on a loaded machine is short of no descriptor: once more, with more time.
		serves_with "$count" 2000 "$@" || serves_with "$count" 20000 "$@" ||
			fail "$program with $count descriptors does not say why"
		case $outcome in
		unstarted) unstarted=$((unstarted + 1)) ;;
		unserved) unserved=$((unserved + 1)) ;;
		served) served=$((served + 1)) ;;
		esac
	done
	echo "# $program: $unstarted do not start, $unserved do not serve, $served serve"
	[ $unstarted -ge 2 ] || fail 'there were always enough descriptors to listen'
	[ $unserved -ge 2 ] || fail 'there were always enough descriptors for a connection'
}

# is_named: whether the log of the server says what is short
is_named() {
	grep -q 'ulimit -n\|Too many open files' "$work/server.log"
}

echo '# a server with few descriptors'
short_of_descriptors ndx-reqresp --requests 3 --quiet
short_of_descriptors ndx-negotiate --messages 10 --attempts 1
echo 'signals: all well'
