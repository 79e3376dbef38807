# Rows of ndx-scale as a table.
def digits(n): . * pow(10; n) | round / pow(10; n);
"| connections | message (us), in turn | on one, others idle | connect one more (us) | leave (us) | KiB for an end | the library's | control, idle | busy |",
"|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
(.[] | "| \(.connections) | \(.all_us | digits(2)) | \(.one_us | digits(2)) | \(.connect_us | round) | \(.leave_us | round) | \(if .kib_per_end == null then "" else .kib_per_end | round end) | \(if .own_kib_per_end == null then "" else .own_kib_per_end | digits(1) end) | \(100 * .control_idle | digits(2)) % | \(100 * .control_busy | digits(1)) % |")
