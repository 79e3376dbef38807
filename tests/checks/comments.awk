# SPDX-License-Identifier: BSD-2-Clause
# usage: awk -f comments.awk FILE...
# Print the text of each comment, line by line, as FILE:LINE: TEXT. C and C++ files have comments of C;
# every other file has those that begin with # at the start of a line. The text begins with the last
# word of the comment's line before, so that a pattern of two words is found across a line end.

function put(text) {
	gsub(/^[ \t*#<]+|[ \t]+$/, "", text)
	if (text != "")
		print FILENAME ":" FNR ": " (last == "" ? "" : last " ") text
	last = text
	sub(/^.*[ \t]/, "", last)
}

FNR == 1 {
	within = 0
	last = ""
	is_c = FILENAME ~ /\.([chs]|cc|cpp|hpp)$/
}

!is_c {
	if ($0 ~ /^[ \t]*#/ && $0 !~ /^#!/)
		put($0)
	else
		last = ""
	next
}

{
	rest = $0
	for (;;) {
		if (within) {
			end = index(rest, "*/")
			put(end == 0 ? rest : substr(rest, 1, end - 1))
			if (end == 0)
				next
			rest = substr(rest, end + 2)
			within = 0
			last = ""
		}
		if (!match(rest, /"([^"\\]|\\.)*"|'([^'\\]|\\.)*'|\/\*|\/\//))
			next
		found = substr(rest, RSTART, 2)
		rest = substr(rest, RSTART + RLENGTH)
		within = found == "/*"
		if (found == "//") {
			put(rest)
			last = ""
			next
		}
	}
}
