# SPDX-License-Identifier: BSD-2-Clause
# usage: awk -v want="PACKAGE..." -f closure.awk /var/lib/dpkg/status
# The installed packages that a root needs for the wanted ones: these, the essential ones, and what
# all of them depend on. A wanted package that is not installed is said to standard error.
BEGIN {
	RS = ""
	FS = "\n"
}
{
	name = status = depends = ""
	for (i = 1; i <= NF; i++) {
		line = $i
		if (sub(/^Package: /, "", line))
			name = line
		else if (sub(/^Status: /, "", line))
			status = line
		else if (line == "Essential: yes")
			essential[name] = 1
		else if (sub(/^(Pre-)?Depends: /, "", line))
			depends = depends ", " line
		else if (sub(/^Provides: /, "", line))
			provides = line
	}
	if (status !~ / installed$/) {
		delete essential[name]
		provides = ""
		next
	}
	needs[name] = depends
	n = split(provides, names, /, */)
	for (i = 1; i <= n; i++) {
		sub(/[ (:].*/, "", names[i])
		virtual[names[i]] = virtual[names[i]] " " name
	}
	provides = ""
}
# add NAME: to the queue, if it is installed or an installed package provides it
function add(name, providers) {
	if (name in needs) {
		if (!(name in taken)) {
			taken[name] = 1
			queue[++last] = name
		}
		return 1
	}
	if (name in virtual && split(virtual[name], providers, " ") > 0)
		return add(providers[1])
	return 0
}
END {
	for (name in essential)
		add(name)
	n = split(want, names, " ")
	for (i = 1; i <= n; i++)
		if (!add(names[i])) {
			print names[i] " is not installed" >"/dev/stderr"
			failed = 1
		}
	for (first = 1; first <= last; first++) {
		n = split(needs[queue[first]], groups, /, */)
		for (i = 1; i <= n; i++) {
			m = split(groups[i], names, / *\| */)
			for (j = 1; j <= m; j++) {
				sub(/[ (:].*/, "", names[j])
				if (add(names[j]))
					break
			}
		}
	}
	for (name in taken)
		print name
	exit failed
}
