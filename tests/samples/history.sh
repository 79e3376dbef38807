#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: history.sh SOURCE BIN
# ndx-info history: one side and both, as text, picture and JSON; clocks of two hosts; files that are
# no snapshots, or were damaged. The picture of docs/observability.md is what this test draws.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
for tool in jq python3; do
	command -v $tool >/dev/null || {
		echo "skip: $tool is missing"
		exit 77
	}
done
case $src in
/*) ;;
*) src=$PWD/$src ;;
esac
case $bin in
/*) ;;
*) bin=$PWD/$bin ;;
esac
cp "$src/tests/samples/history/client.json" "$src/tests/samples/history/server.json" "$work"
cd "$work" || exit 1

# history STATUS ARGUMENT...
history() {
	wanted=$1
	shift
	timeout -k 5 60 "$bin/ndx-info" history "$@" >out.log 2>err.log </dev/null
	status=$?
	[ $status -eq "$wanted" ] || fail "history $*: status $status, not $wanted"
	! grep -q 'Sanitizer\|runtime error' err.log || fail "history $*: a sanitizer"
}
# shows PATTERN, says PATTERN: on stdout, on stderr
shows() {
	grep -qe "$1" out.log || fail "does not show: $1"
}
says() {
	grep -qe "$1" err.log || fail "does not say: $1"
}
# picture FILE: is XML, and no two texts overlap
picture() {
	python3 - "$1" <<-'END' || fail "$1 is not legible"
		import sys, xml.dom.minidom
		root = xml.dom.minidom.parse(sys.argv[1]).documentElement
		width, height = (float(root.getAttribute(name)) for name in ('width', 'height'))
		boxes = []
		for text in root.getElementsByTagName('text'):
		    content = ''.join(node.data for node in text.childNodes)
		    size = float(text.getAttribute('font-size') or 12)
		    wide = 0.602 * size * len(content)
		    x, y = float(text.getAttribute('x')), float(text.getAttribute('y'))
		    x -= {'end': wide, 'middle': wide / 2}.get(text.getAttribute('text-anchor'), 0)
		    assert x >= 0 and x + wide <= width and size <= y <= height, ('outside', content)
		    for other, left, right, top, bottom in boxes:
		        assert x >= right or x + wide <= left or y - size >= bottom or y <= top, (
		            'overlap', content, other)
		    boxes.append((content, x, x + wide, y - size, y))
		assert len(boxes) > 5, len(boxes)
	END
}

echo '# both sides of a connection, and one'
history 0 client.json server.json
shows 'Ended badly at the passive side, in state UP, by FLUSH'
shows '^ *0.000  *o  NEW + GET_REQUEST -> AWAIT_REQUEST$'
shows '^ *715.281  *300.176 ms  | X  UP + FLUSH -> ABORTING$'
shows '^ *719.901  *4.381 ms  X    UP + ABORT -> ABORTING$'
[ "$(grep -c -- '->' out.log)" -eq 15 ] || fail 'not 13 transitions and 2 sides'
awk 'length > 80 { exit 1 }' out.log || fail 'more than 80 columns'
! grep -q clock out.log || fail 'the clocks are the same'
cp out.log both.txt
history 0 server.json client.json
cmp -s out.log both.txt || fail 'the order of the files matters'
history 0 client.json
shows '^ *0.000  *o    NEW + CONNECT -> CONNECTING$'
shows 'by ABORT: the stack below reports'
history 1 -
says '"*-"*: is empty'
timeout 60 "$bin/ndx-info" history - <client.json >out.log 2>err.log || fail 'stdin'
shows 'UP + ABORT'
history 0 client.json server.json --connector 1
history 1 client.json --connector 2
says 'no connector with this id'
history 0 client.json server.json --json
jq -e '.program == "ndx-info" and .error == null and (.connections | length) == 1 and
	(.connections[0] | .clock == "same" and (.sides | map(.side)) == ["active", "passive"] and
	(.transitions | length) == 13 and .transitions[.ended_badly_by].event == "FLUSH")' out.log \
	>/dev/null || fail 'the JSON'
jq -c '.connections[0].transitions | map(del(.at_ns))' out.log >order

echo '# the picture, as the page has it'
history 0 client.json server.json --svg life.svg
[ ! -s out.log ] || fail 'text beside the picture'
picture life.svg
cmp -s life.svg "$src/docs/observability/life.svg" || {
	[ -z "${NDX_RENEW-}" ] || cp life.svg "$src/docs/observability/life.svg"
	fail 'the picture of docs/observability.md is another one; NDX_RENEW=1 replaces it'
}
history 0 client.json server.json --svg
cmp -s out.log life.svg || fail 'another picture on stdout'
history 0 client.json --svg=one.svg
picture one.svg

echo '# a burst, a long life, long causes, many connections'
burst='.connectors[0].history |= map(.time_ns = 5)'
jq "$burst" client.json >burst.json
history 0 burst.json --svg burst.svg
picture burst.svg
jq '.connectors[0].history |= map(.time_ns += 86400000000000 * (.number / 6 | floor))' server.json >long.json
history 0 long.json --svg long.svg
picture long.svg
history 0 long.json client.json
history 0 long.json client.json --svg long.svg
picture long.svg
jq '.connectors[0].history |= map(.cause = "a cause of many words " * 40 | .from += "X" * 99)' \
	client.json >wide.json
history 0 wide.json server.json --svg wide.svg
picture wide.svg
history 0 wide.json server.json
awk 'length > 120 { exit 1 }' out.log || fail 'long texts are not cut'
jq '.connectors[0] as $c | .connectors = [range(1; 40) | . as $i | $c | .id = $i]' client.json >many.json
history 0 many.json
says '23 more are not shown'
[ "$(grep -c '^Connection' out.log)" -eq 16 ] || fail 'not 16 connections'
history 0 many.json --connector 39
[ "$(grep -c '^Connection' out.log)" -eq 1 ] || fail 'not one connection'
history 0 many.json server.json --svg many.svg
picture many.svg

echo '# clocks of two hosts'
for shift in 5000000000000 -5000000000000; do
	jq --argjson shift $shift '.connectors[0].history |= map(.time_ns += $shift)' server.json >other.json
	history 0 client.json other.json --json
	jq -e --argjson shift $shift '.connections[0] | .clock == "aligned" and
		((.shift_ns - $shift) | fabs) <= .doubt_ns and .doubt_ns < 1e6' out.log >/dev/null ||
		fail "the shift $shift"
	jq -c '.connections[0].transitions | map(del(.at_ns)) | sort' out.log >shifted
	jq -c sort order | cmp -s - shifted || fail 'transitions are missing'
done
history 0 client.json other.json
shows "clock was set forward by 1.4 h\|clock was set forward by 83.3 min"
history 0 client.json other.json --svg two.svg
picture two.svg
jq '.connectors[0].history |= .[:1]' other.json >short.json
history 0 client.json short.json
shows 'times of different sides cannot be'

echo '# times out of order'
jq '.connectors[0].history |= reverse' server.json >reverse.json
history 0 client.json reverse.json
shows "passive side's times are not in order"
history 0 client.json reverse.json --json
jq -c '.connections[0].transitions | map(del(.at_ns))' out.log | cmp -s - order ||
	fail 'sorting gives another order'

echo '# what a file must not do to a terminal or to a picture'
jq '.connectors[0].history[4].cause = "\u001b[2J <script>&amp; \u202e\u0000b" |
	.connectors[0].history[0].from = "\u009bX"' client.json | sed 's/\\u0000//' >hostile.json
history 0 hostile.json
LC_ALL=C grep -q '[^ -~]' out.log && fail 'control characters on the terminal'
history 0 hostile.json --svg hostile.svg
picture hostile.svg
grep -q '<script' hostile.svg && fail 'elements of the file in the picture'

echo '# what is no snapshot'
# bad PATTERN: of bad.json
bad() {
	history 1 bad.json
	says "bad.json$1"
	history 1 bad.json --json
	jq -e '.exit == 1 and (.error | contains("bad.json"))' out.log >/dev/null || fail 'JSON of it'
}
: >bad.json
bad ': is empty; was the disk full'
echo 'ndx-reqresp: 5 requests' | cat - client.json >bad.json
bad ': does not begin with {.*sed -n'
head -c 2000 client.json >bad.json
bad ': line [0-9]*, column [0-9]*: .*take the snapshot again'
echo '[]' >bad.json
bad ': does not begin with {'
echo '{}' >bad.json
bad ': has no "connectors"'
echo '{"session": 1, "history": []}' >bad.json
bad ': is the snapshot of a session'
# damage FILTER PATTERN
damage() {
	jq "$1" client.json >bad.json
	bad ": $2"
}
damage '.snapshot = 2' 'snapshot: is not 1'
damage '.connectors = 5' 'connectors: is no list'
damage '.connectors[0] = 5' 'connectors\[0\]: is no object'
damage 'del(.connectors[0].history)' 'connectors\[0\].history: is missing'
damage '.connectors[0].side = "left"' 'connectors\[0\].side: is neither'
damage '.connectors[0].id = -1' 'connectors\[0\].id: is -1'
damage '.connectors[0].history[2] = []' 'connectors\[0\].history\[2\]: is no object'
damage '.connectors[0].history[2].time_ns = -5' 'connectors\[0\].history\[2\].time_ns: is -5'
damage '.connectors[0].history[2].time_ns = 2e18' '.*time_ns: is no whole number\|.*not from 0'
damage '.connectors[0].history[2].event = 7' 'connectors\[0\].history\[2\].event: is no text'
damage 'del(.connectors[0].history[6].to)' 'connectors\[0\].history\[6\].to: is missing'
damage '.connectors[0].history |= [.[0] + {number: range(300)}]' \
	'connectors\[0\].history: has 300 transitions'
jq '.connectors[0].history[2].time_ns = "BIG"' client.json | sed 's/"BIG"/99999999999999999999/' >bad.json
bad ': line [0-9]*, .*too big integer'
python3 -c 'print("{\"connectors\":" + "[" * 100000)' >bad.json
bad ': line 1, '
printf '{"connectors": [{"side": "\377\376"}]}' >bad.json
bad ': line 1, column 26: unable to decode'
printf '{"connectors": \033[2Jx' >bad.json
bad ': line 1, '
LC_ALL=C grep -q '[^ -~]' err.log && fail 'control characters in a message'
truncate -s 65M bad.json
bad ' has more than 64 MiB'
echo '{"connectors": [], "failed": []}' >bad.json
history 1 bad.json
says 'there is no connection in it'
history 1 nothing.json
says 'nothing.json cannot be read: No such file'
history 1 .
says 'cannot be read: Is a directory'

echo '# where the picture must not go, and wrong command lines'
cp client.json copy.json
history 1 --svg copy.json server.json
says 'copy.json is there, and is no SVG'
cmp -s client.json copy.json || fail 'a snapshot was overwritten'
history 1 client.json --svg=nowhere/life.svg
says 'nowhere/life.svg cannot be written'
history 1 client.json --svg=/dev/full
says '/dev/full cannot be written: No space'
"$bin/ndx-info" history client.json --svg >/dev/full 2>err.log && fail 'a full disk'
says 'cannot be written'
"$bin/ndx-info" history client.json >/dev/full 2>err.log && fail 'a full disk'
history 2
says 'needs the FILE'
history 2 client.json --brief
history 2 client.json --svg --json
history 2 client.json --connector 0
history 2 a b c d e f g h i
"$bin/ndx-info" hiztory client.json 2>err.log && fail 'a typing mistake'
says 'did you mean history'
"$bin/ndx-info" loop --svg 2>err.log && fail 'a picture of an adapter'
says 'are for history'

echo '# what the library writes today'
"$bin/ndx-reqresp" both --adapter loop --requests 10 --quiet --stats --json=live.json >out.log 2>&1 ||
	fail 'ndx-reqresp'
history 0 live.json
shows 'FINISH + QUIET -> CLOSED_OK'
history 0 live.json --svg live.svg
picture live.svg

echo '# damaged files: no crash, and nothing but a status'
python3 - "$bin/ndx-info" <<'END' || fail 'a damaged file'
import random, subprocess, sys
random.seed(20)
whole = open('client.json', 'rb').read()
begin = whole.index(b'"connectors": [')
used = {0: 0, 1: 0}
for turn in range(60):
    data = bytearray(whole)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(begin, len(data))
        how = random.randrange(3)
        if how == 0:
            data[at] = random.randrange(256)
        elif how == 1:
            del data[at:at + random.randrange(1, 30)]
        else:
            data[at:at] = data[begin + random.randrange(len(data) - begin):][:random.randrange(1, 40)]
    open('damaged.json', 'wb').write(data)
    ran = subprocess.run([sys.argv[1], 'history', 'damaged.json', 'server.json'] + turn % 2 * ['--svg'],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if ran.returncode not in used or b'Sanitizer' in ran.stderr or b'runtime error' in ran.stderr:
        sys.exit('status %d: %s' % (ran.returncode, ran.stderr.decode(errors='replace')))
    if (ran.returncode == 0) != (ran.stdout != b''):
        sys.exit('status %d with %d bytes' % (ran.returncode, len(ran.stdout)))
    used[ran.returncode] += 1
assert used[0] > 3 and used[1] > 3, used
END
echo 'ndx-info history: all well'
