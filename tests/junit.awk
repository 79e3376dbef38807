# SPDX-License-Identifier: BSD-2-Clause
# Reads one JUnit file of ctest, writes VERDICT NAME [: REASON] per line; VERDICT is passed, failed or
# skipped. A test that writes TAP counts case by case, any other test once, and what cmocka skipped
# in it beside it. Skipped is only what said so itself: ctest files a missing program under
# "skipped", too, and that is a failure. A known deviation (TAP's TODO) has not passed either. A test
# that passes although a case failed had to see it fail: it counts once. What a failed test says goes
# to the file `why`.
# usage: awk -v run=PRESET -v why=FILE -f why.awk -f junit.awk FILE

function plain(text) {
	gsub(/&quot;/, "\"", text)
	gsub(/&apos;/, "'", text)
	gsub(/&lt;/, "<", text)
	gsub(/&gt;/, ">", text)
	gsub(/&amp;/, "\\&", text)
	return text
}

function attribute(line, key) {
	if (!match(line, " " key "=\"[^\"]*\""))
		return ""
	return plain(substr(line, RSTART + length(key) + 3, RLENGTH - length(key) - 4))
}

function note(verdict, rest) {
	notes[count++] = verdict " " run "/" name rest
}

# One line of a case: "ok 3 - data.read # SKIP it lacks that"
function tap(line,   ok, words) {
	ok = line ~ /^ok/
	sub(/^(not )?ok [0-9]+ - /, "", line)
	words = line
	sub(/ # .*/, "", line)
	cases++
	if (words ~ / # SKIP/ && ok) {
		sub(/.* # SKIP */, "", words)
		note("skipped", " " line " : " words)
	} else if (words ~ / # TODO/) {
		sub(/.* # TODO */, "", words)
		note("skipped", " " line " : known deviation: " words)
	} else {
		note(ok ? "passed" : "failed", " " line)
		failures += !ok
	}
}

/<testcase / {
	name = attribute($0, "name")
	status = attribute($0, "status")
	message = reason = ""
	cases = failures = count = 0
	why_begin()
}

/<failure |<skipped / {
	message = attribute($0, "message")
}

{
	line = plain($0)
	sub(/^.*<system-out>/, "", line)
	ends = sub(/<\/system-out>.*$/, "", line)
	if (line !~ /^\t*<(\/?testcase|failure|skipped|properties|\/?testsuite)/ && !(ends && line == ""))
		why_line(line)
	if (line ~ /^(not )?ok [0-9]+ - /) {
		tap(line)
	} else if (line ~ /^\[  SKIPPED \] [^0-9]/) {
		note("skipped", " " substr(line, 14))
	} else if (reason == "" && line ~ /^[ \t]*(SKIP|skip)([ :]|$)/) {
		reason = line
		sub(/^[ \t]*(SKIP|skip)[ :]*/, "", reason)
	}
}

/<\/testcase>/ {
	if (status == "run") {
		if (failures > 0)
			count = 0
		if (cases == 0 || failures > 0)
			note("passed")
	} else if (status != "fail" && message ~ /^SKIP_/) {
		if (cases == 0)
			note("skipped", " : " (reason != "" ? reason : "gave no reason"))
	} else if (status == "disabled") {
		note("skipped", " : disabled")
	} else if (failures == 0 || message !~ /^(Failed)?$/) {
		note("failed", message ~ /^(Failed)?$/ ? "" : " : " message)
	}
	for (i = 0; i < count; i++)
		print notes[i]
	if (status == "fail")
		why_print(run "/" name, why)
}
