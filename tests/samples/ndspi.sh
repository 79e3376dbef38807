#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: ndspi.sh SOURCE BIN CC
# The programs of samples/ndspi as two processes; the end of a process that is killed; a client
# without a server; and that the compilers that are here take the programs without a warning.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
export NDX_ADAPTER="$uri"
server_limit=60
samples=$src/samples/ndspi

# client PROGRAM OPTION...: a client of the running server
client() {
	program=$1
	shift
	timeout -k 5 60 "$bin/$program" -c "$server_address" "$@" >"$work/client.log" 2>&1
}

# pair PROGRAM ADDRESS OPTION...: both, to their ends
pair() {
	echo "# $*"
	program=$1 address=$2
	shift 2
	server_start "$work" "$bin/$program" -s "$address" || fail 'no server'
	client "$program" "$@" || fail 'the client'
	server_end || fail 'the server'
}

# says LOG PATTERN
says() {
	grep -q "$2" "$work/$1.log" || fail "the $1 does not say: $2"
}

pair nd-hello 127.0.0.1:0 'hello from C'
says server '^received: hello from C$'
pair nd-hello '[::1]:0'
says server '^received: hello$'

pair nd-pingpong 127.0.0.1
says server '^1000 messages of 64 bytes returned$'
says client '^1000 rounds of 64 bytes: half a round trip takes [0-9.]* us on average'
pair nd-pingpong '[::1]:0' -l 1000001 -n 10
says server '^10 messages of 1000001 bytes returned$'
pair nd-pingpong 127.0.0.1 -l 1 -n 1
says client '^1 rounds of 1 bytes'

pair nd-write-read 127.0.0.1:0
says server '^10 rounds of 1048576 bytes: the client has written 0 wrong bytes$'
says client '^10 rounds of 1048576 bytes: 0 wrong bytes were read$'
pair nd-write-read 127.0.0.1:0 -l 5000001 -n 2
pair nd-write-read 127.0.0.1:0 -l 1 -n 100
says client '^100 rounds of 1 bytes: 0 wrong bytes were read$'

# victim PID: the process that timeout has started
victim() {
	cat "/proc/$1/task/$1/children"
}

# busy PROGRAM: a server, and a client ($busy) that is in the middle of its work
busy() {
	echo "# $1: $2"
	server_start "$work" "$bin/$1" -s 127.0.0.1 || fail 'no server'
	timeout -k 5 60 "$bin/$1" -c "$server_address" -n 100000000 >"$work/client.log" 2>&1 &
	busy=$!
	until grep -q ': connected$' "$work/server.log"; do
		kill -0 $busy || fail 'the client has ended'
	done
}

for program in nd-pingpong nd-write-read; do
	busy $program 'the client dies'
	kill -9 "$(victim $busy)" || fail 'no client'
	server_end && fail 'the server calls that a success'
	[ $server_status -eq 1 ] || fail "the server ended with $server_status"
	says server ': status 0xC000'
	wait $busy

	busy $program 'the server dies'
	kill -9 "$(victim "$server_pid")" || fail 'no server'
	wait $busy
	status=$?
	[ $status -eq 1 ] || fail "the client ended with $status"
	says client ': status 0xC000'
	server_end && fail 'a killed server'
done

echo '# nobody listens there'
server_address=127.0.0.1:1
for program in nd-hello nd-pingpong nd-write-read; do
	client $program
	status=$?
	[ $status -eq 1 ] || fail "$program ended with $status"
	says client "$program: .*Connect: status 0xC0000236"
done

echo '# what is wrong is told'
server_address=nowhere
for program in nd-hello nd-pingpong nd-write-read; do
	client $program
	status=$?
	[ $status -eq 2 ] || fail "$program ended with $status"
	says client 'usage: '
done
server_address=127.0.0.1:1
NDX_ADAPTER=nothere client nd-hello && fail 'no such adapter'
says client 'NdResolveAddress: status 0xC00000A3'

echo '# the compilers'
tried=0
for c in gcc clang; do
	cpp=clang++
	[ $c = clang ] || cpp=g++
	if ! command -v $c >/dev/null || ! command -v $cpp >/dev/null; then
		continue
	fi
	tried=$((tried + 1))
	for source in "$samples"/*.c "$samples"/*.cpp; do
		compiler=$cpp
		[ "${source%.c}" = "$source" ] || compiler=$c
		$compiler -O2 -Wall -Wextra -Werror -I"$src/shims/ndspi/include" -c "$source" \
			-o "$work/sample.o" >"$work/$c.log" 2>&1 || fail "$compiler $source"
	done
done
[ $tried -gt 0 ] || echo 'neither gcc nor clang is here: nothing compiled'
echo 'ndspi: all well'
