#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: style.sh SOURCE
# What no tool knows about our house: lengths, licence lines, and what must not stand in the tree.
# Patterns are written so that they do not match their own line here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

find . \( -path ./build -o -path ./.git \) -prune -o -type f -print | sed 's|^\./||' | sort >"$tmp/all"
grep -E '\.([chs]|sh|py|def|map|pml|cmake|txt|in|cc|cpp|hpp)$' "$tmp/all" >"$tmp/text" || true
grep -E '\.(c|h|sh|py|def|pml|cc|cpp|hpp)$|(^|/)CMakeLists\.txt$' "$tmp/all" >"$tmp/sources" || true

# report WHY: fail if there is anything on the standard input. It stands at the end of a pipe, in a
# shell of its own, so the verdict is a file.
report() {
	cat >"$tmp/found"
	[ -s "$tmp/found" ] || return 0
	sed 's/^/  /' "$tmp/found"
	echo "^ $1"
	touch "$tmp/bad"
}
# hits LIST PATTERN: where the files named in LIST match
hits() {
	tr '\n' '\0' <"$1" | xargs -0 -r grep -nIE -e "$2" /dev/null || true
}

tr '\n' '\0' <"$tmp/sources" | xargs -0 -r wc -l | awk '$1 > 600 && $2 != "total"' |
	report 'a file has at most 600 lines: divide it'
tr '\n' '\0' <"$tmp/sources" | xargs -0 -r grep -L 'SPDX-License-Identifier: BSD-2-Clause' |
	report 'a source says SPDX-License-Identifier: BSD-2-Clause at its top'
find . -mindepth 1 -maxdepth 1 ! -name '.*' | sed 's|^\./||' |
	grep -vxE 'CMakeLists\.txt|CMakePresets\.json|README\.md|LICENSE|build' |
	grep -vxE 'api|providers|core|plugins|shims|tests|samples|docs' |
	report 'the top has no other files and folders than the house has rooms'

