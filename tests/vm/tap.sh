# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# For scripts of the guest that print TAP and start a server of ours; to be sourced with the source
# tree's folder in $src. Logs belong into $work.
# shellcheck source=samples/server.sh
. "${src:?}/samples/server.sh"
work=$(mktemp -d)
trap 'server_stop; rm -rf "$work"' EXIT
count=0 failures=0

# verdict NAME STATUS: one line of TAP; what was said, if it is a failure
verdict() {
	count=$((count + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $count - $1"
		return
	fi
	failures=$((failures + 1))
	echo "not ok $count - $1"
	for log in "$work"/*.log; do
		[ ! -s "$log" ] || sed "s|^|# ${log##*/}: |" "$log"
	done
}

# verdicts_end: the plan; false if there was a failure
verdicts_end() {
	echo "1..$count"
	[ $failures -eq 0 ]
}
