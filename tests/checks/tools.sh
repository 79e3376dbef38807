#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: tools.sh SOURCE BUILD
# Every installed program has a manual page that names each option of --help, without a complaint of
# man's, groff's and mandoc's, and a completion for bash that offers each option and the values that
# are known. Then one fault at a time is planted in a copy: each has to be found.
set -eu
build=$2
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset NDX_ADAPTER NDX_CONFIG

for tool in python3 groff man lexgrog bash; do
	if ! command -v $tool >/dev/null; then
		echo "skip: $tool is missing (install python3, groff-base, man-db and bash)"
		exit 77
	fi
done
if ! cmake --install "$build" --prefix "$tmp/prefix" >"$tmp/log" 2>&1; then
	cat "$tmp/log"
	exit 1
fi

# options PROGRAM: what --help lists, one a line, with a letter and without
options() {
	"$1" --help | sed -n '/^Options:$/,/^$/s/^  \(-[a-zA-Z], \)\{0,1\}\(--*[a-zA-Z][a-z-]*\).*/\1\2/p' |
		tr -d ' ' | tr ',' '\n'
}

# page PREFIX NAME: what is wrong with the manual page
page() {
	file=$1/share/man/man1/$2.1
	if [ ! -f "$file" ]; then
		echo "$2 has no manual page"
		return
	fi
	groff -man -Tutf8 -ww -z "$file" 2>&1 || echo "groff fails at the page of $2"
	lexgrog "$file" >/dev/null 2>&1 || echo "apropos does not understand the NAME of $2"
	LC_ALL=C.UTF-8 man --warnings=w -l -Tutf8 "$file" 2>&1 >"$tmp/text" | sed "s/^/man $2: /"
	if command -v mandoc >/dev/null; then
		mandoc -T lint -W warning "$file" || true
	fi
	sed -e 's/.\x08//g' -e 's/\x1b\[[0-9;]*m//g' "$tmp/text" >"$tmp/plain"
	for section in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS'; do
		grep -qx "$section" "$tmp/plain" || echo "the page of $2 has no $section"
	done
	options "$1/bin/$2" >"$tmp/options"
	[ -s "$tmp/options" ] || echo "$2 --help lists no option"
	while read -r option; do
		grep -qE "^ +(-[a-zA-Z], )?$option([ ,[]|\$)" "$tmp/plain" || echo "the page of $2 does not name $option"
	done <"$tmp/options"
}

# completion PREFIX NAME: what is wrong with the completion
completion() {
	file=$1/share/bash-completion/completions/$2
	if [ ! -f "$file" ]; then
		echo "$2 has no completion"
		return
	fi
	options "$1/bin/$2" | bash "$here/completion.bash" "$file" "$1/bin/$2" 2>&1
}

# judge PREFIX: everything that is wrong
judge() {
	for program in "$1"/bin/*; do
		page "$1" "$(basename "$program")"
		completion "$1" "$(basename "$program")"
	done
}

judge "$tmp/prefix" >"$tmp/wrong"
# A colon, an equals sign and a quote end a word for readline, not for the completion.
python3 "$here/tab.py" "$tmp/prefix" \
	'ndx-recv --adapter ofi:t' 'ndx-recv --adapter ofi:tcp' \
	'ndx-recv --adapter=lo' 'ndx-recv --adapter=loop ' \
	"ndx-info 'ofi:v" "ndx-info 'ofi:verbs' " \
	'ndx-perf-compare --modes=wait,sp' 'ndx-perf-compare --modes=wait,spin' \
	'ndx-conformance loop --filter data.sends' 'ndx-conformance loop --filter data.sends_of_all_sizes ' \
	>>"$tmp/wrong" 2>&1 || echo "tab.py failed" >>"$tmp/wrong"
if [ -s "$tmp/wrong" ]; then
	cat "$tmp/wrong"
	exit 1
fi

# plant FILE SED-SCRIPT WHAT: with that change there is a complaint of WHAT
plant() {
	rm -rf "$tmp/planted"
	cp -r "$tmp/prefix" "$tmp/planted"
	sed -i "$2" "$tmp/planted/$1"
	name=$(basename "$1" .1)
	{
		page "$tmp/planted" "$name"
		completion "$tmp/planted" "$name"
	} >"$tmp/wrong"
	if cmp -s "$tmp/prefix/$1" "$tmp/planted/$1" || ! grep -qF -e "$3" "$tmp/wrong"; then
		echo "not found in $1: $2"
		cat "$tmp/wrong"
		touch "$tmp/bad"
	fi
}
pages=share/man/man1 completions=share/bash-completion/completions
plant $pages/ndx-recv.1 '/slots N/d' 'does not name --slots'
plant $pages/ndx-send.1 's/^\.SH OPTIONS/.XY/' 'has no OPTIONS'
plant $pages/ndx-send.1 's/^\.TP$/.TQQ/' 'TQQ'
plant $completions/ndx-recv "s/'--raw' //" '--raw'
plant $completions/ndx-send "s/\[--rate\]='N'//" '--rate'
plant $completions/ndx-info 's/URI)/XURI)/' 'ofi:tcp'
plant $completions/ndx-reqresp 's/server|//' 'server'
rm "$tmp/prefix/$pages/ndx-info.1" "$tmp/prefix/$completions/ndx-info"
judge "$tmp/prefix" >"$tmp/wrong"
for what in 'manual page' completion; do
	if ! grep -qx "ndx-info has no $what" "$tmp/wrong"; then
		echo "a missing $what is not found"
		touch "$tmp/bad"
	fi
done
[ ! -e "$tmp/bad" ] || exit 1
find "$tmp/prefix/bin" -type f | wc -l | sed 's/$/ programs, each with a page and a completion/'
