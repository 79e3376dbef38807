#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: programs.sh SOURCE BIN NAME PROGRAM
# The command line of one installed program: --help, -h, --version; an option with a typing mistake;
# a missing value, a missing operand, an adapter that is not there; SIGINT and SIGTERM during a run;
# progress of a long one; JSON that jq reads; a full disk.
set -u
name=$3 program=$4
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
# The programs of a build find plugins and providers by themselves.
unset NDX_PLUGIN_PATH NDX_PROVIDER_PATH
if ! command -v jq >/dev/null; then
	echo 'skip: jq is missing (install jq)'
	exit 77
fi

# ends STATUS ARGUMENT...: the program, which ends so; out.log and err.log
ends() {
	wanted=$1
	shift
	timeout -k 5 60 "$program" "$@" >"$work/out.log" 2>"$work/err.log" </dev/null
	status=$?
	[ $status -eq "$wanted" ] || fail "$name $*: status $status, not $wanted"
}

# said TEXT: on stderr
said() {
	grep -qF -e "$1" "$work/err.log" || fail "$name does not say: $1"
}

# run PATTERN SIGNAL STATUS SUMMARY ARGUMENT...: a run that prints a line with PATTERN; then the
# signal ends it with STATUS, after a line with SUMMARY, if that is not ''. (It takes some ms; 30 s are
# a hang.)
run() {
	pattern=$1 number=$2 wanted=$3 summary=$4
	shift 4
	rm -f "$work/pipe" "$work/status" "$work/pid"
	mkfifo "$work/pipe" || fail 'no pipe'
	# A shell without job control starts what is in the background with SIGINT ignored.
	(
		env --default-signal=INT "$program" "$@" >"$work/pipe" 2>&1 </dev/null &
		echo $! >"$work/pid"
		wait $!
		echo $? >"$work/status"
	) 2>/dev/null &
	shell=$!
	: >"$work/run.log"
	found=
	exec 4<"$work/pipe"
	while [ -z "$found" ] && read -r line <&4; do
		echo "$line" >>"$work/run.log"
		case $line in
		*$pattern*) found=1 ;;
		esac
	done
	cat <&4 >>"$work/run.log" &
	reader=$!
	exec 4<&-
	[ -n "$found" ] || fail "$name $*: ended before a line with '$pattern'"
	# The program may print before the shell that started it has written the number.
	until [ -s "$work/pid" ]; do
		sleep 0.05
	done
	pid=$(cat "$work/pid")
	kill -s "$number" "$pid"
	timeout 30 tail -s 0.05 --pid="$pid" -f /dev/null || {
		kill -s KILL "$pid"
		fail "$name $*: still there 30 s after SIG$number"
	}
	wait $shell
	wait $reader
	status=$(cat "$work/status")
	[ "$status" -eq "$wanted" ] || fail "$name $*: status $status after SIG$number, not $wanted"
	[ -z "$summary" ] || grep -q "$summary" "$work/run.log" ||
		fail "$name $*: no summary after SIG$number"
}

# signals PATTERN INT-STATUS TERM-STATUS SUMMARY ARGUMENT...: run() with both
signals() {
	pattern=$1 int=$2 term=$3 summary=$4
	shift 4
	run "$pattern" INT "$int" "$summary" "$@"
	run "$pattern" TERM "$term" "$summary" "$@"
}

# progress ARGUMENT...: a run of more than 5 s at a terminal says how long the rest takes
progress() {
	if ! command -v script >/dev/null; then
		echo "# no progress seen: script is missing (install bsdutils)"
		return
	fi
	# In a word of its own each: script runs a command line.
	line="echo \$\$ >'$work/pid'; exec timeout -k 5 60 '$program'"
	for word; do
		line="$line '$word'"
	done
	rm -f "$work/pid"
	script -qefc "$line" /dev/null >"$work/progress.log" 2>&1 </dev/null &
	terminal=$!
	until grep -qE '\([0-9]+ %\), about [0-9]+:[0-9][0-9] left' "$work/progress.log"; do
		kill -0 $terminal 2>/dev/null || fail "$name $*: no estimate in 60 s"
		sleep 0.1
	done
	kill -s INT "$(cat "$work/pid")"
	wait $terminal
}

# json FILTER ARGUMENT...: stdout is one JSON value for which FILTER holds
json() {
	filter=$1
	shift
	timeout -k 5 60 "$program" "$@" >"$work/out.log" 2>"$work/err.log" </dev/null
	status=$?
	[ "$(jq -s length <"$work/out.log")" = 1 ] || fail "$name $*: stdout is not one JSON value"
	jq -e "$filter and .exit == $status" <"$work/out.log" >/dev/null ||
		fail "$name $*: not $filter, or .exit is not $status"
}

