# SPDX-License-Identifier: BSD-2-Clause
# Reads one JUnit file of ctest, writes one line per test: VERDICT NAME [: REASON].
# VERDICT is passed, failed or skipped. A test is skipped only if it said so itself (exit code 77,
# or cmocka's mark): ctest files a missing program under "skipped", too, and that is a failure.
# usage: awk -v run=PRESET -f junit.awk FILE

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

/<testcase / {
	name = attribute($0, "name")
	status = attribute($0, "status")
	message = reason = ""
	parts = 0
}

/<failure |<skipped / {
	message = attribute($0, "message")
}

{
	line = plain($0)
	sub(/^.*<system-out>/, "", line)
	sub(/<\/system-out>.*$/, "", line)
	if (reason == "" && line ~ /^[ \t]*(SKIP|skip)([ :]|$)/) {
		reason = line
		sub(/^[ \t]*(SKIP|skip)[ :]*/, "", reason)
	}
	if (line ~ /^\[  SKIPPED \] [^0-9]/) {
		part[parts] = line
		sub(/^\[  SKIPPED \] /, "", part[parts++])
	}
}

/<\/testcase>/ {
	if (status == "run") {
		print "passed", run "/" name
		for (i = 0; i < parts; i++)
			print "skipped", run "/" name, ":", part[i]
	} else if (message ~ /^SKIP_/) {
		print "skipped", run "/" name, ":", reason != "" ? reason : "gave no reason"
	} else if (status == "disabled") {
		print "skipped", run "/" name, ": disabled"
	} else {
		print "failed", run "/" name (message ~ /^(Failed)?$/ ? "" : " : " message)
	}
	name = ""
}
