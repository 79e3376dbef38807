#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: frames.sh SOURCE FRAMES
# In the guest: FRAMES frames from ndx-send to ndx-recv, with sends and with writes, from one device
# to the other; a sender that dies; a link that is cut. Exit status 0: no frame was lost or wrong,
# and every slot was returned.
set -u
src=$1 frames=$2
# shellcheck source=samples/server.sh
. "$src/samples/server.sh"
work=$(mktemp -d)
trap 'server_stop; rm -rf "$work"' EXIT
server_limit=1200

# wrong TEXT
wrong() {
	echo "frames: $1"
	cat "$work"/*.log
	exit 1
}

# receive OPTIONS...
receive() {
	server_start "$work" ndx-recv 10.9.0.1:0 --adapter verbs:rxe0 --quiet "$@" || wrong 'no receiver'
}

# stream OPTIONS...
stream() {
	timeout 1000 ndx-send "$server_address" --adapter verbs:rxe1 "$@" >"$work/send.log" 2>&1
}

# await COMMAND...: repeat it until it succeeds
await() {
	for _ in $(seq 1200); do
		"$@" && return
		sleep 0.05
	done
	wrong "waited in vain: $*"
}

wire heal || wrong 'no wire' # see suite.sh
receive --senders 2
stream --frames "$frames" || wrong 'frames did not go out'
stream --frames 50 --size 9000 || wrong 'the second sender'
server_end || wrong 'the receiver found fault'
grep -q "^$((frames + 50)) frames, .* 0 lost, 0 bad; 256 of 256 slots back" "$work/server.log" ||
	wrong 'not every frame, or not every slot'

# One packet per frame: of a longer one only the last packet waits for a slot (docs/receiver.md).
receive --write --slots 32
stream --frames 500 --slots 8 --size 1000 || wrong 'frames were not written'
server_end || wrong 'the receiver found fault with what was written'

# For a process that is killed the kernel sends a disconnect request. The receiver must notice that
# it is not the peer's goodbye.
receive --senders 2 --file "$work/frames"
timeout 600 ndx-send "$server_address" --adapter verbs:rxe1 --frames 1000000000 --rate 200 \
	>"$work/killed.log" 2>&1 &
victim=$!
await test -s "$work/frames"
kill -9 $victim
stream --frames 100 || wrong 'nobody served the next sender'
server_end && wrong 'a sender that died is called a success'
grep -q 'sender gone: lost' "$work/server.log" || wrong 'the cause is not told'
grep -q 'sender gone: goodbye' "$work/server.log" || wrong 'the second one was not served'

# cut CAUSES OPTIONS...: cut the link during a stream; the receiver reports why it ended, before the
# link is back
cut() {
	causes=$1
	shift
	rm -f "$work/frames"
	receive --senders 0 --raw --file "$work/frames" "$@"
	timeout 600 ndx-send "$server_address" --adapter verbs:rxe1 --frames 1000000 --rate 200 --size 1000 \
		>"$work/cut.log" 2>&1 &
	victim=$!
	await test -s "$work/frames"
	wire cut
	await grep -q 'sender gone' "$work/server.log"
	wire heal
	wait $victim && wrong 'a sender whose wire was cut calls it a success'
	stream --frames 100 --size 1000 || wrong 'nobody served the next sender'
	await grep -q 'sender gone: goodbye' "$work/server.log"
	server_stop
	grep -Eq "sender gone: ($causes): .*" "$work/server.log" || wrong "the cause is not $causes"
	grep -q ' 0 lost, 0 bad; 256 of 256 slots back; slots ran out 0 times' "$work/server.log" ||
		wrong 'not every slot'
}

# The kernel may give up on the probe before the probe's time-out.
cut 'probe|lost' --probe 500
cut idle --idle 3000
echo 'frames: all well'
