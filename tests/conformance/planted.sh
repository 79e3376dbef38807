#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: planted.sh PROGRAM ARGUMENTS...
# Runs ndx-conformance over a library with a fault in it and succeeds if the program says so: exit
# code 1, load cases not ok, messages missing. Anything else (it passes, it crashes) is a failure.
out=$("$@" 2>&1)
ended=$?
printf '%s\n' "$out"
if [ $ended -ne 1 ]; then
	echo "planted.sh: ended with $ended, not 1: the fault went unnoticed, or did too much"
	exit 1
fi
if ! printf '%s\n' "$out" | grep -q '^not ok .*disconnect\.load'; then
	echo "planted.sh: no load case failed"
	exit 1
fi
if ! printf '%s\n' "$out" | grep -q '^# sends ok .* missing [1-9]'; then
	echo "planted.sh: no message is missing"
	exit 1
fi
echo "planted.sh: the fault was noticed"
