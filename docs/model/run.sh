#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Searches the model of the disconnect contract.
#
#   run.sh                  every setting, full search: no property may fail
#   run.sh planted FAULT    the property named in faults.def must object to the fault
#   run.sh reached WITNESS  the condition named in faults.def must be reachable
#   run.sh list             the names for the two above
#
# Exit 0 as expected, 1 not so, 77 a tool is missing. KEEP=dir keeps what spin and cc leave behind.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cc=${CC:-cc}
memory=${MODEL_MEMORY_MB:-2000}
optimise=-O1 # most searches take less time than the compiler needs for -O2

# build MODEL-OPTIONS: leaves ./pan; spin's preprocessor finds the tables from disconnect.pml's place
build()
{
	case $1 in
	*-DLIVE*) kind=-DNOFAIR ;;
	*) kind=-DSAFETY ;;
	esac
	# shellcheck disable=SC2086
	if ! spin $1 -a "$here/disconnect.pml" >spin.log 2>&1 ||
		! $cc "$optimise" -w -DNOREDUCE -DMEMLIM="$memory" $kind -o pan pan.c; then
		cat spin.log
		exit 1
	fi
}

# run PAN-OPTIONS: leaves pan.log
run()
{
	case $kind in
	-DNOFAIR) ./pan -a -m400000 "$@" >pan.log 2>&1 || true ;;
	*) ./pan -m400000 "$@" >pan.log 2>&1 || true ;;
	esac
}

# A search cut short, by depth or by memory, proves nothing.
searched_all()
{
	grep -q 'errors: 0' pan.log &&
		! grep -qE 'max search depth|MEMLIM bound|out of memory|not completed' pan.log
}

figures()
{
	awk '/depth reached/ { sub(",", "", $6); depth = $6 } / states, stored/ { states = $1 }
		/elapsed time/ { time = $4 } END { printf "%s states, depth %s, %s s\n", states, depth, time }' pan.log
}

all_properties()
{
	sed -n 's/^PROPERTY([0-9]*, \([a-z_]*\)).*/\1/p; s/^ltl \([a-z_]*\) .*/\1/p' "$here/disconnect.pml"
}

# Those that the pan at hand checks, a line each.
properties()
{
	all_properties | while read -r name; do
		if grep -q "spin_assert.*$name\|CLAIM $name" pan.m pan.h; then
			echo "$name"
		fi
	done
}

number_of()
{
	sed -n "s/^PROPERTY(\([0-9]*\), $1)/\1/p" "$here/disconnect.pml"
}

# search SETTING "what it is" MODEL-OPTIONS PAN-OPTIONS
search()
{
	build "$3"
	run "$4"
	if searched_all; then
		echo "ok   $1 ($2): $(figures)"
		properties | sed "s/\$/ $1/" >>held
	else
		echo "FAIL $1 ($2)"
		grep -E '^pan|errors:|depth' pan.log
		failed=1
	fi
}

check()
{
	failed=0
	optimise=-O2
	: >held
	for property in $(all_properties); do
		if [ "$property" != witness ] && ! grep -q "CAUGHT [A-Z_]* $property" "$here/faults.def"; then
			echo "FAIL no planted fault shows that $property can fail"
			failed=1
		fi
	done
	search calls "consumers call anything, anything may be lost" "-DLIVE" -w23
	search no_receives "the same, and no side posts a receive" "-DLIVE -DNO_RECEIVES" -w23
	search data "each send followed through the network" "-DLIVE -DDATA" -w20
	search calm "nothing lost, no timer" "-DLIVE -DCALM" -w18
	search calm-data "both" "-DLIVE -DCALM -DDATA" -w18
	if [ $failed = 0 ]; then
		awk '!($1 in in_) { order[++n] = $1 } { in_[$1] = in_[$1] " " $2 }
			END { for (i = 1; i <= n; i++) printf "holds %-40s in%s\n", order[i], in_[order[i]] }' held
		echo "0 errors, $(awk '{ print $1 }' held | sort -u | wc -l) properties"
	fi
	return $failed
}

planted()
{
	line=$(sed -n "s/.*CAUGHT $1 \([a-z_]*\)\([-A-Z_ ]*\).*/\1 \2/p" "$here/faults.def")
	if [ -z "$line" ]; then
		echo "no such fault: $1"
		exit 1
	fi
	property=${line%% *}
	options="-DFAULT_$1 ${line#* }"
	if [ "$property" = every_teardown_ends ]; then
		build "$options -DONLY=99"
		objection="acceptance cycle"
	else
		build "$options -DONLY=$(number_of "$property")"
		objection="assertion violated.*$property"
	fi
	run -w22
	if grep -q "$objection" pan.log; then
		echo "ok   $1 is caught by $property: $(figures)"
		return 0
	fi
	echo "FAIL $1 is not caught by $property"
	cat pan.log
	return 1
}

reached()
{
	if ! grep -q "^#ifdef WITNESS_$1\$" "$here/faults.def"; then
		echo "no such witness: $1"
		exit 1
	fi
	build "-DWITNESS_$1 -DONLY=$(number_of witness)"
	run -w22
	if grep -q "assertion violated.*witness" pan.log; then
		echo "ok   $1 is reachable: $(figures)"
		return 0
	fi
	echo "FAIL $1 is not reachable"
	cat pan.log
	return 1
}

if [ "${1:-}" = list ]; then
	sed -n 's/.*CAUGHT \([A-Z_]*\) .*/planted \1/p; s/^#ifdef WITNESS_/reached /p' "$here/faults.def"
	exit 0
fi
for tool in spin "${cc%% *}"; do
	if ! command -v "$tool" >/dev/null; then
		echo "SKIP: $tool is not installed"
		exit 77
	fi
done
if [ -n "${KEEP:-}" ]; then
	mkdir -p "$KEEP"
	cd "$KEEP"
else
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	trap 'exit 1' HUP INT TERM
	cd "$work"
fi
case "$#:${1:-}" in
0:) check ;;
2:planted | 2:reached) "$1" "$2" ;;
*)
	sed -n '3,11s/^# \{0,1\}//p' "$0"
	exit 1
	;;
esac
