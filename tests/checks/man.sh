#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: man.sh SOURCE BUILD
# Every call has a manual page with all its sections and an example, and a page of a status has a text
# for each; ndx(7) names every status, variable and program. No page makes groff or apropos complain.
# The pages of the calls are made anew, those of the tools are looked at where they were built. Then
# one fault at a time is planted in a copy: each has to be found.
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

pages=$src/docs/man/pages.py
python3 "$pages" headers 0 "$tmp/man3" "$src"/core/*/ndx-*.map "$src"/api/ndx/*.h
python3 "$pages" overview 0 "$tmp/man7" "$src/docs/man/ndx.7.txt" "$src"/api/ndx/*.h

# What the libraries export, and what the headers define.
{
	find "$src/core" -name '*.map' ! -name private.map -exec \
		sed -n '/global:/,/local:/s/^[[:space:]]*\([a-z0-9_]*\);.*/\1/p' {} +
	sed -n 's/^static inline .*[ *]\(ndx_[a-z0-9_]*\)(.*/\1/p' "$src"/api/ndx/*.h
} | sort -u >"$tmp/calls"
[ -s "$tmp/calls" ] || complain "no call found: this check sees nothing"
# lacking FOLDER: what the pages there lack
lacking() {
	while read -r call; do
		page=$1/$call.3
		if [ ! -f "$page" ]; then
			echo "$call: there is no page; its declaration needs a comment /** ... */"
			continue
		fi
		for section in NAME SYNOPSIS DESCRIPTION 'RETURN VALUE'; do
			# with something below it
			awk -v s=".SH $section" '$0 == s { getline; if ($0 !~ /^\.SH/) found = 1 } END { exit !found }' \
				"$page" || echo "$call: its page has no $section"
		done
	done <"$tmp/calls"
}
lacking "$tmp/man3" >"$tmp/lacks"
[ ! -s "$tmp/lacks" ] || complain "$(cat "$tmp/lacks")"

# in_headers FILE SED-PROGRAM TEXT: a header with that fault is found out, by the generator or above
in_headers() {
	rm -rf "$tmp/api" "$tmp/man3x"
	cp -r "$src/api/ndx" "$tmp/api"
	sed -i "$2" "$tmp/api/$1"
	! cmp -s "$src/api/ndx/$1" "$tmp/api/$1" || complain "nothing was planted in $1 by $2"
	if python3 "$pages" headers 0 "$tmp/man3x" "$src"/core/*/ndx-*.map "$tmp"/api/*.h >"$tmp/said" 2>&1; then
		lacking "$tmp/man3x" >>"$tmp/said"
	fi
	grep -qF -e "$3" "$tmp/said" || complain "$1 with $2 passes: $(head -n 3 "$tmp/said")"
}

# section PAGE NAME: what stands below that heading
section() {
	awk -v s=".SH $2" '/^\.SH / { inside = $0 == s; next } inside' "$1"
}

# told FILE CALL: what is wrong with what a reader of that page of a call learns
told() {
	name=$(basename "$1" .3)
	section "$1" EXAMPLE | grep -qF "$2(" || echo "$name: its page has no example that uses $2()"
	# A term ends a term: one without a text between
	{
		section "$1" 'RETURN VALUE'
		echo .TP
		section "$1" ERRORS
		echo .TP
	} | awk -v n="$name" '
		/^\.TP/ { if (term && !text) print n ": no meaning of " term; term = ""; next }
		/^\\fBNDX_/ && !term { term = $0; text = 0; next }
		term && /[a-z]/ { text = 1 }'
	if grep -q '^\\fBenum ndx_status ' "$1" && section "$1" SYNOPSIS | grep -qF '*'; then
		section "$1" ERRORS | grep -q '^\\fBNDX_E_' || echo "$name: its page has no status of a failure"
	fi
	# What another page has to say
	{
		section "$1" 'RETURN VALUE'
		section "$1" ERRORS
	} | tr '\n' ' ' | sed 's/as soon as //g' | grep -oE '[Aa]s \\fBndx_[a-z_]*\\fP\(3\)' | sed "s/^/$name: refers to another page: /"
	section "$1" DESCRIPTION | tr '\n' ' ' |
		grep -E '[^A-Z_](SILENT_SUCCESS|READ_FENCE|SOLICIT_EVENT|INLINE|ALLOW_(READ|WRITE))' |
		sed "s/.*/$name: a flag without NDX_OP_/"
	case $2 in
	ndx_qp_send | ndx_qp_send_immediate | ndx_qp_receive | ndx_qp_read | ndx_qp_write | \
		ndx_qp_write_immediate | ndx_qp_bind | ndx_qp_invalidate | ndx_srq_receive)
		grep -q 'has the text of a failure' "$1" && echo "$name: promises a text of a failure"
		;;
	esac
	return 0
}
while read -r call; do
	[ ! -f "$tmp/man3/$call.3" ] || told "$tmp/man3/$call.3" "$call" >>"$tmp/wrong"
