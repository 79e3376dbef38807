#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: env_ini.sh SOURCE BIN
# The same ndx-reqresp, not built again, runs over what $NDX_ADAPTER or an INI file names; the call
# comes before the variable, the variable before the file.
set -u
# shellcheck source=tests/samples/begin.sh
. "$1/tests/samples/begin.sh"
HOME=$work
export HOME
sum=$(cksum <"$bin/ndx-reqresp")

# runs_over PATTERN OPTIONS...: client and server in one process, over an adapter called so
runs_over() {
	pattern=$1
	shift
	timeout -k 5 60 "$bin/ndx-reqresp" both --requests 200 --wait --quiet "$@" \
		>"$work/run.log" 2>&1 || fail "$pattern: does not run"
	grep -q "server: $pattern.*listening on" "$work/run.log" || fail "not over $pattern"
	grep -q '200 verified, 0 wrong' "$work/run.log" || fail "$pattern: not verified"
	echo "# $pattern"
}

# refused STATUS PATTERN: it does not run, says why, and how it ends
refused() {
	timeout -k 5 60 "$bin/ndx-reqresp" both --requests 1 >"$work/run.log" 2>&1
	status=$?
	[ $status -eq "$1" ] || fail "ended with $status, not $1"
	grep -q "$2" "$work/run.log" || fail "does not say: $2"
	echo "# refused: $2"
}

mkdir "$work/.config"
printf '[ndx]\nadapter = loop\n' >"$work/.config/ndx.ini"
runs_over 'loop'
printf '[ndx]\nadapter = ofi:tcp?iface=lo\n' >"$work/other.ini"
export NDX_CONFIG="$work/other.ini"
runs_over 'ofi:tcp'
export NDX_ADAPTER=loop
runs_over 'loop'
runs_over 'ofi:tcp' --adapter 'ofi:tcp?iface=lo'

NDX_ADAPTER=lop
refused 3 'loop'
NDX_ADAPTER='ofi:tcp?ifacce=lo'
refused 3 'iface'
unset NDX_ADAPTER
printf '[ndx]\n\nadapter = lop\n' >"$work/other.ini"
refused 3 'other.ini:3'
[ "$(cksum <"$bin/ndx-reqresp")" = "$sum" ] || fail 'the program is another one'
echo 'environment and INI file: all well'