# not_so STATUS ARGUMENT...: a run that ends so; the JSON has the cause, which is on stderr, too
not_so() {
	wanted=$1
	shift
	json ".exit == $wanted and (.error | type == \"string\" and length > 0)" "$@" --json
	said "$(jq -r .error <"$work/out.log")"
}

# handles PID NUMBER: wait until the process has its handlers of that signal and of SIGALRM, which
# limits the end. (A library may have one of the former.)
handles() {
	tries=0
	until caught=$(sed -n 's/^SigCgt:[[:space:]]*/0x/p' "/proc/$1/status") &&
		[ -n "$caught" ] && [ $((caught >> 13 & caught >> ($2 - 1) & 1)) -eq 1 ]; do
		[ $((tries += 1)) -le 600 ] || fail "$name does not handle signal $2 after 30 s"
		sleep 0.05
	done
}

# told NUMBER-OF-SIGNAL ARGUMENT...: the program as $pid, and that signal once its adapter is open and
# the signal handled; $status is its exit status. stdout is that of this function.
told() {
	signal=$1
	shift
	NDX_LOG=info env --default-signal=INT timeout -k 5 60 "$program" "$@" 2>"$work/err.log" \
		</dev/null &
	keeper=$!
	tries=0
	until pid=$(cat "/proc/$keeper/task/$keeper/children") && [ -n "$pid" ]; do
		[ $((tries += 1)) -le 600 ] || fail "$name $*: not started in 30 s"
		sleep 0.05
	done
	pid=${pid% }
	# A library that is loaded for the adapter may take the signal for a moment.
	until grep -q 'ndx info: opened' "$work/err.log"; do
		[ $((tries += 1)) -le 600 ] || fail "$name $*: no adapter in 30 s"
		sleep 0.05
	done
	handles "$pid" "$signal"
	kill -s "$signal" "$pid"
	wait $keeper
	status=$?
}

# fine ARGUMENT...: a run that ends well: also as JSON, into a file, and on a full disk
fine() {
	json '.program and .error == null and .exit == 0' "$@" --json
	ends 0 "$@" "--json=$work/out.json"
	jq -e '.exit == 0' "$work/out.json" >/dev/null || fail "$name $*: no JSON in the file"
	full 1 "$@"
	full 1 "$@" --json
	ends 1 "$@" --json=/dev/full
	ends 1 "$@" "--json=$work/nowhere/file"
}

# full STATUS ARGUMENT...: that status on a full disk, and a text
full() {
	wanted=$1
	shift
	timeout -k 5 60 "$program" "$@" >/dev/full 2>"$work/err.log" </dev/null
	status=$?
	[ $status -eq "$wanted" ] || fail "$name $*: status $status on a full disk, not $wanted"
	[ -s "$work/err.log" ] || fail "$name $*: no word of a full disk"
}

# no_adapter ARGUMENT...: with an adapter that is not there; the JSON says so
no_adapter() {
	ends 3 "$@"
	said 'NDX_E_NOT_FOUND'
	json '.exit == 3 and (.error | contains("NDX_E_NOT_FOUND"))' "$@" --json
}

# options: what every program has
options() {
	ends 0 --help
	[ ! -s "$work/err.log" ] || fail '--help prints to stderr'
	cp "$work/out.log" "$work/help"
	ends 0 -h
	cmp -s "$work/out.log" "$work/help" || fail '-h is not --help'
	for part in "Usage: $name " 'Options:' 'Examples:' 'Exit status:' '  -h, --help ' '  --version '; do
		grep -q -e "^$part" "$work/help" || fail "--help has no '$part'"
	done
	ends 0 --version
	grep -qx "$name (NDX) [0-9.]*" "$work/out.log" || fail 'no version'
	full 1 --help
	full 1 --version
	sed -n '/^Options:$/,/^$/s/^  \(-[a-zA-Z], \)\{0,1\}\(--[a-z][a-z-]*\)\([ []\)\(.*\)/\2 \3\4/p' \
		"$work/help" >"$work/options"
	[ -s "$work/options" ] || fail '--help has no options'
}

