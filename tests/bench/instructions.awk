# SPDX-License-Identifier: BSD-2-Clause
# usage: awk -f instructions.awk PARTS SOURCE... kind=profile PROFILE
# Sums what callgrind counted by the parts of the data path. PARTS has lines "FUNCTION part"; where
# a function stands is found in the sources: its name is followed by a parenthesis on a line that
# begins in the first column, and it ends with a brace there. An unknown place is the part "other".
BEGIN { kind = "parts" }
function base(path) { sub(/.*\//, "", path); return path }

FNR == 1 && NR != 1 && kind == "parts" { kind = "source" }
FNR == 1 && kind == "source" { file = base(FILENAME); now = "" }

kind == "parts" {
	if ($0 !~ /^#/ && NF >= 2) {
		name = $1
		sub(/^[^ \t]+[ \t]+/, "")
		part_of[name] = $0
	}
	next
}
kind == "source" {
	if ($0 ~ /^[A-Za-z_].*\(/ && $0 !~ /;[ \t]*$/) {
		name = $0
		gsub(/__attribute__\(\([a-z_]*\)\)/, "", name)
		sub(/\(.*/, "", name)
		sub(/.*[^A-Za-z0-9_]/, "", name)
		now = name
	}
	if (now != "")
		function_at[file ":" FNR] = now
	if ($0 ~ /^}/)
		now = ""
	next
}

# callgrind's own format: in which file, then "LINE COST"; behind calls= stands the cost of the call
# with all that it calls, which is counted where it happens.
/^(fl|fi|fe)=/ { sub(/^f[lie]=/, ""); file = base($0); next }
/^calls=/ { skip = 1; next }
/^[0-9]+ [0-9]+$/ {
	if (skip) {
		skip = 0
		next
	}
	name = function_at[file ":" $1]
	part = name in part_of ? part_of[name] : "other"
	cost[part] += $2
	if (part == "other")
		print "in no part: " file ":" $1 " " name " " $2 > "/dev/stderr"
}
END {
	for (part in cost)
		printf "%s\t%d\n", part, cost[part]
}
