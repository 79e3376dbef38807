# SPDX-License-Identifier: BSD-2-Clause
# gnuplot -e "dir='...'; test='latency'; what='ratio'; out='latency-ratio.svg'": over the size of a
# message, the ratio to libfabric with the same guarantees; or time or rate, of NDX, of libfabric with
# the same guarantees, and of plain libfabric (what='absolute'), or of NDX, plain libfabric, UCX and
# plain sockets, polling (what='beside').
# Each line has dashes and marks of its own, and its colours are dark: legible in black and white.
set terminal svg size 800,420 font 'sans,12' background rgb 'white'
set output out
set linetype 1 lc rgb '#000000' lw 1.5 dt 1 pt 7 ps 0.6
set linetype 2 lc rgb '#b00000' lw 1.5 dt (9,4) pt 4 ps 0.7
set linetype 3 lc rgb '#1f4e79' lw 1.5 dt (3,3) pt 8 ps 0.8
set linetype 4 lc rgb '#1a7f37' lw 1.5 dt (10,3,2,3) pt 12 ps 0.8
set linetype 5 lc rgb '#000000' lw 1.5 dt (12,5) pt 6 ps 0.7
set linetype 6 lc rgb '#b00000' lw 1.5 dt (2,4) pt 5 ps 0.6
set linetype 7 lc rgb '#1f4e79' lw 1.5 dt (8,3,2,3,2,3) pt 9 ps 0.7
set logscale x 2
set xtics ('8' 8, '64' 64, '512' 512, '4Ki' 4096, '64Ki' 65536, '1Mi' 1048576)
set xrange [6:1500000]
set xlabel 'message (bytes)'
set grid
set key outside right samplen 6
set tmargin 3
set style data linespoints
mode_name(mode) = mode eq 'spin' ? 'polling' : 'sleeping'
file(mode, depth) = dir.'/'.test.'-'.mode.'-'.depth.'.tsv'
lower = test eq 'latency' ? ' (lower is better)' : ' (higher is better)'
subject = test eq 'latency' ? 'Half a round trip' : 'Streaming'
if (what eq 'ratio') {
	set ylabel (test eq 'latency' ? 'time, NDX / libfabric' : 'messages a second, NDX / libfabric')
	set title subject.', same guarantees'.lower
	set yrange [0.5:1.5]
	# The quartiles as bars without dashes, then the lines over them.
	plot 1 with lines lc rgb '#888888' lw 1 dt 1 title 'equal', \
		for [i=1:4] file(word('spin spin wait wait', i), word('1 64 1 64', i)) \
		using 1:2:3:4 with yerrorbars lc rgb '#666666' lw 1 dt 1 pt 0 notitle, \
		for [i=1:4] file(word('spin spin wait wait', i), word('1 64 1 64', i)) \
		using 1:2 linetype i title mode_name(word('spin spin wait wait', i)).', '. \
		word('1 64 1 64', i).(i % 2 ? ' receive' : ' receives')
} else {
	set ylabel (test eq 'latency' ? 'us' : 'messages a second')
	set logscale y
	if (test eq 'stream') { set format y '%.0s%c' }
}
if (what eq 'absolute') {
	set title subject.', 64 receives'.lower
	lanes = 'NDX same plain'
	plot for [i=1:3] file('spin', 64) using 1:(column(4 + i)) linetype i \
		title (i == 1 ? 'NDX' : 'libfabric, '.word(lanes, i)).', polling', \
		for [i=1:3] file('wait', 64) using 1:(column(4 + i)) linetype 4 + i \
		title (i == 1 ? 'NDX' : 'libfabric, '.word(lanes, i)).', sleeping'
}
if (what eq 'beside') {
	set title subject.', 64 receives, polling'.lower
	names = "NDX 'libfabric, plain' UCX 'plain sockets'"
	plot for [i=1:4] dir.'/'.test.'-beside.tsv' using 1:(column(1 + i)) linetype i \
		title word(names, i)
}
