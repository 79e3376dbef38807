# SPDX-License-Identifier: BSD-2-Clause
# Functions for junit.awk and tap.awk: of the output of a test, the lines that say why it failed. These
# begin with the first line that tells of a failure; without one they are the last lines.

function why_begin() {
	why_count = why_found = 0
}

function why_line(line) {
	sub(/\r$/, "", line)
	gsub(/\033\[[0-9;]*[A-Za-z]/, "", line)
	if (why_found > 0 && why_count - why_found + 1 >= 8)
		return
	why_kept[++why_count] = line
	if (why_found == 0 && line ~ /FAILED: |\[  ERROR   \]|^not ok |Sanitizer: |runtime error: |Error: /)
		why_found = why_count
}

# To the file, with the name of the test before each line
function why_print(test, file,   i) {
	if (file == "")
		return
	for (i = why_found > 0 ? why_found : why_count > 8 ? why_count - 7 : 1; i <= why_count; i++)
		print test "\t" substr(why_kept[i], 1, 160) >file
}
