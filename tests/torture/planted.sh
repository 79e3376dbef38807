#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: planted.sh PROGRAM ARGUMENTS...
# Runs ndx-torture over a library with a fault in it and succeeds if a round fails, with the line
# that repeats it. Anything else (it passes, it crashes) is a failure.
out=$("$@" 2>&1)
ended=$?
printf '%s\n' "$out" | tail -n 20
if [ $ended -ne 1 ]; then
	echo "planted.sh: ended with $ended, not 1: the fault went unnoticed, or did too much"
	exit 1
fi
if ! printf '%s\n' "$out" | grep -q '^FAILED round [0-9]'; then
	echo "planted.sh: no round failed"
	exit 1
fi
if ! printf '%s\n' "$out" | grep -q '^repeat it with: ndx-torture .* --seed [0-9]* --rounds 1 --replay$'; then
	echo "planted.sh: nothing says how to repeat it"
	exit 1
fi
echo "planted.sh: the fault was noticed"
