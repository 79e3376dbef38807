#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: spelling.sh SOURCE
# codespell finds no misspelling. Words that are right all the same stand in codespell.words.
set -eu
cd "$1"
if ! command -v codespell >/dev/null; then
	echo "skip: codespell is not installed"
	exit 77
fi
words=tests/checks/codespell.words
set -- --skip './build,./.git,./tests/fuzz/corpus,*.pcap,*.pcapng,*.bin' --quiet-level 2
[ ! -f "$words" ] || set -- "$@" --ignore-words "$words"
codespell "$@" .
