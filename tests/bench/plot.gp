# SPDX-License-Identifier: BSD-2-Clause
# gnuplot -e "dir='...'; test='latency'; out='latency.svg'": the ratio to libfabric over the size.
set terminal svg size 800,420 font 'sans,12' background rgb 'white'
set output out
set logscale x 2
set format x '%.0f'
set xlabel 'message, bytes'
set ylabel (test eq 'latency' ? 'time, NDX / libfabric' : 'messages a second, NDX / libfabric')
set title (test eq 'latency' ? 'Half a round trip, same guarantees (lower is better)' : 'Streaming, same guarantees (higher is better)')
set yrange [0.5:1.5]
set grid
set key outside right
set style data yerrorlines
plot 1 with lines lc rgb '#888888' title 'equal', \
	for [mode in 'spin wait'] for [depth in '1 64'] dir.'/'.test.'-'.mode.'-'.depth.'.tsv' \
	using 1:2:3:4 title (mode eq 'spin' ? 'polling' : 'sleeping').', '.depth.(depth eq '1' ? ' receive' : ' receives')
