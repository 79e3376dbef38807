# Rows of ndx-perf compare as tables: one for each test and mode. Those of --beside tcp,ucx make
# tables of what is beside NDX there.
def size: if . >= 1048576 then "\(. / 1048576) MiB" elif . >= 1024 then "\(. / 1024) KiB"
	else "\(.) B" end;
def digits(n): . * pow(10; n) | round / pow(10; n);
def value(unit): if . == null then "" elif unit == "us" then digits(2) else round end;
def ratio: if . == null then "" else digits(2) end;
def what: "\({latency: "Half a round trip", stream: "Streaming"}[.test]), \(
	{spin: "polling", wait: "sleeping"}[.mode])";
def quiet: if .aa != null and ((.aa - 1) | fabs) > 0.03 then " undecided" else "" end;
def beside_table:
	.[0] as $first |
	"**\($first | what), against UCX and plain sockets** (\($first.unit))",
	"",
	"| size | receives | NDX | libfabric, plain | UCX | plain sockets | NDX / UCX | NDX / sockets | same / same |",
	"|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
	(sort_by(.depth, .size)[] |
		"| \(.size | size) | \(.depth) | \(.ndx | value($first.unit)) | \(.raw_plain | value($first.unit)) | \(.ucx | value($first.unit)) | \(.tcp | value($first.unit)) | **\(.ratio_ucx | ratio)** | **\(.ratio_tcp | ratio)** | \(.aa | ratio)\(quiet) |"),
	"";
def library_table:
	.[0] as $first |
	"**\($first | what)** (\($first.unit))",
	"",
	"| size | receives | NDX | libfabric, same guarantees | libfabric, plain | NDX / same | quartiles | NDX / plain | same / same |",
	"|---:|---:|---:|---:|---:|---:|---|---:|---:|",
	(sort_by(.depth, .size)[] |
		"| \(.size | size) | \(.depth) | \(.ndx | value($first.unit)) | \(.raw_same | value($first.unit)) | \(.raw_plain | value($first.unit)) | **\(.ratio_same | ratio)** | \(.q1 | ratio) .. \(.q3 | ratio) | \(.ratio_plain | ratio) | \(.aa | ratio)\(quiet) |"),
	"";
group_by([.test, .mode])[] | if .[0] | has("ucx") then beside_table else library_table end
