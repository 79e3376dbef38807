# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# What a program says on stderr; to be sourced behind begin.sh.
# shellcheck disable=SC2154 # begin.sh assigns bin and work

# run STATUS PROGRAM ARGUMENT...: the program, which ends so; out.log and err.log
run() {
	wanted=$1 program=$2
	shift 2
	timeout -k 5 60 "$bin/$program" "$@" >"$work/out.log" 2>"$work/err.log" </dev/null
	status=$?
	[ $status -eq "$wanted" ] || fail "$program $*: status $status, not $wanted"
}

# said TEXT: on stderr
said() {
	grep -qF -e "$1" "$work/err.log" || fail "stderr lacks: $1"
}

# unsaid TEXT: not on stderr
unsaid() {
	grep -qF -e "$1" "$work/err.log" && fail "stderr has: $1"
}
