#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: frames.sh SOURCE BIN
# ndx-send and ndx-recv as two processes over ofi:tcp: sends and writes, faults, files, and ends of
# every kind.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"

# receive OPTIONS...: start ndx-recv
receive() {
	server_start "$work" "$bin/ndx-recv" --adapter "$uri" --quiet "$@" || fail 'no receiver'
}

# stream OPTIONS...: one ndx-send, its output in send.log
stream() {
	timeout -k 5 60 "$bin/ndx-send" "$server_address" --adapter "$uri" "$@" >"$work/send.log" 2>&1
}

# wrong_stream OPTIONS...: as stream, with a sender that does what $SPOIL says
wrong_stream() {
	timeout -k 5 60 "$bin/ndx-send-wrong" "$server_address" --adapter "$uri" "$@" \
		>"$work/send.log" 2>&1
}

# said TEXT WHAT: the receiver's log has TEXT
said() {
	grep -q "$1" "$work/server.log" || fail "$2"
}

echo '# many frames, two senders, one slab'
receive --senders 2 "--json=$work/recv.json" --port-file "$work/port"
[ "$(cat "$work/port")" = "${server_address##*:}" ] || fail 'the port file names another port'
stream --frames 20000 || fail 'frames did not go out'
grep -q '20000 frames of 4096 bytes sent, 20000 delivered' "$work/send.log" || fail 'not all delivered'
stream --frames 500 --size 9000 --slots 64 || fail 'the second sender'
server_end || fail 'the receiver found fault'
said '^20500 frames, .* 0 lost, 0 bad; 256 of 256 slots back' 'not every frame, or not every slot'
[ "$(grep -c 'sender gone: goodbye' "$work/server.log")" -eq 2 ] || fail 'not two goodbyes'
if command -v jq >/dev/null; then
	jq -e '.frames.delivered == 20500 and .slots.held == 0 and .connections == 2' \
		"$work/recv.json" >/dev/null || fail 'the snapshot says something else'
fi

echo '# written into the slab'
receive --write --slots 32
stream --frames 5000 --slots 8 --size 1500 || fail 'frames did not go out'
server_end || fail 'the receiver found fault'
said '^5000 frames, .* 0 lost, 0 bad; 32 of 32 slots back' 'not every frame'

echo '# into a file'
receive --raw --file "$work/frames"
stream --frames 100 --size 1000 || fail 'frames did not go out'
server_end || fail 'the receiver found fault'
[ "$(wc -c <"$work/frames")" -eq 100000 ] || fail 'not all bytes'
"$bin/ndx-recv" --raw >"$work/recv.log" 2>&1
[ $? -eq 2 ] || fail 'nobody wants the frames, and that is no mistake'

echo '# lost frames are told'
receive
SPOIL='drop 100' wrong_stream --frames 1000 || fail 'frames did not go out'
server_end && fail 'lost frames are called a success'
said '^990 frames, .* 9 lost, 0 bad' 'not nine lost'

echo '# a frame that is too long'
receive --slot-size 4096
SPOIL='oversize 50' wrong_stream --frames 100 --size 4096 && fail 'it was taken'
server_end && fail 'a frame that is too long is called a success'
said 'sender gone: request: a receive failed: .*longer than a slot' 'the cause is not told'
receive --slot-size 4096
stream --frames 100 --size 5000 && fail 'too long for a slot'
grep -q 'do not fit' "$work/send.log" || fail 'not told that they do not fit'
server_end || fail 'a sender that sends nothing is no failure'

echo '# a slow sender is given up where asked'
receive --idle 300
stream --frames 3 --rate 1 && fail 'the sender did not notice'
server_end && fail 'silence is called a success'
said 'sender gone: idle: no frame came for 300 ms' 'the cause is not told'

echo '# a sender that is killed; the next one is served'
receive --senders 2 --file "$work/killed"
"$bin/ndx-send" "$server_address" --adapter "$uri" --frames 1000000000 --rate 1000 \
	>"$work/killed.log" 2>&1 &
victim=$!
# Its connection stands when a frame has come. Before that the receiver may take its end for that of
# an unknown program.
limit=$(($(date +%s) + 60))
until [ -s "$work/killed" ] || [ "$(date +%s)" -ge $limit ]; do
	:
done
kill -9 $victim
wait $victim 2>/dev/null
stream --frames 1000 || fail 'the next sender'
server_end && fail 'a lost sender is called a success'
said 'sender gone: lost' 'the cause is not told'
said 'sender gone: goodbye' 'the second one was not served'

echo '# nobody listens there'
# Not where the last one was: that port may belong to another program by now.
server_address=${server_address%:*}:1
stream --frames 1 && fail 'connected to nobody'
grep -q 'NDX_E_CONNECTION_REFUSED' "$work/send.log" || fail 'not called refused'
echo 'frames: all well'
