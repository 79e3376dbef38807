#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: shell.sh SOURCE
# Every shell script parses, and shellcheck has nothing to say about it.
set -eu
cd "$1"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

find . \( -path ./build -o -path ./.git \) -prune -o -type f -print | sort | while read -r file; do
	case $file in
	*.sh) echo "$file" ;;
	*.*[a-z]) ;;
	*) head -n 1 "$file" | grep -qE '^#!.*[/ ](sh|bash)( |$)' && echo "$file" ;;
	esac
done >"$tmp/scripts" || true
find .ci -type f 2>/dev/null >>"$tmp/scripts" || true
sort -u "$tmp/scripts" >"$tmp/all"
while read -r file; do
	shell='sh'
	if head -n 1 "$file" | grep -q bash; then
		shell='bash'
	fi
	"$shell" -n "$file" || bad=1
	if command -v shellcheck >/dev/null; then
		shellcheck -x -s "$shell" "$file" || bad=1
	fi
done <"$tmp/all"
if [ $bad -eq 0 ] && ! command -v shellcheck >/dev/null; then
	echo "skip: shellcheck is not installed; every script parses"
	exit 77
fi
exit $bad
