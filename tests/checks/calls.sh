#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: calls.sh SOURCE
# docs/fault.md lists the calls that the provider fault can make fail, and the statuses that fit:
# those of fault_calls.def. Then a row is taken out, and a status: both have to be found.
set -eu
src=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

sed -n 's/^FAULT_CALL(\([a-z_]*\), \(.*\))$/\1 \2/p' "$src/providers/fault/fault_calls.def" |
	sed 's/FAULT_IS(//g; s/)//g; s/,//g' | sort >"$tmp/calls"
[ -s "$tmp/calls" ] || {
	echo 'no call found: this check sees nothing'
	exit 1
}
# compare PAGE: whether the page has these calls
compare() {
	sed -n '/^## Calls/,$s/^| `\([a-z_]*\)` | \(.*\) |$/\1 \2/p' "$1" | sed 's/[`,]//g' | sort |
		diff "$tmp/calls" -
}
compare "$src/docs/fault.md" || {
	echo '   ^ the table of docs/fault.md does not list the calls of fault_calls.def'
	exit 1
}
# shellcheck disable=SC2016 # backquotes of the page
for fault in '/^| `srq_modify`/d' 's/^| `send` | `NO_MORE_ENTRIES`/| `send` | `NO_MEMORY`/'; do
	sed "$fault" "$src/docs/fault.md" >"$tmp/page"
	if compare "$tmp/page" >"$tmp/log"; then
		echo "not found: $fault"
		exit 1
	fi
done
