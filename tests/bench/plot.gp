# SPDX-License-Identifier: BSD-2-Clause
# gnuplot -e "dir='...'; test='latency'; what='ratio'; out='latency-ratio.svg'": over the size of a
# message, the ratio to libfabric with the same guarantees, or (what='absolute') time or rate of NDX,
# of libfabric with the same guarantees, and of plain libfabric.
set terminal svg size 800,420 font 'sans,12' background rgb 'white'
set output out
set logscale x 2
set format x '%.0b%BB'
set xlabel 'message'
set grid
set key outside right
mode_name(mode) = mode eq 'spin' ? 'polling' : 'sleeping'
if (what eq 'ratio') {
	set ylabel (test eq 'latency' ? 'time, NDX / libfabric' : 'messages a second, NDX / libfabric')
	set title (test eq 'latency' ? 'Half a round trip, same guarantees (lower is better)' : 'Streaming, same guarantees (higher is better)')
	set yrange [0.5:1.5]
	set style data yerrorlines
	plot 1 with lines lc rgb '#888888' title 'equal', \
		for [mode in 'spin wait'] for [depth in '1 64'] dir.'/'.test.'-'.mode.'-'.depth.'.tsv' \
		using 1:2:3:4 title mode_name(mode).', '.depth.(depth eq '1' ? ' receive' : ' receives')
} else {
	set ylabel (test eq 'latency' ? 'us' : 'messages a second')
	set title (test eq 'latency' ? 'Half a round trip, 64 receives (lower is better)' : 'Streaming, 64 receives (higher is better)')
	set logscale y
	lanes = 'NDX same plain'
	plot for [i=1:3] dir.'/'.test.'-spin-64.tsv' using 1:(column(4 + i)) with linespoints linetype i dashtype 1 \
		title (i == 1 ? 'NDX' : 'libfabric, '.word(lanes, i)).', polling', \
		for [i=1:3] dir.'/'.test.'-wait-64.tsv' using 1:(column(4 + i)) with linespoints linetype i dashtype 2 \
		title (i == 1 ? 'NDX' : 'libfabric, '.word(lanes, i)).', sleeping'
}
