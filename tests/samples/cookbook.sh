#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: cookbook.sh SOURCE BIN CC
# The programs of docs/cookbook.md run, over two adapters; each is a page, and the page names each.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"

for file in "$src"/samples/cookbook/*.c; do
	[ "$(wc -l <"$file")" -lt 150 ] || fail "$file has 150 lines or more"
	grep -q "cookbook/${file##*/}" "$src/docs/cookbook.md" || fail "docs/cookbook.md has no ${file##*/}"
done

# run NAME URI: "skip: ..." of a recipe is fine where the adapter lacks the capability
run() {
	timeout -k 5 60 "$bin/cookbook-$1" "$2" >"$work/$1.log" 2>&1
	code=$?
	[ $code -eq 77 ] && grep -q '^skip: ' "$work/$1.log" && return
	[ $code -eq 0 ] || fail "cookbook-$1 $2: exit status $code"
}

says() {
	grep -q "$2" "$work/$1.log" || fail "cookbook-$1 does not say: $2"
}

for adapter in loop "$uri"; do
	echo "# $adapter"
	for recipe in log many-clients options reconnect requests shared-receives token windows; do
		run $recipe "$adapter"
	done
	says token '^the server has "changed by the client"'
	says options '^100 messages, 13 results'
	says windows 'after the invalidate: NDX_E_ACCESS_VIOLATION'
	says requests '^8 clients, 4 accepted'
	says many-clients '^20 clients, 4000 messages'
	says shared-receives '^200 messages of each of 4 clients'
	[ "$(grep -c '^connection: aborted' "$work/reconnect.log")" -eq 3 ] || fail 'not three aborts'
	says reconnect '^connection: graceful'
	says log '"text":"connector#.*aborted'
done
jq -e .text <"$work/log.log" >"$work/jq.log" 2>&1 || fail 'a record is not JSON'

echo '# a file, between two processes'
dd if=/dev/urandom of="$work/in" bs=1000 count=3001 2>"$work/dd.log" || fail 'no file'
: >"$work/empty"
for file in in empty; do
	: >"$work/port"
	timeout -k 5 60 "$bin/cookbook-copy" receive "$work/out" 0 "$uri" >"$work/port" 2>"$work/receive.log" &
	receiver=$!
	for _ in $(seq 100); do
		[ -s "$work/port" ] && break
		sleep 0.1
	done
	timeout -k 5 60 "$bin/cookbook-copy" send "$work/$file" 127.0.0.1 "$(cat "$work/port")" "$uri" \
		>"$work/send.log" 2>&1 || fail 'the sender'
	wait $receiver || fail 'the receiver'
	cmp "$work/$file" "$work/out" || fail 'another file'
	bytes=$(wc -c <"$work/$file")
	grep -qx "sent $bytes bytes, all of them" "$work/send.log" || fail 'the sender does not say so'
	grep -qx "received $bytes bytes, all of them" "$work/port" || fail 'the receiver does not say so'
done
for words in '' 'receive' 'send in 127.0.0.1' 'copy in 127.0.0.1 1'; do
	# shellcheck disable=SC2086 # words
	"$bin/cookbook-copy" $words >"$work/usage.log" 2>&1 && fail "cookbook-copy $words: status 0"
	for usage in 'receive FILE [PORT [URI]]' 'send FILE ADDRESS PORT [URI]'; do
		grep -qF "cookbook-copy $usage" "$work/usage.log" || fail "no usage of ${usage%% *}"
	done
done

echo '# a request that failed: the connector says why'
: >"$work/port"
timeout -k 5 60 "$bin/cookbook-copy" receive /dev/full 0 "$uri" >"$work/port" 2>"$work/receive.log" &
receiver=$!
for _ in $(seq 100); do
	[ -s "$work/port" ] && break
	sleep 0.1
done
timeout -k 5 60 "$bin/cookbook-copy" send /dev/zero 127.0.0.1 "$(cat "$work/port")" "$uri" \
	>"$work/send.log" 2>&1 && fail 'the sender does not fail'
wait $receiver && fail 'the receiver does not fail'
grep -q '^a request: NDX_E_.*connector#.*aborted' "$work/send.log" || fail 'no cause'
grep -qx 'write to the file: No space left on device' "$work/receive.log" || fail 'no errno'

echo '# a file that cannot be read'
"$bin/cookbook-copy" receive "$work" 0 "$uri" 2>"$work/receive.log" && fail 'receives into a folder'
grep -qx "$work: Is a directory" "$work/receive.log" || fail 'no errno at fopen'

echo '# a result of a write that does not come: its slot is not used again'
# A slot is owed the result of its write and a credit; whichever is lost, the sender must not go on.
: >"$work/port"
timeout -k 5 60 "$bin/cookbook-copy" receive "$work/out" 0 "$uri" >"$work/port" 2>"$work/receive.log" &
receiver=$!
for _ in $(seq 100); do
	[ -s "$work/port" ] && break
	sleep 0.1
done
timeout -k 5 60 "$bin/cookbook-copy" send "$work/in" 127.0.0.1 "$(cat "$work/port")" \
	"fault:$uri&fault_drop=1" >"$work/send.log" 2>&1 && fail 'a slot is used before its write has ended'
wait $receiver && fail 'the receiver has a part of the file'
# both wait for the other; the one whose time is over first ends the connection
cat "$work/receive.log" "$work/send.log" >"$work/ends.log"
grep -q '^wait for a result: NDX_PENDING' "$work/ends.log" || fail 'the sender does not wait'
echo 'cookbook: all well'
