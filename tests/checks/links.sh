#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: links.sh SOURCE
# Every relative link of a page resolves (links.py). Then one fault of each kind is planted in a small
# tree: each has to be found.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
	echo "skip: python3 is not installed"
	exit 77
fi
python3 "$here/links.py" "$1"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/docs"
printf '# A page\n\n[there](page.md#a-page)\n[file](../main.c)\n' >"$tmp/docs/page.md"
echo "/* docs/page.md */" >"$tmp/main.c"
if ! python3 "$here/links.py" "$tmp" >"$tmp/log"; then
	echo 'a tree without fault is refused:' && cat "$tmp/log"
	exit 1
fi
# plant FILE TEXT WHAT: with it a line has to name the fault
plant() {
	cp "$tmp/$1" "$tmp/saved"
	echo "$2" >>"$tmp/$1"
	if python3 "$here/links.py" "$tmp" >"$tmp/log" || ! grep -q "$3" "$tmp/log"; then
		echo "not found: $2"
		exit 1
	fi
	mv "$tmp/saved" "$tmp/$1"
}
plant docs/page.md '[gone](nothing.md)' 'nothing.md leads to nothing'
plant docs/page.md '[gone](#no-such-part)' 'names no heading'
plant docs/page.md '[out](../../x.md)' 'leads out of the tree'
plant main.c "/* see docs/gone$(printf '.md') */" 'names docs/gone.md'