# typing STATUS: each option with a letter too many is told from which it is
typing() {
	while read -r option rest; do
		ends "$1" "${option}x"
		said "there is no option ${option}x; did you mean $option?"
		ends "$1" "${option}x=1"
		case $rest in
		[A-Z]*) ends "$1" "$option" && said "$option needs a value" ;;
		esac
	done <"$work/options"
	ends "$1" --nothing-like-this
	said 'there is no option --nothing-like-this'
	ends "$1" -%
	said 'there is no option -%'
}

server() {
	server_start "$work" "$bin/$1" "$2" 127.0.0.1:0 --adapter "$uri" || fail "no $1"
}

options
echo "# $name"
case $name in
ndx-guest)
	ends 126 --versio
	said 'did you mean'
	ends 126
	;;
ndx-perf-compare)
	# Its other tests are those of the benchmarks.
	typing 2
	signals 'latency ' 130 143 'ended by a signal after [1-9][0-9]* of 48 rows' loop
	run 'seed' TERM 143 'ended by a signal after' loop --json
	sed '/^seed/d; /^ended by/d' "$work/run.log" | jq -e 'type == "array"' >/dev/null ||
		fail 'no JSON after a signal'
	full 1 loop --tests latency --sizes 8 --depths 1 --modes spin --blocks 2 --block-ms 1
	;;
ndx-perf)
	typing 2
	ends 3 server --adapter bogus
	said 'NDX_E_NOT_FOUND'
	ends 2 server "$uri" --json
	no_adapter client 127.0.0.1:1 --adapter bogus
	ends 2 client 127.0.0.1:1 --cpus 1000000
	said 'may not use processor 1000000'
	server_start "$work" "$program" server "$uri" --listen 0 || fail 'no ndx-perf server'
	short="client $server_address --adapter $uri -t 0.05 --size 64 --quiet"
	# shellcheck disable=SC2086 # a list
	fine $short
	# shellcheck disable=SC2086
	full 1 $short --csv
	# shellcheck disable=SC2086
	ends 1 $short --plot /dev/full
	echo 'no picture' >"$work/notes"
	# shellcheck disable=SC2086
	not_so 1 $short --plot /dev/full
	# shellcheck disable=SC2086
	not_so 1 $short --plot "$work/nowhere/plot.svg"
	# shellcheck disable=SC2086
	not_so 1 $short --plot "$work/notes"
	not_so 2 client nowhere:x --adapter "$uri"
	# shellcheck disable=SC2086
	ends 0 $short --cpus none
	# shellcheck disable=SC2086
	ends 0 $short --cpus "$(awk '/^Cpus_allowed_list:/ { print $2 + 0 }' /proc/self/status)"
	signals 'msg/s' 0 0 'latency' client "$server_address" --adapter "$uri" -t 1000 --size 64
	run 'msg/s' INT 0 '"rows"' client "$server_address" --adapter "$uri" -t 1000 --size 64 --json
	progress client "$server_address" --adapter "$uri" -t 2 --size 8,64,512,4Ki
	;;
ndx-info)
	typing 2
	ends 3 loop bogus
	grep -q 'bogus.*NDX_E_NOT_FOUND' "$work/out.log" || fail 'not told of bogus'
	json '.exit == 3 and (.error | contains("NDX_E_NOT_FOUND"))' loop bogus --json
	fine loop
	;;
ndx-decode)
	typing 2
	ends 2
	printf '\324\303\262\241\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0' >"$work/empty.pcap"
	ends 0 --summary --json "$work/empty.pcap"
	jq -e '.event == "summary"' "$work/out.log" >/dev/null || fail 'no summary as JSON'
	full 1 --summary "$work/empty.pcap"
	full 1 --summary --json "$work/empty.pcap"
	ends 1 --summary --json=/dev/full "$work/empty.pcap"
	ends 1 "$work/nothing.pcap" --json
	[ ! -s "$work/out.log" ] || fail 'a file that is not there gives output'
	# Packets that do not end: a pipe that somebody keeps open
	for number in INT TERM; do
		mkfifo "$work/packets"
		env --default-signal=INT "$program" --summary "$work/packets" >"$work/out.log" 2>&1 &
		pid=$!
		exec 5>"$work/packets"
		cat "$work/empty.pcap" >&5
		kill -s $number $pid
		wait $pid
		status=$?
		exec 5>&-
		rm "$work/packets"
		[ $status -eq 130 ] || [ $status -eq 143 ] || fail "status $status after SIG$number"
		grep -q '^packets 0' "$work/out.log" || fail 'no summary'
	done
	;;
