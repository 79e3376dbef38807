#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: bench.sh NDX-DECODE TOOL
# Speed and memory: a real capture, repeated to $NDX_BENCH_BYTES (500 MB) in a temporary folder; a
# smaller one beside tshark in the same run; instructions per packet, by part.
set -eu
decode=$1 tool=$2
bytes=${NDX_BENCH_BYTES:-500000000}
if [ ! -f "${NDX_CAPTURES:-}/expected.json" ]; then
	echo "skip: \$NDX_CAPTURES names no folder with captures"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

truth() {
	sed -n "/\"$1\": {/,/}/s/.*\"$2\": \"\{0,1\}\([^\",]*\).*/\1/p" "$NDX_CAPTURES/expected.json"
}
value() { # value NAME FILE
	sed -n "s/^$1 \([0-9]*\)\$/\1/p" "$2"
}
figures() { # figures NAME PACKETS: of the last measurement
	awk -v name="$1" -v packets="$2" '/^seconds/ {
		printf "%-34s %8d packets  %.3f s, processor %.3f s: %.0f packets/s  %d KiB resident\n",
			name, packets, $2, $4, packets / $4, $6 }' "$tmp/time"
}
rate() { # rate PACKETS: per second of the processor, since others may use it, too
	awk -v packets="$1" '/^seconds/ { printf "%.0f", packets / $4 }' "$tmp/time"
}

for name in nfs41_roce nfs3_roce nfs41_iwarp; do
	"$tool" repeat 100000 "$bytes" "$NDX_CAPTURES/$name.pcap" "$tmp/big.pcap" >"$tmp/made"
	copies=$(value copies "$tmp/made") packets=$(value packets "$tmp/made")
	cat "$tmp/big.pcap" >/dev/null
	for options in --no-digest ''; do
		# shellcheck disable=SC2086 # none or one
		"$tool" measure "$decode" --summary $options "$tmp/big.pcap" >"$tmp/out" 2>"$tmp/time"
		figures "$name x $copies $options" "$packets"
		resident=$(awk '/^seconds/ { print $6 }' "$tmp/time")
		if [ "$resident" -gt 32768 ]; then
			echo "   more than 32 MiB resident"
			bad=1
		fi
		for what in calls replies; do
			wanted=$((copies * $(truth $name.pcap $what)))
			[ "$(value $what "$tmp/out")" -eq $wanted ] || {
				echo "   $what $(value $what "$tmp/out"), not $wanted"
				bad=1
			}
		done
	done
	rm -f "$tmp/big.pcap"
done

# The same file, one after the other. tshark hashes nothing; so with digests is more than it does.
"$tool" repeat 60 1000000000 "$NDX_CAPTURES/nfs41_roce.pcap" "$tmp/small.pcap" >"$tmp/made"
packets=$(value packets "$tmp/made")
cat "$tmp/small.pcap" >/dev/null
beside() { # beside NAME COMMAND...: rates into $processor and $elapsed
	name=$1
	shift
	"$tool" measure "$@" >/dev/null 2>"$tmp/time" || true
	figures "$name" "$packets"
	processor=$(rate "$packets")
	elapsed=$(awk -v packets="$packets" '/^seconds/ { printf "%.0f", packets / $2 }' "$tmp/time")
}
beside 'ndx-decode, nfs41_roce x 60' "$decode" --summary --no-digest "$tmp/small.pcap"
plain_processor=$processor plain_elapsed=$elapsed
beside 'the same, with digests' "$decode" --summary "$tmp/small.pcap"
digest_processor=$processor digest_elapsed=$elapsed
if command -v tshark >/dev/null; then
	beside 'tshark -2, the same' tshark -2 -q -z io,phs -r "$tmp/small.pcap"
	echo "ratio to tshark -2 by processor time: $((plain_processor / processor))," \
		"with digests $((digest_processor / processor))"
	echo "ratio to tshark -2 by elapsed time: $((plain_elapsed / elapsed))," \
		"with digests $((digest_elapsed / elapsed))"
	if [ $((plain_processor / processor)) -lt 20 ]; then
		echo "   less than 20 x tshark -2"
		bad=1
	fi
else
	echo 'tshark is not installed: not compared'
fi

if command -v valgrind >/dev/null; then
	cp "$NDX_CAPTURES/nfs41_roce.pcap" "$tmp/one.pcap"
	packets=$(truth nfs41_roce.pcap packets)
	valgrind --tool=callgrind --callgrind-out-file="$tmp/cg" \
		--toggle-collect=ndx_reassembly_feed "$decode" --summary --no-digest "$tmp/one.pcap" \
		>/dev/null 2>&1
	callgrind_annotate --auto=no --threshold=100 "$tmp/cg" | awk -v packets="$packets" '
		function part(f) {
			if (f ~ /mem(cpy|move|set|cmp)/) return "copy and compare"
			if (f ~ /malloc|free|realloc|calloc|mem\.c/) return "memory"
			if (f ~ /link\.c|bth\.c|rpcrdma\.c|byteorder/) return "parse"
			if (f ~ /flow\.c|roce\.c|table\.h/) return "connection, sequence"
			if (f ~ /rdma\.c|segment\.c|range\.c|list\.h|segment\.h/) return "place"
			if (f ~ /exchange\.c|message\.c|send\.c/) return "messages"
			if (f ~ /reassembly\.c/) return "front door"
			return "other"
		}
		/^ *[0-9,]+ \(/ && /:/ {
			n = $1; gsub(",", "", n); sum[part($0)] += n; all += n
		}
		END {
			for (p in sum) printf "instructions per packet: %-22s %6.1f\n", p, sum[p] / packets
			printf "instructions per packet: %-22s %6.1f\n", "all", all / packets
		}' | sort
else
	echo 'valgrind is not installed: instructions not counted'
fi
exit $bad
