#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: STUB=FOLDER hosts_stub.sh PROGRAM ARGUMENTS...
# For hosts_recorded.sh, in place of each program that hosts.sh runs. A server listens at once and ends; a
# client says what PROGRAM said when FOLDER/recorded was made. If there is FOLDER/faults/KIND.N, the Nth
# client of that kind says this instead, and fails if there is KIND.N.fails.
set -eu
program=$1
shift
case "$program $1 $*" in
'unshare '*)
	shift
	exec "$@"
	;;
'ip '* | 'tc '* | 'sleep '* | 'iperf3 -s '* | 'ucx_perftest -p '*) exit 0 ;;
'ndx-perf server '*)
	echo 'ndx-perf server: recorded, listening on 127.0.0.1:1'
	exit 0
	;;
'iperf3 '*) kind=iperf3.json ;;
'ucx_perftest '*tag_bw*) kind=ucx-bw.csv ;;
'ucx_perftest '*tag_lat*) kind=ucx-lat.csv ;;
'ndx-perf client '*bandwidth*) kind=ndx-bandwidth.json ;;
'ndx-perf client '*latency*) kind=ndx-latency.json ;;
'ndx-perf compare '*) kind=compare.json ;;
*)
	echo "$program: nothing was recorded of: $*" >&2
	exit 1
	;;
esac
echo >>"$STUB/count/$kind"
n=$(wc -l <"$STUB/count/$kind")
fault=$STUB/faults/$kind.$n
if [ -f "$fault.fails" ]; then
	cat "$fault.fails" >&2
	exit 1
elif [ -f "$fault" ]; then
	cat "$fault"
elif [ "$kind" = iperf3.json ]; then
	# one Gbit/s more with every run, so that there is something to be sorted
	sed '/"sum_received"/,/}/s/\("bits_per_second": \).*/\1'"$n"'000000000,/' "$STUB/recorded/$kind"
else
	cat "$STUB/recorded/$kind"
fi
