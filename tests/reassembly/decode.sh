#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: decode.sh NDX-DECODE TOOL
# What ndx-decode prints, writes and refuses, on captures made for it.
set -eu
decode=$1 tool=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

# good WHAT COMMAND...: it ends with 0
good() {
	what=$1
	shift
	"$@" >"$tmp/out" 2>"$tmp/err" || {
		echo "$what: ended with $?"
		cat "$tmp/err"
		bad=1
	}
}

# has WHAT LINE: that line was printed
has() {
	grep -qx "$2" "$tmp/out" || {
		echo "$1: no line \"$2\""
		bad=1
	}
}

# digest PREFIX: of the files that begin so, as --summary says it, by other means
digest() {
	find "$tmp" -path "$1*" -exec sha256sum {} + | cut -c 1-64 | sort | head -c -1 | sha256sum |
		cut -c 1-64
}

for wire in 0 1 2 3 4 5; do
	for seed in 1 2 3; do
		file=$tmp/$wire-$seed.pcap
		"$tool" synth $wire 30 $seed "$file" >"$tmp/truth"
		{
			echo "call digest $(digest "$file.calls.")"
			echo "reply digest $(digest "$file.replies.")"
		} >>"$tmp/truth"
		cp "$tmp/truth" "$file.truth"
		good "summary of wire $wire" "$decode" --summary --check-crc "$file"
		while read -r line; do
			has "summary of wire $wire, seed $seed" "$line"
		done <"$tmp/truth"
		has "wire $wire" 'holes 0'
		has "wire $wire" 'crc bad 0'
		has "wire $wire" 'malformed 0'
	done
done

file=$tmp/0-1.pcap
calls=$(sed -n 's/^calls \([0-9]*\)$/\1/p' "$file.truth")
replies=$(sed -n 's/^replies //p' "$file.truth")
"$decode" --summary "$file" >"$tmp/plain"
good 'lines' "$decode" "$file"
[ "$(grep -c ' call xid ' "$tmp/out")" -eq "$calls" ] || {
	echo "not a line for each call"
	bad=1
}
good 'standard input' sh -c "\"$decode\" --summary - <\"$file\""
cmp -s "$tmp/out" "$tmp/plain" || {
	echo 'the standard input is read otherwise than the file'
	bad=1
}
gzip -k "$file"
if "$decode" --summary "$file.gz" >"$tmp/out" 2>"$tmp/err"; then
	cmp -s "$tmp/out" "$tmp/plain" || {
		echo 'a compressed file is read otherwise than the file'
		bad=1
	}
elif ! grep -q 'built without zlib' "$tmp/err"; then
	echo 'a compressed file cannot be read'
	bad=1
fi
if "$decode" --json "$file" >"$tmp/out" 2>"$tmp/err"; then
	[ "$(grep -c '"event":"reply"' "$tmp/out")" -eq "$replies" ] || {
		echo 'not a JSON object for each reply'
		bad=1
	}
	good 'summary as JSON' "$decode" --json --summary "$file"
	grep -q "\"calls\":$calls," "$tmp/out" || bad=1
elif ! grep -q 'built without --json' "$tmp/err"; then
	echo '--json fails'
	bad=1
fi
good 'extract' "$decode" --no-digest --summary --extract "$tmp/x" "$file"
[ "$(find "$tmp/x" -name '*-call.xdr' | wc -l)" -eq "$calls" ] || {
	echo 'not a file for each call'
	bad=1
}
good 'stats' "$decode" --stats "$file"
grep -q 'RC SEND_Only ' "$tmp/out" || bad=1

# The halves of a capture, given one after the other, are the capture.
good 'several files' "$decode" --summary "$file" "$tmp/0-2.pcap"

refused() { # refused CODE ARGUMENTS...
	code=$1
	shift
	ended=0
	"$decode" "$@" >"$tmp/out" 2>"$tmp/err" || ended=$?
	if [ $ended -ne "$code" ] || [ ! -s "$tmp/err" ]; then
		echo "ndx-decode $*: ended with $ended, not $code, or said nothing"
		bad=1
	fi
}
refused 2
refused 2 --nonsense "$file"
refused 2 -i lo "$file"
refused 1 "$tmp/absent.pcap"
echo 'no capture' >"$tmp/text"
refused 1 "$tmp/text"
head -c 5000 "$file" >"$tmp/cut.pcap"
refused 1 --summary "$tmp/cut.pcap"
grep -q "cut.pcap: " "$tmp/err" || {
	echo 'the cut file is not named'
	bad=1
}
grep -q '^packets [1-9]' "$tmp/out" || {
	echo 'what a cut file holds is lost'
	bad=1
}
refused 1 -i nosuchif
grep -q '^ndx-decode: nosuchif: ' "$tmp/err" || {
	echo 'an interface that is not there is not named'
	bad=1
}
exit $bad
