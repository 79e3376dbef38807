#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: captures.sh NDX-DECODE TOOL
# Every capture in $NDX_CAPTURES against its truth, expected.json: packets, calls, replies, digests;
# and again with its packets shuffled within windows, some of them doubled.
set -eu
decode=$1 tool=$2
if [ ! -f "${NDX_CAPTURES:-}/expected.json" ]; then
	echo "skip: \$NDX_CAPTURES names no folder with expected.json"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
count=0

# truth NAME FIELD: the value in the object of that capture
truth() {
	sed -n "/\"$1\": {/,/}/s/.*\"$2\": \"\{0,1\}\([^\",]*\).*/\1/p" "$NDX_CAPTURES/expected.json"
}

# same NAME FIELD LINE: the summary has that line with the true value
same() {
	wanted=$(truth "$1" "$2")
	if ! grep -qx "$3 $wanted" "$tmp/summary"; then
		echo "$1: $3 should be $wanted, but: $(grep "^$3 " "$tmp/summary")"
		bad=1
	fi
}

sed -n 's/^ "\(.*\)": {$/\1/p' "$NDX_CAPTURES/expected.json" >"$tmp/names"
while read -r name; do
	"$decode" --summary "$NDX_CAPTURES/$name" >"$tmp/summary"
	same "$name" packets packets
	same "$name" calls calls
	same "$name" replies replies
	same "$name" calls_incomplete 'calls incomplete'
	same "$name" dup_sends 'duplicate sends'
	same "$name" call_digest 'call digest'
	same "$name" reply_digest 'reply digest'
	"$decode" --summary --no-digest --check-crc "$NDX_CAPTURES/$name" | grep -qx 'crc bad 0' || {
		echo "$name: wrong CRCs in a good capture"
		bad=1
	}
	case $name in
	*iwarp*) windows='4 16 64' ;; # no TCP is further out of order than that
	*) windows='4 16 64 200' ;;
	esac
	for window in $windows; do
		"$tool" spoil "$window" 500 "$NDX_CAPTURES/$name" "$tmp/spoiled.pcap"
		"$decode" --summary "$tmp/spoiled.pcap" >"$tmp/summary"
		same "$name" calls calls
		same "$name" replies replies
		same "$name" call_digest 'call digest'
		same "$name" reply_digest 'reply digest'
	done
	count=$((count + 1))
done <"$tmp/names"
[ $count -gt 0 ] || bad=1
[ $bad -eq 0 ] && echo "$count captures, each as its truth says"
exit $bad