# Prose can be wrapped, so a line of a page ends at 100. A row of a table cannot: it has 160, and what
# is longer than that is a sentence, which belongs into a list. What stands between ``` is quoted as
# a program prints it.
grep -E '\.md$' "$tmp/all" >"$tmp/pages" || true
# shellcheck disable=SC2016
tr '\n' '\0' <"$tmp/pages" | xargs -0 -r awk '
	FNR == 1 { quoted = 0 }
	/^ *```/ { quoted = !quoted; next }
	!quoted && length($0) > (/^\|/ ? 160 : 100) { print FILENAME ":" FNR ": " length($0) }' |
	report 'a line of a page has at most 100 characters, a row of a table 160'

grep -vx 'docs/CHANGELOG\.md' "$tmp/pages" >"$tmp/prose" || true
hits "$tmp/prose" '(^|[^A-Za-z])([Ll]ikewise|[Ff]or ever|[Ll]est|[Mm]eanwhile|[Ww]ho(ever)|Who (is|has|[a-z]+s)|(and|but|for|to|of) who (is|has|[a-z]+s))([^A-Za-z]|$)' |
	grep -v '?' |
	report 'a page names its subject and its time in plain English: not "who waits", "meanwhile"'

hits "$tmp/all" '(^|[^A-Za-z0-9_.$}-])/([h]ome|[r]oot|[w]ork|[m]nt|[U]sers)/[A-Za-z0-9_.-]' |
	report 'no path of some machine'
hits "$tmp/all" '(^|[^A-Za-z0-9_.$}-])/[t]mp/[A-Za-z0-9_.-]+/' |
	report 'no path of some machine'
# Another thread may be reading it, and what it says is the user's.
grep -E '^(core|providers|plugins|shims)/.*\.[ch]$' "$tmp/sources" >"$tmp/product" || true
hits "$tmp/product" '(^|[^A-Za-z_])([p]utenv|[s]etenv|[u]nsetenv|[c]learenv)\(' |
	report 'the library leaves the environment alone'
hits "$tmp/all" '(deb|security|snapshot|ftp)\.[d]ebian\.org|[p]ypi\.org|[p]ythonhosted\.org|[n]pmjs\.org|(^|[^a-z])[c]rates\.io|[p]roxy\.golang\.org|[a]rchive\.ubuntu\.com|[d]ocker\.io|[g]hcr\.io|[q]uay\.io' |
	report 'no host of a package registry'

grep -E '^(core|providers)/.*\.[ch]$' "$tmp/all" >"$tmp/library" || true
hits "$tmp/library" '(^|[^A-Za-z0-9_>.])(abort|exit|_Exit|quick_exit)\(' |
	report 'a library does not end its process'
hits "$tmp/library" '(^|[^A-Za-z0-9_])(printf|puts|putchar|perror)\(|[^A-Za-z0-9_](stdout|stderr)[^A-Za-z0-9_]' |
	grep -vE ':[[:space:]]*(/?\*|//)|/\*[^*]*(std(out|err)|printf)' |
	report 'a library prints nothing: it has a log sink'

grep -E '^tests/.*\.(c|cc|cpp)$' "$tmp/all" >"$tmp/tests" || true
hits "$tmp/tests" '(^|[^A-Za-z0-9_])(u|nano|clock_nano|thrd_)?sleep\(' |
	report 'a test waits for the event, with a time-out; it does not sleep'

# The rooms whose comments are in plain English. A room that is rewritten is added to the list.
plain='api|core|plugins|providers|samples|shims'
plain="$plain|tests/(abi|bench|callbacks|conformance|consumers|fakes|fuzz|model|ndspi|plants|process|reassembly|receiver)"
plain="$plain|tests/(samples|surf|suppressions|sweep|torture|vm)"
plain="$plain|tests/unit/(base|connection|core|fault|loop|negotiation|ofi|plugins|reassembly|receiver|samples|surf|verbs)"
grep -E "^($plain)/(.*\.(c|h|hpp|cpp|sh|py)|(.*/)?CMakeLists\.txt)\$" "$tmp/all" >"$tmp/plain" ||
	true
tr '\n' '\0' <"$tmp/plain" | xargs -0 -r awk -f "$here/comments.awk" |
	sed 's/@param who / /' |
	grep -iwE 'who|whom|whoever|(some|no|every|any)body|likewise|lest|meanwhile|for ever' |
	report 'a comment names its subject (the consumer, the peer), and uses plain words'

# A function's name says what it acts on: "take < take < tell" in a stack trace says nothing.
grep -E '^(core|plugins|providers|samples|tests)/.*\.[ch]$' "$tmp/all" >"$tmp/named" || true
hits "$tmp/named" '^(static|ALWAYS_INLINE) [^;=]*[ *](take|fill|say|tell|begin|put|keep|hold|give|hear|part|settle|lend|hand_(on|over|in))\(' |
	report 'a static function is not named by a bare verb'
# Words that were retired: docs/glossary.md has the term in their place. A word is added when nothing
# but the changelog has it any more.
retired='vb_[a-z]+|VB_[A-Z]+|fault_(strike|scribble|cqs_light)|meeting_place|port_lent|ofi_told|OFI_TOLD_MAX|ofi_key_tell|ofi_(qp|link)_say|ofi_link_tell|words_in|written_words|looks_for_nothing|receives_told|ofi_(flavour|word|life|issue)[a-z_]*|OFI_OP_WORD|(ofi|verbs)_[a-z]*(hand_over|hurry|hear|tell)(_[a-z]+)?|debtors?|VERBS_WORD_[A-Z]+|write_word|disc_said|goodbye_said|leaving_said'
retired="$retired|[Ss]tarv(e|es|ed|ing)(_[a-z_]+)?|[Ss]trangers?(_[a-z_]+)?|[a-z_]+_strangers?(_[a-z_]+)?|who(ever)?_[a-z_]+|NDX_DESCRIPTION_MEETING|conn_meeting[a-z_]*|NDX_WORD_[A-Z_]+|ndx_spi_word|conn_(heard|grave|mail|news|bury)[a-z_]*|mr_settle[a-z_]*|[a-z_]+_set_(channel|blind)|NDX_NO_CHANNEL|ndx_plugin_channel[a-z_]*|struct (wire|mute)|wire_(said|heard|tie|part)[a-z_]*|mute_(create|drop)|FRAME_BYE|base_flag_[a-z]+|base_qp_(feed|fed)|wants_any|receiver_lend[a-z_]*|call_text[a-z_]*|adapter_(adopt|disown)"
grep -vx 'docs/CHANGELOG\.md\|tests/checks/style\.sh' "$tmp/all" >"$tmp/current" || true
hits "$tmp/current" "(^|[^A-Za-z0-9_])(($retired)([^A-Za-z0-9_]|\$)|settle[a-z_]*\()" |
	report 'a word that was retired: docs/glossary.md has the term in its place'

grep -E '^tests/suppressions/.*\.supp$' "$tmp/all" >"$tmp/supp" || true
hits "$tmp/supp" '^[^#]' | grep -vE ':[a-z_]+:[^:]*lib(fabric|python)[^:]*$' |
	report 'a suppression names libfabric or libpython, never code of ours'
[ ! -e "$tmp/bad" ]
