#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: floors.sh SOURCE BUILD
# Every file stands above all that it calls. The undefined and the defined symbols of the object
# files say which function calls which; a table of constants that names a function counts as a call. Faults:
# files of one folder that call each other in a circle, a call to a higher floor, and a function whose
# name does not begin with the prefix of its folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
src=$1 build=$2
export LC_ALL=C
if ! command -v nm >/dev/null; then
	echo "skip: nm is not installed"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# From the ground to the roof; folders in one line stand side by side and may call each other. A
# file belongs to the longest folder that its path begins with. The providers stand in between
# because they call the floors below them, and the list of providers above names their constants.
cat >"$tmp/floors" <<'END'
core/base
core/reassembly core/negotiation/protocol
core/async
core/queue
providers
core/adapter
core/connection
core/front
core/negotiation
core/receiver
plugins
shims
samples
END

# One line for each object file: object, source.
awk -v src="$src/" -v build="$build/" '
	/^ *"directory": / { split($0, part, "\""); directory = part[4] "/" }
	/^ *"command": / {
		object = $0
		if (!sub(/.* -o /, "", object))
			next
		sub(/ .*/, "", object)
		if (object !~ /^\//)
			object = directory object
	}
	/^ *"file": / {
		split($0, part, "\"")
		file = part[4]
		if (index(file, src) != 1 || index(object, build "tests/") == 1)
			next
		file = substr(file, length(src) + 1)
		if (file ~ /^(core|providers|plugins|shims|samples)\//)
			print object, file
	}' "$build/compile_commands.json" >"$tmp/objects"
if [ ! -s "$tmp/objects" ]; then
	echo "no object file of $src in $build/compile_commands.json: this check sees nothing"
	exit 1
fi
while read -r object file; do
	if [ ! -e "$object" ]; then
		echo "$object of $file is not there: build everything first"
		exit 1
	fi
done <"$tmp/objects"
cut -d ' ' -f 1 "$tmp/objects" | xargs nm -P -A >"$tmp/symbols"

# The names of the functions begin with the name of their folder; floors.prefixes has the exceptions.
awk -v prefixes="$here/floors.prefixes" -v objects="$tmp/objects" '
BEGIN {
	while ((getline line < prefixes) > 0) {
		n = split(line, word, " ")
		if (n < 2 || word[1] == "#")
			continue
		pattern[word[1]] = "^(ndx"
		for (i = 2; i <= n; i++)
			pattern[word[1]] = pattern[word[1]] "|" word[i]
		pattern[word[1]] = pattern[word[1]] ")_"
	}
	while ((getline line < objects) > 0) {
		split(line, part, " ")
		file[part[1]] = part[2]
	}
}
$3 == "T" {
	object = $1
	sub(/:$/, "", object)
	path = file[object]
	for (folder = path; sub(/\/[^\/]*$/, "", folder) && !(folder in pattern); )
		;
	# The library of reassembly alone brings the functions of base that it needs.
	# The name in the sources of a function that the other libraries use.
	name = $2
	sub(/^ndx_private_/, "", name)
	if (folder in pattern && name !~ pattern[folder] && path !~ /\/alone\.c$/) {
		print path ": " name " does not begin with the prefix of " folder
		bad = 1
	}
}
END { exit bad }' "$tmp/symbols" || touch "$tmp/prefixes"

awk -v floors="$tmp/floors" -v objects="$tmp/objects" '
# The longest folder of the list of floors that a path begins with; "" if there is none.
function floor_folder(path, best, f) {
	best = ""
	for (f in floor)
		if (index(path, f "/") == 1 && length(f) > length(best))
			best = f
	return best
}
function height_of(path) {
	return floor[floor_folder(path)]
}
# Where a circle counts: a folder of core that is a floor, elsewhere one below the first.
function room_of(path, part) {
	if (path ~ /^core\//)
		return floor_folder(path)
	split(path, part, "/")
	return part[1] "/" part[2]
}
function reach(from, at, n, i, to) {
	if ((from, at) in reached)
		return
	reached[from, at] = 1
	n = split(calls[at], to, " ")
	for (i = 1; i <= n; i++)
		reach(from, to[i])
}
function fault(text) {
	print text
	bad = 1
}
BEGIN {
	while ((getline <floors) > 0) {
		height++
		for (i = 1; i <= NF; i++)
			floor[$i] = height
	}
	while ((getline <objects) > 0) {
		source[$1] = $2
		if (!($2 in room)) {
			room[$2] = room_of($2)
			files[++file_count] = $2
		}
	}
}
{
	at = $1
	sub(/:$/, "", at)
	at = source[at]
	if ($3 ~ /^[Uvw]$/) {
		used[++uses] = $2
		user[uses] = at
	} else if ($3 ~ /^[A-Z]$/) {
		defines[room[at], $2] = at
		# A library that has the room alone may have a stand-in for what is below it.
		if (at ~ /^(core|providers)\// && (!($2 in library) || \
			height_of(at) < height_of(library[$2])))
			library[$2] = at
	}
}
END {
	for (i = 1; i <= file_count; i++)
		if (floor_folder(files[i]) == "")
			fault(files[i] ": no floor has this folder")
	for (i = 1; i <= uses; i++) {
		at = user[i]
		symbol = used[i]
		to = ""
		if ((room[at], symbol) in defines)
			to = defines[room[at], symbol]
		else if (symbol in library)
			to = library[symbol]
		if (to == "" || to == at)
			continue
		if (height_of(to) > height_of(at))
			fault(at " calls " symbol " of " to ", which is a higher floor")
		if (room[to] != room[at])
			continue
		if (!((at, to) in why))
			calls[at] = calls[at] " " to
		why[at, to] = why[at, to] " " symbol
	}
	for (i = 1; i <= file_count; i++)
		reach(files[i], files[i])
	for (i = 1; i <= file_count; i++) {
		a = files[i]
		for (j = 1; j <= file_count; j++) {
			b = files[j]
			if (a == b || !((a, b) in reached) || !((b, a) in reached))
				continue
			if (!(a in circled))
				count[room[a]]++
			circled[a] = 1
			if ((a, b) in why)
				arrows[room[a]] = arrows[room[a]] "\n  " a " -> " b ":" why[a, b]
		}
	}
	for (r in count)
		fault(r ": " count[r] " files call each other in a circle" arrows[r])
	if (!bad)
		printf "%d files, none of them in a circle\n", file_count
	exit bad
}' "$tmp/symbols"
[ ! -e "$tmp/prefixes" ]
