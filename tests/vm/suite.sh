#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: suite.sh SOURCE CASES TIMES
# In the guest: all that tests/run.sh runs there. CASES chooses those of ndx-conformance, TIMES is how
# much of the rest is run. Prints TAP, part by part. What it needs tests/run.sh has packed.
set -u
src=$1 cases=$2 times=$3
ended=0

sh "$src/tests/vm/peers.sh" "$src" "$times" || ended=1
sh "$src/tests/vm/negotiate.sh" "$src" || ended=1
ndx-conformance verbs:rxe0 verbs:rxe1 --filter "$cases" || ended=1
exit $ended
