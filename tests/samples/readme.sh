#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: readme.sh SOURCE BIN CC
# Whole programs in the documents compile as they stand, and files that the documents point at exist.
# README's program is samples/hello/hello_client.c.
set -u
src=$1 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

for document in "$src"/README.md "$src"/docs/*.md; do
	# each ```c block into a file of its own
	rm -f "$work"/block*.c
	awk -v work="$work" '
		/^```c$/ { block = work "/block" ++n ".c"; next }
		/^```/ { block = "" }
		block != "" { print > block }' "$document"
	for block in "$work"/block*.c; do
		grep -q 'int main(' "$block" 2>/dev/null || continue
		echo "# program in $document"
		"$cc" -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I"$src/api" "$block" || bad=1
	done
	case $document in
	"$src/README.md")
		sed 1d "$src/samples/hello/hello_client.c" | diff - "$work/block1.c" || {
			echo "   ^ the program in $document is not samples/hello/hello_client.c"
			bad=1
		}
		;;
	esac
	# links to files, relative to the document
	grep -o '](\([^)#:]*\))' "$document" | sed 's/^](//; s/)$//' | sort -u >"$work/links"
	while read -r link; do
		[ -e "$(dirname "$document")/$link" ] || {
			echo "$document: $link does not exist"
			bad=1
		}
	done <"$work/links"
done
exit $bad
