#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: man.sh SOURCE BUILD
# Every call has a manual page with all its sections, and no page makes groff or apropos complain. The
# pages of the calls are made anew, those of the tools are looked at where they were built.
set -eu
src=$1 build=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

for tool in python3 groff man lexgrog; do
	if ! command -v $tool >/dev/null; then
		echo "skip: $tool is missing (install python3, groff-base and man-db)"
		exit 77
	fi
done
complain() {
	echo "$*"
	bad=1
}

python3 "$(dirname "$0")/../../docs/man/pages.py" headers 0 "$tmp/man3" \
	"$src"/core/*/ndx-*.map "$src"/api/ndx/*.h

# What the libraries export, and what the headers define.
{
	find "$src/core" -name '*.map' ! -name private.map -exec \
		sed -n '/global:/,/local:/s/^[[:space:]]*\([a-z0-9_]*\);.*/\1/p' {} +
	sed -n 's/^static inline .*[ *]\(ndx_[a-z0-9_]*\)(.*/\1/p' "$src"/api/ndx/*.h
} | sort -u >"$tmp/calls"
[ -s "$tmp/calls" ] || complain "no call found: this check sees nothing"
while read -r call; do
	page=$tmp/man3/$call.3
	if [ ! -f "$page" ]; then
		complain "$call: there is no page; its declaration needs a comment /** ... */"
		continue
	fi
	for section in NAME SYNOPSIS DESCRIPTION 'RETURN VALUE'; do
		# with something below it
		awk -v s=".SH $section" '$0 == s { getline; if ($0 !~ /^\.SH/) found = 1 } END { exit !found }' \
			"$page" || complain "$call: its page has no $section"
	done
done <"$tmp/calls"

for page in "$tmp"/man3/*.3 "$build"/docs/man/man1/*.1; do
	[ -f "$page" ] || continue
	name=$(basename "$page")
	alias=$(sed -n '1s|^\.so \(.*\)|\1|p' "$page")
	if [ -n "$alias" ]; then
		[ -f "$tmp/$alias" ] || complain "$name: refers to $alias, which does not exist"
		continue
	fi
	groff -man -Tutf8 -ww -z "$page" >"$tmp/said" 2>&1 || echo "groff failed" >>"$tmp/said"
	lexgrog "$page" >/dev/null 2>&1 || echo "apropos does not understand its NAME" >>"$tmp/said"
	[ ! -s "$tmp/said" ] || complain "$name: $(cat "$tmp/said")"
done
# The reader itself, with everything around groff.
for page in "$tmp"/man3/ndx_qp_send.3 "$build"/docs/man/man1/ndx-info.1; do
	[ -f "$page" ] || continue
	LC_ALL=C.UTF-8 man --warnings=w -l -Tutf8 -Z "$page" 2>"$tmp/said" >/dev/null || complain "man $page failed"
	[ ! -s "$tmp/said" ] || complain "man $page: $(cat "$tmp/said")"
done
[ $bad -eq 0 ] && echo "$(grep -c . "$tmp/calls") calls, each with a page"
exit $bad