ndx-recv)
	typing 2
	no_adapter --adapter bogus
	signals 'listening on' 0 0 '^0 frames, .* 0 lost' 127.0.0.1:0 --adapter "$uri" --quiet
	run 'listening on' TERM 0 '"exit": 0' 127.0.0.1:0 --adapter "$uri" --quiet --json
	# It ends when it is told to, and finds the full disk then.
	for option in --quiet --json --json=/dev/full; do
		told 15 127.0.0.1:0 --adapter "$uri" "$option" >/dev/full
		[ $status -eq 1 ] || fail "$option: status $status on a full disk"
		grep -q '^ndx-recv: the .* cannot be written' "$work/err.log" ||
			fail "$option: no word of a full disk"
	done
	;;
ndx-send)
	typing 2
	ends 2
	ends 2 nowhere:x
	no_adapter 127.0.0.1:1 --adapter bogus
	server_start "$work" "$bin/ndx-recv" 127.0.0.1:0 --adapter "$uri" --quiet --senders 0 ||
		fail 'no ndx-recv'
	fine "$server_address" --adapter "$uri" --frames 10
	for number in 2 15; do # it prints nothing before its end
		told $number "$server_address" --adapter "$uri" --frames 1G --rate 1k >"$work/out.log"
		[ $status -eq 0 ] || fail "status $status after signal $number, not 0"
		grep -q 'frames of 4096 bytes sent' "$work/out.log" || fail 'no summary'
	done
	json '.exit == 1 and (.error | contains("connect"))' 127.0.0.1:1 --adapter "$uri" --json
	;;
ndx-reqresp)
	typing 2
	ends 2
	ends 2 clent
	said 'did you mean client?'
	ends 2 client
	no_adapter server --adapter bogus
	no_adapter client 127.0.0.1:1 --adapter bogus
	no_adapter both --adapter bogus
	not_so 2 client nowhere:x --adapter "$uri"
	not_so 2 server nowhere:x --adapter "$uri"
	fine both --adapter loop --requests 10
	signals 'connected to' 0 0 'requests of 4096 bytes: [0-9]* verified, 0 wrong' both \
		--adapter loop --requests 4G --quiet
	signals 'listening on' 0 0 '' server 127.0.0.1:0 --adapter "$uri"
	run 'connected to' INT 0 '"verified": [1-9]' both --adapter loop --requests 4G --quiet --json
	server ndx-reqresp server
	signals 'connected to' 0 0 'disconnected: graceful' client "$server_address" \
		--adapter "$uri" --requests 4G --quiet
	;;
ndx-negotiate)
	typing 2
	ends 2
	ends 2 servr
	said 'did you mean server?'
	ends 2 client
	ends 2 sessions
	no_adapter server --adapter bogus
	no_adapter client 127.0.0.1:1 --adapter bogus
	fine both --adapter loop --messages 10
	fine plugins
	signals 'listening on' 0 0 '' server --adapter "$uri"
	signals 'negotiated by' 130 143 'messages of 4096 bytes each way' both --adapter loop \
		--messages 4G
	server ndx-negotiate server
	signals 'negotiated by' 130 143 'messages of 4096 bytes each way' client "$server_address" \
		--adapter "$uri" --messages 4G
	run 'negotiated by' TERM 143 '"error": "' client "$server_address" --adapter "$uri" \
		--messages 4G --json
	progress both --adapter loop --messages 4G
	;;
ndx-conformance)
	typing 2
	ends 2
	ends 2 loop --seed abc
	said 'give a number from 0'
	no_adapter bogus
	fine loop --filter 'query*'
	signals 'ok ' 130 143 '# [0-9]* passed, 0 failed' loop --repeat 1000
	run 'ok 1 ' INT 130 '"error": "ended by a signal"' loop --repeat 1000 --json
	progress loop --repeat 1000
	;;
ndx-torture)
	typing 2
	ends 2
	no_adapter bogus
	fine loop --rounds 3
	# A thousand rounds take half a minute under a sanitizer: one run waits for their line.
	signals '# 10 rounds' 130 143 'rounds, 0 failures' loop --rounds 1000M
	run '# 1000 rounds' TERM 143 '"error": "ended by a signal"' loop --rounds 1000M --json
	progress loop --rounds 1000M
	;;
ndx-connect)
	typing 2
	ends 2
	no_adapter bogus
	fine loop --count 2 --single 2
	signals 'at once' 130 143 'ended by a signal after [0-9]* of 1000001' loop --single 1M
	run 'at once' TERM 143 '"error": "ended by a signal"' loop --single 1M --json
	;;
*) fail "$name has no row here" ;;
esac
echo "$name: all well"
