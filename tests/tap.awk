# SPDX-License-Identifier: BSD-2-Clause
# Reads the TAP of a guest, writes VERDICT NAME [: REASON] per line, as junit.awk does. A deviation that
# is listed is "not ok ... # TODO". What a failed case says goes to the file `why`. If there are more or
# fewer results than the plans say, NAME plan has failed.
# usage: awk -v run=GUEST -v why=FILE -f why.awk -f tap.awk FILE

function finish() {
	if (failed != "")
		why_print(failed, why)
	failed = ""
	why_begin()
}

# A program writes its progress to the console, too, and deletes it before the next result.
{
	sub(/\r$/, "")
	sub(/^.*\r/, "")
	sub(/^\033\[K/, "")
}

/^1\.\.[0-9]+$/ {
	planned += substr($0, 4)
}

/^(not )?ok / {
	finish()
	results++
	verdict = /# SKIP/ || /^not ok .*# TODO/ ? "skipped" : /^not/ ? "failed" : "passed"
	name = $0
	sub(/^(not )?ok [0-9]+ - /, "", name)
	reason = name
	sub(/ .*/, "", name)
	sub(/^[^ ]*/, "", reason)
	sub(/^ (# )?(SKIP )?/, "", reason)
	sub(/^TODO /, "known deviation: ", reason)
	if (verdict == "failed")
		failed = run "/" name
	print verdict, run "/" name (reason != "" ? " : " reason : "")
}

{
	if (failed != "")
		why_line($0)
}

END {
	finish()
	if (results > 0 && results != planned)
		print "failed", run "/plan : there are " results " results, of " planned + 0
}
