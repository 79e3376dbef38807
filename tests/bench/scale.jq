# Rows of ndx-scale as a table.
def digits(n): . * pow(10; n) | round / pow(10; n);
"| connections | us for a message, all in turn | on one, the others idle | us to connect one more | us to leave | KiB for an end, all | the library's own | control threads, idle | busy |",
"|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
(.[] | "| \(.connections) | \(.all_us | digits(2)) | \(.one_us | digits(2)) | \(.connect_us | round) | \(.leave_us | round) | \(if .kib_per_end == null then "" else .kib_per_end | round end) | \(if .own_kib_per_end == null then "" else .own_kib_per_end | digits(1) end) | \(100 * .control_idle | digits(2)) % | \(100 * .control_busy | digits(1)) % |")