done <"$tmp/calls"
# planted CALL SED-PROGRAM TEXT: a page with that fault is found out
planted() {
	sed "$2" "$tmp/man3/$1.3" >"$tmp/$1.3"
	if cmp -s "$tmp/man3/$1.3" "$tmp/$1.3" || ! told "$tmp/$1.3" "$1" | grep -qF "$3"; then
		complain "a page with this fault passes: $1, $3"
	fi
}
in_headers status.h '/^ \* Name of a status/d' 'ndx_status_name'
in_headers status.h '/^\/\*\*$/{N;/Name of a status/{N;d}}' 'ndx_status_name: there is no page'
in_headers status.h 's/^ \* Name of a status.*/&\n *\n * @retval 0 fine/' '@retval 0 fine'
planted ndx_qp_send '/^\.SH EXAMPLE/,/^\.SH SEE/d' 'no example'
planted ndx_qp_send '/^queue full/d' 'no meaning of'
planted ndx_qp_send '/^never connected/s/.*/\\\&/' 'no meaning of'
planted ndx_qp_create '/^\.SH ERRORS/,/^\.SH THREADS/d' 'no status of a failure'
planted ndx_qp_flush '/^\.SH ERRORS/a as \\fBndx_qp_send\\fP(3)' 'refers to another page'
planted ndx_qp_read 's/NDX_OP_READ_FENCE/READ_FENCE/' 'a flag without'
planted ndx_qp_read '/^\.SH ERRORS/i has the text of a failure' 'promises a text'

# names: what the overview has to name
names() {
	sed -n 's/^\t\(NDX_[A-Z_]*\) = -\{0,1\}[0-9]*,.*/\1/p' "$src/api/ndx/status.h"
	grep -rhoE 'secure_getenv\("NDX_[A-Z_]*|"NDX_P[A-Z]*_PATH"' "$src/core" | grep -o 'NDX_[A-Z_]*'
	echo ndx-info ndx-reqresp ndx-perf ndx-conformance | tr ' ' '\n'
	for header in "$src"/api/ndx/*.h; do
		echo "ndx_$(basename "$header")"
	done
}
# overview FILE: the names that it lacks
overview() {
	sed 's/\\-/-/g; s/\\f.//g' "$1" >"$tmp/plain"
	names | sort -u | while read -r name; do
		grep -qwF -e "$name" "$tmp/plain" || echo "ndx(7) does not name $name"
	done
	for part in OBJECTS 'LIFE OF A CONNECTION' 'PROVIDERS AND URIS' ENVIRONMENT STATUS \
		'WHERE TO BEGIN' FILES EXAMPLES 'SEE ALSO'; do
		[ -n "$(section "$1" "$part")" ] || echo "ndx(7) has no $part"
	done
}
[ "$(names | grep -c .)" -gt 70 ] || complain "the statuses, variables and headers are not found"
overview "$tmp/man7/ndx.7" >>"$tmp/wrong"
for fault in NDX_E_CANCELED NDX_PLUGIN_PATH ndx_qp.h 'SH FILES'; do
	grep -vF "$fault" "$tmp/man7/ndx.7" >"$tmp/ndx.7"
	[ -n "$(overview "$tmp/ndx.7")" ] || complain "ndx(7) without $fault passes"
done
[ ! -s "$tmp/wrong" ] || complain "$(cat "$tmp/wrong")"

for page in "$tmp"/man3/*.3 "$tmp"/man7/*.7 "$build"/docs/man/man1/*.1; do
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
for page in "$tmp"/man3/ndx_qp_send.3 "$tmp"/man7/ndx.7 "$build"/docs/man/man1/ndx-info.1; do
	[ -f "$page" ] || continue
	LC_ALL=C.UTF-8 man --warnings=w -l -Tutf8 -Z "$page" 2>"$tmp/said" >/dev/null || complain "man $page failed"
	[ ! -s "$tmp/said" ] || complain "man $page: $(cat "$tmp/said")"
done
[ $bad -eq 0 ] && echo "$(grep -c . "$tmp/calls") calls, each with a page and an example"
exit $bad
