#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: overhead.sh BUILD
# How many instructions a post, with the GetResults that takes its result, has more by the interfaces
# of NetworkDirect than by the C API; counted by callgrind over the provider null. Fails above the
# limit.
set -eu
build=$1
limit=40
count=1000
if ! command -v valgrind >/dev/null; then
	echo "skip: valgrind is not installed"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export NDX_PROVIDER_PATH="$build/lib/samples" NDX_ADAPTER=null

# instructions LANE COUNT: those of so many rounds
instructions() {
	valgrind --tool=callgrind --toggle-collect="pairs_$1" --callgrind-out-file="$tmp/profile" \
		"$build/bin/ndspi_overhead" "$1" "$2" >"$tmp/log" 2>&1 || {
		cat "$tmp/log" >&2
		exit 1
	}
	sed -n 's/^\(summary\|totals\): *//p' "$tmp/profile" | head -n 1
}

# pair LANE: instructions of one pair; a round has two. What happens once only falls out.
pair() {
	once=$(instructions "$1" $count)
	twice=$(instructions "$1" $((2 * count)))
	echo $(((twice - once) / (2 * count)))
}

c=$(pair c)
nd=$(pair nd)
echo "a post and its GetResults: $c instructions by the C API, $nd by NetworkDirect: $((nd - c)) more"
[ "$c" -gt 0 ] || { echo 'nothing was counted' && exit 1; }
[ $((nd - c)) -le $limit ] || { echo "more than $limit" && exit 1; }
