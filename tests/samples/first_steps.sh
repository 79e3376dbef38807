#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: first_steps.sh SOURCE BIN
# What a user tries first: a server at all addresses, and a peer that is killed.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
export NDX_PLUGIN_PATH="$bin/../lib/ndx"

# serve ADDRESS [OPTION...]: ndx-reqresp at that address
serve() {
	server_start "$work" "$bin/ndx-reqresp" server "$@" || fail "no server at $1"
}

# reach HOST: a client that comes there
reach() {
	timeout -k 5 60 "$bin/ndx-reqresp" client "$1:${server_address##*:}" --adapter "$wide" \
		--requests 3 --quiet >"$work/client.log" 2>&1 || fail "no server at $1"
}

echo '# all addresses'
wide='ofi:tcp?trust=lan'
for address in 0.0.0.0:0 :0; do
	serve "$address" --adapter "$wide" --count 1
	[ "${server_address%:*}" = 0.0.0.0 ] || fail "$address is $server_address"
	reach 127.0.0.1
	server_end || fail 'the server is not content'
done
if grep -q ' lo$' /proc/net/if_inet6 2>/dev/null; then
	serve '[::]:0' --adapter "$wide" --count 2
	[ "${server_address%:*}" = '[::]' ] || fail "[::]:0 is $server_address"
	reach '[::1]'
	reach 127.0.0.1
	server_end || fail 'the server is not content'
fi
serve 0 --adapter "$uri" --count 1
[ "${server_address%:*}" = 127.0.0.1 ] || fail "0 is $server_address"
server_stop
for own in loop "$uri"; do
	timeout -k 5 60 "$bin/ndx-reqresp" both :0 --adapter "$own" --requests 3 --quiet \
		>"$work/both.log" 2>&1 || fail "both at :0 over $own"
done

echo '# a peer that is killed'
serve 127.0.0.1:0 --adapter "$uri" --port-file "$work/port"
mkfifo "$work/line"
timeout -k 5 60 "$bin/ndx-reqresp" client "$server_address" --adapter "$uri" --requests 100M \
	--verbose >"$work/client.log" 2>"$work/line" </dev/null &
client=$!
while read -r line; do
	echo "$line" >>"$work/verbose.log"
	case $line in
	*': connected'*)
		# the server's number, and no end of the line
		read -r victim _ <"/proc/$server_pid/task/$server_pid/children"
		kill -9 "$victim"
		;;
	esac
done <"$work/line"
wait "$client" && fail 'the client is content'
grep -q "the link ended without a goodbye: the peer's process has ended or was killed" \
	"$work/verbose.log" || fail 'the client does not name the causes'
grep -q '125' "$work/verbose.log" && grep -q 'Operation canceled' "$work/verbose.log" &&
	fail 'the client names the errno of libfabric'
server_stop

echo '# a command line that will not do'
# refuses TEXT PROGRAM ARGUMENT...: a usage error that says TEXT
refuses() {
	text=$1 program=$2
	shift 2
	timeout -k 5 20 "$bin/$program" "$@" >"$work/usage.log" 2>&1 </dev/null
	[ $? -eq 2 ] || fail "$program $*: no usage error"
	grep -qF -e "$text" "$work/usage.log" || fail "$program $*: not told: $text"
}
refuses '--op takes a list of send, write' ndx-perf client 127.0.0.1:1 --op writes
refuses '--depth takes a list of numbers from 1' ndx-perf client 127.0.0.1:1 --depth 0
refuses 'from 1 to 1Gi' ndx-perf client 127.0.0.1:1 --size 2Gi
refuses 'write --listen 127.0.0.1:5000' ndx-perf server 127.0.0.1:5000
refuses 'say ndx-reqresp both' ndx-reqresp server 127.0.0.1:0 --adapter loop

echo 'first steps: all well'
