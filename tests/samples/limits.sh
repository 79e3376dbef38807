#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: limits.sh SOURCE BIN
# The limits of a server of ndx-negotiate, each with the client that is one too many: it is refused,
# both ends say why, and after an end the next is served. Clients have pre-shared keys.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
if ! command -v python3 >/dev/null; then
	echo 'skip: python3 is missing'
	exit 77
fi
export NDX_PLUGIN_PATH="$bin/../lib/ndx"
socket=$work/control
held=
trap 'release; server_stop; rm -rf "$work"' EXIT
umask 077
echo 'alice:000102030405060708090a0b0c0d0e0f' >"$work/alice"
echo 'bob:101112131415161718191a1b1c1d1e1f' >"$work/bob"
cat "$work/alice" "$work/bob" >"$work/both"

# serve OPTION...: a server; its log is in server.log
serve() {
	server_start "$work" "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" --verbose \
		--control "$socket" --timeout 60000 --hello-timeout 60000 "$@" ||
		fail "no server with $*"
}

# client PEER OPTION...: with the key of alice or bob
client() {
	who=$1
	shift
	timeout -k 5 60 "$bin/ndx-negotiate" client "$server_address" --adapter "$uri" \
		--tls-psk "$work/$who" --attempts 1 "$@" >"$work/client.log" 2>&1
}

# says TEXT: a record of the server, which may still be on its way
says() {
	tries=0
	until grep -q "$1" "$work/server.log"; do
		[ $((tries += 1)) -le 200 ] || fail "the log does not say: $1"
		sleep 0.05
	done
}

# await PATTERN: the table of the server's sessions has that
await() {
	tries=0
	until timeout -k 5 60 "$bin/ndx-negotiate" sessions "$socket" >"$work/out.log" 2>&1 &&
		grep -q "$1" "$work/out.log"; do
		[ $((tries += 1)) -le 200 ] || fail "the table does not become: $1"
		sleep 0.05
	done
}

# hold PEER: a client that stays, and does nothing once it transfers data
hold() {
	"$bin/ndx-negotiate" client "$server_address" --adapter "$uri" --tls-psk "$work/$1" \
		--timeout 60000 --messages 4294967295 >"$work/held.log" 2>&1 &
	held=$!
	await " key:$1 .* connected "
	kill -STOP "$held"
}

# release: end the client that stays
release() {
	[ -n "$held" ] || return 0
	kill -KILL "$held" 2>/dev/null
	wait "$held" 2>/dev/null
	held=
}

# one_each OPTION TEXT: alice may have one of it, and bob, too
one_each() {
	echo "# $1"
	serve --tls-psk "$work/both" "$1" 1
	hold alice
	client alice && fail "alice has two with $1"
	grep -q "\"alice\" would have more than 1 $2" "$work/client.log" || fail 'she is not told'
	says "\"alice\" would have more than 1 $2"
	client bob || fail "bob has none with $1"
	release
	await 'sessions 0 of'
	client alice || fail "alice has none after the end of the first with $1"
	server_stop
}
one_each --principal-sessions 'sessions, the limit (max_sessions_per_principal)'
one_each --principal-queue-pairs 'queue pairs, the limit (max_queue_pairs_per_principal)'

echo '# --principal-memory'
serve --tls-psk "$work/both" --principal-memory 8191 --size 8192
client alice --size 8192 && fail 'alice has 8,192 bytes'
grep -q '"alice" would have more than 8191 bytes of memory' "$work/client.log" ||
	fail 'she is not told'
server_stop
server_stop
serve --tls-psk "$work/both" --principal-memory 0x2000 --size 8192
client alice --size 8192 || fail 'alice has no 8,192 bytes'
server_stop

# ten OPTION: ten are kept at once, and one more for each second that the clock has lost
ten() {
	case $kept in
	[12345]?) ;;
	*) fail "$1 kept $kept" ;;
	esac
}

# connections COUNT OPTION...: how many of COUNT silent connections a server with OPTION... keeps
connections() {
	count=$1
	shift
	serve "$@"
	kept=$(timeout -k 5 60 python3 - "$server_address" "$count" "$socket" <<'END'
import json, select, socket, sys

host, port = sys.argv[1].rsplit(":", 1)
count = int(sys.argv[2])
held = [socket.create_connection((host, int(port))) for _ in range(count)]

# A connection is accepted before it is refused: until then it is none of the sessions.
while True:
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(sys.argv[3])
        snapshot = json.loads(control.makefile().read())
    counters = snapshot["counters"]
    ended = counters["refused"] + counters["without_hello"]
    if counters["accepted"] == count == ended + snapshot["sessions"]["total"]:
        break
closed = []
while len(closed) < counters["refused"]:
    closed = select.select(held, [], [])[0]
print(count - counters["refused"])
END
	) || fail 'a program of the test'
	server_stop
}

echo '# connections'
connections 4 --max-sessions 3
[ "$kept" -eq 3 ] || fail "--max-sessions 3 kept $kept"
says '3 sessions are the limit'
connections 3 --max-waiting 2
[ "$kept" -eq 2 ] || fail "--max-waiting 2 kept $kept"
says '2 connections of its address wait for their hello, the limit'
connections 100 --max-handshakes 1
ten --max-handshakes
says '1 connections a second, .* of all addresses (max_handshakes)'
connections 100 --address-handshakes 1 --tls-psk "$work/both"
ten --address-handshakes
says '1 connections a second, .* of one address (max_handshakes_per_address)'

echo '# --grants'
cat >"$work/grants" <<'END'
# variants, and whose they are

roce	psk  alice
other/variant psk bob
END
serve --tls-psk "$work/both" --grants "$work/grants"
client alice || fail 'alice is granted roce'
client bob && fail 'bob is granted another plugin'
grep -q '"bob" has no grant for variant roce/' "$work/client.log" || fail 'he is not told'
says '"bob" has no grant for variant roce/'
server_stop
variant=$(sed -n 's/.*has no grant for variant \([^ ]*\).*/\1/p' "$work/server.log" | head -1)
echo "$variant psk bob" >"$work/grants"
serve --tls-psk "$work/both" --grants "$work/grants"
client bob || fail "bob is granted $variant"
client alice && fail 'alice is granted nothing'
server_stop

# wrong EXIT TEXT OPTION...: a server with OPTION... ends at once and says so
wrong() {
	expected=$1 text=$2
	shift 2
	timeout -k 5 60 "$bin/ndx-negotiate" server 127.0.0.1:0 --adapter "$uri" "$@" \
		>"$work/err.log" 2>&1
	rc=$?
	[ $rc -eq "$expected" ] || fail "exit status $rc with $*"
	grep -q "$text" "$work/err.log" || fail "not told: $text"
}

echo '# what is wrong'
wrong 2 'need --tls-cert or --tls-psk' --principal-sessions 1
wrong 2 'need --tls-cert or --tls-psk' --grants "$work/grants"
wrong 1 'none: No such file' --tls-psk "$work/both" --grants "$work/none"
for line in roce 'roce psk' 'roce who alice' '/variant psk alice' 'roce/ name alice'; do
	{ echo '# a grant' && echo "$line"; } >"$work/grants"
	wrong 2 'line 2: say PLUGIN' --tls-psk "$work/both" --grants "$work/grants"
done
echo '# none' >"$work/grants"
wrong 2 'there is no grant in it' --tls-psk "$work/both" --grants "$work/grants"
printf 'roce psk %2000s\n' alice >"$work/grants"
wrong 2 'line 1: too long' --tls-psk "$work/both" --grants "$work/grants"
echo 'limits: all well'
