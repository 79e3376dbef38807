#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: mistakes.sh SOURCE BIN
# Typing mistakes in an adapter's URI, and what programs say in a wrong or a narrow way: the message
# names the right spelling, once.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
# shellcheck source=tests/samples/said.sh
. "$src/tests/samples/said.sh"

if ! command -v jq >/dev/null; then
	echo 'skip: jq is missing'
	exit 77
fi

echo '# URIs'
while read -r wrong right; do
	run 3 ndx-reqresp both --requests 1 --adapter "$wrong"
	said "$right"
done <<'END'
tcp no provider "tcp"; did you mean "ofi:tcp"? There are: 
tpc no provider "tpc"; did you mean "ofi:tcp"? There are: 
lop did you mean "loop"?
quiche no provider "quiche"; there are: 
ofi:tpc did you mean ofi:tcp? there are: tcp, verbs
ofi:verb did you mean ofi:verbs?
ofi:psm2 NDX uses no such provider of libfabric; there are: tcp, verbs
ofi:tcp&iface=lo '&' at position 8: the first key follows a '?'; write ofi:tcp?iface=lo
loop&trust=lan '&' at position 5: the first key follows a '?'; write loop?trust=lan
ofi:tcp?iface=lo?trust=lan iface=lo?trust=lan: keys are separated by '&'; write iface=lo&trust=lan
ofi:tcp?addr=203.0.113.7 no interface that is up has address 203.0.113.7; the
END
# what only looks like a mistake
run 3 ndx-reqresp both --requests 1 --adapter 'ofi:tcp?iface=lo?x=y'
said 'no network interface "lo?x=y"'

echo '# ndx-info --brief: a line for each adapter'
run 0 ndx-info --brief
[ "$(grep -c '^[a-z]' "$work/out.log")" -eq "$(wc -l <"$work/out.log")" ] ||
	fail 'a line is not of an adapter'
run 0 ndx-info --json
jq -r '.adapters[].uri' <"$work/out.log" >"$work/listed.log"
"$bin/ndx-info" --brief | awk '{ print $1 }' | diff "$work/listed.log" - >"$work/diff.log" ||
	fail 'other adapters than those of --json'
jq -r '.adapters[] | select(.hint | startswith("not chosen by itself")).uri' <"$work/out.log" \
	>"$work/named.log"
run 0 ndx-info --brief loop
[ "$(cat "$work/out.log")" = "$(printf '%-28s usable' loop)" ] || fail 'more than a line of loop'

echo '# an adapter that works by its URI only'
while read -r named; do
	run 0 ndx-info --brief
	grep -F "$named " "$work/out.log" | grep -q ' usable by this URI only: not chosen by itself' ||
		fail "$named: the state contradicts the hint"
	run 0 ndx-info --brief "$named"
done <"$work/named.log"
# Which there are is a matter of the host.
[ -s "$work/named.log" ] || echo '# not seen: no adapter here works by its URI only'

echo '# one adapter chosen by itself: its file is loaded once'
NDX_LOG=info timeout -k 5 60 "$bin/ndx-reqresp" both --requests 1 --quiet >"$work/out.log" \
	2>"$work/err.log" || fail 'no adapter is chosen'
[ "$(grep -c 'provider "ofi" loaded' "$work/err.log")" -eq 1 ] || fail 'not loaded once'

echo '# every address, and there is one'
server_start "$work" "$bin/ndx-reqresp" server 0.0.0.0:0 --adapter "$uri" || fail 'no server'
case $server_address in
0.0.0.0:*) ;;
*)
	grep -qF "0.0.0.0:0 asks for every address, but adapter $uri serves only ${server_address%:*};" \
		"$work/server.log" || fail 'narrowed without a word'
	;;
esac
server_stop

echo '# ndx-perf: the same refusal, once'
server_start "$work" "$bin/ndx-perf" server --adapter "$uri" --listen 0 || fail 'no server'
run 1 ndx-perf client "$server_address" --adapter "$uri" --qps 1000 --size 8,64 --op send \
	--seconds 1
[ "$(grep -c 'the server refuses the test' "$work/err.log")" -eq 1 ] || fail 'not once'
grep -q '^ndx-perf client: and so [0-9]* more test' "$work/err.log" || fail 'how many more?'
server_stop

echo '# demo.sh says what it installs'
mkdir "$work/fakes"
for command in id dpkg-query apt-get; do
	printf '#!/bin/sh\n[ %s = id ] && echo 0 && exit 0\nexit 1\n' $command >"$work/fakes/$command"
	chmod +x "$work/fakes/$command"
done
PATH=$work/fakes:$PATH sh "$src/samples/demo.sh" >"$work/out.log" 2>"$work/err.log" </dev/null &&
	fail 'demo.sh goes on without the packages'
grep -q '^demo: as root, this installs the packages that the build lacks: gcc ' "$work/out.log" ||
	fail 'demo.sh installs without a word'

if [ -x "$bin/ndx-surf-fpga" ]; then
	echo '# an FPGA on an adapter that cannot serve it'
	run 3 ndx-surf-fpga --ip 127.0.0.1 --adapter "$uri"
	said "$uri: its queue pairs are not connected by their numbers"
fi

echo '# programs that are not installed have the command line of the others'
for program in ndx-disconnect-figures ndx-frames ndx-queue-pairs ndx-scale ndx-sessions \
	ndx-sessions-many; do
	[ -x "$bin/$program" ] || continue
	run 0 "$program" --help
	grep -q "^Usage: $program " "$work/out.log" || fail "$program --help"
	run 0 "$program" --version
	grep -q "^$program (NDX) [0-9.]*$" "$work/out.log" || fail "$program --version"
	run 2 "$program" --blokcs 3
	said 'there is no option --blokcs'
done
if [ -x "$bin/ndx-scale" ]; then
	run 0 ndx-scale --messages 50 --counts 1,3 loop
	grep -qw 'nan' "$work/out.log" && fail 'ndx-scale prints nan'
fi

echo '# URIs: a device, an interface or a key at the wrong place'
while read -r wrong right; do
	run 3 ndx-reqresp both --requests 1 --adapter "$wrong"
	said "$right"
done <<'END'
ofi:tcp:lo did you mean ofi:tcp?iface=lo? there are: tcp, verbs
ofi:tcp:127.0.0.1 did you mean ofi:tcp?addr=127.0.0.1?
ofi:lo did you mean ofi:tcp?iface=lo?
ofi:tcp?iface=lo;trust=lan iface=lo;trust=lan: keys are separated by '&'; write iface=lo&trust=lan
ofi:tcp?iface=lo,trust=lan keys are separated by '&'; write iface=lo&trust=lan
ofi:tcp;iface=lo;trust=lan ';' at position 8: the first key follows a '?'; write ofi:tcp?iface=lo&trust=lan
lo no provider "lo"; did you mean "
nodevice9 no provider "nodevice9"; there are: 
nodevice9 a device of that name would stand behind its provider: PROVIDER:nodevice9
END

echo '# an address that the adapter does not have'
run 1 ndx-reqresp server 203.0.113.7:0 --adapter "$uri"
said '203.0.113.7:0 is not an address of this adapter, which has those of the loopback'
said 'ofi:tcp?trust=lan has those of all interfaces'

echo 'mistakes: all well'
